"""Which points lie in which boxes, without comparing each with each.

Along the dimension where the boxes are most selective, the points of a box are neighbours in sorted order; only these
candidates are checked in the other dimensions, and there by ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jettison.source.space import Floats

Indices = NDArray[np.int64]

# Their intermediate results stay in the processor's caches.
_PAIRS_AT_ONCE = 200_000


def pairs(points: Floats, low: Floats, high: Floats) -> Iterator[tuple[Indices, Indices]]:
    """Blocks of (box, point) with `low <= point < high` in every dimension; each pair occurs once."""
    axes = [_Ranked(points[:, axis], low[:, axis], high[:, axis]) for axis in range(points.shape[1])]
    narrow = min(axes, key=lambda axis: int(axis.count.sum()))
    others = [axis for axis in axes if axis is not narrow]
    for start, end in blocks(narrow.count):
        count = narrow.count[start:end]
        # The ranks from the first to the last one inside, of one box after the other.
        place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count - narrow.first[start:end], count)
        point = narrow.order[place]
        box = np.repeat(np.arange(start, end), count)
        for number, other in enumerate(others):
            # From the second comparison on few pairs are left, and a gather is cheaper than repeating all bounds.
            first = np.repeat(other.first[start:end], count) if number == 0 else other.first[box]
            width = np.repeat(other.count[start:end], count) if number == 0 else other.count[box]
            # As unsigned numbers, ranks below the first one are huge: one comparison instead of two.
            inside = (other.rank[point] - first).view(np.uint32) < width.view(np.uint32)
            box, point = box[inside], point[inside]
        yield box, point


class _Ranked:
    """One dimension: the points in order, and per box the first rank inside it and the number of ranks."""

    def __init__(self, values: Floats, low: Floats, high: Floats) -> None:
        self.order = np.argsort(values, kind="stable")
        self.rank = np.empty(len(values), dtype=np.int32)
        self.rank[self.order] = np.arange(len(values), dtype=np.int32)
        ordered = values[self.order]
        self.first = np.searchsorted(ordered, low).astype(np.int32)
        self.count = np.maximum(np.searchsorted(ordered, high).astype(np.int32) - self.first, 0)


def blocks(lengths: NDArray[np.integer[Any]]) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive items whose lengths add up to a bounded number, so that memory stays bounded."""
    total = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(lengths):
        done = total[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(total, done + _PAIRS_AT_ONCE, side="right")))
        yield start, end
        start = end
