"""A network and its road map to look at, as text."""

from __future__ import annotations

from collections.abc import Sequence

from jettison.policies.network.candidates import drop_model
from jettison.policies.network.drop_model import DropModel, Vector
from jettison.policies.network.evaluate import drop_plan, evaluate, keep_shares
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.optimum import frontier
from jettison.policies.network.range_setting import RangeDrop

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
LOADS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


def describe(graph: QueryGraph, *, semantic: bool = False, loads: Sequence[float] = LOADS) -> str:
    """Boxes with their costs, candidate locations, and the road map, as three tables, each under a legend.

    Boxes that need all rows follow, with the reason of each.
    """
    model = drop_model(graph, semantic=semantic)
    reasons = [f"{box.name}: {box.because}" for box in graph.boxes.values() if box.because]
    needy = ["\n".join([_NEEDS_ALL, *reasons])] if reasons else []
    return "\n\n".join([_boxes(graph), _locations(graph, model), _road_map(graph, model, loads), *needy])


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
    return table(_BOXES, ["name", "kind", "reads", "cost", "selectivity", "rate", "load coefficient"], rows)


def _locations(graph: QueryGraph, model: DropModel) -> str:
    gain = model.full_gain()
    rows = []
    for location in model.locations:
        reader = location.stream if location.target is None else location.target
        served = [name for name, output in graph.outputs.items() if reader in (name, *graph.above[output.source])]
        share = float(gain[list(location.units)].sum()) / max(model.full_load, 1e-12)
        kind = "semantic" if location.semantic else "random"
        rows.append([location.name, kind, f"{location.rate:.4g}", f"{share:.1%}", ", ".join(sorted(served))])
    return table(_LOCATIONS, ["drop location", "drops", "rate", "of all load", "outputs below"], rows)


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
    return table(_ROAD_MAP, header, rows)


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


def table(legend: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of text under its legend."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([legend, text[0], "  ".join("-" * width for width in widths), *text[1:]])
