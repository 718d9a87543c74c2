"""Equi-depth partitioning: regions that hold equally many points, of the data or of the queries' centres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jettison.policies.regions.grid import side_of, uniform_grid
from jettison.policies.regions.splitting import cut_largest, gaps, parting
from jettison.source.partition import Leaf, Partition, grown
from jettison.source.space import CELLS, Codes, Space

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
    side = side_of(regions, space.dimensions)
    if side is None:
        halve_most_populous(space, codes, [(root, np.arange(len(codes)))], regions - 1)
    else:
        slabs = [(root, np.arange(len(codes)))]
        for axis in range(space.dimensions):
            slabs = [part for leaf, members in slabs for part in _slabs(space, codes, leaf, members, axis, side)]
    return grown(root)


def halve_most_populous(space: Space, codes: Codes, leaves: list[tuple[Leaf, Indices]], cuts: int) -> None:
    """Make `cuts` cuts, each through the middle of the region with the most points, along its widest spread."""
    cut_largest(leaves, lambda part: len(part[1]), lambda part: _halves(space, codes, *part), cuts)


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
    places = np.flatnonzero(gaps(values)) + 1  # a cut fits before these
    if not len(places):
        return [(leaf, members)]
    wanted = len(values) * np.arange(1, parts) / parts
    after = np.searchsorted(places, wanted).clip(0, len(places) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(wanted - places[before] <= places[after] - wanted, before, after)
    chosen = places[np.unique(nearest)]
    cuts = [parting(space, axis, int(values[place - 1]), int(values[place])) for place in chosen]
    return list(zip(leaf.split_at(axis, cuts), np.split(ordered, chosen), strict=True))
