"""A network of boxes with what is dropped on its arcs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct, convert

from jettison.core.setting import Setting
from jettison.page.panels.panel import Drawing, Panel
from jettison.policies.network.evaluate import evaluate
from jettison.policies.network.graph import Box, Input, Output, QueryGraph
from jettison.policies.network.qos import LossTolerance, QoS
from jettison.policies.network.range_setting import RangeDrop


class Node(Struct):
    """An input, a box or an output of a network, and where it is drawn."""

    name: str
    kind: str
    x: float
    y: float
    delivered: float | None = None
    utility: float | None = None


class Edge(Struct):
    """The way from one node to another, and what is dropped on it: the share kept, and which values go."""

    source: str
    target: str
    keep_fraction: float
    ranges: list[tuple[float, float]] = []


class NetworkPicture(Panel, kw_only=True, tag="network"):
    """The network with the drops of the newest plan on it, and what its outputs get by that plan."""

    nodes: list[Node]
    edges: list[Edge]
    at_input: dict[str, float]


class _Output(Struct):
    name: str
    source: str
    weight: float
    loss_tolerance: list[tuple[float, float]]


class _Network(Struct):
    inputs: list[Input]
    boxes: list[Box]
    outputs: list[_Output]


class NetworkPictures(Drawing):
    """One picture of the network, where the outline has one."""

    def panels(self, settings: Mapping[str, Setting], outline: Mapping[str, Any]) -> Iterator[NetworkPicture]:
        try:
            graph, tolerance = _graph(convert(dict(outline), _Network))
        except ValueError:
            return
        keep = {name: setting.keep_fraction for name, setting in settings.items()}
        delivered = evaluate(graph, keep).delivered
        nodes = []
        for name, (x, y) in _laid_out(graph).items():
            kind = "input" if name in graph.inputs else graph.boxes[name].kind if name in graph.boxes else "output"
            share = delivered.get(name)
            nodes.append(Node(name, kind, x, y, share, None if share is None else tolerance[name].at(100 * share)))
        edges = []
        for stream in (*graph.inputs, *graph.boxes):
            for arc in graph.readers(stream):
                setting = settings.get(arc.name)
                ranges = list(setting.drop) if isinstance(setting, RangeDrop) else []
                edges.append(Edge(stream, arc.target, keep.get(arc.name, 1.0), ranges))
        yield NetworkPicture(nodes=nodes, edges=edges, at_input={name: keep.get(name, 1.0) for name in graph.inputs})


def _graph(stated: _Network) -> tuple[QueryGraph, dict[str, LossTolerance]]:
    tolerance = {one.name: LossTolerance(one.loss_tolerance) for one in stated.outputs}
    outputs = [Output(one.name, one.source, QoS(tolerance[one.name], weight=one.weight)) for one in stated.outputs]
    return QueryGraph(stated.inputs, stated.boxes, outputs), tolerance


def _laid_out(graph: QueryGraph) -> dict[str, tuple[float, float]]:
    """Columns by the longest way from an input, outputs at the far end; rows so that readers stand near their source."""
    depth = dict.fromkeys(graph.inputs, 0)
    for name, box in graph.boxes.items():
        depth[name] = 1 + max(depth[source] for source in box.sources)
    last = 1 + max(depth.values())
    columns: dict[int, list[str]] = {}
    for name in (*graph.inputs, *graph.boxes):
        columns.setdefault(depth[name], []).append(name)
    columns[last] = list(graph.outputs)
    sources = {name: list(box.sources) for name, box in graph.boxes.items()}
    sources |= {name: [output.source] for name, output in graph.outputs.items()}
    places: dict[str, tuple[float, float]] = {}
    for column in sorted(columns):
        wanted = {
            name: float(np.mean([places[s][1] for s in sources[name]])) if name in sources else float(n)
            for n, name in enumerate(columns[column])
        }
        free = 0.0
        for name in sorted(columns[column], key=lambda item: wanted[item]):
            row = max(free, wanted[name])
            places[name] = (float(column), row)
            free = row + 1.0
    return places
