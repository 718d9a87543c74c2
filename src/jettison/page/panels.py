"""What only one mechanism can show, each as plain data: windows, groups, regions, a network, keys; and what is settled.

A panel is made of the newest settings, what the start of the run said of its plans (`Policy.outline`), and records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, convert

from jettison.core.redact import redacted
from jettison.core.setting import Setting
from jettison.core.storage import Folder
from jettison.errors import InvalidInput
from jettison.page.recent import Recent
from jettison.policies.groups.group_setting import GroupDrop
from jettison.policies.network.evaluate import evaluate
from jettison.policies.network.graph import Box, Input, Output, QueryGraph
from jettison.policies.network.picture import laid_out
from jettison.policies.network.qos import LossTolerance, QoS
from jettison.policies.network.range_setting import RangeDrop
from jettison.policies.regions.region_setting import RegionDrop
from jettison.runtime.companion import CompanionReport
from jettison.settle.settled_record import load, stretches, summary
from jettison.source.space import Attribute, Space

_MOST_GROUPS, _MOST_KEYS, _MOST_STRETCHES = 100, 20, 20


class WindowStrip(Struct, kw_only=True, tag="windows", tag_field="panel"):
    """The fate of the last windows of one query, oldest first; `start_s` is empty where their grid is not on record."""

    query: str
    first: int
    marks: str
    start_s: list[float] = []
    size_s: float | None = None
    max_gap: int | None = None


class Group(Struct):
    """A group that is thinned: the hash of its key, and the share kept."""

    hash: str
    keep_fraction: float


class GroupShares(Struct, kw_only=True, tag="groups", tag_field="panel"):
    """Groups of one drop point in the newest pane that a plan names; those thinned most come first."""

    point: str
    columns: list[str]
    pane_s: float | None
    start_s: float | None
    named: int
    others: float
    new: float
    groups: list[Group]
    at_s: list[float]
    distance: list[float | None]


class RegionMap(Struct, kw_only=True, tag="regions", tag_field="panel"):
    """Shares kept over one or two attributes, by cell between `edges`; over further ones the mean by volume."""

    point: str
    attributes: list[str]
    edges: list[list[float]]
    values: list[list[str]]
    keep: list[list[float]]
    averaged_over: list[str]
    outside: float


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


class NetworkPicture(Struct, kw_only=True, tag="network", tag_field="panel"):
    """The network with the drops of the newest plan on it, and what its outputs get by that plan."""

    nodes: list[Node]
    edges: list[Edge]
    at_input: dict[str, float]


class KeyCosts(Struct, kw_only=True, tag="keys", tag_field="panel"):
    """A function that sheds by cost: its own words and table, and its batches."""

    name: str
    status: str
    columns: list[str]
    rows: list[list[str]]
    bound_s: float | None
    at_s: list[float]
    busy_s: list[float | None]
    spared_s: list[float | None]
    longest_wait_s: list[float | None]
    dropped_keys: dict[str, int]


class SettledWindows(Struct, tag="settled", tag_field="panel"):
    """What `jettison reconcile` has made exact, and what is open or lost: in words, and by stretches of event time."""

    status: str
    rows: list[tuple[str, str, str, str]]


Panel = WindowStrip | GroupShares | RegionMap | NetworkPicture | KeyCosts | SettledWindows


def settled_windows(home: Folder) -> Iterator[SettledWindows]:
    """What is on record of settled windows, once anybody has looked for them."""
    try:
        record = load(home)
    except InvalidInput as error:
        yield SettledWindows(redacted(str(error)), [])
    else:
        if status := summary(record):
            yield SettledWindows(status, list(stretches(record, _MOST_STRETCHES)))


def panels(recent: Recent, settings: Mapping[str, Setting], companions: Sequence[CompanionReport]) -> Iterator[Panel]:
    """All that there is to show; what cannot be read is left out."""
    outline = (recent.start or {}).get("outline") or {}
    yield from _windows(recent, outline)
    for point, setting in settings.items():
        if isinstance(setting, GroupDrop):
            yield _groups(point, setting, recent, outline)
        elif isinstance(setting, RegionDrop) and setting.cells:
            yield from _regions(point, setting, outline)
    if {"inputs", "boxes", "outputs"} <= outline.keys():
        yield from _network(outline, settings)
    for report in companions:
        yield _keys(report, recent)


def _windows(recent: Recent, outline: Mapping[str, Any]) -> Iterator[WindowStrip]:
    for place, marks in recent.marks.items():
        if not marks:
            continue
        first, last = min(marks), max(marks)
        strip = WindowStrip(
            query=f"query {place}", first=first, marks="".join(marks.get(n, "?") for n in range(first, last + 1))
        )
        grids = outline.get("windows") or []
        if place < len(grids):
            grid = grids[place]
            slide, offset = grid["slide_us"], grid["offset_us"]
            strip.query, strip.size_s, strip.max_gap = grid["name"], grid["size_us"] / 1e6, grid["max_gap"]
            strip.start_s = [(offset + n * slide) / 1e6 for n in range(first, last + 1)]
        yield strip


def _groups(point: str, setting: GroupDrop, recent: Recent, outline: Mapping[str, Any]) -> GroupShares:
    named = [place for place in range(len(setting.groups)) if setting.groups[place]]
    newest = named[-1] if named else len(setting.groups) - 1
    shares: list[Group] = []
    if newest >= 0:
        pairs = zip(setting.groups[newest], setting.keeps[newest], strict=True)
        shares = [Group(f"{group & 0xFFFFFFFF:08x}", keep) for group, keep in pairs]
    panes = [pane for pane in recent.panes if pane.get("point") == point]
    return GroupShares(
        point=point,
        columns=outline.get("group") or [],
        pane_s=setting.pane_us / 1e6 or None,
        start_s=setting.starts_us[newest] / 1e6 if newest >= 0 else None,
        named=len(shares),
        others=setting.others[newest] if newest >= 0 else setting.new_keep_fraction,
        new=setting.new_keep_fraction,
        groups=sorted(shares, key=lambda group: group.keep_fraction)[:_MOST_GROUPS],
        at_s=[pane["start_us"] / 1e6 for pane in panes],
        distance=[pane.get("distance") for pane in panes],
    )


def _regions(point: str, setting: RegionDrop, outline: Mapping[str, Any]) -> Iterator[RegionMap]:
    try:
        stated = convert(outline.get("attributes"), list[_Axis])
    except ValueError:
        return
    if len(stated) != len(setting.cuts):
        return
    # Places before the first cut and behind the last are outside of the domain.
    shape = [len(cuts) + 1 for cuts in setting.cuts]
    keep = np.array(setting.keep)[np.array(setting.cells)].reshape(shape)
    keep = keep[tuple(slice(1, -1) for _ in shape)]
    for axis in range(len(shape) - 1, 1, -1):
        keep = np.average(keep, axis=axis, weights=np.diff(setting.cuts[axis]))
    space = Space([Attribute(one.name, one.low, one.end) for one in stated])
    yield RegionMap(
        point=point,
        attributes=[one.name for one in stated[:2]],
        edges=[
            [float(one.low + (code - 1) / space.scale[axis]) for code in setting.cuts[axis]]
            for axis, one in enumerate(stated[:2])
        ],
        values=[one.values for one in stated[:2]],
        keep=np.atleast_2d(keep.T).round(4).tolist(),
        averaged_over=[one.name for one in stated[2:]],
        outside=setting.keep[-1],
    )


def _network(outline: Mapping[str, Any], settings: Mapping[str, Setting]) -> Iterator[NetworkPicture]:
    try:
        graph, tolerance = _graph(convert(dict(outline), _Network))
    except ValueError:
        return
    keep = {name: setting.keep_fraction for name, setting in settings.items()}
    delivered = evaluate(graph, keep).delivered
    nodes = []
    for name, (x, y) in laid_out(graph).items():
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


def _keys(report: CompanionReport, recent: Recent) -> KeyCosts:
    batches = [one for one in recent.functions if report.name in one["points"]]
    dropped: dict[str, int] = {}
    for batch in batches:
        for key, rows in (batch.get("dropped_keys") or {}).items():
            dropped[key] = dropped.get(key, 0) + rows
    most = sorted(dropped.items(), key=lambda item: -item[1])[:_MOST_KEYS]
    shown = batches[-400:]
    return KeyCosts(
        name=report.name,
        status=report.status,
        columns=list(report.columns),
        rows=[list(row) for row in report.rows],
        bound_s=shown[-1].get("bound_s") if shown else None,
        at_s=[one["at_s"] for one in shown],
        busy_s=[one.get("busy_s") for one in shown],
        spared_s=[one.get("spared_s") for one in shown],
        longest_wait_s=[one.get("longest_wait_s") for one in shown],
        dropped_keys=dict(most),
    )


class _Axis(Struct):
    name: str
    low: float
    end: float
    values: list[str] = []


class _Output(Struct):
    name: str
    source: str
    weight: float
    loss_tolerance: list[tuple[float, float]]


class _Network(Struct):
    inputs: list[Input]
    boxes: list[Box]
    outputs: list[_Output]
