"""Rows of a simulated stream, column by column, and the decisions of filters and drops over them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jettison.core.decision import Candidates
from jettison.core.hashing import salted, thresholds
from jettison.core.setting import Setting
from jettison.errors import Unsupported, refuse
from jettison.policies.network.graph import Box, QueryGraph
from jettison.policies.network.range_setting import RangeDrop, RangeSpec
from jettison.policies.uniform.random_setting import RandomSpec

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


def thinned(setting: Setting | None, point: str, rows: Rows) -> Rows:
    """The rows that a drop point lets through, with the weights that Spark gives them."""
    if setting is None or setting.keeps_everything:
        return rows
    spec = RangeSpec(setting.column) if isinstance(setting, RangeDrop) else RandomSpec()
    columns = {spec.column: rows.values} if isinstance(spec, RangeSpec) else {}
    keep, weight = setting.decide(spec, Candidates(point, rows.ids, columns))
    kept = rows.where(keep)
    return kept if isinstance(setting, RangeDrop) else replace(kept, weights=kept.weighing * weight[keep])


def passed_by(box: Box, rows: Rows) -> Mask:
    """Which rows leave a box. A filter without a condition on the value decides by a hash of the identity."""
    if box.passes is not None:
        inside = np.zeros(len(rows), dtype=bool)
        for low, high in box.passes:
            inside |= (rows.values >= low) & (rows.values <= high)
        return inside
    return np.asarray(salted(f"box {box.name}", rows.ids) <= thresholds(np.array(box.selectivity)))


def require_simulable(graph: QueryGraph, known: Collection[str] = ()) -> None:
    """Refuse networks with boxes that this simulation does not know, but for those whose functions are `known`."""
    for box in graph.boxes.values():
        built_in = box.kind not in ("join", "aggregate") and box.keeps_value and box.selectivity <= 1
        if not built_in and box.name not in known:
            refuse(
                "boxes that the simulation knows are filters, unions, and maps that keep their rows' values",
                f"a {box.kind}",
                where=f"box {box.name!r}",
                hint="`offered` takes functions for other boxes",
                error=Unsupported,
            )
