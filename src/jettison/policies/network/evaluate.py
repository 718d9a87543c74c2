"""What a network really does under given drops: flows, load and delivery, joins included; and the plan that makes them.

The planners work with a linear model. This walks the network instead, so it also knows that a join emits the product of
what survives on its two sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jettison.core.plan import DropPlan
from jettison.core.setting import Setting
from jettison.policies.network.cells import ValueCells, cells_of, through
from jettison.policies.network.drop_model import DropModel, Location, Vector
from jettison.policies.network.graph import Arc, QueryGraph, arc_into, below_aggregates
from jettison.policies.network.range_setting import RangeDrop, few_ranges
from jettison.policies.uniform.random_setting import RandomDrop

Keep = Mapping[str, float | Vector]
"""Share kept by name of the location: a number, or one for each cell of values."""


class Flows(NamedTuple):
    """Rows per unit of time by arc, behind the drops on it, for each cell of values; and the work per unit of time."""

    arcs: Mapping[Arc, Vector]
    load: float


class Evaluation(NamedTuple):
    """Load under drops, and the share of its rows that each output gets."""

    load: float
    delivered: Mapping[str, float]


def evaluate(graph: QueryGraph, keep: Keep) -> Evaluation:
    """Load and delivery when each location named in `keep` keeps that share of what reaches it.

    Examples
    --------
    >>> from jettison.policies.network.graph import Box, Input, Output
    >>> graph = QueryGraph([Input("l"), Input("r")], [Box("both", ("l", "r"), "join")], [Output("o", "both")])
    >>> evaluate(graph, {"l": 0.5, "r": 0.5}).delivered
    {'o': 0.25}
    """
    full, kept = flows(graph, {}), flows(graph, keep)
    frozen = below_aggregates(graph)
    delivered = {}
    for name, output in graph.outputs.items():
        arc = Arc(output.source, name)
        if output.source in frozen:
            delivered[name] = _represented(graph, output.source, full, kept)
        else:
            delivered[name] = _share(kept.arcs[arc], full.arcs[arc])
    return Evaluation(kept.load, delivered)


def load_under(graph: QueryGraph, plan: DropPlan) -> float:
    """Work per unit of time under a plan; of cells that its ranges cut, each part is followed by itself."""
    drops = {name: one.drop for name, one in plan.points.items() if isinstance(one, RangeDrop)}
    cells = cells_of(graph)
    if cells is not None:
        cells = cells.cut_at(edge for ranges in drops.values() for part in ranges for edge in part)
    keep: dict[str, float | Vector] = {name: one.keep_fraction for name, one in plan.points.items()}
    if cells is not None:
        keep |= {name: 1.0 - cells.lying_in(ranges) for name, ranges in drops.items()}
    return flows(graph, keep, cells).load


def flows(graph: QueryGraph, keep: Keep, cells: ValueCells | None = None) -> Flows:
    """Rows per unit of time on every arc, by the cells given or else the network's own."""
    cells = cells_of(graph) if cells is None else cells
    width = 1 if cells is None else len(cells)
    frozen = below_aggregates(graph)
    arcs: dict[Arc, Vector] = {}
    full: dict[Arc, Vector] = {}
    load = 0.0

    def emit(stream: str, rates: Vector, everything: Vector) -> None:
        for arc in graph.readers(stream):
            arcs[arc], full[arc] = rates * keep.get(arc.name, 1.0), everything

    for input in graph.inputs.values():
        rates = input.rate * (np.ones(width) if cells is None else cells.histogram(input.values))
        emit(input.name, rates * keep.get(input.name, 1.0), rates)
    for box in graph.boxes.values():
        ports = [arc_into(box, port) for port in range(len(box.sources))]
        entering, at_full = [arcs[arc] for arc in ports], [full[arc] for arc in ports]
        load += box.cost * float(sum(map(np.sum, entering)))
        leaving = through(box, cells)
        everything = leaving(np.asarray(sum(at_full)))
        if box.name in frozen:
            rates = everything  # answers become approximate, not fewer
        elif box.kind == "join":
            rates = everything * np.prod([_share(a, b) for a, b in zip(entering, at_full, strict=True)])
        else:
            rates = leaving(np.asarray(sum(entering)))
        emit(box.name, rates, everything)
    return Flows(arcs, load)


