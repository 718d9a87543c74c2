"""Ours alone: which admission control loses least depends on what expensive inputs deliver, which the paper leaves open.

In the random networks filters stand anywhere, so an input with a long way to its output costs much, and few of its rows
arrive. An input that is given up whole because it is expensive is then no great loss. With all of a query's filters behind
its unions, its inputs cost and deliver alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.sim.network.admission import ADMISSIONS, admitted, input_loads
from jettison.lab.sim.network.generator import random_network
from jettison.lab.sim.network.survival import utilities
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.drop_model import DropModel
from jettison.policies.network.graph import Box, Output, QueryGraph

EXCESS = (0.22, 1.03, 3.07)
_RANDOM_ORDERS = 4


def filters_last(graph: QueryGraph) -> QueryGraph:
    """The same queries with every filter behind the last union. Queries must not share streams."""
    boxes: list[Box] = []
    outputs: list[Output] = []

    def without_filters(stream: str, found: list[Box]) -> str:
        box = graph.boxes.get(stream)
        if box is None:
            return stream
        if box.kind == "filter":
            found.append(box)
            return without_filters(box.sources[0], found)
        boxes.append(replace(box, sources=tuple(without_filters(source, found) for source in box.sources)))
        return box.name

    for output in graph.outputs.values():
        filters: list[Box] = []
        top = without_filters(output.source, filters)
        for box in filters:
            boxes.append(replace(box, sources=(top,)))
            top = box.name
        outputs.append(replace(output, source=top))
    return QueryGraph(graph.inputs.values(), boxes, outputs, integral_values=graph.integral_values)


def foreseen_losses(model: DropModel, seed: int) -> dict[str, list[float]]:
    """Percent of tuple utility that each rule's plan loses, by excess load."""
    loads, random = input_loads(model), np.random.default_rng(seed)
    found = {}
    for name, rule in ADMISSIONS.items():
        orders = _RANDOM_ORDERS if name == "Input-Random" else 1
        found[name] = [
            float(
                np.mean([_loss(model, rule(loads, model.full_load * (1 - 1 / (1 + e)), random)) for _ in range(orders)])
            )
            for e in EXCESS
        ]
    return found


def delivery_by_cost(model: DropModel) -> tuple[float, float]:
    """What a unit of load delivers at the most expensive and at the cheapest third of the inputs, over the mean of all."""
    loads = input_loads(model)
    delivered = np.asarray(model.delivery.sum(axis=0)).ravel()
    share = {location.name: float(delivered[list(location.units)].sum()) for location in model.locations}
    names = sorted(loads, key=lambda name: -loads[name])
    third = len(names) // 3

    def per_load(group: list[str]) -> float:
        return sum(share[name] for name in group) / sum(loads[name] for name in group)

    return per_load(names[:third]) / per_load(names), per_load(names[-third:]) / per_load(names)


def run(settings: RunSettings) -> Judged:
    """Compare the rules on the networks as drawn, and on the same ones with their filters last."""
    count = 20 if settings.quick else 60
    settings.say(f"admission controls on {count} networks")
    kinds: dict[str, Callable[[QueryGraph], QueryGraph]] = {
        "as drawn": lambda graph: graph,
        "filters last": filters_last,
    }
    rows = []
    for kind, change in kinds.items():
        graphs = [change(random_network(settings.seed * 1000 + n)) for n in range(count)]
        models = [drop_model(graph) for graph in graphs]
        losses = [foreseen_losses(model, seed) for seed, model in enumerate(models)]
        costly, cheap = np.mean([delivery_by_cost(model) for model in models], axis=0)
        for name in ADMISSIONS:
            means = np.mean([found[name] for found in losses], axis=0)
            rows.append([kind, name, *(f"{loss:.1f}" for loss in means), f"{costly:.2f}", f"{cheap:.2f}"])
    header = ["filters", "rule", *(f"+{100 * e:.0f} %" for e in EXCESS), "most expensive third", "cheapest third"]
    text = (
        "Percent of tuple utility lost as the plans foresee it, and what a unit of load delivers at the most expensive and "
        f"the cheapest third of the inputs, over the mean of all inputs; {count} networks.\n\n" + table(header, rows)
    )
    return [Section("Why the order of the admission controls is another one", text)], []


def _loss(model: DropModel, keep: dict[str, float]) -> float:
    reached = utilities(model, admitted(model, keep))
    return 100.0 * (1.0 - sum(reached.values()) / len(reached))
