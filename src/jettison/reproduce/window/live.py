"""Three times more load than can be processed, live: how many answers come in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt
from jettison.bench.streams import run_once
from jettison.policies.window_drop import WindowDrop
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.reproduce.window import streams

_BUSY_MS = 0.1  # per row, before the aggregate
_BOUND_S = 10.0
_GAP = 10
_LOAD = 3.0
_TASKS = 4  # in a batch

Delivery = list[tuple[float, float]]
"""For each answer, when its window ended, in seconds since the query started, and how long after that it came."""


def overload(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Tumbling windows of a second at three times capacity, windows dropped or answers dropped at random."""
    seconds = 36.0 if settings.quick else 90.0
    capacity = _capacity(spark, folder)
    rate = round(_LOAD * capacity)
    settings.say(f"  capacity about {capacity:,.0f} rows/s, feeding {rate:,} rows/s")
    policy = WindowDrop(time="timestamp", window="1 second", max_gap=_GAP)
    shedder = jt.Shedder(latency=_BOUND_S, checkpoint=folder / "shed", policy=policy)
    rows = shedder.guard(_rows(spark, rate), id="value", arrival="timestamp")
    shed = _watch(lambda answers: shedder.start(answers), shedder.deliver(_counts(rows)), seconds)
    # A random drop behind the aggregates leaves all the work before it. All answers are counted as its own, those that it
    # would drop included, so no rate of dropping could do better.
    answers = _counts(_rows(spark, rate))
    checkpoint = str(folder / "random")
    random = _watch(lambda writer: writer.option("checkpointLocation", checkpoint).start(), answers, seconds)
    in_time = {name: _in_time(delivery, seconds) for name, delivery in (("windows", shed), ("random", random))}
    config = {
        "load": _LOAD,
        "capacity_rows_per_s": round(capacity),
        "latency_bound_s": _BOUND_S,
        "batch_size": _GAP,
        "seconds": seconds,
        "windows_in_time": in_time["windows"],
        "random_in_time": in_time["random"],
    }
    claim = Claim(
        "three-times-load",
        "answers in time at 3 times load, windows dropped over random drop after the aggregates",
        "random drop fails to remove the overload",
        in_time["windows"] / max(in_time["random"], 1),
        at_least=2.0,
        config=config,
    )
    rows_of_table = [[name, len(of), in_time[name]] for name, of in (("windows", shed), ("random", random))]
    header = ["dropped", "answers delivered", f"of these within {_BOUND_S:g} s, after the first third of the run"]
    return [claim], Section("Three times more load than can be processed", table(header, rows_of_table))


def _capacity(spark: SparkSession, folder: Path) -> float:
    """Rows a second that the plain query processes when it has all it wants: its batches after the first, once warm."""
    streams.land(spark, folder / "in", 12 * 10_000, files=12, text=False)

    def build(shedder: jt.Shedder | None) -> DataFrame:
        rows = streams.source(spark, folder / "in", files_a_batch=_TASKS)
        return _counts(rows.withColumnsRenamed({"at": "timestamp", "value": "reading", "id": "value"}))

    for _ in range(2):
        cost = run_once(spark, folder / "run", streams.appended(build, None))
    return cost.rows_per_s


def _rows(spark: SparkSession, rate: int) -> DataFrame:
    rows = spark.readStream.format("rate").option("rowsPerSecond", rate).option("numPartitions", _TASKS).load()
    return rows.withWatermark("timestamp", "0 seconds")


def _counts(rows: DataFrame) -> DataFrame:
    working = streams.busy(rows, "value", _BUSY_MS)
    return working.groupBy(F.window("timestamp", "1 second")).agg(F.count(F.lit(1)).alias("n"))


def _watch(start: Callable[..., StreamingQuery], answers: DataFrame, seconds: float) -> Delivery:
    found: Delivery = []
    started = time.time()

    def collect(batch: DataFrame, number: int) -> None:
        ends = [row.end / 1e6 for row in batch.select(F.unix_micros("window.end").alias("end")).collect()]
        found.extend((end - started, time.time() - end) for end in ends)

    query = start(answers.writeStream.outputMode("append").foreachBatch(collect))
    try:
        time.sleep(seconds)
    finally:
        query.stop()
    return found


def _in_time(delivery: Delivery, seconds: float) -> int:
    """Answers within the bound, after the first third of the run, in which the query starts and learns."""
    return sum(latency <= _BOUND_S and end >= seconds / 3 for end, latency in delivery)