def keep_shares(model: DropModel, survival: Vector) -> dict[str, float | Vector]:
    """For each location the share to keep of what reaches it, so that `survival` comes out; by cell where semantic."""
    reaching = model.reaching(survival)
    units = np.where(reaching > 1e-12, np.minimum(survival / np.maximum(reaching, 1e-12), 1.0), 1.0)
    shares: dict[str, float | Vector] = {}
    for location in model.locations:
        if not location.semantic:
            shares[location.name] = float(units[location.units[0]])
        else:
            assert model.cells is not None
            by_cell = np.ones(len(model.cells))
            by_cell[list(location.cells)] = units[list(location.units)]
            shares[location.name] = by_cell
    return shares


def _represented(graph: QueryGraph, stream: str, full: Flows, kept: Flows) -> float:
    """Share of the rows that the answers of a stream behind an aggregate stand for: the least over its sources."""
    box = graph.boxes[stream]
    arcs = [arc_into(box, port) for port in range(len(box.sources))]
    frozen = below_aggregates(graph)
    return min(
        _represented(graph, arc.source, full, kept) if arc.source in frozen else _share(kept.arcs[arc], full.arcs[arc])
        for arc in arcs
    )


def _share(part: Vector, whole: Vector) -> float:
    total = float(np.sum(whole))
    return float(np.sum(part)) / total if total > 0 else 1.0


_NOTHING = 1e-6  # a smaller drop is not worth its work


def drop_plan(model: DropModel, survival: Vector, *, column: str = "value", cause: str = "") -> DropPlan:
    """The plan under which `survival` comes out; a setting for every location, most of them keeping everything."""
    shares = keep_shares(model, survival)
    reaching = model.reaching(survival)
    points: dict[str, Setting] = {}
    for location in model.locations:
        keep = shares[location.name]
        if isinstance(keep, np.ndarray):
            points[location.name] = _range_drop(model, location, survival, reaching, column)
        else:
            points[location.name] = RandomDrop(keep if keep < 1.0 - _NOTHING else 1.0)
    return DropPlan(0, points, cause)


def _range_drop(model: DropModel, location: Location, survival: Vector, reaching: Vector, column: str) -> RangeDrop:
    """Give up each cell's lowest values first, wherever it is dropped: then drops along a path nest."""
    assert model.cells is not None
    dropped, kept, rows = [], [], float((model.rate * reaching)[list(location.units)].sum())
    for unit, cell in zip(location.units, location.cells, strict=True):
        low, end = model.cells.edges[cell : cell + 2]
        if survival[unit] < reaching[unit] - _NOTHING and rows > 0:
            cut = model.cells.cut(cell, 1.0 - _level(model, unit, survival))
            dropped.append((low, cut, float(model.rate[unit] * (reaching[unit] - survival[unit])) / rows))
            low = cut
        if rows > 0:
            kept.append((low, end, float(model.rate[unit] * survival[unit]) / rows))
    chosen = few_ranges([one for one in dropped if one[1] > one[0]], kept)
    share = max(0.0, 1.0 - sum(share for _, _, share in chosen))
    return RangeDrop(column, tuple((low, end) for low, end, _ in chosen), share)


def _level(model: DropModel, unit: int, survival: Vector) -> float:
    """Down to which share of the cell to cut, so that `survival` remains although the streams above are cut already.

    Of a stream that is cut to the share p above, a cut to the level t leaves the smaller of both.
    """
    start, end = model.feeds.indptr[unit], model.feeds.indptr[unit + 1]
    if end == start:
        return float(survival[unit])
    above, shares = survival[model.feeds.indices[start:end]], model.feeds.data[start:end]
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if float(shares @ np.minimum(above, middle)) < survival[unit] else (low, middle)
    return high
