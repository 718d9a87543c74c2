"""A network and its road map to look at: as text, and as a drawing in SVG or PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jettison.policies.network.candidates import drop_model
from jettison.policies.network.drop_model import DropModel, Vector
from jettison.policies.network.evaluate import drop_plan, evaluate, keep_shares
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.optimum import frontier
from jettison.policies.network.range_setting import RangeDrop

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOXES = """\
Inputs, boxes and outputs. cost: work for each row that enters, in the unit of the file; selectivity: rows out per
row in; rate: rows per unit of time; load coefficient: work that one row leaving here still causes on all its ways."""
_LOCATIONS = """\
Where rows may be dropped: at an input, or on the way from a to b (a__b). drops: at random, or semantic (ranges of the
value); rate: rows that pass with nothing dropped; of all load: the work that dropping all of them would save."""
_ROAD_MAP = """\
The best plan for less and less load. drops: the share that each active location keeps; delivery: the share that each
output gets of its rows; utility: what its QoS says that is worth; in all: their sum, weighted."""
_NEEDS_ALL = (
    "Nothing is dropped before these boxes: without all rows their answers would be wrong and would not say so."
)
_SIGNS = """\
c: cost per row   s: selectivity   r: rate
L: load coefficient, work per row from here on
red: rows may be dropped here"""

LOADS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


def describe(graph: QueryGraph, *, semantic: bool = False, loads: Sequence[float] = LOADS) -> str:
    """Boxes with their costs, candidate locations, and the road map, as three tables, each under a legend.

    Boxes that need all rows follow, with the reason of each.
    """
    model = drop_model(graph, semantic=semantic)
    reasons = [f"{box.name}: {box.because}" for box in graph.boxes.values() if box.because]
    needy = ["\n".join([_NEEDS_ALL, *reasons])] if reasons else []
    return "\n\n".join([_boxes(graph), _locations(graph, model), _road_map(graph, model, loads), *needy])


def draw(graph: QueryGraph, path: Path, *, semantic: bool = False) -> None:
    """Draw the network from inputs to outputs; the format follows from the file's ending (`.svg`, `.png`)."""
    from matplotlib.figure import Figure  # takes a while to import, and only pictures need it

    places = laid_out(graph)
    width = 1.9 * (1 + max(x for x, _ in places.values()))
    height = 0.8 * (1 + max(y for _, y in places.values()))
    figure = Figure(figsize=(max(width, 4.0), max(height, 2.0)))
    axes = figure.subplots()
    coefficients = graph.load_coefficients
    for stream in (*graph.inputs, *graph.boxes):
        for arc in graph.readers(stream):
            far = places[arc.target][0] - places[stream][0] > 1.5  # around the boxes in between
            bent = {"connectionstyle": "arc3,rad=-0.3"} if far else {}
            arrow = {"arrowstyle": "-|>", "color": "0.5", "shrinkA": 24, "shrinkB": 30, **bent}
            axes.annotate("", places[arc.target], places[stream], arrowprops=arrow, annotation_clip=False)
    for name, place in places.items():
        _draw_node(axes, graph, name, place, coefficients)
    for location in drop_model(graph, semantic=semantic).locations:
        (x, y), part = places[location.stream], 0.55
        if location.target is None:
            x += 0.33  # just behind the input, whoever reads it
        else:
            to = places[location.target]
            x, y = x + part * (to[0] - x), y + part * (to[1] - y)
        axes.plot(x, y, marker="v", color="tab:red", markersize=7, zorder=3)
    axes.text(0.0, -0.02, _SIGNS, transform=axes.transAxes, va="top", fontsize=6, color="0.3")
    axes.set_axis_off()
    axes.set_xlim(-0.5, 0.5 + max(x for x, _ in places.values()))
    axes.set_ylim(0.5 + max(y for _, y in places.values()), -0.5)  # the first input on top
    figure.savefig(path, bbox_inches="tight", dpi=120)


