"""Regions of equal volume, or of equally many points: the uniform grid, and equi-depth partitioning.

Points are those of the data or the centres of queries. A region is never cut between equal codes, and only on whole values
where the attribute has them.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from jettison.source.partition import Leaf, Partition, grown
from jettison.source.space import CELLS, Codes, Space

Part = TypeVar("Part")


def _snapped(space: Space, axis: int, place: float, low: int, high: int) -> int | None:
    """The admissible cut nearest to `place` and strictly between `low` and `high`; `None` where there is none."""
    attribute = space.attributes[axis]
    step = attribute.cells_per_value
    if step == 1.0:
        cut = min(max(round(place), low + 1), high - 1)
        return cut if low < cut < high else None
    # Cuts of whole values lie at the code of a value, the first one of its own interval.
    nearest = round((place - 1.0) / step)
    lowest = math.floor((low - 1.0) / step)
    values = (nearest, nearest - 1, nearest + 1, lowest + 1, lowest + 2)
    options = [min(int(value * attribute.scale + 1.0), CELLS + 1) if value > 0 else 1 for value in values]
    inside = [cut for cut in options if low < cut < high]
    return min(inside, key=lambda cut: abs(cut - place)) if inside else None


def parting(space: Space, axis: int, before: int, after: int) -> int:
    """The cut between the neighbouring codes `before < after`."""
    # Whole values are parted right before the greater one: their intervals stay in one region.
    return after if space.attributes[axis].whole else before + (after - before + 1) // 2


def _cut_largest(
    parts: Sequence[Part], size: Callable[[Part], float], halves: Callable[[Part], Sequence[Part]], cuts: int
) -> None:
    """Make `cuts` cuts, each through the largest part that can be cut; among equals the one that was there first."""
    number = itertools.count()
    queue = [(-size(part), next(number), part) for part in parts]
    heapq.heapify(queue)
    while queue and cuts > 0:
        made = halves(heapq.heappop(queue)[2])
        for half in made:
            heapq.heappush(queue, (-size(half), next(number), half))
        cuts -= bool(made)


def _side_of(regions: int, dimensions: int) -> int | None:
    """The u with u ** dimensions = regions, where there is one.

    >>> _side_of(16, 2), _side_of(15, 2)
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
    side = _side_of(regions, space.dimensions)
    if side is None:
        _cut_largest([root], _volume, lambda leaf: _halved(space, leaf), regions - 1)
    else:
        slabs = [root]
        for axis in range(space.dimensions):
            slabs = [part for slab in slabs for part in slab.split_at(axis, _even_cuts(space, axis, side))]
    return grown(root)


def _even_cuts(space: Space, axis: int, parts: int) -> list[int]:
    wanted = (_snapped(space, axis, 1.0 + CELLS * part / parts, 1, CELLS + 1) for part in range(1, parts))
    return sorted({cut for cut in wanted if cut is not None})


def _halved(space: Space, leaf: Leaf) -> Sequence[Leaf]:
    """Both halves across the longest edge that can be cut."""
    edges = [high - low for low, high in zip(leaf.low, leaf.high, strict=True)]
    for axis in sorted(range(space.dimensions), key=lambda one: -edges[one]):
        low, high = leaf.low[axis], leaf.high[axis]
        if (cut := _snapped(space, axis, (low + high) / 2.0, low, high)) is not None:
            return leaf.split(axis, cut)
    return ()


def _volume(leaf: Leaf) -> float:
    return math.prod((high - low) / CELLS for low, high in zip(leaf.low, leaf.high, strict=True))


Indices = NDArray[np.int64]


def equi_depth(space: Space, codes: Codes, regions: int) -> Partition:
    """At most `regions` regions with equally many of the points `codes` in each, up to ties.

    Where `regions` is a power u ** n of the n attributes, the points are cut into u slabs along the first attribute,
    each slab into u along the second, and so on. Otherwise the most populous region is halved along its attribute of
    highest variance, until there are enough. Equal points are never parted, so ties can give fewer regions. Without
    any point it is the uniform grid.
    """
    codes = codes[((codes >= 1) & (codes <= CELLS)).all(axis=1)]
    if not len(codes):
        return uniform_grid(space, regions)
    root = Leaf.domain(space.dimensions)
    side = _side_of(regions, space.dimensions)
    if side is None:
        halve_most_populous(space, codes, [(root, np.arange(len(codes)))], regions - 1)
    else:
        slabs = [(root, np.arange(len(codes)))]
        for axis in range(space.dimensions):
            slabs = [part for leaf, members in slabs for part in _slabs(space, codes, leaf, members, axis, side)]
    return grown(root)


def halve_most_populous(space: Space, codes: Codes, leaves: list[tuple[Leaf, Indices]], cuts: int) -> None:
    """Make `cuts` cuts, each through the middle of the region with the most points, along its widest spread."""
    _cut_largest(leaves, lambda part: len(part[1]), lambda part: _halves(space, codes, *part), cuts)


def _halves(space: Space, codes: Codes, leaf: Leaf, members: Indices) -> list[tuple[Leaf, Indices]]:
    spread = codes[members].var(axis=0) if len(members) > 1 else np.zeros(space.dimensions)
    for axis in np.argsort(-spread, kind="stable"):
        parts = _slabs(space, codes, leaf, members, int(axis), 2)
        if len(parts) > 1:
            return parts
    return []  # a single point, or many equal ones


def _slabs(
    space: Space, codes: Codes, leaf: Leaf, members: Indices, axis: int, parts: int
) -> list[tuple[Leaf, Indices]]:
    """`leaf` in at most `parts` slabs along `axis` with equally many of its points, and the points of each."""
    ordered = members[np.argsort(codes[members, axis], kind="stable")]
    values = codes[ordered, axis]
    places = np.flatnonzero(np.diff(values)) + 1  # a cut fits before these
    if not len(places):
        return [(leaf, members)]
    wanted = len(values) * np.arange(1, parts) / parts
    after = np.searchsorted(places, wanted).clip(0, len(places) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(wanted - places[before] <= places[after] - wanted, before, after)
    chosen = places[np.unique(nearest)]
    cuts = [parting(space, axis, int(values[place - 1]), int(values[place])) for place in chosen]
    return list(zip(leaf.split_at(axis, cuts), np.split(ordered, chosen), strict=True))
