"""A pipeline file: where rows come from, what is done with them, where answers go, and which latency holds.

Checked before anything runs, without Spark. What a class of Jettison checks by itself, it checks here too: the file
only tells it where the setting stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from jettison.control.control_settings import ControlSettings, rows_per_batch
from jettison.core import documents
from jettison.core.durations import seconds
from jettison.core.storage import Folder
from jettison.errors import JettisonError, refuse
from jettison.pipeline.box_file import BoxFile, Triples, answer, as_box, delay, lengths
from jettison.pipeline.generators import GENERATORS, check_option
from jettison.pipeline.policy_file import KINDS, AnyPolicy, AutoFile, Names, NetworkFile, PolicyFile, each
from jettison.pipeline.reading import Written, checked, meaning, read
from jettison.policies import Policy
from jettison.policies.network.graph import Input, Output, QueryGraph
from jettison.policies.network.qos import LossTolerance, QoS, ValueUtility
from jettison.runtime.chooser import Auto

Options = dict[str, str | int | float | bool]
Points = tuple[tuple[float, float], ...]
PATHLESS = ("kafka", "console", "noop")
"""Sinks that write to no folder."""


class InputFile(Struct, forbid_unknown_fields=True, frozen=True):
    """A source of rows."""

    gone: ClassVar[Mapping[str, str]] = {"id": "it is called `row_id` now"}
    format: Annotated[
        str,
        Meta(description="kafka, json, parquet or another that readStream knows; or rate, rides, readings: made rows"),
    ] = ""
    path: Annotated[str | None, Meta(description="folder of a source that reads files")] = None
    schema: Annotated[str | None, Meta(description="columns with their types, in SQL")] = None
    options: Annotated[
        Options, Meta(description="{name: value}, as for readStream; ${NAME} is a variable of the environment")
    ] = {}
    sql: Annotated[str, Meta(description="select ... from the input, before rows are dropped")] = ""
    watermark: Annotated[dict[str, str], Meta(description="delay by column, {time: 10 seconds}")] = {}
    row_id: Annotated[Names, Meta(description="[partition, offset], or whichever columns tell rows apart")] = ()
    arrival: Annotated[str | None, Meta(description="column of the time at which a row arrived")] = None
    protect: Annotated[str | None, Meta(description="predicate of rows that are never dropped")] = None
    rate: Annotated[
        float, Meta(ge=0, description="rows a second, beside the other inputs: for networks, and caps of Kafka")
    ] = 1.0
    values: Annotated[
        Triples, Meta(description="in networks: share of the rows by range: [[lowest, highest, share], ...]")
    ] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that tell rows apart."""
        return each(self.row_id)


class QoSFile(Struct, forbid_unknown_fields=True, frozen=True):
    """What an output's rows are worth."""

    loss_tolerance: Annotated[Points | None, Meta(description="utility by percent: [[100, 1], [50, 0.7], [0, 0]]")] = (
        None
    )
    value: Annotated[Triples | None, Meta(description="utility by value: [[lowest, highest, utility], ...]")] = None
    weight: Annotated[float, Meta(ge=0, description="how much the output counts beside the others")] = 1.0


class OutputFile(Struct, forbid_unknown_fields=True, frozen=True):
    """Where a stream is delivered."""

    reads: Annotated[str, Meta(description="the input or box whose rows are delivered")]
    format: Annotated[str, Meta(description="parquet, kafka, delta, console or another that writeStream knows")] = (
        "parquet"
    )
    path: Annotated[str, Meta(description="a folder to write to")] = ""
    options: Annotated[
        Options, Meta(description="{name: value}, as for writeStream; ${NAME} is a variable of the environment")
    ] = {}
    qos: Annotated[QoSFile | None, Meta(description="in networks: what its rows are worth")] = None


_TO_POLICY = "write it under `policy`, as in policy: {kind: network, semantic: true}"


