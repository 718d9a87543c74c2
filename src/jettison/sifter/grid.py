"""Uniform grid: regions of equal volume, whatever the data and the queries."""

from __future__ import annotations

import heapq
import itertools
import math

from jettison.sifter.partition import Leaf, Partition, grown
from jettison.sifter.space import CELLS, Space
from jettison.sifter.splitting import middle, snapped


def side_of(regions: int, dimensions: int) -> int | None:
    """The u with u ** dimensions = regions, where there is one.

    >>> side_of(16, 2), side_of(15, 2)
    (4, None)
    """
    root = round(regions ** (1.0 / dimensions))
    return root if root**dimensions == regions else None


def uniform_grid(space: Space, regions: int) -> Partition:
    """At most `regions` equal regions; exactly equal where `regions` is a power u ** n of the n attributes.

    Otherwise the largest region is halved across its longest edge until there are enough, so that none is more than
    twice as large as another. Attributes of few whole values can give fewer regions.
    """
    root = Leaf.domain(space.dimensions)
    side = side_of(regions, space.dimensions)
    if side is None:
        _halved(space, root, regions)
    else:
        slabs = [root]
        for axis in range(space.dimensions):
            slabs = [part for slab in slabs for part in slab.split_at(axis, _even_cuts(space, axis, side))]
    return grown(root)


def _even_cuts(space: Space, axis: int, parts: int) -> list[int]:
    wanted = (snapped(space, axis, 1.0 + CELLS * part / parts, 1, CELLS + 1) for part in range(1, parts))
    return sorted({cut for cut in wanted if cut is not None})


def _halved(space: Space, root: Leaf, regions: int) -> None:
    number = itertools.count()
    largest = [(-1.0, next(number), root)]
    count = 1
    while largest and count < regions:
        _, _, leaf = heapq.heappop(largest)
        edges = [high - low for low, high in zip(leaf.low, leaf.high, strict=True)]
        for axis in sorted(range(space.dimensions), key=lambda one: -edges[one]):
            cut = middle(space, leaf, axis)
            if cut is not None:
                for half in leaf.split(axis, cut):
                    volume = math.prod((b - a) / CELLS for a, b in zip(half.low, half.high, strict=True))
                    heapq.heappush(largest, (-volume, next(number), half))
                count += 1
                break
