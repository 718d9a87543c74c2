"""A pipeline file: sources, Spark SQL for each box, outputs with QoS, and a latency bound, checked before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from jettison.core.durations import seconds
from jettison.core.storage import Folder
from jettison.errors import refuse
from jettison.policies.network.file_reading import checked, meaning, read
from jettison.policies.network.graph import Box, Input, Kind, Output, QueryGraph
from jettison.policies.network.qos import LossTolerance, QoS, ValueUtility

Names = str | tuple[str, ...]
Pairs = tuple[tuple[float, float], ...]
Triples = tuple[tuple[float, float, float], ...]
# Words of SQL that make a query depend on rows that are missing.
_LOOKS_FOR_ROWS = re.compile(
    r"\b(outer|anti|semi|except|minus|intersect|distinct|limit|(left|right|full)\s+join)\b"
    r"|\bnot\s+(in\s*\(\s*select|exists)\b",
    re.IGNORECASE,
)


class InputFile(Struct, forbid_unknown_fields=True, frozen=True):
    """A source of rows."""

    gone: ClassVar[Mapping[str, str]] = {"id": "it is called `row_id` now"}
    rate: Annotated[float, Meta(ge=0, description="rows a second; only proportions between inputs matter")] = 1.0
    values: Annotated[Triples, Meta(description="share of the rows by range: [[lowest, highest, share], ...]")] = ()
    row_id: Annotated[Names, Meta(description="[partition, offset], or whichever columns tell rows apart")] = ()
    arrival: Annotated[str | None, Meta(description="column of the time at which a row arrived")] = None
    format: Annotated[str, Meta(description="kafka, rate, json or another that readStream knows")] = ""
    path: Annotated[str | None, Meta(description="folder of a source that reads files")] = None
    schema: Annotated[str | None, Meta(description="columns with their types, in SQL")] = None
    options: Annotated[dict[str, str | int | float | bool], Meta(description="{name: value}, as for readStream")] = {}


class BoxFile(Struct, forbid_unknown_fields=True, frozen=True):
    """A query over the streams that it reads, which are tables under their own names."""

    gone: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("weighted", "bounds", "monotone"), "leave it out: it is read from Spark's plan"
    )
    reads: Annotated[Names, Meta(description="an input or a box; [left, right] for a join or a union")]
    kind: Annotated[Kind | None, Meta(description="by default a filter, or a union where it reads several")] = None
    sql: Annotated[str, Meta(description="select ... from the streams that it reads; only a union needs none")] = ""
    cost: Annotated[float, Meta(ge=0, description="work a row in any unit that all boxes share, such as 4")] = 1.0
    selectivity: Annotated[float, Meta(ge=0, description="rows out for each row in, such as 0.5")] = 1.0
    passes: Annotated[Pairs | None, Meta(description="values that a filter passes: [[lowest, highest], ...]")] = None
    keeps_value: Annotated[bool, Meta(description="whether the value is the same behind the box")] = True
    values: Annotated[Triples, Meta(description="share by range of a new value: [[lowest, highest, share], ...]")] = ()
    watermark: Annotated[dict[str, str], Meta(description="delay by column, {time: 10 seconds}")] = {}


class QoSFile(Struct, forbid_unknown_fields=True, frozen=True):
    """What an output's rows are worth."""

    loss_tolerance: Annotated[Pairs | None, Meta(description="utility by percent: [[100, 1], [50, 0.7], [0, 0]]")] = (
        None
    )
    value: Annotated[Triples | None, Meta(description="utility by value: [[lowest, highest, utility], ...]")] = None
    weight: Annotated[float, Meta(ge=0, description="how much the output counts beside the others")] = 1.0


class OutputFile(Struct, forbid_unknown_fields=True, frozen=True):
    """Where a stream is delivered."""

    reads: Annotated[str, Meta(description="the input or box whose rows are delivered")]
    path: Annotated[str, Meta(description="a folder to write to")] = ""
    qos: Annotated[QoSFile, Meta(description="what its rows are worth")] = QoSFile()


