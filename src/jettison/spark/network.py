"""Query networks on Structured Streaming: shared boxes run once, outputs are shed by what they are worth.

The whole network is one streaming query: the union of all outputs, each row with the number of its output, which every
micro-batch hands to the outputs' sinks. Behind every split stands an exchange with identical text in all
branches, so that Spark computes the part before it once and lets the other branches reuse it; state, watermarks and
recovery are those of any single query. Drop points are compiled in once, at every candidate location.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from jettison import plan_file
from jettison.durations import Duration
from jettison.errors import InvalidSetting, MissingColumn, explain
from jettison.network import document
from jettison.network.graph import Arc, Box, Input, Output, QueryGraph, arc_into
from jettison.network.picture import describe, draw
from jettison.network.qos import QoS
from jettison.policies.network_drop import NetworkDrop
from jettison.spark import validate
from jettison.spark.guard import WEIGHT
from jettison.spark.shedder import Shedder
from jettison.spark.weighing import check_weighed

if TYPE_CHECKING:
    from jettison.spark.calibrate import BoxCost

Sink = Callable[[DataFrame, int], None]
BoxFunction = Callable[..., DataFrame]
_OTHER_WEIGHT = "jt_weight_right"
_ROW = "jt_row"
_OUTPUT = "jt_output"
_PLAN_BYTES_PER_POINT = 512


@dataclass(frozen=True, slots=True)
class Stream:
    """What an input or a box of a network emits; hand it to further boxes and outputs."""

    name: str


class Network:
    """Builds a query network, shows its plans, and runs it under a latency bound.

    With nothing shed every output gets the rows that its query alone would give. A box is any function from DataFrames to
    a DataFrame; it must carry on the identity columns and `jt_weight`, unless it aggregates.

    Parameters
    ----------
    value
        Column that value-based QoS graphs speak of.
    integral_values
        Whether that column holds whole numbers only.

    Notes
    -----
    All outputs share one watermark, the slowest of all. Rows that one query alone would have dropped as too late can
    therefore still count, and windows close when they are due for all. The output mode is append.
    """

    def __init__(self, *, value: str = "value", integral_values: bool = False) -> None:
        self._value = value
        self._integral = integral_values
        self._inputs: dict[str, Input] = {}
        self._boxes: dict[str, Box] = {}
        self._outputs: dict[str, Output] = {}
        self._rows: dict[str, DataFrame] = {}
        self._arrival: dict[str, str | None] = {}
        self._functions: dict[str, BoxFunction] = {}
        self._sinks: dict[str, Sink] = {}
        self._id: tuple[str, ...] = ()
        self.shedder: Shedder | None = None

    def input(
        self,
        name: str,
        rows: DataFrame,
        *,
        id: str | Sequence[str],
        arrival: str | None = None,
        rate: float = 1.0,
        values: Sequence[tuple[float, float, float]] = (),
    ) -> Stream:
        """Add a source. All inputs have the same identity columns; `rate` and `values` as in `jettison.network.Input`."""
        where = f"input {name!r}"
        validate.streaming(rows, where=where)
        columns = validate.identity(rows, id, where=where)
        if self._id and columns != self._id:
            got = f"{', '.join(columns)} after {', '.join(self._id)}"
            hint = "rename the columns before `input`: a row keeps one identity through the whole network"
            raise InvalidSetting(explain("all inputs must have the same `id` columns", got, where=where, hint=hint))
        self._id = columns
        self._arrival[name] = None if arrival is None else validate.timestamp(rows, arrival, where=where)
        self._rows[name] = rows
        self._inputs[name] = Input(name, rate, tuple((a, b, c) for a, b, c in values))
        return Stream(name)

    def filter(
        self,
        name: str,
        source: Stream,
        condition: str | Column,
        *,
        cost: float = 1.0,
        selectivity: float = 1.0,
        passes: Sequence[tuple[float, float]] | None = None,
    ) -> Stream:
        """Keep the rows that satisfy a condition. `passes` says which values do, if it is about the value alone."""
        ranges = None if passes is None else tuple((low, high) for low, high in passes)
        box = Box(name, (source.name,), "filter", cost, selectivity, passes=ranges)
        return self.add(box, lambda rows: rows.where(condition))

    def map(
        self,
        name: str,
        source: Stream,
        function: BoxFunction,
        *,
        cost: float = 1.0,
        selectivity: float = 1.0,
        keeps_value: bool = True,
        values: Sequence[tuple[float, float, float]] = (),
    ) -> Stream:
        """Apply any function that treats rows one by one."""
        spread = tuple((a, b, c) for a, b, c in values)
        box = Box(name, (source.name,), "map", cost, selectivity, keeps_value=keeps_value, values=spread)
        return self.add(box, function)

    def union(self, name: str, *sources: Stream, cost: float = 0.0) -> Stream:
        """Merge streams that have the same columns."""
        box = Box(name, tuple(source.name for source in sources), "union", cost)
        return self.add(box, union_all)

    def join(
        self,
        name: str,
        left: Stream,
        right: Stream,
        function: BoxFunction,
        *,
        cost: float = 1.0,
        selectivity: float = 1.0,
        monotone: bool = True,
    ) -> Stream:
        """Join two streams by `function(left, right)`. A pair's weight is the product of its rows' weights.

        Say `monotone=False` if it is not an inner join: a row that lost its partner would pass for one that has none, so
        nothing is dropped before it.
        """
        box = Box(name, (left.name, right.name), "join", cost, selectivity, monotone=monotone)
        return self.add(box, function)

    def aggregate(
        self,
        name: str,
        source: Stream,
        function: BoxFunction,
        *,
        cost: float = 1.0,
        selectivity: float = 0.0,
        weighted: bool = False,
        bounds: bool = True,
    ) -> Stream:
        """Aggregate, over windows mostly.

        Say `weighted=True` if the function uses `jt_weight` (as `jt.avg`, `jt.count` and the others do; one that does not is
        refused). Otherwise its answers would be wrong when rows are missing, so nothing is dropped before it. Behind a
        join, say `bounds=False` as well if their values are all that you use: bounds over pairs would be too narrow, so
        nothing is dropped otherwise.
        """
        box = Box(
            name, (source.name,), "aggregate", cost, selectivity, keeps_value=False, weighted=weighted, bounds=bounds
        )
        return self.add(box, function)

    def output(
        self, name: str, source: Stream, sink: Sink | str | Path, *, qos: QoS | Mapping[str, Any] | None = None
    ) -> None:
        """Deliver a stream to `sink(rows, batch_id)`, or to a folder of Parquet files, with its owner's QoS.

        Rows come with `jt_weight`, the number of rows that each stands for, over all drops on its way. Rows of an aggregate
        have none: what they stand for is in their values.

        The QoS may be given as in a pipeline file, `{"loss_tolerance": [(100, 1), (0, 0)]}`; then an error in it names the
        output.
        """
        given = qos if isinstance(qos, QoS) else document.qos(name, {} if qos is None else qos, self._value)
        self._outputs[name] = Output(name, source.name, given)
        self._sinks[name] = sink if callable(sink) else parquet_sink(sink)

    @property
    def graph(self) -> QueryGraph:
        """The network as planners see it."""
        return QueryGraph(
            self._inputs.values(), self._boxes.values(), self._outputs.values(), integral_values=self._integral
        )

    def plan(self, *, semantic: bool = False, picture: Path | None = None) -> str:
        """Boxes, candidate drop locations and the road map as text; runs nothing."""
        if picture is not None:
            draw(self.graph, picture, semantic=semantic)
        return describe(self.graph, semantic=semantic)

    def update(self, statistics: Mapping[str, tuple[float, float]]) -> None:
        """Set cost and selectivity by name of the box, as `jettison.spark.calibrate.calibrate` measures them."""
        for name, (cost, selectivity) in statistics.items():
            self._boxes[name] = replace(self._boxes[name].with_selectivity(selectivity), cost=cost)

    def calibrate(self, sample: Mapping[str, DataFrame], *, repetitions: int = 5) -> dict[str, BoxCost]:
        """Measure every box over a batch sample of each input and plan with the results; see `calibrate.calibrate`."""
        from jettison.spark.calibrate import calibrate

        return calibrate(self, sample, repetitions=repetitions)

    def start(
        self,
        *,
        latency: Duration,
        checkpoint: str | Path,
        semantic: bool = False,
        admission: str | None = None,
        trigger: Mapping[str, Any] | None = None,
        **shedder: Any,
    ) -> StreamingQuery:
        """Run the network; `shedder` takes further settings of `Shedder`.

        Parameters
        ----------
        latency, checkpoint
            As for `Shedder`.
        semantic
            Drop by value where the value survives to the outputs.
        admission
            Shed at inputs by this admission control instead, to compare with.
        trigger
            Arguments of the stream writer's `trigger`.
        """
        graph = self.graph
        policy = NetworkDrop(graph, semantic=semantic, column=self._value, admission=admission)
        names = [location.name for location in policy.model.locations]
        if not names:
            hint = "say `weighted=True` of aggregates that use `jt_weight`"
            raise InvalidSetting(explain("a place where rows may be dropped", "none in this network", hint=hint))
        size = max(plan_file.DEFAULT_SIZE, _PLAN_BYTES_PER_POINT * (len(names) + 1))
        self.shedder = Shedder(latency=latency, checkpoint=checkpoint, policy=policy, **{"plan_size": size, **shedder})
        spark = next(iter(self._rows.values())).sparkSession
        self.shedder.read_plan_together(spark, names, group="network")
        frames = self.compiled(graph, set(names), self.shedder)
        columns = _row_columns(frames)
        deliver = partial(self._deliver, columns)
        writer = _numbered(frames, columns).writeStream.outputMode("append").foreachBatch(deliver)
        return self.shedder.start(writer.trigger(**trigger) if trigger else writer)

    def compiled(self, graph: QueryGraph, guarded: set[str], shedder: Shedder) -> dict[str, DataFrame]:
        """Each output's DataFrame, with drop points at the locations `guarded`."""
        on_arc: dict[Arc, DataFrame] = {}

        def emit(stream: str, rows: DataFrame) -> None:
            if graph.is_split(stream):
                rows = _computed_once(rows, self._id)
            for arc in graph.readers(stream):
                on_arc[arc] = shedder.guard(rows, id=self._id, name=arc.name) if arc.name in guarded else rows

        for name in graph.inputs:
            rows, arrival = self._rows[name], self._arrival[name]
            if name in guarded:
                emit(name, shedder.guard(rows, id=self._id, arrival=arrival, name=name))
            else:
                emit(name, rows.withColumn(WEIGHT, F.lit(1.0)))
        for box in graph.boxes.values():
            entering = [on_arc[arc_into(box, port)] for port in range(len(box.sources))]
            emit(box.name, self.applied(box, entering))
        return {name: on_arc[Arc(output.source, name)] for name, output in graph.outputs.items()}

    def applied(self, box: Box, entering: Sequence[DataFrame]) -> DataFrame:
        """What a box makes of the rows that enter it, with weights carried on."""
        if box.kind == "join":
            entering = [entering[0], entering[1].withColumnRenamed(WEIGHT, _OTHER_WEIGHT)]
        if box.weighted and WEIGHT in entering[0].columns:
            check_weighed(self._functions[box.name], entering[0], where=f"box {box.name!r}")
        rows = self._functions[box.name](*entering)
        if box.kind == "join" and {WEIGHT, _OTHER_WEIGHT} <= set(rows.columns):
            return rows.withColumn(WEIGHT, F.col(WEIGHT) * F.col(_OTHER_WEIGHT)).drop(_OTHER_WEIGHT)
        weighed = any(WEIGHT in frame.columns for frame in entering)
        if weighed and box.kind != "aggregate" and WEIGHT not in rows.columns:
            raise MissingColumn(
                explain(
                    f"a box must carry on `{WEIGHT}`",
                    ", ".join(rows.columns),
                    where=f"box {box.name!r}",
                    hint=f"select it too{f', and {_OTHER_WEIGHT!r}' if box.kind == 'join' else ''}; or is it an aggregate?",
                )
            )
        return rows

    def _deliver(self, columns: Mapping[str, str], batch: DataFrame, batch_id: int) -> None:
        """Hand one micro-batch to the sinks, computed once.

        It has as many partitions as all outputs together, and a sink finds its rows in few of them; the numbers' ranges,
        which are kept with the rows, spare it the others. So the batch is computed with all, and then read with as many
        tasks as one output has: twenty outputs would otherwise start the tasks of twenty outputs twenty times.
        """
        conf = batch.sparkSession.conf  # the query's own: nobody else's session is changed
        tasks = int(str(conf.get("spark.sql.shuffle.partitions")))
        conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")  # for rows read once and kept a moment
        batch.persist()
        try:
            batch.count()
            for number, (name, column) in enumerate(columns.items()):
                rows = batch.where(F.col(_OUTPUT) == number).select(f"{column}.*")
                self._sinks[name](rows.coalesce(tasks), batch_id)
        finally:
            batch.unpersist()

    def add(self, box: Box, function: BoxFunction) -> Stream:
        """Add a box of any kind; its function gets the DataFrames of `box.sources` in their order."""
        if box.name in self._boxes:
            raise InvalidSetting(
                explain(
                    "each box needs a name of its own",
                    f"{box.name!r} twice",
                    hint="pass a `name`, or give this box another",
                )
            )
        self._boxes[box.name] = box
        self._functions[box.name] = function
        return Stream(box.name)


