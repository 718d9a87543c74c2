"""How a process starts: slow at first, faster for half a minute, and then in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jettison.actuation import finite
from jettison.load_model import Costs
from jettison.stats import Stats

COLDEST = 3.0
"""Times that a process may be slower than it will be, after its first batch."""
_COLD_FOR, _COLD_S = 3.0, 15.0  # lengths of the first batch for which it may, and seconds at most; then it falls
_CATCH_UP_S = 120.0  # in which a process may catch up with what came while it was slow
_IN_TIME = 2  # batches in time, one after the other, that end the start
_BATCHES, _FALL = (
    3,
    1.15,
)  # after so many batches, costs that have not fallen by this factor since the first will not fall


class StartUp:
    """What the first batch of a process and the time since then say about its costs.

    A JVM compiles while it works. How long its first batch took, beyond its rows' worth, says how far that has to go: some
    seconds where everything was cold, next to nothing where the same process has run queries before. For three times as
    long (15 s at most) costs may still be three times what they will be; then the allowance falls, to nothing after twice
    as long again. It ends sooner where costs do not fall.

    Examples
    --------
    >>> start = StartUp()
    >>> start.observe(Stats(0, started_s=0.0, duration_s=6.0), in_time=False)
    >>> [round(start.slowness(at_s, at_s), 1) for at_s in (8.0, 21.0, 36.0, 51.0)]
    [3.0, 3.0, 2.0, 1.0]
    """

    def __init__(self) -> None:
        self._first: tuple[float, float, int] | None = None
        self._second: tuple[int, int, float] | None = None
        self._batches = 0
        self._in_time = 0

    @property
    def over(self) -> bool:
        """Whether batches have been in time for once: from then on the costs measured are those that count."""
        return self._in_time >= _IN_TIME

    @property
    def started_s(self) -> float:
        """When the first batch started."""
        return 0.0 if self._first is None else self._first[0]

    @property
    def warm_from_s(self) -> float:
        """When the first batch ended."""
        return 0.0 if self._first is None else self._first[0] + self._first[1]

    def observe(self, stats: Stats, in_time: bool) -> None:
        """Note a finished batch, and whether its rows were in time."""
        if self._first is None:
            self._first = stats.started_s, stats.duration_s, stats.seen
        elif stats.seen > 0:
            self._second = self._second or (stats.seen, stats.kept, stats.duration_s)
            self._batches += 1
        if not self.over:
            self._in_time = self._in_time + 1 if in_time else 0

    def may_catch_up(self, now_s: float) -> bool:
        """Whether the process may still be catching up with what came while it was slow."""
        return now_s - self.warm_from_s <= _CATCH_UP_S

    def slowness(self, from_s: float, to_s: float, costs: Costs | None = None) -> float:
        """How many times slower than it will be the process may have been in that time, by what is known of its costs."""
        if self._first is None:
            return 1.0
        first_rows_s = 0.0
        if costs is not None and self._second is not None:
            first_rows_s = costs.predict(self._first[2], self._first[2])
            seen, kept, duration_s = self._second
            if self._batches >= _BATCHES and duration_s < _FALL * costs.predict(seen, kept):
                return 1.0
        cold_s = min(_COLD_FOR * max(self._first[1] - first_rows_s, 0.0), _COLD_S)
        age_s = (from_s + to_s) / 2 - self.warm_from_s
        return 1 + (COLDEST - 1) * min(max((3 * cold_s - age_s) / max(2 * cold_s, 1e-3), 0.0), 1.0)

    def to_dict(self) -> dict[str, Any]:
        """All state, fit for JSON."""
        return {
            "first": None if self._first is None else list(self._first),
            "second": None if self._second is None else list(self._second),
            "batches": self._batches,
            "in_time": self._in_time,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> StartUp:
        """Restore what `to_dict` gave; raises `ValueError`, `TypeError` or `KeyError` where it is something else."""
        start = cls()
        if document["first"] is not None:
            started_s, duration_s, rows = document["first"]
            start._first = finite(started_s), finite(duration_s, 0.0), int(finite(rows, 0))
        if document["second"] is not None:
            seen, kept, duration_s = document["second"]
            start._second = int(finite(seen, 0)), int(finite(kept, 0)), finite(duration_s, 0.0)
        start._batches = int(finite(document["batches"], 0))
        start._in_time = int(finite(document["in_time"], 0))
        return start
