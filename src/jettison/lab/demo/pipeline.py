"""The demo's query: parse JSON rides, then per window and zone the mean fare and three 95th percentiles."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.demo.landing import RIDE_SCHEMA, SPARK_SCHEMA

WINDOW_S = 5
INTERVAL_S = 0.2
"""Time between two files of the feed."""
POINT = "rides"
"""Name of the guard."""
_WATERMARK = "1 second"
_PERCENTILES = ("fare", "tip", "distance_km")


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
