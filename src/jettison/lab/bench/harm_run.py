"""One query from a cold process: cheap rows, costly rows, a slow sink or a network of outputs, over a topic or files."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

import jettison as jt
from jettison.lab.bench.kafka_feed import TopicFeed, topic_options, topic_rides, with_connector
from jettison.lab.demo.experiment import Batch, Run, run_begun, run_query
from jettison.lab.demo.feed import RideFeed
from jettison.lab.demo.pipeline import INTERVAL_S, guarded_rides, parsed, plain_fares, raw_rides, shed_fares
from jettison.lab.demo.schedule import Phase
from jettison.lab.fresh_process import in_fresh_process
from jettison.lab.recorded_session import recorded_session
from jettison.lab.reproduce.aurora.live import build
from jettison.runtime.inquiry import Asked

Source = Literal["kafka", "files"]
Work = Literal["fares", "readme", "digest", "function", "slow-sink", "network"]

_SINK_S, _ROW_S = 1.0, 0.001
_DIGESTS = 600
"""Some 0.2 ms of work a row, so that ten times the capacity is not more than the feed can bring."""
_SLACK_S = 240.0
"""For the JVM to start and the books to close, on a busy machine."""
_BATCH_S = 2.5
"""Batches pay a fixed cost each: one that has to hold a bound of 5 or 6 s cannot be longer than about half of it."""
_NO_BOUND_S = 3600.0
"""Of a network, which is never without a guard."""
_WARM_UP_S, _MEASURED_S, _LEAST_BATCHES = 22.0, 24.0, 4
_FIRST_GUESS: dict[Work, float] = {
    "fares": 60_000.0,
    "readme": 80_000.0,
    "digest": 8_000.0,
    "function": 1_500.0,
    "network": 60_000.0,
}


@dataclass(frozen=True, slots=True)
class Case:
    """What one process is to run.

    Parameters
    ----------
    name
        As results call it; the Kafka topic has this name, too.
    source, work
        Where the rides come from, and what the query does with them.
    rows_per_s, duration_s
        How fast rides arrive, and for how long.
    bound_s
        Latency bound of the guard; `None` for the plain query.
    arrival_behind_s
        How far the arrival column is behind the clock.
    wild_one_in
        One row in so many claims to have arrived in 1970; 0 for none.
    rows_per_batch
        About how many rows the source gives to a batch at most; 0 for no such cap.
    capacity_rows_per_s
        What the guard is told of the query's capacity; `None` for nothing.
    asked
        Whether the source is asked what has come.
    constant_share
        Share of the rows that a filter keeps from the first one on, in place of a guard; `None` for no such filter.
    phases
        How fast rides arrive in turn, in place of one rate and length.
    """

    name: str
    source: Source = "files"
    work: Work = "fares"
    rows_per_s: float = 0.0
    duration_s: float = 45.0
    bound_s: float | None = 5.0
    arrival_behind_s: float = 0.0
    wild_one_in: int = 0
    rows_per_batch: int = 0
    capacity_rows_per_s: float | None = None
    asked: bool = True
    constant_share: float | None = None
    phases: Sequence[Phase] = ()


def run_cold(case: Case, address: str | None = None) -> Run:
    """Run a case in a process in which nothing has run before, as when a user starts a query.

    `address` is the Kafka broker, for cases that read from one.
    """
    return in_fresh_process(case.duration_s + _SLACK_S, _in_this_process, case, address)


def capacity(source: Source, work: Work, load: float, address: str | None = None) -> float:
    """Rows a second that the plain query processes in a process of its own, warm, beside a feed of `load` times that."""
    return in_fresh_process(_WARM_UP_S + _MEASURED_S + _SLACK_S, _measure, source, work, load, address)


def run_after_plain(case: Case, load: float) -> tuple[float, Run]:
    """Capacity of the plain query, and then a case at `load` times that, in one process of their own."""
    within_s = _WARM_UP_S + _MEASURED_S + case.duration_s + 2 * _SLACK_S
    return in_fresh_process(within_s, _both, case, load)


def _measure(source: Source, work: Work, load: float, address: str | None) -> float:
    with _session(source) as spark:
        return plain_capacity(spark, source, work, load, address)


def plain_capacity(spark: SparkSession, source: Source, work: Work, load: float, address: str | None) -> float:
    """Rows a second of a saturated query, run twice: the second time with what came of the first. Early batches warm up."""
    found = _FIRST_GUESS[work]
    for name, duration_s in (("warm-up", _WARM_UP_S), ("measured", _MEASURED_S)):
        case = Case(f"capacity-{work}-{load:g}x-{name}", source, work, load * found, duration_s, bound_s=None)
        case = replace(case, rows_per_batch=max(round(found * _BATCH_S), 1))
        batches = _run(spark, case, address, least_batches=_LEAST_BATCHES).batches
        later = batches[len(batches) // 2 :]
        found = statistics.median(batch.rows / (batch.committed_s - batch.started_s) for batch in later)
    return found


def _in_this_process(case: Case, address: str | None) -> Run:
    with _session(case.source) as spark:
        return _run(spark, case, address)


def _both(case: Case, load: float) -> tuple[float, Run]:
    with _session(case.source) as spark:
        found = plain_capacity(spark, case.source, case.work, load, None)
        return found, _run(spark, replace(case, rows_per_s=load * found), None)


def _session(source: Source) -> AbstractContextManager[SparkSession]:
    if source == "kafka":
        with_connector()
    return recorded_session("jettison harm")


def _run(spark: SparkSession, case: Case, address: str | None, *, least_batches: int = 0) -> Run:
    with tempfile.TemporaryDirectory(prefix="jettison-harm-") as scratch:
        return run_in(spark, case, Path(scratch), address, least_batches)


def run_in(spark: SparkSession, case: Case, folder: Path, address: str | None, least_batches: int = 0) -> Run:
    """Run a case in a session that there is, with all that it writes below `folder`."""
    rows = _raw(spark, case, folder / "in", address)
    if case.work == "network":
        return _run_network(case, rows, folder, least_batches)
    runner: jt.Shedder | Path = folder / "checkpoint"
    if case.bound_s is not None:
        runner = jt.Shedder(
            latency=case.bound_s,
            checkpoint=folder / "checkpoint",
            capacity_rows_per_s=case.capacity_rows_per_s,
            ask=_asked(case, address),
        )
        rows = guarded_rides(runner, rows)
    writer = _writer(case, _answers(case, rows), folder / "out")
    phases = case.phases or [Phase(case.duration_s, case.rows_per_s)]
    feed = (
        RideFeed(folder / "in", phases, interval_s=INTERVAL_S)
        if case.source == "files"
        else TopicFeed(str(address), case.name, phases)
    )
    return run_query(case.name, feed, writer, runner, least_batches=least_batches)


def _run_network(case: Case, rows: DataFrame, folder: Path, least_batches: int) -> Run:
    """Three outputs behind a shared parse. Of a batch that share counts as kept which its two that want all rows got."""
    network, sinks = build(rows)
    bound_s = _NO_BOUND_S if case.bound_s is None else case.bound_s
    known, checkpoint = case.capacity_rows_per_s, folder / "checkpoint"
    begin = partial(network.start, latency=bound_s, checkpoint=checkpoint, capacity_rows_per_s=known)
    feed = RideFeed(folder / "in", [Phase(case.duration_s, case.rows_per_s)], interval_s=INTERVAL_S)
    run = run_begun(case.name, feed, begin, least_batches=least_batches)
    assert network.shedder is not None
    network.shedder.await_books()
    wanted = [sinks["archive"].rows, sinks["fraud"].rows]

    def delivered(batch: Batch) -> Batch:
        rows = sum(sink.get(batch.batch_id, 0) for sink in wanted)
        return replace(batch, kept_fraction=rows / (len(wanted) * max(batch.rows, 1)))

    return replace(run, batches=[delivered(batch) for batch in run.batches])


def _raw(spark: SparkSession, case: Case, folder: Path, address: str | None) -> DataFrame:
    """The stream as it arrives, with the arrival column that the case wants."""
    if case.source == "files":
        files = max(round(case.rows_per_batch / (case.rows_per_s * INTERVAL_S)), 1) if case.rows_per_batch else None
        rows = raw_rides(spark, folder, files_per_batch=files)
    else:
        cap = {"maxOffsetsPerTrigger": str(case.rows_per_batch)} if case.rows_per_batch else {}
        rows = topic_rides(spark, topic_options(str(address), case.name) | cap)
    if case.constant_share is not None:
        rows = rows.where(F.pmod(F.xxhash64("partition", "offset"), F.lit(10_000)) < case.constant_share * 10_000)
    if case.arrival_behind_s:
        rows = rows.withColumn("timestamp", F.expr(f"timestamp - make_dt_interval(0, 0, 0, {case.arrival_behind_s})"))
    if case.wild_one_in:
        wild = (F.col("offset") + 1) % case.wild_one_in == 0
        rows = rows.withColumn("timestamp", F.when(wild, F.timestamp_seconds(F.lit(0))).otherwise(F.col("timestamp")))
    return rows


def _asked(case: Case, address: str | None) -> Asked | None:
    """What says how many rows have come: Kafka, or the folder, which is found."""
    if not case.asked:
        return lambda: None
    return jt.KafkaEnds(topic_options(str(address), case.name)) if case.source == "kafka" else None


def _answers(case: Case, rows: DataFrame) -> DataFrame:
    """What the query computes."""
    guarded = case.bound_s is not None
    if case.work == "fares":
        return shed_fares(rows) if guarded else plain_fares(rows)
    rides = parsed(rows, "value", *(["jt_weight"] if guarded else []))
    mean = jt.avg("fare", window="window") if guarded else F.avg("fare")
    if case.work == "readme":
        count = jt.count(window="window") if guarded else F.count("*")
        by_zone = rides.withWatermark("time", "1 minute").groupBy(F.window("time", "5 seconds"), "zone")
        return by_zone.agg(mean.alias("fare"), count.alias("rides"))
    windows = rides.withColumn("work", _work(case)).withWatermark("time", "1 second")
    return windows.groupBy(F.window("time", "5 seconds"), "zone").agg(mean.alias("fare"), F.max("work").alias("work"))


def _work(case: Case) -> Column:
    if case.work == "digest":
        return F.expr(f"aggregate(sequence(1, {_DIGESTS}), value, (digest, i) -> sha2(digest, 256))")
    return F.udf(_busy, "double")("fare") if case.work == "function" else F.col("fare")


def _busy(fare: float) -> float:
    until = time.perf_counter() + _ROW_S
    while time.perf_counter() < until:
        pass
    return fare


def _writer(case: Case, answers: DataFrame, folder: Path) -> DataStreamWriter:
    if case.work != "slow-sink":
        return answers.writeStream.format("parquet").option("path", str(folder))

    def write(answers: DataFrame, batch: int) -> None:
        answers.write.mode("overwrite").parquet(str(folder / str(batch)))
        time.sleep(_SINK_S)

    return answers.writeStream.outputMode("update").foreachBatch(write)
