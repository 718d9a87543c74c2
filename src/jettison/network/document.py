"""A pipeline file: sources, Spark SQL per box, outputs with QoS, and a latency bound, checked before anything runs."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from jettison.durations import seconds
from jettison.errors import InvalidInput, InvalidSetting, JettisonError, did_you_mean, explain
from jettison.network.graph import Box, Input, Kind, Output, QueryGraph
from jettison.network.qos import LatencyUtility, LossTolerance, QoS, ValueUtility
from jettison.storage import Folder

MOST_BYTES = 2**18
MOST_VALUES = 100_000
"""What a pipeline file may hold, in bytes and in values: far more than any that somebody wrote."""

_TOP = {"inputs", "boxes", "outputs", "latency", "checkpoint", "value", "integral_values", "semantic"}
_INPUT = {"rate", "values", "id", "arrival", "format", "path", "schema", "options"}
_BOX = {
    "reads",
    "kind",
    "sql",
    "cost",
    "selectivity",
    "passes",
    "keeps_value",
    "values",
    "weighted",
    "bounds",
    "monotone",
    "watermark",
}
_OUTPUT = {"reads", "path", "qos"}
_QOS = {"loss_tolerance", "value", "latency", "weight"}
# A word of SQL that makes a query depend on rows that are missing.
_NOT_MONOTONE = re.compile(
    r"\b(outer|anti|semi|except|minus|(left|right|full)\s+join)\b|\bnot\s+(in\s*\(\s*select|exists)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a pipeline file says.

    Parameters
    ----------
    graph
        The network as planners see it.
    sources
        By input: `format`, `path`, `schema`, `options`, `id`, `arrival`.
    sql
        By box: the query, in which its sources are tables under their own names. Unions need none.
    watermarks
        By box: delay by column, for `withWatermark` on what the box reads. Windowed aggregates and joins need it.
    paths
        By output: the folder to write to.
    latency, checkpoint
        As for a shedder.
    value
        Column of the value.
    semantic
        Whether to drop by value.
    """

    graph: QueryGraph
    sources: Mapping[str, Mapping[str, Any]]
    sql: Mapping[str, str]
    watermarks: Mapping[str, Mapping[str, str]]
    paths: Mapping[str, str]
    latency: str | float
    checkpoint: str
    value: str
    semantic: bool


def load(path: Path) -> Pipeline:
    """Read a pipeline from YAML or JSON.

    A file that is too large, too deep, or grows beyond bounds by its aliases is refused before anything is built from it.
    """
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ValueError(f"{size:,} bytes where at most {MOST_BYTES:,} make sense")
        text = path.read_text()
        document = json.loads(text) if path.suffix == ".json" else _from_yaml(text)
    except OSError as error:
        got, hint = (
            f"none that can be read ({error.strerror})",
            "check the path; examples/network.yaml is one that runs",
        )
        raise InvalidInput(explain("a pipeline file in YAML or JSON", got, where=str(path), hint=hint)) from error
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        deep = "one that is nested too deeply"
        detail = deep if isinstance(error, RecursionError) else " ".join(str(error).split())[:500]
        raise InvalidInput(
            explain(
                "a pipeline file in YAML or JSON", detail, where=str(path), hint="compare it with examples/network.yaml"
            )
        ) from error
    if not isinstance(document, dict):
        raise InvalidSetting(
            explain(
                "a pipeline file with `inputs`, `boxes` and `outputs`",
                repr(document)[:60],
                hint="a file begins with `inputs:` and one line for each, indented below it",
            )
        )
    return parse(document)


def _from_yaml(text: str) -> Any:
    """The document, if it is not much larger than it looks: an alias stands for all that it names, wherever it is used."""
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is not None and _size(node, {}) > MOST_VALUES:
            raise ValueError(f"one that its aliases make larger than {MOST_VALUES:,} values")
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _size(node: yaml.Node, known: dict[int, float]) -> float:
    """Values in a node with every alias written out; infinite where one stands for what it is part of."""
    if isinstance(node, yaml.ScalarNode):
        return 1.0
    if id(node) not in known:
        known[id(node)] = math.inf  # as long as it is being counted
        inner = itertools.chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1.0 + sum(_size(one, known) for one in inner)
    return known[id(node)]


