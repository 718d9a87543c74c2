"""What the source says has come, asked while a batch runs: a step of the load is seen before the batch that meets it."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from itertools import pairwise

_REMEMBERED_S = 60.0
_STALE_S = 10.0  # without a word, after which what was said counts no more
_SPAN_S = 1.0  # over which a rate is taken at least
_PAUSES = 2.0  # longest pauses between arrivals, over which it is taken at least: rows come in files
_TAKES_S = 0.5  # from a batch's trigger until it knows what it takes, at most
_OFF = 0.3  # by which what came and what batches held may differ
_ODD = 2  # comparisons in a row that differ by more, after which the source is believed no more
_LEAST, _MOST = 1 / 3, 3.0  # rows of a batch for a row of the source: filters, rows read twice, offsets without a row
_CERTAIN, _GAIN = 1.5, 0.3  # how much more may have come than has for certain, to learn from it what a row is; how fast
_LONG_S = 8.0  # over which is compared at most
_COVERED = 0.7  # of that time, of which something must have been told: the first question is asked after the start


class Produced:
    """How many rows the source has had so far, as it said at some times of the last minute.

    Batches tell how many rows they held of what came (`held`), so that what the source counts becomes rows: offsets may
    have no row, and what is told of files is estimated. Two comparisons in a row that differ by more than 30 %
    refute the source for good. Before one has fitted, batches that held more than came are those of a backlog from before
    the first question: the source is not believed, and may be later.

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
        self._scale: float | None = None
        self._odd = 0
        self._unborne = False
        self._held: tuple[float, float, float] | None = None

    @property
    def since_s(self) -> float | None:
        """Since when it is told, a minute at most; `None` where it is not, or not believed."""
        return None if self._unborne else self._told_since_s

    @property
    def _told_since_s(self) -> float | None:
        return self._told[0][0] if self._told and not self.refuted else None

    @property
    def refuted(self) -> bool:
        """Whether batches held other numbers of rows than the source said."""
        return self._odd >= _ODD

    def tell(self, at_s: float, rows: float) -> None:
        """Take in what the source says at a time; a count that falls belongs to a source that begins again."""
        if not (math.isfinite(at_s) and math.isfinite(rows)) or (self._told and at_s == self._told[-1][0]):
            return
        if self._told and (at_s < self._told[-1][0] or rows < self._told[-1][1]):
            self._forget()
        if self._told and rows > self._told[-1][1]:
            self._grew.append(at_s)
        self._told.append((at_s, rows))
        while self._told[0][0] < at_s - _REMEMBERED_S:
            self._told.popleft()
        while self._grew and self._grew[0] < at_s - _REMEMBERED_S:
            self._grew.popleft()

    def expire(self, now_s: float) -> None:
        """Forget what was told where nothing was for long: the source may have had any number of rows since."""
        if self._told and now_s - self._told[-1][0] > _STALE_S:
            self._forget()

    def held(self, rows: float, from_s: float, to_s: float) -> None:
        """Compare with the rows that batches took between the triggers of two; short batches are taken together."""
        if self._held is not None and self._held[2] == from_s:
            from_s, rows = self._held[0], rows + self._held[1]
        self._held, since_s = None, self._told_since_s
        if since_s is None or to_s <= max(since_s, from_s) or to_s - since_s < _COVERED * (to_s - from_s):
            return
        came = self._at(to_s) - self._at(from_s)
        untold = came * max(since_s - from_s, 0.0) / (to_s - max(since_s, from_s))
        least, most = self._step(to_s, from_s + _TAKES_S), self._step(to_s + _TAKES_S, from_s, after=True) + untold
        if most > _CERTAIN * least and to_s - from_s < _LONG_S:
            self._held = from_s, rows, to_s
            return
        # The first time says what a row of the source is. Who is far off then has nothing that speaks for it.
        low, high = (_LEAST, _MOST) if self._scale is None else ((1 - _OFF) * self._scale, (1 + _OFF) * self._scale)
        self._unborne = self._scale is None and rows > high * most
        if self._unborne:
            return  # of rows that were there before the first question the source says nothing
        fits = low * least <= rows <= high * most
        self._odd = 0 if fits else _ODD if self._scale is None else self._odd + 1
        if self._odd == 0 and 0 < most <= _CERTAIN * least:
            shown = min(max(rows / (came + untold), _LEAST), _MOST)
            self._scale = shown if self._scale is None else self._scale + _GAIN * (shown - self._scale)

    @property
    def rows_per_s(self) -> float | None:
        """Rate of the last second, or of two of the longest pauses between arrivals; `None` where less is known."""
        if self.since_s is None:
            return None
        now_s = self._told[-1][0]
        times = [self._told[0][0], *self._grew, now_s]
        span_s = max(_SPAN_S, _PAUSES * max(late - early for early, late in pairwise(times)))
        if now_s - self._told[0][0] < span_s:
            return None
        return (self._scale or 1.0) * (self._told[-1][1] - self._at(now_s - span_s)) / span_s

    def came(self, from_s: float, to_s: float, rate: float) -> float | None:
        """Rows that came in that time, at `rate` before the first word and after the last; `None` where none is known."""
        if self.since_s is None:
            return None
        untold_s = max(min(self.since_s, to_s) - from_s, 0.0) + max(to_s - max(self._told[-1][0], from_s), 0.0)
        return (self._scale or 1.0) * max(self._at(to_s) - self._at(from_s), 0.0) + rate * untold_s

    def _forget(self) -> None:
        self._told.clear()
        self._grew.clear()

    def _at(self, at_s: float) -> float:
        """What was told of a time: between two words in proportion, and the last one from then on."""
        number = bisect_right(self._told, at_s, key=lambda told: told[0])
        early_s, early = self._told[max(number - 1, 0)]
        if number == len(self._told):
            return early
        late_s, late = self._told[number]
        return early + (late - early) * max(at_s - early_s, 0.0) / max(late_s - early_s, 1e-9)

    def _step(self, to_s: float, from_s: float, *, after: bool = False) -> float:
        """The least that came in that time for certain, or with `after` the most that can have; infinite if not told."""
        first = bisect_right(self._told, from_s, key=lambda told: told[0]) - 1
        last = bisect_left(self._told, to_s, key=lambda told: told[0])
        if after:
            return math.inf if last == len(self._told) else self._told[last][1] - self._told[max(first, 0)][1]
        first = bisect_left(self._told, from_s, key=lambda told: told[0])
        last = bisect_right(self._told, to_s, key=lambda told: told[0]) - 1
        return max(self._told[last][1] - self._told[first][1], 0.0) if first <= last else 0.0
