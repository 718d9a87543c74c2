"""Query networks on Structured Streaming: shared boxes run once, outputs are shed by what they are worth.

The whole network is one streaming query: the union of all outputs, each row with the number of its output, which every
micro-batch hands to the outputs' sinks. Behind every split stands an exchange with identical text in all
branches, so that Spark computes the part before it once and lets the other branches reuse it; state, watermarks and
recovery are those of any single query. Drop points are compiled in once, at every candidate location.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import IntegralType

from jettison.core.documents import checked
from jettison.core.durations import Duration, microseconds
from jettison.errors import MissingColumn, refuse
from jettison.pipeline import document
from jettison.policies.network.graph import Arc, Box, Input, Output, QueryGraph, arc_into
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.network.network_tables import describe
from jettison.policies.network.qos import QoS
from jettison.runtime.inquiry import Asked
from jettison.spark import validate
from jettison.spark.assembly import Accounting
from jettison.spark.box_facts import BoxFacts, box_facts
from jettison.spark.drop_point import WEIGHT
from jettison.spark.network_rows import (
    Sink,
    numbered,
    parquet_sink,
    row_columns,
    shared_by_exchange,
    union_all,
)
from jettison.spark.network_sinks import SINKS_AT_ONCE, AtOnce, deliver_batch
from jettison.spark.shedder import Shedder

if TYPE_CHECKING:
    from jettison.spark.calibrate import BoxCost

log = logging.getLogger(__name__)

BoxFunction = Callable[..., DataFrame]
Behind = Mapping[str, Callable[[DataFrame], DataFrame]]
_NOTHING: Behind = MappingProxyType({})
_OTHER_WEIGHT = "jt_weight_right"


class ShedderSettings(TypedDict, total=False):
    """What `Network.start` hands on to `Shedder`, where each is explained."""

    dry_run: bool
    peak_rows_per_s: float | None
    capacity_rows_per_s: float | None
    headroom: float
    least_share: float
    late_share: float
    accounting: Accounting
    plan_lease: Duration
    ask: Asked | None


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
        Whether that column holds whole numbers only; read from the inputs' schemas unless given.
    sinks_at_once
        How many sinks of a micro-batch run side by side, each in a thread of its own. With 1 they are called one after
        another, in the order of the outputs: for sinks that share what is not thread-safe.

    Notes
    -----
    All outputs share one watermark, the slowest of all. Rows that one query alone would have dropped as too late can
    therefore still count, and windows close when they are due for all. The output mode is append.
    """

    def __init__(
        self, *, value: str = "value", integral_values: bool | None = None, sinks_at_once: int = SINKS_AT_ONCE
    ) -> None:
        self._value = value
        self._integral = integral_values
        self._sinks_at_once = checked("sinks_at_once", sinks_at_once, AtOnce)
        self._inputs: dict[str, Input] = {}
        self._boxes: dict[str, Box] = {}
        self._outputs: dict[str, Output] = {}
        self._rows: dict[str, DataFrame] = {}
        self._arrival: dict[str, str | None] = {}
        self._functions: dict[str, BoxFunction] = {}
        self._sinks: dict[str, Sink] = {}
        self._facts: dict[str, BoxFacts] = {}
        self._id: tuple[str, ...] = ()
        self._added: set[str] = set()
        self.shedder: Shedder | None = None

    def input(
        self,
        name: str,
        rows: DataFrame,
        *,
        row_id: Column | str | Sequence[Column | str],
        arrival: Column | str | None = None,
        rate: float = 1.0,
        values: Sequence[tuple[float, float, float]] = (),
    ) -> Stream:
        """Add a source. All inputs have the same identity columns; `rate` and `values` as in `Input`.

        What identifies a row goes with it through the network: where it is an expression, as a column `jt_row_id0` (the
        next `jt_row_id1`), which boxes carry on like any other and outputs do not show.
        """
        where = f"input {name!r}"
        validate.streaming(rows, where=where)
        given = rows.columns
        rows, columns, arrived = validate.identified(rows, row_id, arrival, where=where)
        if self._id and columns != self._id:
            got = f"{', '.join(columns)} after {', '.join(self._id)}"
            hint = "rename the columns before `input`: a row keeps one identity through the whole network"
            refuse("all inputs must have the same `row_id` columns", got, where=where, hint=hint)
        self._id = columns
        self._arrival[name] = arrived
        self._added |= {column for column in rows.columns if column not in given}
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
        values: Sequence[tuple[float, float, float]] = (),
    ) -> Stream:
        """Apply any function that treats rows one by one; `values` as in `Box`, where it changes the value."""
        spread = tuple((a, b, c) for a, b, c in values)
        return self.add(Box(name, (source.name,), "map", cost, selectivity, values=spread), function)

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
    ) -> Stream:
        """Join two streams by `function(left, right)`. A pair's weight is the product of its rows' weights.

        Nothing is dropped before one that is not an inner join: a row that lost its partner would pass for one that has
        none.
        """
        return self.add(Box(name, (left.name, right.name), "join", cost, selectivity), function)

    def aggregate(
        self,
        name: str,
        source: Stream,
        function: BoxFunction,
        *,
        cost: float = 1.0,
        selectivity: float = 0.0,
    ) -> Stream:
        """Aggregate, over windows mostly.

        Rows before it may be dropped if all that it computes uses `jt_weight`, as `jt.avg`, `jt.count` and the others do.
        Of a function that does not, answers would be wrong when rows are missing. Behind a join nothing is dropped for
        answers that have bounds, which would be too narrow over pairs; for plain sums of `jt_weight` it is.
        """
        return self.add(Box(name, (source.name,), "aggregate", cost, selectivity, keeps_value=False), function)

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
        """The network as planners see it; what each box makes of missing rows is read from Spark's plan of it."""
        integral = self._integral if self._integral is not None else self._is_integral
        graph = QueryGraph(
            self._inputs.values(), self._boxes.values(), self._outputs.values(), integral_values=integral
        )
        if set(graph.boxes) - set(self._facts):
            self.compiled(graph)
        return graph.changed(boxes=[self._facts[name].of(box) for name, box in graph.boxes.items()])

    @property
    def _is_integral(self) -> bool:
        """Whether every input's value is a whole number by its type, and no box is said to change it."""
        kinds = [
            field.dataType
            for rows in self._rows.values()
            for field in rows.schema.fields
            if field.name.lower() == self._value.lower()
        ]
        whole = len(kinds) == len(self._rows) and all(isinstance(kind, IntegralType) for kind in kinds)
        return whole and not any(box.values for box in self._boxes.values())

    def plan(self, *, semantic: bool = False) -> str:
        """Boxes, candidate drop locations and the road map as text; runs nothing, but refuses what `start` would."""
        graph = self.graph
        self.compiled(graph)
        return describe(graph, semantic=semantic)

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
        trigger: Duration | None = None,
        available_now: bool = False,
        **shedder: Unpack[ShedderSettings],
    ) -> StreamingQuery:
        """Run the network; `shedder` takes the further settings of `Shedder`, which says what they mean.

        Parameters
        ----------
        latency, checkpoint
            As for `Shedder`.
        semantic
            Drop by value where the value survives to the outputs.
        trigger
            Interval of the query's trigger, as for `Shedder`; the query is started with it.
        available_now
            Process what is there, and end.
        """
        graph = self.graph
        policy = self.policy(graph, semantic=semantic, column=self._value)
        names = [location.name for location in policy.model.locations]
        for box in graph.boxes.values():
            if box.because:
                log.warning("jettison: nothing is dropped before box %r: %s", box.name, box.because)
        if not names:
            reasons = "; ".join(f"box {box.name!r}: {box.because}" for box in graph.boxes.values() if box.because)
            hint = f"change what needs all rows ({reasons})" if reasons else "drop rows of an answer without bounds"
            refuse("a network must have a place where rows may be dropped", "none", hint=hint)
        self.shedder = Shedder(latency=latency, checkpoint=checkpoint, policy=policy, trigger=trigger, **shedder)
        spark = next(iter(self._rows.values())).sparkSession
        self.shedder.read_plan_together(spark, names, group="network")
        writer = self.delivered(self.compiled(graph, self.shedder, names))
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=f"{microseconds(trigger, name='trigger')} microseconds")
        return self.shedder.start(writer)

    def delivered(self, frames: Mapping[str, DataFrame]) -> DataStreamWriter:
        """What hands each micro-batch of all outputs to their sinks, in one query."""
        columns = row_columns(frames)
        deliver = partial(deliver_batch, self._sinks, columns, self._sinks_at_once)
        return numbered(frames, columns).writeStream.outputMode("append").foreachBatch(deliver)

    def policy(self, graph: QueryGraph, **settings: Any) -> NetworkDrop:
        """The policy under which the network runs."""
        return NetworkDrop(graph, **settings)

    def compiled(
        self,
        graph: QueryGraph,
        shedder: Shedder | None = None,
        guarded: Collection[str] = (),
        behind: Behind = _NOTHING,
    ) -> dict[str, DataFrame]:
        """Each output's DataFrame, with drop points of `shedder` at `guarded`; `behind` a box something may be done."""
        on_arc: dict[Arc, DataFrame] = {}

        def emit(stream: str, rows: DataFrame) -> None:
            if graph.is_split(stream):
                rows = shared_by_exchange(rows, self._id)
            for arc in graph.readers(stream):
                on_arc[arc] = rows
                if shedder is not None and arc.name in guarded:
                    on_arc[arc] = shedder.guard(rows, row_id=self._id, name=arc.name)

        for name in graph.inputs:
            rows, arrival = self._rows[name], self._arrival[name]
            if shedder is not None and name in guarded:
                emit(name, shedder.guard(rows, row_id=self._id, arrival=arrival, name=name))
            else:
                # Rows that a guard has given their weights before keep them.
                emit(name, rows if WEIGHT in rows.columns else rows.withColumn(WEIGHT, F.lit(1.0)))
        for box in graph.boxes.values():
            entering = [on_arc[arc_into(box, port)] for port in range(len(box.sources))]
            rows = self.applied(graph, box, entering)
            emit(box.name, behind[box.name](rows) if box.name in behind else rows)
        outputs = {name: on_arc[Arc(output.source, name)] for name, output in graph.outputs.items()}
        return {name: rows.drop(*self._added) for name, rows in outputs.items()} if self._added else outputs

    def applied(self, graph: QueryGraph, box: Box, entering: Sequence[DataFrame]) -> DataFrame:
        """What a box makes of the rows that enter it, with weights carried on."""
        if box.kind == "join":
            entering = [entering[0], entering[1].withColumnRenamed(WEIGHT, _OTHER_WEIGHT)]
        if box.name not in self._facts:
            estimates = [self._facts[name].estimates if name in self._facts else {WEIGHT} for name in box.sources]
            of_weights = [(rows, {*names, _OTHER_WEIGHT}) for rows, names in zip(entering, estimates, strict=True)]
            self._facts[box.name] = box_facts(self._functions[box.name], of_weights, value=self._value)
        rows = self._functions[box.name](*entering)
        weights = {WEIGHT, _OTHER_WEIGHT} & {column for frame in entering for column in frame.columns}
        where, columns = f"box {box.name!r}", ", ".join(rows.columns)
        if box.kind != "aggregate" and (lost := weights - set(rows.columns)):
            expected = " and ".join(f"`{name}`" for name in sorted(weights))
            hint = f"select {', '.join(sorted(lost))} too; or is it an aggregate?"
            refuse(f"a box must carry on {expected}", columns, where=where, hint=hint, error=MissingColumn)
        if _OTHER_WEIGHT in weights:
            product = F.col(WEIGHT) * F.col(_OTHER_WEIGHT) if WEIGHT in weights else F.col(_OTHER_WEIGHT)
            rows = rows.withColumn(WEIGHT, product).drop(_OTHER_WEIGHT)
        there = {validate.quoted(column).lower() for column in rows.columns}  # Spark's names ignore case
        if graph.is_split(box.name) and (lost_id := [column for column in self._id if column.lower() not in there]):
            again = "; or give each reader of an aggregate one of its own" if box.kind == "aggregate" else ""
            refuse(
                f"a box with several readers must carry on the `row_id` columns, {', '.join(self._id)}",
                f"{columns} without {', '.join(lost_id)}",
                where=where,
                hint=f"select them too, here and in the boxes before it{again}",
                error=MissingColumn,
            )
        return rows

    def add(self, box: Box, function: BoxFunction) -> Stream:
        """Add a box of any kind; its function gets the DataFrames of `box.sources` in their order."""
        if box.name in self._boxes:
            refuse(
                "each box needs a name of its own",
                f"{box.name!r} twice",
                hint="pass a `name`, or give this box another",
            )
        self._boxes[box.name] = box
        self._functions[box.name] = function
        return Stream(box.name)