def _boxes(graph: QueryGraph) -> str:
    coefficients = graph.load_coefficients
    rows = [
        [input.name, "input", "", "", "", f"{input.rate:g}", f"{coefficients[name]:.4g}"]
        for name, input in graph.inputs.items()
    ]
    for name, box in graph.boxes.items():
        figures = [f"{box.cost:g}", f"{box.selectivity:.3g}", "", f"{coefficients[name]:.4g}"]
        rows.append([name, box.kind, ", ".join(box.sources), *figures])
    rows += [[output.name, "output", output.source, "", "", "", ""] for output in graph.outputs.values()]
    return _table(_BOXES, ["name", "kind", "reads", "cost", "selectivity", "rate", "load coefficient"], rows)


def _locations(graph: QueryGraph, model: DropModel) -> str:
    gain = model.full_gain()
    rows = []
    for location in model.locations:
        reader = location.stream if location.target is None else location.target
        served = [name for name, output in graph.outputs.items() if reader in (name, *graph.above[output.source])]
        share = float(gain[list(location.units)].sum()) / max(model.full_load, 1e-12)
        kind = "semantic" if location.semantic else "random"
        rows.append([location.name, kind, f"{location.rate:.4g}", f"{share:.1%}", ", ".join(sorted(served))])
    return _table(_LOCATIONS, ["drop location", "drops", "rate", "of all load", "outputs below"], rows)


def _road_map(graph: QueryGraph, model: DropModel, loads: Sequence[float]) -> str:
    planner = frontier(model)
    rows = []
    for share in loads:
        survival = planner.at(share * model.full_load)
        real = evaluate(graph, keep_shares(model, survival))  # joins included
        utilities = {name: model.loss_tolerance[name].at(100 * d) for name, d in real.delivered.items()}
        rows.append(
            [
                f"{1 - real.load / max(model.full_load, 1e-12):.1%}",
                _drops(model, survival),
                ", ".join(f"{name} {delivered:.0%}" for name, delivered in real.delivered.items()),
                ", ".join(f"{name} {utility:.2f}" for name, utility in utilities.items()),
                f"{sum(graph.outputs[name].qos.weight * utility for name, utility in utilities.items()):.3f}",
            ]
        )
    header = ["load saved", "drops (share kept)", "delivery", "utility", "in all"]
    return _table(_ROAD_MAP, header, rows)


def _drops(model: DropModel, survival: Vector) -> str:
    """The active drops of a plan."""
    words = []
    for name, setting in drop_plan(model, survival).points.items():
        if isinstance(setting, RangeDrop) and not setting.keeps_everything:
            ranges = " ".join(f"[{low:g}, {end:g})" for low, end in setting.drop)
            words.append(f"{name} without {ranges}")
        elif not setting.keeps_everything:
            words.append(f"{name} {setting.keep_fraction:.0%}")
    return ", ".join(words) or "none"


def _table(legend: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([legend, text[0], "  ".join("-" * width for width in widths), *text[1:]])


def laid_out(graph: QueryGraph) -> dict[str, tuple[float, float]]:
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


def _draw_node(
    axes: Axes, graph: QueryGraph, name: str, place: tuple[float, float], coefficients: Mapping[str, float]
) -> None:
    if name in graph.boxes:
        box = graph.boxes[name]
        text, colour = (
            f"{name}\n{box.kind} c={box.cost:.3g} s={box.selectivity:.2g}\nL={coefficients[name]:.3g}",
            "white",
        )
    elif name in graph.inputs:
        text, colour = f"{name}\nr={graph.inputs[name].rate:g} L={coefficients[name]:.3g}", "lightblue"
    else:
        text, colour = name, "lightgreen"
    axes.text(*place, text, ha="center", va="center", fontsize=7, bbox={"boxstyle": "round", "fc": colour, "ec": "0.3"})
