"""Which points lie in which boxes, without comparing each with each.

Along the dimension where the boxes are most selective, the points of a box are neighbours in sorted order; only these
candidates are checked in the other dimensions, and there by ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from jettison.sifter.space import Floats

Indices = NDArray[np.int64]

_PAIRS_AT_ONCE = 2_000_000


def pairs(points: Floats, low: Floats, high: Floats) -> Iterator[tuple[Indices, Indices]]:
    """Blocks of (box, point) with `low <= point < high` in every dimension; each pair occurs once."""
    order = np.argsort(points, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(points))[:, None], axis=0)
    first, stop = _rank_ranges(points, order, low, high)
    candidates = (stop - first).sum(axis=0)
    axis = int(np.argmin(candidates))
    others = [other for other in range(points.shape[1]) if other != axis]
    lengths = stop[:, axis] - first[:, axis]
    for start, end in _blocks(lengths):
        box = np.repeat(np.arange(start, end), lengths[start:end])
        offset = np.cumsum(lengths[start:end]) - lengths[start:end]
        place = np.arange(len(box)) - np.repeat(offset - first[start:end, axis], lengths[start:end])
        point = order[place, axis]
        for other in others:
            rank = ranks[point, other]
            inside = (rank >= first[box, other]) & (rank < stop[box, other])
            box, point = box[inside], point[inside]
        yield box, point


def hits(points: Floats, low: Floats, high: Floats) -> Indices:
    """Number of boxes that each point lies in."""
    count = np.zeros(len(points), dtype=np.int64)
    for _, point in pairs(points, low, high):
        count += np.bincount(point, minlength=len(points))
    return count


def _rank_ranges(points: Floats, order: Indices, low: Floats, high: Floats) -> tuple[Indices, Indices]:
    """Per box and dimension the range of ranks inside it. NaN sorts last and is beyond every bound."""
    first = np.empty(low.shape, dtype=np.int64)
    stop = np.empty(low.shape, dtype=np.int64)
    for axis in range(points.shape[1]):
        ordered = points[order[:, axis], axis]
        first[:, axis] = np.searchsorted(ordered, low[:, axis])
        stop[:, axis] = np.searchsorted(ordered, high[:, axis])
    return first, np.maximum(stop, first)


def _blocks(lengths: Indices) -> Iterator[tuple[int, int]]:
    """Ranges of boxes with a bounded number of candidates in each, so that memory stays bounded."""
    total = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        done = total[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(total, done + _PAIRS_AT_ONCE, side="right")))
        yield start, end
        start = end
