"""A pipeline file on Spark: its sources opened, its boxes compiled, its outputs delivered, under its policy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from jettison.core.durations import microseconds
from jettison.core.redact import redacted
from jettison.errors import MissingColumn, Unsupported, refuse
from jettison.pipeline.box_file import BoxFile, answer, delay, lengths
from jettison.pipeline.document import InputFile, Pipeline, require_runnable
from jettison.pipeline.generators import GENERATORS
from jettison.pipeline.options import expanded
from jettison.pipeline.policy_file import NetworkFile
from jettison.policies.network.graph import Box, QueryGraph
from jettison.runtime.inquiry import Asked
from jettison.spark import aggregates, validate
from jettison.spark.kafka_ends import KafkaEnds
from jettison.spark.mechanisms import mechanism_for
from jettison.spark.network_query import Behind, Network, Stream, log
from jettison.spark.network_rows import union_all
from jettison.spark.pipeline_sinks import batch_sink, in_turn, stream_writer
from jettison.spark.shedder import Shedder

Guard = Callable[[str, InputFile, DataFrame], DataFrame]
Boxed = Callable[..., DataFrame]


def start(
    spark: SparkSession, pipeline: Pipeline, *, dry_run: bool = False, drain: bool = False
) -> tuple[StreamingQuery, Shedder]:
    """Start the query of a pipeline; with `drain` it takes what is there, and ends."""
    with in_one_sentence():
        require_runnable(pipeline)
        settings: dict[str, Any] = {"dry_run": dry_run, "ask": asked(pipeline), **pipeline.control}
        where: dict[str, Any] = {"latency": pipeline.latency, "checkpoint": pipeline.checkpoint}
        if (said := pipeline.dropping.network) is not None:
            network = build(spark, pipeline)
            query = network.start(semantic=said.semantic, available_now=drain, **where, **settings)
            assert network.shedder is not None
            return query, network.shedder
        shedder = Shedder(policy=pipeline.made_policy(), **where, **settings)
        before = shedder.ledger.last("start")
        if pipeline.watched and before and bool(before.get("dry_run")) != dry_run:
            expected = "a dry run must have a `checkpoint` of its own, because its answers foresee errors"
            got = f"{redacted(pipeline.checkpoint)!r}, of a {'run that drops rows' if dry_run else 'dry run'}"
            refuse(expected, got, hint="name another `checkpoint`, and other folders of outputs, in the file")
        writer = guarded(spark, pipeline, shedder)
        if drain:
            writer = writer.trigger(availableNow=True)
        elif pipeline.trigger is not None:
            writer = writer.trigger(processingTime=f"{microseconds(pipeline.trigger)} microseconds")
        return shedder.start(writer), shedder


def guarded(spark: SparkSession, pipeline: Pipeline, shedder: Shedder) -> DataStreamWriter:
    """What writes the outputs, with a drop point on each input."""
    doors: dict[str, DataFrame] = {}

    def guard(name: str, source: InputFile, rows: DataFrame) -> DataFrame:
        doors[name] = shedder.guard(rows, row_id=source.ids, arrival=source.arrival, protect=source.protect, name=name)
        return doors[name]

    network = build(spark, pipeline, guard)
    graph = network.graph
    frames = network.compiled(graph, behind=_watched(pipeline, network, graph, shedder, doors))
    if mechanism_for(shedder.policy.spec).holds_answers_back:
        for name in graph.outputs:
            with _at(f"outputs.{name}"):
                frames[name] = shedder.deliver(frames[name])
        needy = []
    else:
        needy = [box for box in graph.boxes.values() if box.because]
    for box in needy:
        log.warning("jettison: answers of box %r are of the kept rows alone: %s", box.name, box.because)
    if len(pipeline.outputs) == 1:
        ((name, rows),) = frames.items()
        return stream_writer(rows, pipeline.outputs[name], pipeline.checkpoint, where=f"outputs.{name}")
    return network.delivered(frames)


def _watched(
    pipeline: Pipeline, network: Network, graph: QueryGraph, shedder: Shedder, doors: Mapping[str, DataFrame]
) -> Behind:
    """Has on record how wide the bounds of a pipeline's answers are, where one box has them all."""
    name = pipeline.watched
    if name is None:
        return {}
    ((entrance, door),) = doors.items()

    def made(stream: str, rows: DataFrame) -> DataFrame:
        if stream == entrance:
            return rows
        box = graph.boxes[stream]
        return network.applied(graph, box, [made(one, rows) for one in box.sources])

    def watch(compiled: DataFrame) -> DataFrame:
        # A dry run answers from other rows, which carry what they would weigh: they take a way of their own.
        return shedder.watch(door, lambda rows: compiled if rows is door else made(name, rows))

    return {name: watch}


def build(spark: SparkSession, pipeline: Pipeline, guard: Guard | None = None) -> Network:
    """The boxes of a pipeline file, with its sources opened, and guarded where a `guard` is given."""
    require_runnable(pipeline)
    graph, said = pipeline.graph, pipeline.dropping.network or NetworkFile()
    network = Network(value=said.value or "value", integral_values=said.integral_values)
    streams: dict[str, Stream] = {}
    for name, source in pipeline.inputs.items():
        rows = streamed(spark, name, source, cap=pipeline.kafka_caps.get(name))
        rows = rows if guard is None else guard(name, source, rows)
        streams[name] = network.input(
            name, rows, row_id=source.ids, arrival=source.arrival, rate=source.rate, values=source.values
        )
    plain = pipeline.dropping.whole_windows
    for box in graph.boxes.values():
        streams[box.name] = network.add(box, box_function(box, pipeline.boxes[box.name], plain=plain))
    sinks = {
        name: batch_sink(output, name, pipeline.checkpoint, where=f"outputs.{name}")
        for name, output in pipeline.outputs.items()
    }
    for names in delivered_together(pipeline):
        first = graph.outputs[names[0]]
        network.output(first.name, streams[first.source], in_turn([sinks[one] for one in names]), qos=first.qos)
    return network


