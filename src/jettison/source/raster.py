"""Fast lookup: the cuts of all regions make a raster, and bucket tables find a point's cell without searching.

Along each attribute a point's code, shifted, is a bucket. The bucket knows how many cuts lie before it, and which lie
inside it: adding the comparisons with those gives the point's place among the cuts. The places along all attributes
address the raster's cell, which holds the region. Nothing depends on how deep the tree of cuts is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.source.partition import Partition
from jettison.source.space import ABOVE, CELLS, Codes, Space

# 2**12 codes a bucket give 4,097 buckets: the tables of an attribute fit a processor's first cache.
SHIFT = 12
BUCKETS = (ABOVE >> SHIFT) + 1
MOST_CELLS = 2**20

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Axis:
    """Bucket tables of one attribute.

    Parameters
    ----------
    cuts
        All cuts along the attribute, ascending, among them the domain's own edges.
    before
        Per bucket the number of cuts before it, times the stride of the attribute in the raster.
    inside
        Rows of cuts within each bucket, as many rows as the fullest bucket has cuts; beyond every code where it has
        fewer.
    stride
        Distance in the raster between neighbours along the attribute.
    """

    cuts: Ints
    before: Ints
    inside: tuple[Ints, ...]
    stride: int


@dataclass(frozen=True, slots=True)
class Raster:
    """A partition laid out for lookup.

    Parameters
    ----------
    axes
        Tables per attribute.
    cells
        Region of each cell of the raster; the number of regions for cells outside the domain. Missing values lie there.
    """

    axes: tuple[Axis, ...]
    cells: Ints

    @classmethod
    def of(cls, partition: Partition) -> Raster | None:
        """The raster of a partition, or `None` where it would have too many cells, as with many attributes."""
        cuts = [
            np.unique(np.append(partition.cut[partition.axis == axis], [1, CELLS + 1])).astype(np.int32)
            for axis in range(partition.dimensions)
        ]
        shape = tuple(len(one) + 1 for one in cuts)
        if math.prod(shape) > MOST_CELLS:
            return None
        cells = np.full(shape, partition.regions, dtype=np.int32)
        low, high = partition.bounds()
        first, stop = (
            np.column_stack([np.searchsorted(along, edge) + 1 for along, edge in zip(cuts, side.T, strict=True)])
            for side in (low, high)
        )
        for region, (start, end) in enumerate(zip(first.tolist(), stop.tolist(), strict=True)):
            cells[tuple(slice(a, b) for a, b in zip(start, end, strict=True))] = region
        strides = [math.prod(shape[axis + 1 :]) for axis in range(partition.dimensions)]
        return cls(tuple(_axis(one, stride) for one, stride in zip(cuts, strides, strict=True)), cells.ravel())

    def cell_of(self, codes: Sequence[Codes]) -> Ints:
        cell = _place(self.axes[0], codes[0])
        for tables, along in zip(self.axes[1:], codes[1:], strict=True):
            cell += _place(tables, along)
        return cell


def codes_of(space: Space, axis: int, column: NDArray[np.float64], scratch: NDArray[np.float64]) -> Codes:
    """Codes of one column, as `Space.codes` gives them, but without new arrays for intermediate results."""
    np.subtract(column, space.low[axis], out=scratch)
    np.multiply(scratch, space.scale[axis], out=scratch)
    np.add(scratch, 1.0, out=scratch)
    np.fmax(scratch, 0.0, out=scratch)
    np.fmin(scratch, ABOVE, out=scratch)
    return scratch.astype(np.int32)


def _place(tables: Axis, codes: Codes) -> Ints:
    bucket = codes >> SHIFT
    place = tables.before.take(bucket)
    for inside in tables.inside:
        place += (codes >= inside.take(bucket)) * np.int32(tables.stride)
    return place


def _axis(cuts: Ints, stride: int) -> Axis:
    bucket = cuts >> SHIFT
    before = np.searchsorted(bucket, np.arange(BUCKETS)).astype(np.int32)
    count = np.bincount(bucket, minlength=BUCKETS)
    inside = []
    for rank in range(int(count.max())):
        row = np.full(BUCKETS, ABOVE + 1, dtype=np.int32)
        has = np.flatnonzero(count > rank)
        row[has] = cuts[before[has] + rank]
        inside.append(row)
    return Axis(cuts, before * np.int32(stride), tuple(inside), stride)
