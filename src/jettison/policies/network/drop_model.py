"""The shedding problem in numbers: what each candidate drop location costs, gains and feeds.

The unknowns are *surviving shares*: x of a unit is the share of its full flow that is still there behind its drop. A
unit is a candidate location, or one cell of values at a candidate location where drops are semantic. Then everything
is linear:

- a unit keeps at most what reaches it: `x <= feeds @ x` (`x <= 1` at an input);
- an output delivers `delivery @ x`;
- the network's load is `fixed_load + load @ x`.

`feeds` and `delivery` hold shares of the full flow, so a location that feeds an output through a union owns only its
share of that output's slope. A drop placed upstream of others limits them without further bookkeeping, which is the
paper's rule that existing drops are adjusted when a new one is pushed above them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from jettison.policies.network.cells import ValueCells
from jettison.policies.network.qos import LossTolerance, Piece

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Location:
    """Where rows may be dropped.

    Parameters
    ----------
    name
        Name of the drop point: the input's, or `source__target` for an arc behind a split.
    stream
        The input or box whose rows are dropped.
    target
        The reader that loses them; `None` at an input, where all readers do.
    rate
        Rows per unit of time with nothing dropped.
    units
        Positions of its units.
    cells
        Cells of its units; empty where the whole stream is one unit and drops are random.
    """

    name: str
    stream: str
    target: str | None
    rate: float
    units: tuple[int, ...]
    cells: tuple[int, ...] = ()

    @property
    def semantic(self) -> bool:
        """Whether rows are dropped by value."""
        return bool(self.cells)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one row of `DropModel.delivery` is worth: an output, or one cell of an output's values."""

    output: str
    share: float
    pieces: tuple[Piece, ...]

    @property
    def full_utility(self) -> float:
        """Utility at full delivery, above that of none."""
        return sum(piece.slope * piece.length for piece in self.pieces)


@dataclass(frozen=True, slots=True, eq=False)
class DropModel:
    """The linear problem; units stand in topological order.

    Parameters
    ----------
    locations
        The candidates.
    rate
        Full flow of each unit.
    feeds, at_input
        Shares in which units feed each unit; whether it stands at an input.
    load, fixed_load
        Work behind a unit and before the next ones, at full flow; work that no drop can save.
    delivery, deliveries
        Shares in which units feed each delivery.
    floor
        Utility with nothing delivered at all.
    cells
        The cells of the value axis, where values are known.
    loss_tolerance
        By output, the graph in force: given, or derived from its value graph.
    """

    locations: tuple[Location, ...]
    rate: Vector
    feeds: sparse.csr_matrix
    at_input: NDArray[np.bool_]
    load: Vector
    fixed_load: float
    delivery: sparse.csr_matrix
    deliveries: tuple[Delivery, ...]
    floor: float
    cells: ValueCells | None
    loss_tolerance: Mapping[str, LossTolerance]

    @property
    def units(self) -> int:
        return len(self.rate)

    @property
    def full_load(self) -> float:
        """Work per unit of time with nothing dropped."""
        return self.fixed_load + float(self.load.sum())

    @property
    def full_utility(self) -> float:
        """Utility with nothing dropped."""
        return self.floor + sum(delivery.full_utility for delivery in self.deliveries)

    def reaching(self, survival: Vector) -> Vector:
        """Share of the full flow that reaches each unit's drop."""
        return np.asarray(np.where(self.at_input, 1.0, self.feeds @ survival))

    def full_gain(self) -> Vector:
        """Work saved by dropping all of a unit while nothing else is dropped: the paper's R * L."""
        gain = np.array(self.load)
        below = self.feeds.tocsc()
        for unit in range(self.units - 1, -1, -1):
            start, end = below.indptr[unit], below.indptr[unit + 1]
            gain[unit] += below.data[start:end] @ gain[below.indices[start:end]]
        return gain