class Pipeline(Struct, forbid_unknown_fields=True, frozen=True):
    """A network of Spark SQL queries under a latency bound."""

    inputs: Annotated[dict[str, InputFile], Meta(description="by name, where rows come from")] = {}
    boxes: Annotated[dict[str, BoxFile], Meta(description="by name, what is done with them")] = {}
    outputs: Annotated[dict[str, OutputFile], Meta(description="by name, where they go and what they are worth")] = {}
    latency: Annotated[str | float, Meta(description="10 seconds, 250 ms or a number of seconds")] = "10 seconds"
    checkpoint: Annotated[str, Meta(description="a folder that survives a restart, at the top level of the file")] = ""
    value: Annotated[str, Meta(description="column that value graphs speak of")] = "value"
    integral_values: Annotated[bool, Meta(description="whether that column holds whole numbers only")] = False
    semantic: Annotated[bool, Meta(description="whether to drop by value")] = False

    @property
    def graph(self) -> QueryGraph:
        """The network as planners see it; what its SQL needs is told from words, for want of Spark's own plan."""
        return QueryGraph(
            [Input(name, body.rate, body.values) for name, body in self.inputs.items()],
            [_box(name, body) for name, body in self.boxes.items()],
            [Output(name, body.reads, _qos(name, body.qos, self.value)) for name, body in self.outputs.items()],
            integral_values=self.integral_values,
        )


def load(path: Path) -> Pipeline:
    """Read a pipeline from YAML or JSON."""
    return parse(read(path))


def parse(document: Mapping[str, Any]) -> Pipeline:
    """Check a pipeline document.

    >>> pipeline = parse({
    ...     "inputs": {"rides": {"rate": 100, "row_id": ["id"]}},
    ...     "boxes": {"expensive": {"reads": "rides", "sql": "select * from rides where fare > 50", "selectivity": 0.1}},
    ...     "outputs": {"alarms": {"reads": "expensive", "qos": {"loss_tolerance": [[100, 1], [0, 0]]}}},
    ... })
    >>> list(pipeline.graph.boxes), pipeline.boxes["expensive"].selectivity
    (['expensive'], 0.1)
    """
    for section, kind in (("inputs", InputFile), ("boxes", BoxFile), ("outputs", OutputFile)):
        entries = document.get(section)
        for name, body in entries.items() if isinstance(entries, dict) else ():
            checked(body, kind, f"{section}.{name}")  # by itself, because an error of the whole does not tell the name
    pipeline = checked(document, Pipeline, "")
    seconds(pipeline.latency, name="latency")
    pipeline.graph  # noqa: B018  refuses what is no network
    return pipeline


def qos(name: str, body: Mapping[str, Any], column: str) -> QoS:
    """The QoS of an output from points, so that an error names the output and the point."""
    return _qos(name, checked(body, QoSFile, f"outputs.{name}.qos"), column)


def require_runnable(pipeline: Pipeline) -> None:
    """Refuse what can be planned but not run, before anything starts: a plan needs no sources, SQL or folders."""
    needed: list[tuple[str, object, Struct]] = [("checkpoint", pipeline.checkpoint, pipeline)]
    for name, input in pipeline.inputs.items():
        needed += [(f"inputs.{name}.format", input.format, input), (f"inputs.{name}.row_id", input.row_id, input)]
    boxes = pipeline.graph.boxes
    needed += [(f"boxes.{name}.sql", b.sql, b) for name, b in pipeline.boxes.items() if boxes[name].kind != "union"]
    needed += [(f"outputs.{name}.path", output.path, output) for name, output in pipeline.outputs.items()]
    for where, given, body in needed:
        if not str(given or "").strip():
            field = where.rpartition(".")[2]
            refuse(f"`{field}` must be given", "none", where=where, hint=f"write {meaning(type(body), field)}")
    Folder(pipeline.checkpoint)  # refuses a filesystem that cannot be reached


def schema() -> str:
    """The JSON schema of a pipeline file, for editors."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Pipeline))).decode()


def _box(name: str, body: BoxFile) -> Box:
    sources = (body.reads,) if isinstance(body.reads, str) else body.reads
    if len(sources) > 1 and body.sql and body.kind is None:
        hint = "a join matches rows of both inputs, a union passes on all rows of all; their load differs"
        refuse("`kind` must say join or union", "none beside `sql`", where=f"boxes.{name}", hint=hint)
    unsafe = _LOOKS_FOR_ROWS.search(body.sql)
    weighted = "jt_weight" in body.sql.lower()
    ignores = body.kind == "aggregate" and not weighted
    return Box(
        name,
        sources,
        body.kind or ("union" if len(sources) > 1 else "filter"),
        cost=body.cost,
        selectivity=body.selectivity,
        passes=body.passes,
        keeps_value=body.keeps_value,
        values=body.values,
        weighted=weighted,
        bounds=False,
        monotone=unsafe is None,
        because=f"its SQL says `{unsafe[0]}`" if unsafe else "its SQL does not use `jt_weight`" if ignores else "",
    )


def _qos(name: str, body: QoSFile, column: str) -> QoS:
    return QoS(
        loss_tolerance=None if body.loss_tolerance is None else LossTolerance(body.loss_tolerance, name),
        value=None if body.value is None else ValueUtility(body.value, column, name),
        weight=body.weight,
    )