def delivered_together(pipeline: Pipeline) -> list[list[str]]:
    """Outputs that get the same rows; in a network each is shed by itself."""
    if pipeline.dropping.network:
        return [[name] for name in pipeline.outputs]
    readers: dict[str, list[str]] = {}
    for name, output in pipeline.outputs.items():
        readers.setdefault(output.reads, []).append(name)
    return list(readers.values())


def streamed(spark: SparkSession, name: str, source: InputFile, *, cap: int | None = None) -> DataFrame:
    """The rows of a source as a stream, as they are guarded; Kafka hands over `cap` rows at once, if not told otherwise."""
    reader = spark.readStream
    if cap is not None:
        reader = reader.option("maxOffsetsPerTrigger", str(cap))
    reader = opened(reader, source, where=f"inputs.{name}")
    with _at(f"inputs.{name}"):
        rows = reader.load() if source.path is None else reader.load(source.path)
        if made := GENERATORS.get(source.format):
            rows = rows.selectExpr(*made.drawn).selectExpr(*made.columns)
        return prepared(name, source, rows)


def opened(reader: Any, source: InputFile, *, where: str = "inputs") -> Any:
    """A reader, of a stream or of what lies there, with all but the path of an input."""
    format = "rate" if source.format in GENERATORS else source.format
    reader = reader.format(format).options(**expanded(source.options, where=where))
    return reader if source.schema is None else reader.schema(source.schema)


def prepared(name: str, source: InputFile, rows: DataFrame) -> DataFrame:
    """The rows of an input as they are guarded."""
    if source.sql:
        rows.createOrReplaceTempView(name)
        rows = rows.sparkSession.sql(source.sql)
    (rows,) = watermarked([rows], source.watermark, where=f"inputs.{name}.watermark")
    return rows


def watermarked(streams: Sequence[DataFrame], watermark: Mapping[str, str], *, where: str) -> list[DataFrame]:
    """Streams with a watermark on each of these columns that they have; refused where none of them has one."""
    found = list(streams)
    for column, given in watermark.items():
        names: dict[int, str] = {}
        for number, rows in enumerate(found):
            with suppress(MissingColumn):
                names[number] = validate.resolved(rows, column, "watermark", where=where)
        for number, name in names.items():
            found[number] = found[number].withWatermark(validate.quoted(name), delay(given))
        if not names:
            validate.present(found[0], column, "watermark", where=where)
    return found


def box_function(box: Box, body: BoxFile, *, plain: bool = False) -> Boxed:
    """What a box of the file does with the streams that enter it; where all answers are exact, plain ones are enough."""

    def apply(*entering: DataFrame) -> DataFrame:
        with _at(f"boxes.{box.name}"):
            rows = watermarked(entering, body.watermark, where=f"boxes.{box.name}.watermark")
            if body.answers:
                return answered(rows[0], body, plain=plain)
            if not body.sql:
                return union_all(*rows)
            for source, one in zip(box.sources, rows, strict=True):
                one.createOrReplaceTempView(source)
            return entering[0].sparkSession.sql(body.sql)

    return apply


def answered(rows: DataFrame, body: BoxFile, *, plain: bool) -> DataFrame:
    """Answers by window and group, with bounds where rows may be missing from them."""
    keys = [F.window(time, *lengths(size)) for time, size in body.window.items()] + [F.expr(one) for one in body.keys]
    window = "window" if body.window else None

    def bounded(name: str, text: str) -> Column:
        one = answer(text, where=name)
        settings: dict[str, Any] = {"window": window, "confidence": body.confidence}
        column = "*" if one.column == "*" else F.expr(one.column)
        more = () if one.percentage is None else (one.percentage,)
        return getattr(aggregates, one.function)(column, *more, **settings)  # type: ignore[no-any-return]

    made = {name: F.expr(text) if plain else bounded(name, text) for name, text in body.answers.items()}
    return rows.groupBy(*keys).agg(*(column.alias(name) for name, column in made.items()))


def asked(pipeline: Pipeline) -> Asked | None:
    """What says how many rows have come, where all come from Kafka and its client is installed; folders need nothing."""
    sources = pipeline.inputs.values()
    if {source.format for source in sources} != {"kafka"} or importlib.util.find_spec("confluent_kafka") is None:
        return None
    ends = [KafkaEnds(expanded(source.options, where=f"inputs.{name}")) for name, source in pipeline.inputs.items()]
    return partial(_all_of, ends)


def _all_of(ends: Sequence[KafkaEnds]) -> float:
    return sum(one() for one in ends)


@contextmanager
def _at(where: str) -> Iterator[None]:
    """What Spark cannot analyze is refused with the place in the file."""
    try:
        yield
    except AnalysisException as error:
        said = validate.in_short(error)
        refuse("Spark must understand this part", f"{said!r}", where=where, hint=_way_out(said))


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Whatever Spark raises is said in one sentence, without secrets; Java's own traceback would hide it."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        said = " ".join(redacted(str(error)).split())
        raise Unsupported(f"Spark could not run it: {said[:1000]} Hint: {_way_out(said)}.") from None


def _way_out(said: str) -> str:
    missing = any(words in said for words in ("ClassNotFound", "DATA_SOURCE_NOT_FOUND", "Failed to find"))
    package = "name its package in the file: spark: {spark.jars.packages: ...}"
    return package if missing else "`jettison plan FILE` shows what reads what"