def parquet_sink(folder: str | Path) -> Sink:
    """Write each micro-batch to a folder of its own, so that a batch that is repeated replaces itself."""
    root = re.sub(r"/+$", "", str(folder))

    def write(rows: DataFrame, batch_id: int) -> None:
        rows.write.mode("overwrite").parquet(f"{root}/batch={batch_id}")

    return write


def union_all(*streams: DataFrame) -> DataFrame:
    """All rows of streams that have the same columns."""
    first, *others = streams
    for other in others:
        first = first.unionByName(other)
    return first


def _computed_once(rows: DataFrame, id: Sequence[str]) -> DataFrame:
    """`rows` behind an exchange that is the same in every branch that reads it, so that all but the first reuse it.

    Left alone, the optimizer makes the exchanges differ, and each computes the shared part again: it drops the columns that
    a branch does not read before the exchange, moves its filters there, and renames columns on one side of a join. So
    the columns travel as one, and a condition needs all of it and is non-deterministic in the optimizer's eyes. Its
    first half is always true, so the second is never evaluated.
    """
    packed = rows.select(F.struct("*").alias(_ROW)).repartition(*[F.col(f"{_ROW}.{column}") for column in id])
    whole = F.size(F.array(_ROW)) if _holds_map(rows.schema) else F.hash(_ROW)
    return packed.where((F.spark_partition_id() >= -1) | (whole == 0)).select(f"{_ROW}.*")


def _holds_map(kind: DataType) -> bool:
    """Whether a type is or contains a map, which Spark does not hash."""
    if isinstance(kind, StructType):
        return any(_holds_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType) or (isinstance(kind, ArrayType) and _holds_map(kind.elementType))


def _row_columns(frames: Mapping[str, DataFrame]) -> dict[str, str]:
    """The column in which each output's rows travel: one for all outputs whose rows have the same fields.

    A column for each output would be null in the rows of all others, and twenty columns cost twenty times the
    bookkeeping of one when a batch is kept in memory.
    """
    kinds: dict[str, str] = {}
    return {name: kinds.setdefault(rows.schema.simpleString(), f"{_ROW}{len(kinds)}") for name, rows in frames.items()}


def _numbered(frames: Mapping[str, DataFrame], columns: Mapping[str, str]) -> DataFrame:
    """All outputs' rows, each as a struct in its output's column beside the number of the output."""
    parts = [
        rows.select(F.lit(number).alias(_OUTPUT), F.struct("*").alias(columns[name]))
        for number, (name, rows) in enumerate(frames.items())
    ]
    first, *others = parts
    for other in others:
        first = first.unionByName(other, allowMissingColumns=True)
    return first
