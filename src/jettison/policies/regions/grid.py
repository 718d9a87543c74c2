"""Uniform grid: regions of equal volume, whatever the data and the queries."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jettison.policies.regions.splitting import cut_largest, middle, snapped
from jettison.source.partition import Leaf, Partition, grown
from jettison.source.space import CELLS, Space


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
        cut_largest([root], _volume, lambda leaf: _halves(space, leaf), regions - 1)
    else:
        slabs = [root]
        for axis in range(space.dimensions):
            slabs = [part for slab in slabs for part in slab.split_at(axis, _even_cuts(space, axis, side))]
    return grown(root)


def _even_cuts(space: Space, axis: int, parts: int) -> list[int]:
    wanted = (snapped(space, axis, 1.0 + CELLS * part / parts, 1, CELLS + 1) for part in range(1, parts))
    return sorted({cut for cut in wanted if cut is not None})


def _halves(space: Space, leaf: Leaf) -> Sequence[Leaf]:
    """Both halves across the longest edge that can be cut."""
    edges = [high - low for low, high in zip(leaf.low, leaf.high, strict=True)]
    for axis in sorted(range(space.dimensions), key=lambda one: -edges[one]):
        if (cut := middle(space, leaf, axis)) is not None:
            return leaf.split(axis, cut)
    return ()


def _volume(leaf: Leaf) -> float:
    return math.prod((high - low) / CELLS for low, high in zip(leaf.low, leaf.high, strict=True))
