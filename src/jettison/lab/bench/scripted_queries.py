"""How a query is built around each policy, so that all of them can be put to the same tests."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

import jettison as jt
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.result import Result
from jettison.lab.bench.scripted import DELAY_S, VALUES, WINDOW_S, Script, scripted, stream
from jettison.lab.recorded_session import recorded_session
from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.groups.join_drop import JoinDrop
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.priority.priority_drop import PriorityDrop
from jettison.policies.regions.queries import RangeQueries
from jettison.policies.regions.sifter import Sifter
from jettison.policies.uniform.uniform_drop import UniformDrop
from jettison.policies.window.window_drop import WindowDrop
from jettison.source.space import Attribute
from jettison.spark.network_rows import Sink, union_all

_WINDOW, _DELAY = f"{WINDOW_S} seconds", f"{DELAY_S} seconds"


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: the rows that have arrived in `in` under `folder`, by a script, and what is to come out.

    Parameters
    ----------
    answers
        Whether the sink gets answers by window and key; otherwise it gets the rows kept, with their weights.
    source
        Makes a stream of the rows in a folder.
    """

    spark: SparkSession
    folder: Path
    script: Script
    sink: Sink
    answers: bool
    source: Callable[[SparkSession, Path], DataFrame] = stream

    @property
    def rows(self) -> DataFrame:
        """A source of its own each time."""
        return self.source(self.spark, self.folder / "in")

    @property
    def checkpoint(self) -> Path:
        """Where the query and its shedder keep theirs."""
        return self.folder / "checkpoint"


Started = tuple[jt.Shedder, StreamingQuery]


def window() -> Column:
    """The window of a row."""
    return F.window("at", _WINDOW).alias("window")


MEASURES: Mapping[str, tuple[Callable[[], Column], Callable[..., Column]]] = {
    "rows": (lambda: F.count(F.lit(1)), jt.count),
    "total": (lambda: F.sum("value"), partial(jt.sum, "value")),
    "mean": (lambda: F.avg("value"), partial(jt.avg, "value")),
    "median": (lambda: F.percentile("value", 0.5), partial(jt.percentile, "value", 0.5)),
}
"""What the answers of a group-window are called: of each Spark's own, over all rows, and the one behind a guard."""


def _answers(kept: DataFrame) -> DataFrame:
    shed = {name: guarded(window="window") for name, (_, guarded) in MEASURES.items()}
    return kept.groupBy(window(), "key").agg(*(answer.alias(name) for name, answer in shed.items()))


def _made_of(kept: DataFrame, order: Order) -> DataFrame:
    return _answers(kept.withWatermark("at", _DELAY)) if order.answers else kept


def _one_point(shedder: jt.Shedder, order: Order) -> DataFrame:
    return _made_of(shedder.guard(order.rows, row_id="id", arrival="arrived", protect="vip"), order)


def _both_sides(shedder: jt.Shedder, order: Order) -> DataFrame:
    """The two sides of a join before they are joined: keys are on both, and an answer needs the rows of both."""
    sides = {"left": f"value < {VALUES // 2}", "right": f"value >= {VALUES // 2}"}
    guarded = [
        shedder.guard(order.rows.where(side), row_id="id", arrival="arrived", protect="vip", name=name)
        for name, side in sides.items()
    ]
    return _made_of(union_all(*guarded), order)


def _whole_windows(shedder: jt.Shedder, order: Order) -> DataFrame:
    """Answers of windows that are delivered, or the rows in them."""
    kept = shedder.guard(order.rows.withWatermark("at", _DELAY), row_id="id")
    if order.answers:
        return shedder.deliver(_answers(kept))
    windows = kept.groupBy(window()).agg(F.collect_list(F.struct("id", "jt_weight")).alias("held"))
    return shedder.deliver(windows).select(F.inline("held"))


def _guarded(
    kind: type, *arguments: Any, build: Callable[[jt.Shedder, Order], DataFrame] = _one_point, **settings: Any
) -> Callable[[Order], Started]:
    """Starts a query around guards whose policy is of this kind."""

    def start(order: Order) -> Started:
        policy = scripted(kind, order.script, *arguments, **settings)
        shedder = jt.Shedder(latency="1 hour", checkpoint=order.checkpoint, policy=policy)
        writer = build(shedder, order).writeStream.foreachBatch(order.sink)
        return shedder, shedder.start(writer.trigger(availableNow=True))

    return start


class _ScriptedNetwork(jt.Network):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    def policy(self, graph: QueryGraph, **settings: Any) -> NetworkDrop:
        made: NetworkDrop = scripted(NetworkDrop, self._script, graph, **settings)
        return made


def _network(order: Order) -> Started:
    """Two outputs behind a shared box: high values beside the answers, or beside the low ones.

    The first bears losses better, so that rows of it are dropped behind the split as well as at the input.
    """
    network = _ScriptedNetwork(order.script)
    shared = network.map("shared", network.input("rows", order.rows, row_id="id", arrival="arrived"), lambda rows: rows)
    high = network.filter("high", shared, f"value >= {VALUES // 2}", selectivity=0.5)
    if order.answers:
        first = network.aggregate("windows", shared, lambda kept: _made_of(kept, order), selectivity=0.3)
    else:
        first = network.filter("low", shared, f"value < {VALUES // 2}", selectivity=0.5)
    outputs: list[DataFrame] = []

    def last(rows: DataFrame, batch: int) -> None:
        order.sink(outputs[-1] if order.answers else union_all(outputs[-1], rows), batch)

    tolerant = {"loss_tolerance": [(100, 1), (20, 0.9), (0, 0)]}
    network.output("first", first, lambda rows, batch: outputs.append(rows), qos=tolerant)
    network.output("last", high, last)
    query = network.start(latency="1 hour", checkpoint=order.checkpoint, available_now=True)
    assert network.shedder is not None
    return network.shedder, query


START: Mapping[str, Callable[[Order], Started]] = {
    "UniformDrop": _guarded(UniformDrop),
    "PriorityDrop": _guarded(PriorityDrop, {"value >= 80": 2.0, "value < 20": 1.0}),
    "ConceptDrop": _guarded(ConceptDrop, group="key", time="at", window=_WINDOW),
    "Sifter": _guarded(
        Sifter,
        RangeQueries([Attribute.integer("value", 0, VALUES - 1)], ["value >= 80", "value < 5"]),
        {"value": np.arange(VALUES)},
        regions=4,
    ),
    "WindowDrop": _guarded(WindowDrop, build=_whole_windows, time="at", window=_WINDOW, max_gap=2),
    "JoinDrop": _guarded(JoinDrop, build=_both_sides, key="key", time="at", pane=_WINDOW),
    "NetworkDrop": _network,
}
"""Starts a query that sheds by a policy of this name."""


def by_policy(
    console: Console, only: str | None, judge: Callable[[SparkSession, Path, str], Result]
) -> Iterator[list[Result]]:
    """One result for each policy, or for the one that `only` names, each over a stream of its own in one session."""
    policies = chosen(START, only)
    with recorded_session("jettison bench") as spark, tempfile.TemporaryDirectory(prefix="jettison-bench-") as scratch:
        for policy in policies:
            console.print(f"  {policy} ...", highlight=False)
            yield [judge(spark, Path(scratch) / policy, policy)]
