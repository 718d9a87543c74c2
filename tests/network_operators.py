"""Joins and windowed aggregates over simulated rows, for `offered` of the simulated network."""

from __future__ import annotations

import numpy as np

from jettison.lab.sim.network.rows import Rows


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