class Pipeline(Struct, forbid_unknown_fields=True, frozen=True):
    """Queries in Spark SQL under a latency bound."""

    gone: ClassVar[Mapping[str, str]] = dict.fromkeys(("value", "integral_values", "semantic"), _TO_POLICY)
    inputs: Annotated[dict[str, InputFile], Meta(description="by name, where rows come from")] = {}
    boxes: Annotated[dict[str, BoxFile], Meta(description="by name, what is done with them")] = {}
    outputs: Annotated[dict[str, OutputFile], Meta(description="by name, where they go and what they are worth")] = {}
    latency: Annotated[str | float, Meta(description="10 seconds, 250 ms or a number of seconds")] = "10 seconds"
    checkpoint: Annotated[str, Meta(description="a folder that survives a restart, at the top level of the file")] = ""
    policy: Annotated[
        AnyPolicy | Literal["uniform", "auto", "window", "concept", "network"] | None,
        Meta(description="{kind: ..., settings}; by default network where an output has a qos, else uniform"),
    ] = None
    trigger: Annotated[str | float | None, Meta(description="time between the starts of two batches")] = None
    capacity_rows_per_s: Annotated[float | None, Meta(description="rows a second that the query processes")] = None
    peak_rows_per_s: Annotated[float | None, Meta(description="highest arrival rate that is shed")] = None
    headroom: Annotated[float | None, Meta(description="part of the latency bound that is aimed at, as 0.8")] = None
    least_share: Annotated[float | None, Meta(description="share of the fresh rows that is processed at least")] = None
    late_share: Annotated[float | None, Meta(description="share to process of rows older than the bound")] = None
    spark: Annotated[Options, Meta(description="settings of the session: {spark.jars.packages: ...}")] = {}

    @property
    def graph(self) -> QueryGraph:
        """The boxes as planners see them; what their SQL needs is told from words, for want of Spark's own plan."""
        network = self.dropping.network or NetworkFile()
        return QueryGraph(
            [Input(name, body.rate, body.values) for name, body in self.inputs.items()],
            [as_box(name, body) for name, body in self.boxes.items()],
            [Output(name, body.reads, as_qos(name, body.qos, network.value)) for name, body in self.outputs.items()],
            integral_values=bool(network.integral_values),
        )

    @property
    def dropping(self) -> PolicyFile:
        """What to drop, with what the only box with a window says of it."""
        given: Any = self.policy
        if given is None:
            given = "network" if any(output.qos for output in self.outputs.values()) else "uniform"
        chosen: PolicyFile = KINDS[given]() if isinstance(given, str) else given
        windowed = [box for box in self.boxes.values() if box.window]
        if len(windowed) != 1 or (isinstance(chosen, AutoFile) and not set(windowed[0].sources) <= set(self.inputs)):
            return chosen  # what is chosen looks at rows where they enter: there other boxes' columns are not to be had
        ((time, lengths),) = windowed[0].window.items()
        said = {"time": time, "window": lengths, "group": windowed[0].group}
        left_out = {name for name in chosen.__struct_fields__ if getattr(chosen, name) is None} & set(said)
        return msgspec.structs.replace(chosen, **{name: said[name] or None for name in left_out})

    def made_policy(self) -> Policy | Auto:
        """The policy, ready for one query, or what it is chosen by."""
        return self.dropping.made(self.graph)

    @property
    def watched(self) -> str | None:
        """The box whose error bounds are on record, and foreseen in a dry run: all answers, of the rows of one input.

        It must have one reader; all its outputs count as one. With several, what is observed stands in the plan more than
        once, and nothing of it comes on record.
        """
        answering = [name for name, box in self.boxes.items() if box.answers]
        if self.dropping.network or self.dropping.whole_windows or len(self.inputs) != 1 or len(answering) != 1:
            return None
        (name,) = answering
        readers = [source for box in self.boxes.values() for source in box.sources]
        readers += {output.reads for output in self.outputs.values()}
        return name if readers.count(name) <= 1 else None

    @property
    def control(self) -> dict[str, Any]:
        """The settings that a Shedder takes beside latency, checkpoint and policy, where they are given."""
        names = ("trigger", "capacity_rows_per_s", "peak_rows_per_s", "headroom", "least_share", "late_share")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def kafka_caps(self) -> dict[str, int]:
        """Rows that each input from Kafka may hand to one batch, in proportion to their rates; empty without a peak."""
        rates = {name: source.rate for name, source in self.inputs.items() if source.format == "kafka"}
        if self.peak_rows_per_s is None:
            return {}
        cap = rows_per_batch(self.peak_rows_per_s, seconds(self.latency, name="latency"))
        total = sum(rates.values())
        parts = {name: rate / total if total else 1 / len(rates) for name, rate in rates.items()}
        return {name: max(1, math.ceil(cap * part)) for name, part in parts.items()}

    @property
    def unmeasured(self) -> list[str]:
        """Boxes of a network of which the file does not say what they cost, or how many rows they let through."""
        kinds = {name: box.kind for name, box in self.graph.boxes.items()}
        boxes = [(name, box) for name, box in self.boxes.items() if kinds[name] != "union"]
        return [name for name, box in boxes if box.cost is None or box.selectivity is None]


def load(path: Path) -> Pipeline:
    """Read a pipeline from YAML or JSON."""
    return parse(read(path))


