"""Rows of a simulated stream, column by column, and the decisions of filters and drops over them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jettison.errors import Unsupported, explain
from jettison.hashing import keeps
from jettison.network.graph import Box, QueryGraph
from jettison.settings import RandomDrop, RangeDrop, Setting

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Identity, value and arrival time of each row, and how many rows it stands for, where that is kept track of."""

    ids: NDArray[np.int64]
    values: NDArray[np.float64]
    arrivals: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def weighing(self) -> NDArray[np.float64]:
        """The weights; 1 each where they are not kept track of."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def where(self, mask: Mask | NDArray[np.intp] | slice) -> Rows:
        """The rows that a mask, a slice or a list of places selects."""
        weights = None if self.weights is None else self.weights[mask]
        return Rows(self.ids[mask], self.values[mask], self.arrivals[mask], weights)

    @staticmethod
    def none() -> Rows:
        """No rows."""
        return Rows(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """Rows of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Rows.none()
        weighed = any(part.weights is not None for part in parts)
        return Rows(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.arrivals for part in parts]),
            np.concatenate([part.weighing for part in parts]) if weighed else None,
        )


def kept_by(setting: Setting | None, point: str, rows: Rows) -> Mask:
    """Which rows a drop point lets through: the decisions that Spark makes, row for row."""
    if setting is None or setting.keeps_everything:
        return np.ones(len(rows), dtype=bool)
    if isinstance(setting, RandomDrop):
        return keeps(point, rows.ids, setting.keep_fraction)
    if isinstance(setting, RangeDrop):
        return outside(rows.values, setting.drop)
    raise Unsupported(
        explain(
            "a random or range drop",
            repr(setting),
            where=f"drop point {point!r} of a simulation",
            hint="simulate a plan of RandomDrop and RangeDrop settings, or run it on Spark",
        )
    )


def thinned(setting: Setting | None, point: str, rows: Rows) -> Rows:
    """The rows that a drop point lets through, with the weights that Spark gives them."""
    if setting is None or setting.keeps_everything:
        return rows
    kept = rows.where(kept_by(setting, point, rows))
    if not isinstance(setting, RandomDrop):
        return kept
    return replace(kept, weights=kept.weighing / setting.keep_fraction)


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


def require_simulable(graph: QueryGraph, known: Collection[str] = ()) -> None:
    """Refuse networks with boxes that this simulation does not know, but for those whose functions are `known`."""
    for box in graph.boxes.values():
        built_in = box.kind not in ("join", "aggregate") and box.keeps_value and box.selectivity <= 1
        if not built_in and box.name not in known:
            raise Unsupported(
                explain(
                    "boxes that the simulation knows are filters, unions, and maps that keep their rows' values",
                    f"a {box.kind}",
                    where=f"box {box.name!r}",
                    hint="`Engine` takes operators for other boxes and `offered` functions; see `sim.network.operators`",
                )
            )
