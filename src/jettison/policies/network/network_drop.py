"""Drop where it hurts the outputs of a query network least: the road map as a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from jettison.core.documents import Amount, encode
from jettison.core.plan import MOST_PLAN_BYTES, PLAN_BYTES, DropPlan
from jettison.core.setting import Setting
from jettison.core.stats import Budget, PointStats, Stats
from jettison.errors import PlanTooLarge, refuse
from jettison.policies.base import Lesson, Policy
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.drop_model import DropModel, Vector
from jettison.policies.network.evaluate import drop_plan, flows, load_under
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.optimum import Frontier, frontier
from jettison.policies.network.range_setting import RangeSpec
from jettison.policies.uniform.random_setting import RandomDrop, RandomSpec

_GRID = 0.05  # proportions of the inputs are rounded to this before plans are made for them

_LEARNING = 0.3  # of a deviation, on the logarithmic scale, that one batch corrects
_ENOUGH_ROWS = 100  # that must have reached a split before its count says anything

_BYTES_A_POINT, _BYTES_BESIDE = 512, 1024  # of a setting, without names; and of all else in a plan


class NetworkDrop(Policy):
    """Spends the budget, read as a share of the network's load, so that the outputs' utility is highest.

    Plans for all loads are made ahead of time, for the proportions in which the inputs arrive. When those drift by
    more than a grid of 5 %, plans are made again; the paper's table would go stale instead.

    Parameters
    ----------
    graph
        The network with costs, selectivities and QoS graphs.
    semantic
        Drop by value where the value survives to the outputs; needs the inputs' `values`.
    column
        Column of the value.

    Examples
    --------
    >>> from jettison.policies.network import Box, Input, Output
    >>> graph = QueryGraph([Input("rides")], [Box("parse", ("rides",), "map")], [Output("all", "parse")])
    >>> NetworkDrop(graph).plan(Stats(0, 0.0, 1.0), Budget(0.5, 0.5, 3.0, "twice too many rows")).points["rides"]
    RandomDrop(keep_fraction=0.5, late_keep_fraction=0.5, late_after_s=3.0)
    """

    state_type: ClassVar[Any] = dict[str, tuple[Amount, Amount]]

    def __init__(self, graph: QueryGraph, *, semantic: bool = False, column: str = "value") -> None:
        self.graph = graph
        self.column = column
        self.semantic = semantic
        self._stated = {name: box.selectivity for name, box in graph.boxes.items()}
        self._planners = lru_cache(maxsize=32)(self._planner)
        self.model: DropModel = self._planners(self._nominal()).model
        least = len(DropPlan(0, dict.fromkeys(self.points, RandomDrop())).to_json()) + _BYTES_BESIDE
        if least > MOST_PLAN_BYTES:
            hint = "part the network into several queries"
            got = f"{least:,} bytes for {len(self.points):,} drop points"
            refuse(f"a network whose plans fit {MOST_PLAN_BYTES:,} bytes", got, hint=hint, error=PlanTooLarge)

    @property
    def spec(self) -> RangeSpec | RandomSpec:
        """Drops by value where these are semantic, else at random."""
        return RangeSpec(self.column) if self.semantic else RandomSpec()

    @property
    def points(self) -> tuple[str, ...]:
        """The candidate locations."""
        return tuple(dict.fromkeys(location.name for location in self.model.locations))

    @property
    def plan_bytes(self) -> int:
        """Room for a setting at every candidate location."""
        names = [encode(self.column) if self.semantic else "", *map(encode, self.points)]
        return max(
            PLAN_BYTES, _BYTES_BESIDE + sum(map(len, names)) + (_BYTES_A_POINT + len(names[0])) * len(self.points)
        )

    def outline(self) -> dict[str, Any]:
        """The network as it was stated, with what its outputs' rows are worth."""
        graph, tolerance = self.graph, self.model.loss_tolerance
        return {
            "inputs": [{"name": one.name, "rate": one.rate} for one in graph.inputs.values()],
            "boxes": [
                {
                    "name": one.name,
                    "sources": list(one.sources),
                    "kind": one.kind,
                    "cost": one.cost,
                    "selectivity": self._stated[one.name],
                }
                for one in graph.boxes.values()
            ],
            "outputs": [
                {
                    "name": one.name,
                    "source": one.source,
                    "weight": one.qos.weight,
                    "loss_tolerance": tolerance[one.name].points,
                }
                for one in graph.outputs.values()
            ],
        }

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """The plan that leaves at most the budget's share of the load, or with too little room for it the best that fits."""
        planner = self._planners(self._proportions(stats))
        model = planner.model
        share = min(1.0, budget.share)
        survival = np.ones(model.units) if share >= 1.0 else self._survival(planner, share)
        made = drop_plan(model, survival, column=self.column, cause=budget.cause)
        points = {name: self._with_late(name, setting, budget) for name, setting in made.points.items()}
        return _fitting(replace(made, points=points), stats.plan_bytes or self.plan_bytes)

    def workload(self, stats: Stats, plan: DropPlan | None) -> Stats:
        """The batch as one drop point before the whole network: rows that came in, and the share of the load done."""
        at_inputs = [point.seen for name, point in stats.points.items() if name in self.graph.inputs]
        seen = sum(at_inputs) or max((point.seen for point in stats.points.values()), default=0)
        share = 1.0 if plan is None else min(1.0, self.load_share(plan, stats))
        return replace(stats, points={"network": PointStats(seen, round(seen * share), exact=False)})

    def input_share(self, point: str) -> float:
        """Part of all input rows that is expected to reach a drop point while nothing is dropped."""
        reaching = sum(location.rate for location in self.model.locations if location.name == point)
        return reaching / max(self._total, 1e-12)

    def learn(self, lesson: Lesson) -> None:
        """Follow the selectivities: what reached the drop points behind a split against what was expected there.

        The box before the split takes the whole correction, a part of it with every batch. Filters whose passing values are
        known are left alone: their selectivity follows from the values.
        """
        if lesson.counted is None:
            return
        stats = lesson.counted.everything_kept() if lesson.dry_run else lesson.counted
        seen = {name: point.seen for name, point in stats.points.items()}
        if not all(seen.get(name) for name in self.graph.inputs):
            return
        keep = {name: point.kept / point.seen if point.seen else 1.0 for name, point in stats.points.items()}
        rates = {name: float(seen[name]) for name in self.graph.inputs}
        graph = self.graph
        for box in self.graph.boxes.values():
            arcs = [arc for arc in graph.readers(box.name) if seen.get(arc.name)]
            if not arcs or box.passes is not None or seen[arcs[0].name] < _ENOUGH_ROWS:
                continue
            now = flows(_at_rates(graph, rates), {**keep, arcs[0].name: 1.0})
            expected = float(now.arcs[arcs[0]].sum())
            if expected > 0 and abs(seen[arcs[0].name] / expected - 1.0) > _GRID:
                factor = (seen[arcs[0].name] / expected) ** _LEARNING
                corrected = box.with_selectivity(box.selectivity * factor)
                graph = graph.changed(boxes={**graph.boxes, box.name: corrected}.values())
        self._believe(graph)

    def state(self) -> dict[str, tuple[float, float]]:
        """By box, its selectivity as stated and as learned."""
        return {name: (stated, self.graph.boxes[name].selectivity) for name, stated in self._stated.items()}

    def restore(self, state: Mapping[str, tuple[float, float]]) -> None:
        """Go on with the selectivities learned, but for boxes of which something else is stated now."""
        known = {name: now for name, (stated, now) in state.items() if self._stated.get(name) == stated}
        boxes = self.graph.boxes
        learned = {name: boxes[name].with_selectivity(selectivity) for name, selectivity in known.items()}
        self._believe(self.graph.changed(boxes={**boxes, **learned}.values()))

    def _believe(self, graph: QueryGraph) -> None:
        if graph is not self.graph:
            self.graph = graph
            self._planners.cache_clear()
            self.model = self._planners(self._nominal()).model

    def load_share(self, plan: DropPlan, stats: Stats | None = None) -> float:
        """Share of the network's load that is expected under a plan, for the proportions in which a batch's rows came."""
        proportions = self._nominal() if stats is None else self._proportions(stats)
        load = load_under(_at_rates(self.graph, self._rates(proportions)), plan)
        return load / max(self._planners(proportions).model.full_load, 1e-12)

    def _survival(self, planner: Frontier, share: float) -> Vector:
        return planner.at(share * planner.model.full_load)

    def _with_late(self, name: str, setting: Setting, budget: Budget) -> Setting:
        """Rows that are late already are thinned at the inputs, before any work is done for them."""
        at_input = name in self.graph.inputs and isinstance(setting, RandomDrop)
        if not at_input or (budget.late_share >= 1.0 and setting.keeps_everything):
            return setting
        late = min(setting.keep_fraction, budget.late_share)
        return RandomDrop(setting.keep_fraction, late, budget.late_after_s)

    def _planner(self, proportions: tuple[float, ...]) -> Frontier:
        return frontier(drop_model(_at_rates(self.graph, self._rates(proportions)), semantic=self.semantic))

    def _rates(self, proportions: tuple[float, ...]) -> dict[str, float]:
        return {name: self._total * part for name, part in zip(self.graph.inputs, proportions, strict=True)}

    def _proportions(self, stats: Stats) -> tuple[float, ...]:
        seen = [stats.points[name].seen if name in stats.points else 0 for name in self.graph.inputs]
        if not all(seen):
            return self._nominal()
        rounded, usual = (_rounded(amounts) for amounts in (seen, [i.rate for i in self.graph.inputs.values()]))
        return self._nominal() if rounded == usual else rounded

    def _nominal(self) -> tuple[float, ...]:
        return tuple(input.rate / max(self._total, 1e-12) for input in self.graph.inputs.values())

    @property
    def _total(self) -> float:
        return sum(input.rate for input in self.graph.inputs.values())


def _fitting(plan: DropPlan, room: int) -> DropPlan:
    """The plan with drops at as many locations as there is room for: where fewest rows would go, none does."""
    excess, points, nothing = len(plan.to_json()) - room, dict(plan.points), RandomDrop()
    for name in sorted(points, key=lambda one: points[one].keep_fraction, reverse=True):
        if excess <= 0:
            break
        saved = len(encode(points[name].to_document())) - len(encode(nothing.to_document()))
        if saved > 0:
            points[name] = nothing
            excess -= saved
    return replace(plan, points=points)


def _rounded(amounts: Sequence[float]) -> tuple[float, ...]:
    whole = sum(amounts)
    return tuple(max(_GRID / 5, round(amount / whole / _GRID) * _GRID) for amount in amounts)


def _at_rates(graph: QueryGraph, rates: Mapping[str, float]) -> QueryGraph:
    return graph.changed(inputs=[replace(input, rate=rates[name]) for name, input in graph.inputs.items()])
