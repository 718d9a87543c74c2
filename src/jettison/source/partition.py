"""A partition of the data space into box-shaped regions, as a binary tree of cuts.

Every partitioning, grids included, is such a tree: one structure to look up, to consolidate and to ship.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from jettison.errors import refuse
from jettison.source.space import CELLS, MISSING, Codes

Ints = NDArray[np.int32]

# Attributes of which values are missing, as the bits of a number; each such pattern may have a region of its own.
OTHER_PATTERNS = 0
MOST_PATTERNS = 15
MOST_REGIONS = 2**16 - 1


@dataclass(frozen=True)
class Partition:
    """Regions that are disjoint and together hold every point of the domain.

    Behind the boxes come the regions of rows with missing values: a row has no place in a box if one of its values is
    missing, whatever the others are.

    Nodes are numbered from the root, left before right, and boxes from left to right, so that equal trees have equal
    numbers. Points with a code below `cut` along `axis` go left, all others right.

    Parameters
    ----------
    dimensions
        Number of attributes.
    axis, cut
        Per inner node the attribute that it cuts, and the first code that goes right.
    left, right
        Per inner node its children: the number of an inner node, or `-1 - region`.
    missing
        The patterns of missing values that have a region each, in the order of these; bit i stands for attribute i.
        `OTHER_PATTERNS` stands for all that are not named. Where it is empty, rows with missing values lie outside.
    """

    dimensions: int
    axis: Ints
    cut: Ints
    left: Ints
    right: Ints
    missing: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.regions > MOST_REGIONS:
            refuse(
                f"there may be at most {MOST_REGIONS:,} regions",
                f"{self.regions:,}",
                hint="16 are enough for most streams, 100 for most gains",
            )
        kinds = set(self.missing)
        if len(kinds) != len(self.missing) or not all(0 <= kind < 1 << self.dimensions for kind in kinds):
            refuse(
                f"patterns of missing values must differ and lie below {1 << self.dimensions}",
                str(self.missing),
                hint="bit i stands for attribute i",
            )

    @property
    def boxes(self) -> int:
        """Number of regions that are boxes of the domain; they come first."""
        return len(self.axis) + 1

    @property
    def regions(self) -> int:
        return self.boxes + len(self.missing)

    def of_pattern(self) -> Ints:
        """Region of each pattern of missing values; the first one, of rows without any, is `regions`: outside."""
        other = self.boxes + self.missing.index(OTHER_PATTERNS) if OTHER_PATTERNS in self.missing else self.regions
        of_pattern = np.full(1 << self.dimensions, other, dtype=np.int32)
        of_pattern[list(self.missing)] = self.boxes + np.arange(len(self.missing))
        of_pattern[0] = self.regions
        return of_pattern

    def bounds(self) -> tuple[Ints, Ints]:
        """First code and code after the last, per box and attribute."""
        low = np.empty((self.boxes, self.dimensions), dtype=np.int32)
        high = np.empty((self.boxes, self.dimensions), dtype=np.int32)
        start = np.full(self.dimensions, 1, dtype=np.int32)
        stop = np.full(self.dimensions, CELLS + 1, dtype=np.int32)
        open_nodes = [(0 if len(self.axis) else -1, start, stop)]
        while open_nodes:
            node, start, stop = open_nodes.pop()
            if node < 0:
                low[-1 - node], high[-1 - node] = start, stop
                continue
            axis, cut = self.axis[node], self.cut[node]
            before, after = stop.copy(), start.copy()
            before[axis] = after[axis] = cut
            open_nodes += [(int(self.left[node]), start, before), (int(self.right[node]), after, stop)]
        return low, high

    def region_of(self, codes: Codes) -> Ints:
        """Region of each point, and `regions` for points outside the domain."""
        region = self.of_pattern()[patterns(codes == MISSING)]
        inside = np.flatnonzero(((codes >= 1) & (codes <= CELLS)).all(axis=1))
        open_nodes = [(0 if len(self.axis) else -1, inside)]
        while open_nodes:
            node, members = open_nodes.pop()
            if node < 0:
                region[members] = -1 - node
            elif len(members):
                goes_left = codes[members, self.axis[node]] < self.cut[node]
                open_nodes += [
                    (int(self.left[node]), members[goes_left]),
                    (int(self.right[node]), members[~goes_left]),
                ]
        return region

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partition) or self.dimensions != other.dimensions:
            return False
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("axis", "cut", "left", "missing")
        )

    def __hash__(self) -> int:
        return hash((self.dimensions, self.axis.tobytes(), self.cut.tobytes(), self.left.tobytes(), self.missing))


def patterns(missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Which values of each row are missing, as the bits of a number; shape (rows, attributes) to (rows,)."""
    return missing @ (1 << np.arange(missing.shape[1]))


def with_missing(boxes: Partition, codes: Codes) -> Partition:
    """The same boxes, and regions for the patterns of missing values that occur most often in a sample, and for others."""
    found, count = np.unique(patterns(codes == MISSING), return_counts=True)
    often = [int(found[i]) for i in np.argsort(-count, kind="stable") if found[i] != OTHER_PATTERNS][:MOST_PATTERNS]
    return replace(boxes, missing=(*sorted(often), OTHER_PATTERNS))


@dataclass
class Leaf:
    """A region while its tree grows: the codes it spans, and its cut once it has one."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    axis: int = -1
    cut: int = 0
    children: tuple[Leaf, ...] = field(default=())

    @classmethod
    def domain(cls, dimensions: int) -> Leaf:
        return cls((1,) * dimensions, (CELLS + 1,) * dimensions)

    def split(self, axis: int, cut: int) -> tuple[Leaf, Leaf]:
        if self.children or not self.low[axis] < cut < self.high[axis]:
            refuse(
                f"a cut must lie inside ({self.low[axis]}, {self.high[axis]}) of a region that has none yet",
                str(cut),
                hint="cut a leaf, and strictly between its ends",
            )
        before = (*self.high[:axis], cut, *self.high[axis + 1 :])
        after = (*self.low[:axis], cut, *self.low[axis + 1 :])
        halves = Leaf(self.low, before), Leaf(after, self.high)
        self.axis, self.cut, self.children = axis, cut, halves
        return halves

    def split_at(self, axis: int, cuts: list[int]) -> list[Leaf]:
        """Cut into slabs at ascending `cuts`, by a balanced tree; the slabs in order."""
        if not cuts:
            return [self]
        middle = len(cuts) // 2
        before, after = self.split(axis, cuts[middle])
        return before.split_at(axis, cuts[:middle]) + after.split_at(axis, cuts[middle + 1 :])


def grown(root: Leaf) -> Partition:
    """The finished partition of a grown tree, in canonical numbering."""
    inner: list[Leaf] = []
    boxes: list[Leaf] = []
    waiting = [root]
    while waiting:
        leaf = waiting.pop()
        (inner if leaf.children else boxes).append(leaf)
        waiting += reversed(leaf.children)  # the left one comes first: nodes in preorder, regions from left to right
    number = {id(leaf): place for place, leaf in enumerate(inner)}
    number |= {id(leaf): -1 - region for region, leaf in enumerate(boxes)}
    nodes = [(leaf.axis, leaf.cut, *(number[id(half)] for half in leaf.children)) for leaf in inner]
    axis, cut, left, right = np.array(nodes, dtype=np.int32).reshape(-1, 4).T.copy()
    return Partition(len(root.low), axis, cut, left, right)