def parse(document: Mapping[str, Any]) -> Pipeline:
    """Check a pipeline document.

    >>> pipeline = parse({
    ...     "inputs": {"rides": {"rate": 100, "id": ["id"]}},
    ...     "boxes": {"dear": {"reads": "rides", "sql": "select * from rides where fare > 50", "selectivity": 0.1}},
    ...     "outputs": {"alarms": {"reads": "dear", "qos": {"loss_tolerance": [[100, 1], [0, 0]]}}},
    ... })
    >>> list(pipeline.graph.boxes), pipeline.sql["dear"]
    (['dear'], 'select * from rides where fare > 50')
    """
    _known(document, _TOP, "the pipeline")
    inputs = {name: _known(body, _INPUT, f"input {name!r}") for name, body in _section(document, "inputs").items()}
    boxes = {name: _known(body, _BOX, f"box {name!r}") for name, body in _section(document, "boxes").items()}
    outputs = {name: _known(body, _OUTPUT, f"output {name!r}") for name, body in _section(document, "outputs").items()}
    value = str(document.get("value", "value"))
    graph = QueryGraph(
        [_input(name, body) for name, body in inputs.items()],
        [_box(name, body) for name, body in boxes.items()],
        [_output(name, body, value) for name, body in outputs.items()],
        integral_values=bool(document.get("integral_values", False)),
    )
    return Pipeline(
        graph=graph,
        sources=inputs,
        sql={name: body["sql"] for name, body in boxes.items() if "sql" in body},
        watermarks={name: _watermark(name, body["watermark"]) for name, body in boxes.items() if "watermark" in body},
        paths={name: body["path"] for name, body in outputs.items() if "path" in body},
        latency=_latency(document.get("latency", "10 seconds")),
        checkpoint=_checkpoint(document["checkpoint"]) if "checkpoint" in document else "",
        value=value,
        semantic=bool(document.get("semantic", False)),
    )


def require_runnable(pipeline: Pipeline) -> None:
    """Refuse what can be planned but not run, before anything starts: a plan needs no sources, SQL or folders."""
    if not pipeline.checkpoint:
        raise InvalidSetting(_no_checkpoint("none"))
    Folder(pipeline.checkpoint)  # refuses a filesystem that cannot be reached
    for name, source in pipeline.sources.items():
        where = f"input {name!r}"
        if not source.get("format"):
            hint = "write format: kafka, rate, json or another that readStream knows"
            raise InvalidSetting(explain("`format` must name a streaming source", "none", where=where, hint=hint))
        if not source.get("id"):
            hint = "write id: [partition, offset], or whichever columns tell rows apart"
            raise InvalidSetting(explain("`id` must name the columns of an identity", "none", where=where, hint=hint))
    for box in pipeline.graph.boxes.values():
        if box.kind != "union" and not pipeline.sql.get(box.name):
            where = f"box {box.name!r}"
            hint = "write sql: select ... from the streams that it reads; only a union needs none"
            raise InvalidSetting(explain("`sql` must say what the box does", "none", where=where, hint=hint))
    for name in pipeline.graph.outputs:
        if not pipeline.paths.get(name):
            where, hint = f"output {name!r}", "write path: /some/folder below the output"
            raise InvalidSetting(explain("`path` must name a folder to write to", "none", where=where, hint=hint))


def _latency(given: Any) -> str | float:
    seconds(given, name="latency")
    return cast("str | float", given)


def _checkpoint(given: Any) -> str:
    if not (isinstance(given, str) and given.strip()):
        raise InvalidSetting(_no_checkpoint(repr(given)))
    return given


def _no_checkpoint(got: str) -> str:
    hint = "write checkpoint: /some/folder at the top level of the file"
    return explain("`checkpoint` must name a folder", got, where="the pipeline", hint=hint)


@contextmanager
def _numbers(where: str) -> Iterator[None]:
    """A text where a number belongs is the file's fault, and the file's author must hear where."""
    try:
        yield
    except JettisonError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidSetting(
            explain(
                "numbers, and lists of them where several are asked for",
                str(error),
                where=where,
                hint="write cost: 4, and points as [[100, 1], [0, 0]]",
            )
        ) from error


