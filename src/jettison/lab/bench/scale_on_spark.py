"""A native grouped sum in batches of a given size, plain, behind a guard that keeps all, and one that keeps three tenths."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.lab.bench.streams import Cost, alternate, guarded, plain

_KEEP = 0.3


PLAIN, IDLE, SHEDS = "plain", "idle guard", "guard that sheds"


def costs(
    spark: SparkSession, folder: Path, rows: int, keys: int, batches: int, repetitions: int
) -> dict[str, list[Cost]]:
    """What each run took, by side; the nth runs stood side by side."""
    _land(spark, folder / "in", rows, keys, batches)

    def source() -> DataFrame:
        schema = "id BIGINT, key BIGINT, value DOUBLE, at TIMESTAMP"
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))

    def sums(stream: DataFrame) -> DataFrame:
        return stream.groupBy("key").agg(F.sum("value").alias("value"))

    shares = {IDLE: 1.0, SHEDS: _KEEP}
    variants = {PLAIN: plain(lambda: sums(source()))} | {
        side: guarded(source, sums, row_id=["id"], keep_fraction=share) for side, share in shares.items()
    }
    found = alternate(spark, folder, variants, repetitions)
    shutil.rmtree(folder)
    return found


def _land(spark: SparkSession, folder: Path, rows: int, keys: int, batches: int) -> None:
    numbers = spark.range(0, rows * batches, 1, batches)
    key = F.pmod(F.xxhash64("id"), F.lit(keys))
    numbers = numbers.select("id", key.alias("key"), (F.col("id") % 100 / 7).alias("value"), F.timestamp_micros("id"))
    numbers.toDF("id", "key", "value", "at").write.parquet(str(folder))
    for place, path in enumerate(sorted(folder.glob("part-*"))):
        os.utime(path, (1e9 + place, 1e9 + place))  # files are taken in the order of their age