def parse(document: Mapping[str, Any] | Written) -> Pipeline:
    """Check a pipeline document.

    >>> pipeline = parse({
    ...     "inputs": {"rides": {"row_id": ["id"]}},
    ...     "boxes": {"expensive": {"reads": "rides", "sql": "select * from rides where fare > 50"}},
    ...     "outputs": {"alarms": {"reads": "expensive", "path": "out/alarms"}},
    ... })
    >>> list(pipeline.graph.boxes), pipeline.dropping.__struct_config__.tag
    (['expensive'], 'uniform')
    """
    written = document if isinstance(document, Written) else Written(document)
    pipeline = checked(written, Pipeline)
    with written.at("latency"):
        bound_s = seconds(pipeline.latency, name="latency")
    for name, given in pipeline.control.items():
        with written.at(name):
            if name == "trigger":
                if seconds(given, name=name) >= bound_s:
                    hint = "a row waits up to a whole interval before its batch starts: trigger more often"
                    refuse("`trigger` must be shorter than `latency`", f"{given!r} and {pipeline.latency!r}", hint=hint)
            elif name == "peak_rows_per_s":
                documents.checked(name, given, documents.Positive)
            else:
                ControlSettings(latency_bound_s=bound_s, **{name: given})
    for name, source in pipeline.inputs.items():
        _check_each(written, ("inputs", name, "watermark"), source.watermark, delay)
        if source.format in GENERATORS:
            for option in source.options:
                with written.at("inputs", name, "options", option):
                    check_option(source.format, option)
            for setting in (one for one in ("path", "schema") if getattr(source, one) is not None):
                with written.at("inputs", name, setting):
                    got, hint = getattr(source, setting), "it makes its own rows"
                    refuse(f"`{setting}` must be left out with {source.format}", repr(got), hint=hint)
    with _at_the_part(written):
        for name, body in pipeline.boxes.items():
            with written.at("boxes", name):
                as_box(name, body)
            _check_each(written, ("boxes", name, "window"), body.window, lengths)
            _check_each(written, ("boxes", name, "watermark"), body.watermark, delay)
            _check_each(written, ("boxes", name, "answers"), body.answers, partial(answer, where=f"boxes.{name}"))
        pipeline.graph  # noqa: B018  refuses what is no network
    with _at_the_part(written, "policy"):
        policy = pipeline.made_policy()
    takes_protected = not policy.whole_windows if isinstance(policy, Auto) else policy.takes_protected
    for name, output in pipeline.outputs.items():
        if output.qos and not pipeline.dropping.network:
            with written.at("outputs", name, "qos"):
                hint = "leave `qos` out, or take policy: network"
                refuse("`qos` goes with the policy `network`", "another one", where=f"outputs.{name}", hint=hint)
    for name, source in pipeline.inputs.items():
        if source.protect is not None and not takes_protected:
            with written.at("inputs", name, "protect"):
                expected = f"`protect` must be left out with {type(policy).__name__}"
                hint = "that policy can except no rows; leave `protect` out or take another policy"
                refuse(expected, "a predicate", where=f"inputs.{name}", hint=hint)
    return pipeline


def qos(name: str, body: Mapping[str, Any], column: str) -> QoS:
    """The QoS of an output from points, so that an error names the output and the point."""
    place = ("outputs", name, "qos")
    return as_qos(name, checked(Written({}), QoSFile, *place, body=body), column)


def require_runnable(pipeline: Pipeline) -> None:
    """Refuse what can be planned but not run, before anything starts: a plan needs no sources, SQL or folders."""
    needed: list[tuple[str, object, Struct]] = [("checkpoint", pipeline.checkpoint, pipeline)]
    for name, input in pipeline.inputs.items():
        needed += [(f"inputs.{name}.format", input.format, input), (f"inputs.{name}.row_id", input.row_id, input)]
    boxes = pipeline.graph.boxes
    bodies = {name: body for name, body in pipeline.boxes.items() if boxes[name].kind != "union" and not body.answers}
    needed += [(f"boxes.{name}.sql", body.sql, body) for name, body in bodies.items()]
    outputs = {name: output for name, output in pipeline.outputs.items() if output.format not in PATHLESS}
    needed += [(f"outputs.{name}.path", output.path, output) for name, output in outputs.items()]
    for where, given, body in needed:
        if not str(given or "").strip():
            field = where.rpartition(".")[2]
            refuse(f"`{field}` must be given", "none", where=where, hint=f"write {meaning(type(body), field)}")
    Folder(pipeline.checkpoint)  # refuses a filesystem that cannot be reached


def schema() -> str:
    """The JSON schema of a pipeline file, for editors."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Pipeline))).decode()


def as_qos(name: str, body: QoSFile | None, column: str) -> QoS:
    """What an output's rows are worth, as planners see it."""
    body = body or QoSFile()
    return QoS(
        loss_tolerance=None if body.loss_tolerance is None else LossTolerance(body.loss_tolerance, name),
        value=None if body.value is None else ValueUtility(body.value, column, name),
        weight=body.weight,
    )


def _check_each(
    written: Written, place: tuple[str, ...], given: Mapping[str, Any], check: Callable[[Any], Any]
) -> None:
    """Check every entry of a mapping; an error says where that entry stands."""
    for name, value in given.items():
        with written.at(*place, name):
            check(value)


@contextmanager
def _at_the_part(written: Written, section: str = "outputs") -> Iterator[None]:
    """Errors of classes that know no file say in front where the part is that they name: as a part, or a setting."""
    try:
        yield
    except JettisonError as error:
        sections = {"input": "inputs", "box": "boxes", "output": "outputs"}
        said = str(error)
        named = [(sections[kind], name) for kind, name in re.findall(r"\b(input|box|output) '(\w+)'", said)]
        named += [tuple(path.split(".")) for path in re.findall(r"\b(?:inputs|boxes|outputs)(?:\.\w+)+", said)]
        named += [(section, name) for name in re.findall(r"`(\w+)[`\[]", said)[:1]]
        for name in re.findall(r"'([^']*)'", said):
            named += [(one, name) for one in sections.values() if name in (written.document.get(one) or {})]
        with written.at(*next(iter(named), (section,))):
            raise
