"""How many rows a second the plain query can process on this machine."""

from __future__ import annotations

import statistics
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt
from jettison.lab.demo.feed import RideFeed
from jettison.lab.demo.landing import land_all
from jettison.lab.demo.pipeline import INTERVAL_S, guarded_rides, plain_fares, raw_rides, shed_fares
from jettison.lab.demo.schedule import Phase

_FILES_PER_BATCH = 4
_FIRST_GUESS_ROWS_PER_S = 60_000
_FEED_S = 120.0


def measure_capacity(spark: SparkSession, folder: Path, *, batch_s: float, overload: float) -> float:
    """Rows a second that the unguarded query processes in batches about `batch_s` long, beside a feed at work.

    The batches' length matters, because each pays a fixed cost: a query that has to hold a latency bound cannot use
    longer batches than about half of it. Its rows are on disk before the clock starts. A feed lands rows elsewhere at
    `overload` times the rate found in the warm-up, because in the overload to come the feed takes its part of the
    machine, too. The median of the batches after the first two counts. The warm-up runs the guarded query as well:
    both are judged with a warm JVM, as queries that run for days are. Its batches are short and many, because what
    takes longest to warm up is what every batch does once: planning, scheduling, committing.
    """
    rows = int(_FIRST_GUESS_ROWS_PER_S * batch_s / 2)
    _throughput(spark, folder / "guarded", rows // 3, 12, guarded=True)
    guess = _throughput(spark, folder / "warm-up", rows, 5)
    with RideFeed(folder / "beside", [Phase(_FEED_S, overload * guess)], interval_s=INTERVAL_S):
        return _throughput(spark, folder / "measured", int(guess * batch_s), 6)


def _throughput(
    spark: SparkSession, folder: Path, rows_per_batch: int, batches: int, *, guarded: bool = False
) -> float:
    rows_per_file = max(rows_per_batch // _FILES_PER_BATCH, 1)
    land_all(folder / "in", rows_per_file * _FILES_PER_BATCH * batches, rows_per_file=rows_per_file)
    query = _start(raw_rides(spark, folder / "in", files_per_batch=_FILES_PER_BATCH), folder, guarded)
    query.awaitTermination()
    measured = [progress for progress in query.recentProgress if progress.numInputRows][2:]
    return statistics.median(batch.numInputRows / (batch.durationMs["triggerExecution"] / 1e3) for batch in measured)


def _start(raw: DataFrame, folder: Path, guarded: bool) -> StreamingQuery:
    shedder = jt.Shedder(latency=_FEED_S, checkpoint=folder / "checkpoint") if guarded else None
    fares = plain_fares(raw) if shedder is None else shed_fares(guarded_rides(shedder, raw))
    writer = fares.writeStream.format("parquet").option("path", str(folder / "out")).trigger(availableNow=True)
    if shedder is not None:
        return shedder.start(writer)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()
