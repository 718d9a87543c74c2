"""Where the engine stands: what it ran last, whether it waits, and when its next batch starts."""

from __future__ import annotations

import math

from jettison.core.stats import Stats

_WAITS_S = 0.2  # without a batch, after which the engine waits for rows or its trigger; less passes between any two


class Engine:
    """Knows of the engine what reports and looks at it tell; without a batch reported, `last` is `None`.

    Examples
    --------
    >>> engine = Engine()
    >>> engine.reported(Stats(7, started_s=10.0, duration_s=3.0))
    >>> engine.starts_s(interval_s=0.0), engine.starts_s(interval_s=5.0)
    (13.0, 15.0)
    >>> engine.looked_at(14.0, running=False), engine.looked_at(14.5, running=False), engine.starts_s(interval_s=0.0)
    (False, True, 14.5)
    """

    def __init__(self) -> None:
        self.looked = False
        """Whether somebody looks while batches run."""
        self.begin()

    def begin(self) -> None:
        """A process starts."""
        self.pause()
        self.free_s, self._free_since_s = -math.inf, math.inf

    def pause(self) -> None:
        """No rows come: the last batch says nothing of the next one."""
        self.last: tuple[float, float] | None = None
        """When the last batch reported started, and when it was committed."""
        self.waiting: float | None = None
        """Rows that it left in the source, where that is known."""

    def reported(self, stats: Stats) -> None:
        """A batch was committed."""
        self.last = stats.started_s, stats.committed_s
        self.waiting = None if stats.waiting_rows is None else float(stats.waiting_rows)

    def looked_at(self, now_s: float, *, running: bool) -> bool:
        """Note whether a batch runs; says whether none has for so long that the engine waits."""
        self.looked = True
        self._free_since_s = math.inf if running else min(self._free_since_s, now_s)
        waits = now_s - self._free_since_s >= _WAITS_S
        if waits:
            self.free_s = now_s
        return waits

    def taken_until_s(self, served_s: float, since_s: float, interval_s: float) -> float:
        """Until when arrivals were taken: by the last batch, or later, where the engine has waited for rows `since_s`."""
        waits_for_rows = interval_s == 0 and self.free_s >= since_s
        return max(served_s, self.free_s) if waits_for_rows else served_s  # whoever does has taken all there were

    def starts_s(self, interval_s: float) -> float:
        """When the batch after the last one reported has started, or will."""
        assert self.last is not None
        started_s, committed_s = self.last
        if interval_s == 0 or self.free_s <= committed_s:
            return max(committed_s, started_s + interval_s, self.free_s)
        return started_s + interval_s * math.ceil((self.free_s - started_s) / interval_s)
