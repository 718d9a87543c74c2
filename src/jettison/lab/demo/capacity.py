"""How many rows a second the plain query can process on this machine."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from jettison.lab.demo.feed import RideFeed
from jettison.lab.demo.landing import land_all
from jettison.lab.demo.pipeline import INTERVAL_S, fares, raw_rides, started
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
    def start(raw: DataFrame) -> StreamingQuery:
        writer, runner = fares(raw, folder, _FEED_S if guarded else None)
        return started(writer.trigger(availableNow=True), runner)

    measured = saturated(spark, folder, rows_per_batch, batches, start)[2:]
    return statistics.median(rows / seconds for rows, seconds in measured)


def saturated(
    spark: SparkSession, folder: Path, rows_per_batch: int, batches: int, start: Callable[[DataFrame], StreamingQuery]
) -> list[tuple[int, float]]:
    """Rows and seconds of each batch of a query whose rides are on disk before it starts and ends with them."""
    rows_per_file = max(rows_per_batch // _FILES_PER_BATCH, 1)
    land_all(folder / "in", rows_per_file * _FILES_PER_BATCH * batches, rows_per_file=rows_per_file)
    query = start(raw_rides(spark, folder / "in", files_per_batch=_FILES_PER_BATCH))
    query.awaitTermination()
    return [(p.numInputRows, p.durationMs["triggerExecution"] / 1e3) for p in query.recentProgress if p.numInputRows]
