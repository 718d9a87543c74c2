"""What a pipeline file would run, as text: told without Spark, and without any figure that nobody stated or measured."""

from __future__ import annotations

from dataclasses import replace

from jettison.core.redact import redacted
from jettison.pipeline.costs import Costs
from jettison.pipeline.document import InputFile, Pipeline
from jettison.pipeline.policy_file import PolicyFile
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.network_tables import describe, table

_NO_COSTS = """\
What the boxes cost is not known ({boxes}), so there is no road map yet.
`jettison plan FILE --calibrate` measures it, and so does `jettison run FILE` at its first start; or state `cost` and
`selectivity` of each box."""
_WORDS = "What needs all rows is told from the words of the SQL; `jettison run` reads Spark's own plan of it."


def told(pipeline: Pipeline, costs: Costs | None = None) -> str:
    """Sources with their drop points, the policy, boxes with their answers, outputs; what boxes were measured to cost.

    Of networks the road map too.
    """
    graph, dropping = pipeline.graph, pipeline.dropping
    checkpoint = pipeline.checkpoint or "none yet, which `jettison run` needs"
    parts = [
        f"Latency: within {pipeline.latency}. Checkpoint: {redacted(checkpoint)}.\n{_policy(dropping)}",
        _sources(pipeline),
        _answers(pipeline, graph),
        table("Outputs.", ["name", "reads", "format", "to"], _outputs(pipeline)),
        f"Rows may be dropped at: {', '.join(drop_points(graph, dropping))}.\n{_errors(pipeline)}",
    ]
    if dropping.network and pipeline.unmeasured:
        parts.append(_NO_COSTS.format(boxes=", ".join(pipeline.unmeasured)))
    elif dropping.network:
        parts.append(describe(graph, semantic=dropping.network.semantic))
    elif costs and not set(graph.boxes) - set(costs):
        parts.append(_capacity(graph, costs))
    return "\n\n".join([*parts, _WORDS])


def _capacity(graph: QueryGraph, costs: Costs) -> str:
    """What boxes were measured to cost, and how many rows a second they can process by that."""
    boxes = [
        replace(box.with_selectivity(costs[name].selectivity), cost=costs[name].cost_us)
        for name, box in graph.boxes.items()
    ]
    work = graph.changed(boxes=boxes).load_coefficients
    rates = {name: one.rate for name, one in graph.inputs.items()}
    total = sum(rates.values())
    row_us = sum(work[name] * rate for name, rate in rates.items()) / total if total else 0.0
    rows = [[name, f"{one.cost_us:.3g}", f"{one.selectivity:.3g}", f"{one.rows:,.0f}"] for name, one in costs.items()]
    shown = table("Boxes, as they were measured.", ["name", "us a row", "rows out a row in", "measured on rows"], rows)
    if row_us <= 0.0:
        return f"{shown}\n\nToo little to be measured: no `capacity_rows_per_s` follows."
    most = f"`capacity_rows_per_s: {1e6 / row_us:.0f}` at most"
    rest = "reading the source, state, sinks, and what a batch costs whatever its size, come on top"
    return f"{shown}\n\nTogether {row_us:.3g} us for each row of the inputs: {most}, for\n{rest}."


def drop_points(graph: QueryGraph, dropping: PolicyFile) -> list[str]:
    """Where rows may be dropped."""
    if dropping.network is None:
        return list(graph.inputs)
    return list(dict.fromkeys(one.name for one in drop_model(graph, semantic=dropping.network.semantic).locations))


def _errors(pipeline: Pipeline) -> str:
    """Whether it is on record how wide bounds are, and what a dry run foresees."""
    if pipeline.watched:
        return f"Errors: the bounds of {pipeline.watched!r} are on record; `jettison run --dry-run` foresees them."
    if pipeline.dropping.whole_windows:
        return "Errors: none, as all answers are exact; a dry run foresees how many windows would be missing."
    which = "a network" if pipeline.dropping.network else "several inputs" if len(pipeline.inputs) > 1 else ""
    count = sum(bool(box.answers) for box in pipeline.boxes.values())
    alone = {0: "no box with `answers`", 1: "several readers of its answers"}
    which = which or alone.get(count, "several boxes with `answers`")
    return f"Errors: not on record, and not foreseen by a dry run, of a pipeline with {which}."


def _policy(dropping: PolicyFile) -> str:
    settings = {name: value for name, value in dropping.given.items() if value}
    said = ", ".join(f"{name} {_short(value)}" for name, value in settings.items())
    what = (type(dropping).__doc__ or "").splitlines()[0].rstrip(".")
    kind = dropping.__struct_config__.tag
    return f"Policy: {kind}{f' ({redacted(said)})' if said else ''}. {what}."


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(map(str, value))
    if isinstance(value, tuple):
        return " every ".join(map(str, value)) if len(value) == 2 else ", ".join(map(str, value))
    return str(value)


def _sources(pipeline: Pipeline) -> str:
    rows = []
    for name, source in pipeline.inputs.items():
        place = [source.format or "?", redacted(_place(source))]
        rows.append([name, *place, ", ".join(source.ids) or "?", source.arrival or "", source.protect or ""])
    legend = (
        "Inputs. row id: what tells rows apart; arrival: when they came to the source, without it latency is inferred;\n"
        "protected: rows that are never dropped."
    )
    return table(legend, ["name", "format", "from", "row id", "arrival", "protected"], rows)


def _place(source: InputFile) -> str:
    """Where rows come from, of which nothing is a secret."""
    return source.path or next((str(source.options[key]) for key in _NAMES if key in source.options), "")


_NAMES = ("subscribe", "subscribePattern", "assign", "rowsPerSecond")


def _answers(pipeline: Pipeline, graph: QueryGraph) -> str:
    dropping = pipeline.dropping
    rows = []
    for name, box in graph.boxes.items():
        body = pipeline.boxes[name]
        what = ", ".join(f"{key}: {text}" for key, text in body.answers.items())
        if dropping.whole_windows:
            trust = "exact, of the windows that are kept" if box.kind == "aggregate" else ""
        elif box.because:
            trust = f"of the kept rows alone: {box.because}"
            trust = f"all rows are needed: {box.because}" if dropping.network else trust
        else:
            weighted = "estimates by weight, without bounds" if box.kind == "aggregate" else "rows with their weights"
            trust = f"bounds of {body.confidence:.0%}" if body.answers else weighted
        rows.append([name, box.kind, ", ".join(box.sources), what, trust])
    return table("Boxes, and what their rows or answers are worth while rows are dropped.", _BOXES, rows)


_BOXES = ["name", "kind", "reads", "answers", "while rows are dropped"]


def _outputs(pipeline: Pipeline) -> list[list[str]]:
    return [
        [name, one.reads, one.format, redacted(one.path or str(one.options.get("topic", "")))]
        for name, one in pipeline.outputs.items()
    ]
