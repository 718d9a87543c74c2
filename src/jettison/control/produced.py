"""What the source says has come, asked while a batch runs: a step of the load is seen before the batch that meets it."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

_REMEMBERED_S = 60.0
_SPAN_S = 1.0  # over which a rate is taken at least
_PAUSES = 2.0  # longest pauses between arrivals, over which it is taken at least: rows come in files


class Produced:
    """How many rows the source has had so far, as it said at some times of the last minute.

    Examples
    --------
    >>> produced = Produced()
    >>> for tick in range(9):
    ...     produced.tell(tick / 4, 1000.0 * tick)
    >>> produced.rows_per_s, produced.came(1.0, 2.5, rate=4000.0)
    (4000.0, 6000.0)
    """

    def __init__(self) -> None:
        self._told: deque[tuple[float, float]] = deque()
        self._grew: deque[float] = deque()

    @property
    def since_s(self) -> float | None:
        """When it was first told; `None` before that."""
        return self._told[0][0] if self._told else None

    def tell(self, at_s: float, rows: float) -> None:
        """Take in what the source says at a time; a count that falls belongs to a source that begins anew."""
        if self._told and (at_s <= self._told[-1][0] or rows < self._told[-1][1]):
            self._told.clear()
            self._grew.clear()
        if self._told and rows > self._told[-1][1]:
            self._grew.append(at_s)
        self._told.append((at_s, rows))
        while self._told[0][0] < at_s - _REMEMBERED_S:
            self._told.popleft()
        while self._grew and self._grew[0] < at_s - _REMEMBERED_S:
            self._grew.popleft()

    @property
    def rows_per_s(self) -> float | None:
        """Rate of the last second, or of two of the longest pauses between arrivals; `None` where less is known."""
        if not self._told:
            return None
        now_s = self._told[-1][0]
        times = [self._told[0][0], *self._grew, now_s]
        span_s = max(_SPAN_S, _PAUSES * max(late - early for early, late in zip(times, times[1:], strict=False)))
        if now_s - self._told[0][0] < span_s:
            return None
        return (self._told[-1][1] - self._at(now_s - span_s)) / span_s

    def came(self, from_s: float, to_s: float, rate: float) -> float | None:
        """Rows that came in that time, at `rate` after the last word; `None` where nothing was told of its beginning."""
        if not self._told or from_s < self._told[0][0]:
            return None
        return max(self._at(to_s, rate) - self._at(from_s, rate), 0.0)

    def _at(self, at_s: float, rate: float = 0.0) -> float:
        number = bisect_right(self._told, at_s, key=lambda told: told[0])
        early_s, early = self._told[max(number - 1, 0)]
        if number == len(self._told):
            return early + rate * (at_s - early_s)
        late_s, late = self._told[number]
        return early + (late - early) * max(at_s - early_s, 0.0) / max(late_s - early_s, 1e-9)
