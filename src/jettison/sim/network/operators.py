"""Joins and windowed aggregates over simulated rows.

As functions over all rows for `jettison.sim.network.engine.offered`, and as operators with state for `Engine`, which hands
them rows as they are served. Both give the same answers if no row is late.
"""

from __future__ import annotations

import numpy as np

from jettison.sim.network.rows import Rows


def equal_values(left: Rows, right: Rows, *, within: float) -> Rows:
    """Pairs of rows with equal values, the right one arriving at most `within` after the left one.

    A pair has the identity, value and arrival of its left row, and weighs the product of both weights.

    >>> rows = Rows(np.arange(3), np.array([5.0, 7.0, 5.0]), np.array([0.0, 1.0, 2.0]), np.array([2.0, 1.0, 4.0]))
    >>> pairs = equal_values(rows, rows.where(slice(2, None)), within=2.0)
    >>> pairs.ids.tolist(), pairs.weighing.tolist()
    ([0, 2], [8.0, 16.0])
    """
    apart = right.arrivals[None, :] - left.arrivals[:, None]
    a, b = np.nonzero((left.values[:, None] == right.values[None, :]) & (apart >= 0) & (apart <= within))
    pairs = left.where(a)
    return Rows(pairs.ids, pairs.values, pairs.arrivals, left.weighing[a] * right.weighing[b])


def window_totals(rows: Rows, *, length: float) -> Rows:
    """Weighted sum of the values in each tumbling window that has rows.

    An answer has the number of its window as identity and arrives at its end. It stands for itself alone: the weights
    are used up.

    >>> rows = Rows(np.arange(3), np.array([5.0, 7.0, 1.0]), np.array([0.0, 1.0, 12.0]), np.array([2.0, 1.0, 1.0]))
    >>> window_totals(rows, length=10.0).values.tolist()
    [17.0, 1.0]
    """
    windows, place = np.unique(np.floor(rows.arrivals / length).astype(np.int64), return_inverse=True)
    totals = np.bincount(place, weights=rows.weighing * rows.values, minlength=len(windows))
    return Rows(windows, totals.astype(float), (windows + 1).astype(float) * length)


class EqualValuesInTime:
    """`equal_values` as an operator: a pair is emitted when the second of its rows is served.

    Rows are kept to the end of the run, so none is ever too late for its partner.

    >>> join = EqualValuesInTime(within=2.0)
    >>> rows = Rows(np.arange(2), np.array([5.0, 7.0]), np.array([0.0, 1.0]))
    >>> len(join.process(1, rows)), join.process(0, rows).ids.tolist()
    (0, [0, 1])
    """

    def __init__(self, *, within: float) -> None:
        self._within = within
        self._kept = [Rows.none(), Rows.none()]

    def process(self, port: int, rows: Rows) -> Rows:
        """Pairs of these rows with those that came by the other port."""
        self._kept[port] = Rows.joined([self._kept[port], rows])
        left, right = (rows, self._kept[1]) if port == 0 else (self._kept[0], rows)
        return equal_values(left, right, within=self._within)

    def finish(self) -> Rows:
        """Nothing: pairs are emitted as soon as they are complete."""
        return Rows.none()


class WindowTotalsInTime:
    """`window_totals` as an operator: a window is emitted once a row that arrived `lateness` after its end was served.

    Parameters
    ----------
    length
        Of a window.
    lateness
        How much earlier than others before it a row may have arrived and still count. Rows that are later than that are
        dropped, as behind Spark's watermark, and counted in `late`.

    Examples
    --------
    >>> totals = WindowTotalsInTime(length=10.0, lateness=0.0)
    >>> rows = Rows(np.arange(3), np.array([5.0, 7.0, 1.0]), np.array([0.0, 1.0, 12.0]), np.array([2.0, 1.0, 1.0]))
    >>> totals.process(0, rows).values.tolist(), totals.process(0, rows).values.tolist(), totals.late
    ([17.0], [], 2)
    >>> totals.finish().values.tolist()
    [2.0]
    """

    def __init__(self, *, length: float, lateness: float) -> None:
        self.late = 0
        self._length, self._lateness = length, lateness
        self._watermark = -np.inf
        self._totals: dict[int, float] = {}

    def process(self, port: int, rows: Rows) -> Rows:
        """Add rows to their windows, then emit the windows that are closed by them."""
        in_time = (np.floor(rows.arrivals / self._length) + 1) * self._length > self._watermark
        self.late += int((~in_time).sum())
        parts = window_totals(rows.where(in_time), length=self._length)
        for window, total in zip(parts.ids.tolist(), parts.values.tolist(), strict=True):
            self._totals[window] = self._totals.get(window, 0.0) + total
        self._watermark = max(self._watermark, float(rows.arrivals.max(initial=-np.inf)) - self._lateness)
        return self._closed(self._watermark)

    def finish(self) -> Rows:
        """The windows that are still open."""
        return self._closed(np.inf)

    def _closed(self, watermark: float) -> Rows:
        windows = sorted(window for window in self._totals if (window + 1) * self._length <= watermark)
        totals = np.array([self._totals.pop(window) for window in windows], dtype=float)
        numbers = np.array(windows, dtype=np.int64)
        return Rows(numbers, totals, (numbers + 1).astype(float) * self._length)
