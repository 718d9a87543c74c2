"""How a process starts: slow at first, faster for half a minute, and then in time."""

from __future__ import annotations

import statistics

from jettison.control.load_model import Costs
from jettison.core.stats import Stats

COLDEST = 3.0
"""Times that a process may be slower than it will be, after its first batch."""
_COLD_FOR, _COLD_S = 3.0, 15.0  # lengths of the first batch for which it may, and seconds at most; then it falls
_COLD = 1.25  # slowness up to which a process counts as warm
_CATCH_UP_S = 120.0  # in which a process may catch up with what came while it was slow
_IN_TIME = 2  # batches in time, one after the other, that end the start
_BATCHES, _FALL = 2, 1.15  # costs fall no more if so many batches, at half the age, took less than this times as long
_TOLD = 1.0  # of the time for which it may be coldest: before, costs have fallen too little to be told from noise
_REMEMBERED = 64


class StartUp:
    """What the first batch of a process and the time since then say about its costs.

    A JVM compiles while it works. How long its first batch took, beyond its rows' worth, says how far that has to go: some
    seconds where everything was cold, next to nothing where the same process has run queries before. For three times as
    long (15 s at most) costs may still be three times what they will be; then the allowance falls, to nothing after twice
    as long again. It ends at the beginning of that fall where batches of this size took no longer at half the age.

    Examples
    --------
    >>> start = StartUp()
    >>> start.observe(Stats(0, started_s=0.0, duration_s=6.0), in_time=False)
    >>> [round(start.slowness(at_s, at_s), 1) for at_s in (8.0, 21.0, 36.0, 51.0)]
    [3.0, 3.0, 2.0, 1.0]
    """

    def __init__(self) -> None:
        self._first: tuple[float, float, int] | None = None
        self._later: list[tuple[float, int, int, float]] = []
        self._in_time = 0

    @property
    def over(self) -> bool:
        """Whether batches of a warm process have been in time: from then on the costs measured are those that count."""
        return self._in_time >= _IN_TIME

    @property
    def started_s(self) -> float:
        """When the first batch started."""
        return 0.0 if self._first is None else self._first[0]

    @property
    def warm_from_s(self) -> float:
        """When the first batch ended."""
        return 0.0 if self._first is None else self._first[0] + self._first[1]

    def observe(self, stats: Stats, in_time: bool, slowness: float = 1.0) -> None:
        """Note a finished batch, whether its rows were in time, and how slow the process may still have been."""
        if self._first is None:
            self._first = stats.started_s, stats.duration_s, stats.seen
        elif stats.seen > 0:
            age_s = stats.started_s + stats.duration_s / 2 - self.warm_from_s
            self._later = [*self._later[-_REMEMBERED:], (age_s, stats.seen, stats.kept, stats.duration_s)]
        if not self.over:
            # Small batches are in time however slow the process is: they end nothing.
            self._in_time = self._in_time + 1 if in_time and slowness <= _COLD else 0

    def may_catch_up(self, now_s: float) -> bool:
        """Whether the process may still be catching up with what came while it was slow."""
        return now_s - self.warm_from_s <= _CATCH_UP_S

    def slowness(self, from_s: float, to_s: float, costs: Costs | None = None) -> float:
        """How many times slower than it will be the process may have been in that time, by what is known of its costs."""
        if self._first is None:
            return 1.0
        costs = costs if self._later else None  # before, they are those of an earlier process
        first_rows_s = 0.0 if costs is None else costs.predict(self._first[2], self._first[2])
        cold_s = min(_COLD_FOR * max(self._first[1] - first_rows_s, 0.0), _COLD_S)
        age_s = (from_s + to_s) / 2 - self.warm_from_s
        if costs is not None and age_s >= _TOLD * cold_s and self._falls_no_more(costs, age_s):
            return 1.0
        return 1 + (COLDEST - 1) * min(max((3 * cold_s - age_s) / max(2 * cold_s, 1e-3), 0.0), 1.0)

    def _falls_no_more(self, costs: Costs, age_s: float) -> bool:
        """Whether batches of this size, at half the age, took no longer than costs say by now."""
        latest = self._later[-1][1]
        early = [
            duration_s / costs.predict(seen, kept)
            for at_s, seen, kept, duration_s in self._later
            if at_s <= age_s / 2 and latest / 3 <= seen <= 3 * latest
        ]
        return len(early) >= _BATCHES and statistics.median(early[-_BATCHES:]) < _FALL
