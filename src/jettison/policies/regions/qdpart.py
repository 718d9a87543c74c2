"""QDPart: cut where positions and query hits of the sampled rows are most diverse, for any number of regions."""

from __future__ import annotations

import heapq
import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jettison.policies.regions.even_regions import halve_most_populous, parting, uniform_grid
from jettison.source.partition import Leaf, Partition, grown
from jettison.source.space import CELLS, Codes, Floats, Space

Indices = NDArray[np.int64]


class _Cut(NamedTuple):
    """The best cut of a region: what it gains, along which attribute, after how many of the sorted points."""

    benefit: float
    axis: int
    place: int


def qdpart(space: Space, codes: Codes, hits: NDArray[np.int64], regions: int) -> Partition:
    """At most `regions` regions, greedily by the diversity that a cut removes.

    The diversity of a region along an attribute is the product of two sums of squared errors: of its rows' hits and
    of their positions (the roof). The benefit of a cut is the roof less the diversities of both halves (the floor).

    Parameters
    ----------
    codes
        Sampled rows, shape (rows, attributes).
    hits
        Number of queries that each of them satisfies.
    regions
        How many regions to make, any number.

    Notes
    -----
    Departures from [1]_: positions are relative to the domain, so that attributes of different units compare. Equal
    points are never parted. Where no cut has a benefit, as when all rows have the same hits, the most populous
    regions are halved as in data equi-depth partitioning. Rows are sorted once, not once a region.

    References
    ----------
    .. [1] Gedik, Wu, Yu: Efficient Construction of Compact Shedding Filters for Data Stream Processing. ICDE 2007.
    """
    inside = ((codes >= 1) & (codes <= CELLS)).all(axis=1)
    codes, hits = codes[inside], hits[inside]
    if not len(codes):
        return uniform_grid(space, regions)
    root = Leaf.domain(space.dimensions)
    points = _Points(codes, hits.astype(np.float64))
    rest = _cut_greedily(space, points, root, regions)
    halve_most_populous(space, codes, rest, regions - len(rest))
    return grown(root)


class _Points:
    """The sampled rows, with positions between 0 and 1."""

    def __init__(self, codes: Codes, hits: Floats) -> None:
        self.codes = np.ascontiguousarray(codes.T)
        self.position = self.codes / CELLS
        self.hits = hits - hits.mean()  # centred, so that sums of squares keep their digits
        self.position -= self.position.mean(axis=1, keepdims=True)
        self.axes = np.arange(len(self.codes))[:, None]

    def best_cut(self, order: Indices) -> _Cut | None:
        """The cut of largest benefit of the rows in `order`, which holds them sorted along each attribute."""
        count = order.shape[1]
        if count < 2:
            return None
        codes = self.codes[self.axes, order]
        diversity = _diversity(self.hits[order], self.position[self.axes, order])
        floor = np.where(np.diff(codes) > 0, diversity[0][:, :-1] + diversity[1][:, 1:], np.inf)
        place = floor.argmin(axis=1)
        benefit = diversity[0][:, -1] - floor[self.axes[:, 0], place]
        axis = int(benefit.argmax())
        return _Cut(float(benefit[axis]), axis, int(place[axis]) + 1) if benefit[axis] > 0.0 else None


def _diversity(hits: Floats, position: Floats) -> tuple[Floats, Floats]:
    """Diversity of the first 1, 2, ... rows, and of the rows from the first, second, ... on; per attribute."""
    both = np.stack([hits, position])
    size = np.arange(1, hits.shape[1] + 1)
    sums, squares = both.cumsum(axis=2), (both * both).cumsum(axis=2)
    head = squares - sums * sums / size
    # Of the rows from the i-th on: totals less what lies before them.
    sums_after = sums[:, :, -1:] - sums + both
    squares_after = squares[:, :, -1:] - squares + both * both
    tail = squares_after - sums_after * sums_after / size[::-1]
    np.maximum(head, 0.0, out=head)
    np.maximum(tail, 0.0, out=tail)
    return head[0] * head[1], tail[0] * tail[1]


def _cut_greedily(space: Space, points: _Points, root: Leaf, regions: int) -> list[tuple[Leaf, Indices]]:
    """Cut until there are `regions` regions or no cut has a benefit; the regions with their rows."""
    number = itertools.count()
    order = np.argsort(points.codes, axis=1, kind="stable")
    queue: list[tuple[float, int, _Cut, Leaf, Indices]] = []
    done: list[tuple[Leaf, Indices]] = []

    def consider(leaf: Leaf, rows: Indices) -> None:
        cut = points.best_cut(rows)
        if cut is None:
            done.append((leaf, rows[0]))
        else:
            heapq.heappush(queue, (-cut.benefit, next(number), cut, leaf, rows))

    if regions > 1:
        consider(root, order)
    else:
        done.append((root, order[0]))
    while queue and len(queue) + len(done) < regions:
        _, _, cut, leaf, rows = heapq.heappop(queue)
        ordered = points.codes[cut.axis, rows[cut.axis, cut.place - 1 : cut.place + 1]]
        at = parting(space, cut.axis, int(ordered[0]), int(ordered[1]))
        goes_first = points.codes[cut.axis][rows] < at  # each attribute's order is kept within both halves
        sides = (rows[goes_first].reshape(len(rows), -1), rows[~goes_first].reshape(len(rows), -1))
        enough = len(queue) + len(done) + 2 >= regions
        for half, members in zip(leaf.split(cut.axis, at), sides, strict=True):
            if enough:
                done.append((half, members[0]))
            else:
                consider(half, members)
    return done + [(leaf, rows[0]) for _, _, _, leaf, rows in queue]
