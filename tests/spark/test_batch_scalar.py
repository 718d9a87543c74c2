"""A scalar beside a stream belongs to its micro-batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.spark.batch_scalar import with_scalar

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]


def written(rows: DataFrame, name: str, checkpoint: Path) -> list[tuple[object, ...]]:
    writer = rows.writeStream.format("memory").queryName(name).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return [tuple(row) for row in rows.sparkSession.table(name).collect()]


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    spark.range(0, 4, 1, 2).write.parquet(str(folder))
    return spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(str(folder))


def test_its_time_is_that_of_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    now = spark.range(1).select(F.unix_millis(F.current_timestamp()))
    found = written(with_scalar(stream(spark, tmp_path / "in"), now, "now_ms"), "batch_times", tmp_path / "checkpoint")
    logged = [
        json.loads(log.read_text().splitlines()[1]) for log in (tmp_path / "checkpoint" / "offsets").glob("[0-9]*")
    ]
    assert len(found) == 4
    assert {now_ms for _, now_ms in found} == {batch["batchTimestampMs"] for batch in logged}


def test_where_there_is_no_row_it_is_null(spark: SparkSession, tmp_path: Path) -> None:
    none = spark.range(1).where("id > 0")
    found = written(with_scalar(stream(spark, tmp_path / "in"), none, "nothing"), "no_scalar", tmp_path / "checkpoint")
    assert sorted(found) == [(id, None) for id in range(4)]


def test_the_rows_keep_their_columns_and_their_watermark(spark: SparkSession, tmp_path: Path) -> None:
    rows = stream(spark, tmp_path / "in").selectExpr("id as `an id`", "timestamp_seconds(id) as time")
    rows = rows.withWatermark("time", "1 minute")
    beside = with_scalar(rows, spark.range(1), "one").drop("one")
    assert beside.schema.json() == rows.schema.json()
    assert beside.select(rows["an id"]).columns == ["an id"]
