"""Drop where it hurts the outputs of a query network least: the road map as a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from jettison.network.admission import ADMISSIONS, admitted, input_loads
from jettison.network.candidates import drop_model
from jettison.network.drop_model import DropModel, Vector
from jettison.network.evaluate import evaluate, flows
from jettison.network.graph import QueryGraph
from jettison.network.optimum import Frontier, frontier
from jettison.network.plans import drop_plan
from jettison.plan import DropPlan
from jettison.settings import RandomDrop, Setting
from jettison.stats import Budget, PointStats, Stats

_GRID = 0.05  # proportions of the inputs are rounded to this before plans are made for them

_LEARNING = 0.3  # of a deviation, on the logarithmic scale, that one batch corrects
_ENOUGH_ROWS = 100  # that must have reached a split before its count says anything


class NetworkDrop:
    """Spends the budget, read as a share of the network's load, so that the outputs' utility is highest.

    Plans for all loads are made ahead of time, for the proportions in which the inputs arrive. When those drift by
    more than a grid of 5 %, plans are made anew; the paper's table would go stale instead.

    Parameters
    ----------
    graph
        The network with costs, selectivities and QoS graphs.
    semantic
        Drop by value where the value survives to the outputs; needs the inputs' `values`.
    column
        Column of the value.
    admission
        Name of an admission control to use instead, as a baseline: one of `jettison.network.admission.ADMISSIONS`.

    Examples
    --------
    >>> from jettison.network import Box, Input, Output
    >>> graph = QueryGraph([Input("rides")], [Box("parse", ("rides",), "map")], [Output("all", "parse")])
    >>> NetworkDrop(graph).plan(Stats(0, 0.0, 1.0), Budget(0.5, 0.5, 3.0, "twice too many rows")).points["rides"]
    RandomDrop(keep_fraction=0.5, late_keep_fraction=0.5, late_after_s=3.0)
    """

    def __init__(
        self, graph: QueryGraph, *, semantic: bool = False, column: str = "value", admission: str | None = None
    ) -> None:
        self.graph = graph
        self.column = column
        self.semantic = semantic
        self._admission = None if admission is None else ADMISSIONS[admission]
        self._planners = lru_cache(maxsize=32)(self._planner)
        self.model: DropModel = self._planners(self._nominal()).model

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """The plan that leaves at most the budget's share of the load."""
        planner = self._planners(self._proportions(stats))
        model = planner.model
        share = min(1.0, budget.keep_fraction)
        survival = np.ones(model.units) if share >= 1.0 else self._survival(planner, share)
        made = drop_plan(model, survival, column=self.column, cause=budget.cause)
        points = {name: self._with_late(name, setting, budget) for name, setting in made.points.items()}
        return replace(made, points=points)

    def workload(self, stats: Stats, plan: DropPlan | None) -> Stats:
        """The batch as one drop point before the whole network: rows that came in, and the share of the load done."""
        at_inputs = [point.seen for name, point in stats.points.items() if name in self.graph.inputs]
        seen = sum(at_inputs) or max((point.seen for point in stats.points.values()), default=0)
        share = 1.0 if plan is None else min(1.0, self.load_share(plan))
        return replace(stats, points={"network": PointStats(seen, round(seen * share), exact=False)})

    def input_share(self, point: str) -> float:
        """Part of all input rows that is expected to reach a drop point while nothing is dropped."""
        total = sum(input.rate for input in self.graph.inputs.values())
        return sum(location.rate for location in self.model.locations if location.name == point) / max(total, 1e-12)

    def learn_counts(self, stats: Stats) -> None:
        """Follow the selectivities: what reached the drop points behind a split against what was expected there.

        The box before the split takes the whole correction, a part of it with every batch. Filters whose passing values are
        known are left alone: their selectivity follows from the values.
        """
        seen = {name: point.seen for name, point in stats.points.items()}
        if not all(seen.get(name) for name in self.graph.inputs):
            return
        keep = {name: point.kept / point.seen if point.seen else 1.0 for name, point in stats.points.items()}
        rates = {name: float(seen[name]) for name in self.graph.inputs}
        changed = False
        for box in list(self.graph.boxes.values()):
            arcs = [arc for arc in self.graph.readers(box.name) if seen.get(arc.name)]
            if not arcs or box.passes is not None or seen[arcs[0].name] < _ENOUGH_ROWS:
                continue
            now = flows(_at_rates(self.graph, rates), {**keep, arcs[0].name: 1.0})
            expected = float(now.arcs[arcs[0]].sum())
            if expected > 0 and abs(seen[arcs[0].name] / expected - 1.0) > _GRID:
                factor = (seen[arcs[0].name] / expected) ** _LEARNING
                self.graph = _with_selectivity(self.graph, box.name, box.selectivity * factor)
                changed = True
        if changed:
            self._planners.cache_clear()
            self.model = self._planners(self._nominal()).model

    def load_share(self, plan: DropPlan) -> float:
        """Share of the network's load that is expected under a plan."""
        keep = {name: setting.keep_fraction for name, setting in plan.points.items()}
        return evaluate(self.graph, keep).load / max(self.model.full_load, 1e-12)

    def _survival(self, planner: Frontier, share: float) -> Vector:
        model = planner.model
        if self._admission is None:
            return planner.at(share * model.full_load)
        excess = (1.0 - share) * model.full_load
        return admitted(model, self._admission(input_loads(model), excess, np.random.default_rng(0)))

    def _with_late(self, name: str, setting: Setting, budget: Budget) -> Setting:
        """Rows that are late already are thinned at the inputs, before any work is done for them."""
        at_input = name in self.graph.inputs and isinstance(setting, RandomDrop)
        if not at_input or (budget.late_keep_fraction >= 1.0 and setting.keeps_everything):
            return setting
        late = min(setting.keep_fraction, budget.late_keep_fraction)
        return RandomDrop(setting.keep_fraction, late, budget.late_after_s)

    def _planner(self, proportions: tuple[float, ...]) -> Frontier:
        total = sum(input.rate for input in self.graph.inputs.values())
        rates = dict(zip(self.graph.inputs, proportions, strict=True))
        return frontier(
            drop_model(_at_rates(self.graph, {n: r * total for n, r in rates.items()}), semantic=self.semantic)
        )

    def _proportions(self, stats: Stats) -> tuple[float, ...]:
        seen = [stats.points[name].seen if name in stats.points else 0 for name in self.graph.inputs]
        if not all(seen):
            return self._nominal()
        rounded = self._rounded(seen)
        return self._nominal() if rounded == self._rounded([i.rate for i in self.graph.inputs.values()]) else rounded

    def _nominal(self) -> tuple[float, ...]:
        total = sum(input.rate for input in self.graph.inputs.values())
        return tuple(input.rate / max(total, 1e-12) for input in self.graph.inputs.values())

    def _rounded(self, amounts: list[float] | list[int]) -> tuple[float, ...]:
        whole = sum(amounts)
        return tuple(max(_GRID / 5, round(amount / whole / _GRID) * _GRID) for amount in amounts)


def _with_selectivity(graph: QueryGraph, name: str, selectivity: float) -> QueryGraph:
    boxes = {**graph.boxes, name: graph.boxes[name].with_selectivity(selectivity)}
    return QueryGraph(
        graph.inputs.values(), boxes.values(), graph.outputs.values(), integral_values=graph.integral_values
    )


def _at_rates(graph: QueryGraph, rates: Mapping[str, float]) -> QueryGraph:
    inputs = [replace(input, rate=rates[name]) for name, input in graph.inputs.items()]
    return QueryGraph(inputs, graph.boxes.values(), graph.outputs.values(), integral_values=graph.integral_values)
