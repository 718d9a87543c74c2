"""What a network saves: twenty outputs behind a shared parse, against twenty queries of their own.

Batches are large enough that both ways spend most of their task CPU on rows and not on starting tasks. Before anything is
measured, both are run over a small file and must give each output the same rides.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.lab.bench.paired import Pairs
from jettison.lab.bench.result import Result
from jettison.lab.bench.streams import Took, in_turn, median, median_ratio, took
from jettison.lab.demo.landing import land_all
from jettison.lab.demo.pipeline import parsed, raw_rides
from jettison.spark.network_query import Network
from jettison.spark.network_rows import Sink
from jettison.spark.network_sinks import SINKS_AT_ONCE

_OUTPUTS = 20
_ROWS_PER_FILE = 120_000
_BATCHES = 3
_CHECKED_ROWS = 10_000

Answers = dict[int, tuple[int, int | None]]
"""By output, how many rides it got and a checksum over all of their fields."""


def sharing(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Task CPU of both ways over the same files, micro-batch by micro-batch; all separate queries run at once."""
    same_answers(spark, folder / "check")
    land_all(folder / "in", _ROWS_PER_FILE * _BATCHES, rows_per_file=_ROWS_PER_FILE)
    runs = {
        way.__name__: partial(_cost, spark, partial(way, spark, folder / "in"), folder) for way in (_separate, _network)
    }
    separate, network = in_turn(runs, repetitions, warm_ups=1).values()  # the first of each compiles
    return [
        Result(
            f"{_OUTPUTS} outputs behind a shared parse: task CPU of separate queries over that of a network",
            value=median(network, attrgetter("cpu_s")),
            unit="s",
            baseline=median(separate, attrgetter("cpu_s")),
            ratio=median_ratio(separate, network, attrgetter("cpu_s")),
            at_least=3.0,
            config={
                "outputs": _OUTPUTS,
                "rows": _ROWS_PER_FILE * _BATCHES,
                "batches": _BATCHES,
                "separate_wall_s": [round(run.wall_s, 1) for run in separate],
                "network_wall_s": [round(run.wall_s, 1) for run in network],
            },
        )
    ]


def side_by_side(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """Time in the sinks of a network, over that of the same sinks one after another."""
    land_all(folder / "in", _ROWS_PER_FILE * _BATCHES, rows_per_file=_ROWS_PER_FILE)
    ways = {"one after another": 1, "side by side": SINKS_AT_ONCE}
    runs = {name: partial(_time_in_sinks, spark, folder, at_once) for name, at_once in ways.items()}
    how = {
        "outputs": _OUTPUTS,
        "rows_per_batch": _ROWS_PER_FILE,
        "batches": _BATCHES,
        "at_once": SINKS_AT_ONCE,
    }
    beside = Pairs(in_turn(runs, pairs, warm_ups=1), "one after another", how)
    name = f"{_OUTPUTS} sinks of a network, over one after another"
    return [beside.over(name, "side by side", float, "s", at_most=1.0 / 1.48)]  # 1.0 s where the other takes 1.48 s


def same_answers(spark: SparkSession, folder: Path) -> Answers:
    """What both ways deliver of one small file; raises `AssertionError` where they differ."""
    land_all(folder / "in", _CHECKED_ROWS, rows_per_file=_CHECKED_ROWS)
    apart: Answers = {}
    together: Answers = {}
    _separate(spark, folder / "in", folder / "apart", partial(_checksum, apart))
    _network(spark, folder / "in", folder / "together", partial(_checksum, together))
    assert len(apart) == _OUTPUTS, apart
    assert apart == together, (apart, together)
    return apart


def _condition(output: int) -> str:
    return f"fare between {output} and {output + 5}"


def _discard(output: int) -> Sink:
    return lambda rows, batch_id: rows.write.format("noop").mode("overwrite").save()


def _checksum(answers: Answers, output: int) -> Sink:
    def sink(rows: DataFrame, batch_id: int) -> None:
        rides = rows.drop("partition", "offset", "jt_weight")  # the network needs them, the queries do not
        found = rides.agg(F.count(F.lit(1)), F.bit_xor(F.xxhash64(*rides.columns))).first()
        assert found is not None
        answers[output] = (found[0], found[1])

    return sink


def _time_in_sinks(spark: SparkSession, folder: Path, at_once: int) -> float:
    """From the start of a batch's first sink to the end of its last one: the mean of all but the first, which compiles."""
    calls: dict[int, list[float]] = {}

    def sink(output: int) -> Sink:
        def write(rows: DataFrame, batch_id: int) -> None:
            calls.setdefault(batch_id, []).append(time.perf_counter())
            _discard(output)(rows, batch_id)
            calls[batch_id].append(time.perf_counter())

        return write

    _network(spark, folder / "in", folder / "run", sink, sinks_at_once=at_once)
    shutil.rmtree(folder / "run")
    del calls[0]
    return statistics.mean(max(times) - min(times) for times in calls.values())


def _separate(spark: SparkSession, source: Path, run: Path, sink: Callable[[int], Sink] = _discard) -> None:
    queries = []
    for output in range(_OUTPUTS):
        rows = parsed(raw_rides(spark, source, files_per_batch=1)).where(_condition(output))
        writer = rows.writeStream.foreachBatch(sink(output)).trigger(availableNow=True)
        queries.append(writer.option("checkpointLocation", str(run / f"separate{output}")).start())
    for query in queries:
        query.awaitTermination()


def _network(
    spark: SparkSession,
    source: Path,
    run: Path,
    sink: Callable[[int], Sink] = _discard,
    sinks_at_once: int = SINKS_AT_ONCE,
) -> None:
    network = Network(value="fare", sinks_at_once=sinks_at_once)
    rides = network.input("rides", raw_rides(spark, source, files_per_batch=1), row_id=["partition", "offset"])
    parse = network.map("parse", rides, lambda rows: parsed(rows, "partition", "offset", "jt_weight"))
    for output in range(_OUTPUTS):
        stream = network.filter(f"box{output}", parse, _condition(output), selectivity=0.2)
        network.output(f"out{output}", stream, sink(output))
    query = network.start(latency="1 hour", checkpoint=run / "network", available_now=True)
    query.awaitTermination()
    assert network.shedder is not None
    network.shedder.await_books()  # they lie in a folder that is removed next


def _cost(spark: SparkSession, run: Callable[[Path], None], folder: Path) -> Took:
    found = took(spark, partial(run, folder / "run"))
    shutil.rmtree(folder / "run")
    return found
