"""Rows of a simulated stream, column by column, and the decisions of filters and drops over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.errors import Unsupported, explain
from jettison.hashing import keeps
from jettison.network.graph import Box, QueryGraph
from jettison.settings import RandomDrop, RangeDrop, Setting

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Identity, value and arrival time of each row."""

    ids: NDArray[np.int64]
    values: NDArray[np.float64]
    arrivals: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ids)

    def where(self, mask: Mask | slice) -> Rows:
        """The rows that a mask or slice selects."""
        return Rows(self.ids[mask], self.values[mask], self.arrivals[mask])

    @staticmethod
    def none() -> Rows:
        """No rows."""
        return Rows(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """Rows of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return Rows(
            np.concatenate([part.ids for part in parts]) if parts else np.empty(0, dtype=np.int64),
            np.concatenate([part.values for part in parts]) if parts else np.empty(0),
            np.concatenate([part.arrivals for part in parts]) if parts else np.empty(0),
        )


def kept_by(setting: Setting | None, point: str, rows: Rows) -> Mask:
    """Which rows a drop point lets through: the decisions that Spark makes, row for row."""
    if setting is None or setting.keeps_everything:
        return np.ones(len(rows), dtype=bool)
    if isinstance(setting, RandomDrop):
        return keeps(point, rows.ids, setting.keep_fraction)
    if isinstance(setting, RangeDrop):
        return outside(rows.values, setting.drop)
    raise Unsupported(explain("a random or range drop", repr(setting), where=f"drop point {point!r} of a simulation"))


def outside(values: NDArray[np.float64], ranges: Sequence[tuple[float, float]]) -> Mask:
    """Which values lie in none of some half-open ranges."""
    dropped = np.zeros(len(values), dtype=bool)
    for low, end in ranges:
        dropped |= (values >= low) & (values < end)
    return ~dropped


def passed_by(box: Box, rows: Rows) -> Mask:
    """Which rows leave a box. A filter without a condition on the value decides by a hash of the identity."""
    if box.passes is not None:
        inside = np.zeros(len(rows), dtype=bool)
        for low, high in box.passes:
            inside |= (rows.values >= low) & (rows.values <= high)
        return inside
    return keeps(f"box {box.name}", rows.ids, box.selectivity)


def require_simulable(graph: QueryGraph) -> None:
    """Refuse networks whose boxes this simulation does not know."""
    for box in graph.boxes.values():
        if box.kind in ("join", "aggregate") or not box.keeps_value or box.selectivity > 1:
            raise Unsupported(
                explain(
                    "simulated boxes are filters, unions, and maps that keep their rows' values",
                    f"a {box.kind}",
                    where=f"box {box.name!r}",
                    hint="joins and aggregates run on Spark; `jettison.network.evaluate` tells their flows",
                )
            )
