"""The value axis cut into cells within which every filter decides alike and every utility is constant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.policies.network.graph import Box, QueryGraph

Vector = NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ValueCells:
    """Adjacent half-open cells between sorted `edges`.

    Parameters
    ----------
    edges
        Bounds of the cells, ascending.
    integral
        Whether values are whole numbers. A closed range [0, 50] then ends where 51 begins; among real numbers it ends
        at 50, and the value 50 itself belongs to the next cell.

    Examples
    --------
    >>> cells = ValueCells.covering([(0, 50), (51, 100)], integral=True)
    >>> cells.edges, cells.share_in([(26, 75)]).round(2).tolist()
    ((0.0, 51.0, 101.0), [0.49, 0.5])
    """

    edges: tuple[float, ...]
    integral: bool

    @classmethod
    def covering(cls, ranges: Iterable[Range], *, integral: bool) -> ValueCells:
        """Cells such that each closed range is a union of cells."""
        edges = sorted({edge for low, high in ranges for edge in (float(low), float(high) + integral)})
        return cls(tuple(edges), integral)

    def __len__(self) -> int:
        return max(0, len(self.edges) - 1)

    def cut(self, cell: int, dropped: float) -> float:
        """The value below which `dropped` of a cell lies, values taken as evenly spread between its bounds."""
        low, end = self.edges[cell : cell + 2]
        return end if dropped >= 1.0 else low + dropped * (end - self.integral - low)

    def cut_at(self, edges: Iterable[float]) -> ValueCells:
        """The same cells, parted where one of these lies inside."""
        inside = (edge for edge in edges if self.edges and self.edges[0] < edge < self.edges[-1])
        return ValueCells(tuple(sorted({*self.edges, *inside})), self.integral)

    def lying_in(self, ranges: Iterable[Range]) -> Vector:
        """1 for each cell that begins in one of some half-open ranges, 0 for the others."""
        begin, found = np.asarray(self.edges[:-1]), np.zeros(len(self))
        for low, end in ranges:
            found[(begin >= low) & (begin < end)] = 1.0
        return found

    def share_in(self, ranges: Sequence[Range]) -> Vector:
        """Share of each cell that lies in any of some disjoint closed ranges."""
        shares = np.zeros(len(self))
        for low, high in ranges:
            shares += self._overlap(float(low), float(high) + self.integral) / np.diff(self.edges)
        return np.minimum(shares, 1.0)

    def histogram(self, ranges: Sequence[tuple[float, float, float]]) -> Vector:
        """Share of all rows by cell, from shares by range; values are taken as evenly spread in a range."""
        shares = np.zeros(len(self))
        for low, high, share in ranges:
            end = float(high) + self.integral
            shares += share * self._overlap(float(low), end) / (end - low)
        return shares / shares.sum() if shares.sum() > 0 else shares

    def _overlap(self, low: float, end: float) -> Vector:
        edges = np.asarray(self.edges)
        return np.asarray(np.maximum(0.0, np.minimum(edges[1:], end) - np.maximum(edges[:-1], low)))


def cells_of(graph: QueryGraph) -> ValueCells | None:
    """The cells that a network's inputs, filters and value graphs need; `None` where inputs do not tell their values."""
    if not all(input.values for input in graph.inputs.values()):
        return None
    ranges: list[Range] = [(low, high) for input in graph.inputs.values() for low, high, _ in input.values]
    for box in graph.boxes.values():
        ranges += list(box.passes or ())
        ranges += [(low, high) for low, high, _ in box.values]
    for output in graph.outputs.values():
        if output.qos.value is not None:
            ranges += [(low, high) for low, high, _ in output.qos.value.intervals]
    return ValueCells.covering(ranges, integral=graph.integral_values)


def through(box: Box, cells: ValueCells | None) -> Callable[[Vector], Vector]:
    """What a box makes of rows per unit of time, cell by cell (one cell where values are not known)."""
    if cells is not None and box.passes is not None:
        passed = cells.share_in(box.passes)
        return lambda rates: rates * passed
    if cells is not None and not box.keeps_value and box.values:
        spread = cells.histogram(box.values)
        return lambda rates: rates.sum() * box.selectivity * spread
    return lambda rates: rates * box.selectivity
