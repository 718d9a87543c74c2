"""The demo's query: parse JSON rides, then per window and zone the mean fare and three 95th percentiles."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import jettison as jt
from jettison.lab.demo.landing import RIDE_SCHEMA, SPARK_SCHEMA
from jettison.runtime.inquiry import Asked

WINDOW_S = 5
INTERVAL_S = 0.2
"""Time between two files of the feed."""
POINT = "rides"
"""Name of the guard."""
_WATERMARK = "1 second"
_PERCENTILES = ("fare", "tip", "distance_km")

Runner = jt.Shedder | Path
"""What starts a query: its shedder, or as it is with a checkpoint here."""


def guarded_rides(shedder: jt.Shedder, raw: DataFrame) -> DataFrame:
    """The stream behind a drop point."""
    return shedder.guard(raw, row_id=["partition", "offset"], arrival="timestamp", name=POINT)


def raw_rides(spark: SparkSession, directory: Path, *, files_per_batch: int | None = None) -> DataFrame:
    """The stream as it arrives: Kafka-shaped records whose `value` is the JSON of a ride."""
    directory.mkdir(parents=True, exist_ok=True)  # Spark refuses a directory that is yet to come
    reader = spark.readStream.schema(SPARK_SCHEMA)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.parquet(str(directory))


def plain_fares(raw: DataFrame) -> DataFrame:
    """The query as its owner wrote it."""
    return _by_window(parsed(raw), F.avg("fare").alias("fare"))


def shed_fares(guarded: DataFrame) -> DataFrame:
    """The same query over guarded rows: the mean comes with its bounds."""
    return _by_window(parsed(guarded, "jt_weight"), jt.avg("fare", window="window").alias("fare"))


def fares(
    raw: DataFrame, folder: Path, bound_s: float | None, ask: Asked | None = None, *, known: float | None = None
) -> tuple[DataStreamWriter, Runner]:
    """The query under a latency bound, or plain without one; answers and checkpoint lie in `folder`."""
    runner: Runner
    if bound_s is None:
        runner, answers = folder / "checkpoint", plain_fares(raw)
    else:
        runner = jt.Shedder(latency=bound_s, checkpoint=folder / "checkpoint", ask=ask, capacity_rows_per_s=known)
        answers = shed_fares(guarded_rides(runner, raw))
    return answers.writeStream.format("parquet").option("path", str(folder / "out")), runner


def started(writer: DataStreamWriter, runner: Runner) -> StreamingQuery:
    """Start a query."""
    if isinstance(runner, jt.Shedder):
        return runner.start(writer)
    return writer.option("checkpointLocation", str(runner)).start()


def parsed(rows: DataFrame, *carried: str) -> DataFrame:
    """The rides, with some columns of the raw stream carried on."""
    ride = F.from_json("value", RIDE_SCHEMA).alias("ride")
    return rows.select(*carried, ride).select(*carried, "ride.*")


def _by_window(rides: DataFrame, mean: Column) -> DataFrame:
    return (
        rides.withWatermark("time", _WATERMARK)
        .groupBy(F.window("time", f"{WINDOW_S} seconds"), "zone")
        .agg(mean, *(F.percentile_approx(column, 0.95).alias(f"{column}_p95") for column in _PERCENTILES))
    )
