"""The queries that are run from cold: cheap rows, costly rows, and a sink that takes its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

import jettison as jt
from jettison.bench.harm_case import Case
from jettison.demo.pipeline import INTERVAL_S, parsed, plain_fares, raw_rides, shed_fares

_SINK_S = 1.0
_ROW_S = 0.001
_DIGESTS = 600
"""Some 0.2 ms of work a row, so that ten times the capacity is not more than the feed can bring."""


def raw(spark: SparkSession, case: Case, folder: Path, address: str | None) -> DataFrame:
    """The stream as it arrives, with the arrival column that the case wants."""
    if case.source == "files":
        rows = raw_rides(spark, folder, files_per_batch=_files_per_batch(case))
    else:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", str(address))
        reader = reader.option("subscribe", case.name).option("startingOffsets", "earliest")
        if case.rows_per_batch:
            reader = reader.option("maxOffsetsPerTrigger", case.rows_per_batch)
        rows = reader.load().select("partition", "offset", "timestamp", F.col("value").cast("string"))
    if case.arrival_behind_s:
        rows = rows.withColumn("timestamp", F.expr(f"timestamp - make_dt_interval(0, 0, 0, {case.arrival_behind_s})"))
    if case.wild_one_in:
        wild = (F.col("offset") + 1) % case.wild_one_in == 0
        rows = rows.withColumn("timestamp", F.when(wild, F.timestamp_seconds(F.lit(0))).otherwise(F.col("timestamp")))
    return rows


def _files_per_batch(case: Case) -> int | None:
    rows_per_file = case.phases[0].rows_per_s * INTERVAL_S
    return max(round(case.rows_per_batch / rows_per_file), 1) if case.rows_per_batch else None


def answers(case: Case, rows: DataFrame, *, guarded: bool) -> DataFrame:
    """What the query computes."""
    if case.work == "fares":
        return shed_fares(rows) if guarded else plain_fares(rows)
    rides = parsed(rows, "value", *(["jt_weight"] if guarded else []))
    mean = jt.avg("fare", window="window") if guarded else F.avg("fare")
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


def writer(case: Case, result: DataFrame, folder: Path) -> DataStreamWriter:
    """Where the answers go."""
    if case.work == "slow-sink":
        return result.writeStream.outputMode("update").foreachBatch(_slow_sink(folder))
    return result.writeStream.format("parquet").option("path", str(folder))


def _slow_sink(folder: Path) -> Callable[[DataFrame, int], None]:
    def write(answers: DataFrame, batch: int) -> None:
        answers.write.mode("overwrite").parquet(str(folder / str(batch)))
        time.sleep(_SINK_S)

    return write
