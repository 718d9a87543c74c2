"""How many rows a second the plain query can process on this machine."""

from __future__ import annotations

import statistics
from pathlib import Path

from pyspark.sql import SparkSession

from jettison.demo.landing import land_all
from jettison.demo.pipeline import plain_fares, raw_rides

_FILES_PER_BATCH = 4
_WARM_UP_BATCHES = 3
_BATCHES = 7
_FIRST_GUESS_ROWS_PER_S = 150_000


def measure_capacity(spark: SparkSession, folder: Path, *, batch_s: float) -> float:
    """Rows a second that the unguarded query processes in batches about `batch_s` long.

    The batches' length matters, because each pays a fixed cost: a query that has to hold a latency bound cannot use
    longer batches than about half of it. Rows are on disk before the clock starts; the median of the batches after
    the warm-up counts.
    """
    rate = _throughput(spark, folder / "warm-up", int(_FIRST_GUESS_ROWS_PER_S * batch_s))
    return _throughput(spark, folder / "measured", int(rate * batch_s))


def _throughput(spark: SparkSession, folder: Path, rows_per_batch: int) -> float:
    rows_per_file = max(rows_per_batch // _FILES_PER_BATCH, 1)
    land_all(folder / "in", rows_per_file * _FILES_PER_BATCH * _BATCHES, rows_per_file=rows_per_file)
    fares = plain_fares(raw_rides(spark, folder / "in", files_per_batch=_FILES_PER_BATCH))
    query = (
        fares.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = [progress for progress in query.recentProgress if progress.numInputRows][_WARM_UP_BATCHES:]
    return statistics.median(batch.numInputRows / (batch.durationMs["triggerExecution"] / 1e3) for batch in batches)