def _input(name: str, body: Mapping[str, Any]) -> Input:
    with _numbers(f"input {name!r}"):
        return Input(name, float(body.get("rate", 1.0)), _triples(body.get("values", ())))


def _output(name: str, body: Mapping[str, Any], value: str) -> Output:
    with _numbers(f"output {name!r}"):
        return Output(name, _reads(name, body)[0], qos(name, body.get("qos", {}), value))


def _box(name: str, body: Mapping[str, Any]) -> Box:
    sources = _reads(name, body)
    if len(sources) > 1 and "sql" in body and "kind" not in body:
        raise InvalidSetting(
            explain(
                "`kind` must say join or union",
                "none beside `sql`",
                where=f"box {name!r}",
                hint="a join matches rows of both inputs, a union passes on all rows of all; their load differs",
            )
        )
    if body.get("weighted") and "sql" in body and "jt_weight" not in str(body["sql"]).lower():
        raise InvalidSetting(
            explain(
                "`sql` that uses `jt_weight`",
                "none of it beside `weighted`",
                where=f"box {name!r}",
                hint="write sum(jt_weight) for a count; or leave out `weighted`, then nothing is dropped before the box",
            )
        )
    with _numbers(f"box {name!r}"):
        passes = body.get("passes")
        return Box(
            name,
            sources,
            cast(Kind, body.get("kind", "union" if len(sources) > 1 else "filter")),
            cost=float(body.get("cost", 1.0)),
            selectivity=float(body.get("selectivity", 1.0)),
            passes=None if passes is None else tuple((float(low), float(high)) for low, high in passes),
            keeps_value=bool(body.get("keeps_value", True)),
            values=_triples(body.get("values", ())),
            weighted=bool(body.get("weighted", False)),
            bounds=bool(body.get("bounds", True)),
            monotone=bool(body.get("monotone", not _NOT_MONOTONE.search(str(body.get("sql", ""))))),
        )


def _watermark(name: str, body: Any) -> Mapping[str, str]:
    if not isinstance(body, dict):
        hint = "write watermark: {time: 10 seconds}"
        raise InvalidSetting(explain("a delay by column", repr(body), where=f"watermark of box {name!r}", hint=hint))
    return {str(column): str(delay) for column, delay in body.items()}


def qos(name: str, body: Mapping[str, Any], column: str) -> QoS:
    """The QoS of an output from points, so that an error names the output and the point."""
    _known(body, _QOS, f"the QoS of output {name!r}")
    return QoS(
        loss_tolerance=LossTolerance(body["loss_tolerance"], name) if "loss_tolerance" in body else None,
        value=ValueUtility(body["value"], column, name) if "value" in body else None,
        latency=LatencyUtility(body["latency"], name) if "latency" in body else None,
        weight=float(body.get("weight", 1.0)),
    )


def _reads(name: str, body: Mapping[str, Any]) -> tuple[str, ...]:
    reads = body.get("reads")
    if not reads:
        raise InvalidSetting(
            explain(
                "`reads` must name an input or a box",
                repr(reads),
                where=repr(name),
                hint="write reads: rides, or reads: [left, right] for a join or a union",
            )
        )
    return (reads,) if isinstance(reads, str) else tuple(reads)


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Mapping[str, Any]]:
    section = document.get(name, {})
    if not isinstance(section, dict) or not all(isinstance(body, dict) for body in section.values()):
        raise InvalidSetting(
            explain(
                f"`{name}` must map names to settings",
                repr(section)[:60],
                hint="write the name, a colon, and its settings indented below it or as {rate: 100}",
            )
        )
    return section


def _known(body: Mapping[str, Any], known: set[str], where: str) -> Mapping[str, Any]:
    if unknown := sorted(set(body) - known):
        raise InvalidSetting(
            explain(
                f"settings out of {', '.join(sorted(known))}",
                ", ".join(unknown),
                where=where,
                hint=did_you_mean(unknown[0], known, otherwise="remove it"),
            )
        )
    return body


def _triples(rows: Any) -> tuple[tuple[float, float, float], ...]:
    return tuple((float(low), float(high), float(share)) for low, high, share in rows)
