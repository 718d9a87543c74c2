"""A shed topic is settled by the offsets on record, and what has expired from it is listed as lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.kafka_feed import TopicFeed
from jettison.lab.bench.streams import KeepShare
from jettison.lab.demo.schedule import Phase
from jettison.settle.settlement import reconcile

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROWS, PER_BATCH = 8_000, 1_000


def answers(rows: DataFrame) -> DataFrame:
    window = F.window("timestamp", "100 milliseconds")
    return rows.withWatermark("timestamp", "50 milliseconds").groupBy(window, "partition").agg(jt.count().alias("n"))


def found(frame: DataFrame) -> dict[Any, int]:
    return {(row["window"]["start"], row["partition"]): row["n"]["value"] for row in frame.collect()}


def test_a_topic_is_settled_and_what_has_expired_is_lost(spark: SparkSession, address: str, tmp_path: Path) -> None:
    with TopicFeed(address, "settled", [Phase(2.0, ROWS // 2)]) as feed:
        assert feed.wait().rows == ROWS

    def source(reader: Any) -> Any:
        options = {"kafka.bootstrap.servers": address, "subscribe": "settled", "startingOffsets": "earliest"}
        return reader.format("kafka").options(**options).option("maxOffsetsPerTrigger", PER_BATCH)

    checkpoint = tmp_path / "checkpoint"
    shedder = jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=KeepShare(0.3))
    kept = shedder.guard(source(spark.readStream).load(), row_id=["partition", "offset"], arrival="timestamp")
    writer = answers(kept).writeStream.format("parquet").option("path", str(tmp_path / "out"))
    shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    assert shedder.await_books()
    assert shedder.ledger.totals().dropped > 0

    plan = reconcile(spark, checkpoint, answers, tmp_path / "settled", sources=source, dry_run=True)
    each = source(spark.read).load().selectExpr("avg(length(value))").first()[0]
    assert plan.bytes_to_read == pytest.approx(each * plan.rows_to_read, rel=0.1)
    done = reconcile(spark, checkpoint, answers, tmp_path / "settled", sources=source, look_rows=PER_BATCH)
    exact = found(spark.read.parquet(str(tmp_path / "settled")))
    true = found(answers(source(spark.read).load().withColumn("jt_weight", F.lit(1.0))))
    assert done.settled > 5
    assert not done.lost
    assert exact == {key: true[key] for key in exact}
    assert {start for start, _ in exact} == {
        row[0]["start"] for row in spark.read.parquet(str(tmp_path / "out")).select("window").distinct().collect()
    }

    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    (batch, *_) = shedder.ledger.records("batch")
    end = batch["taken"]["sources"][0]["end"]["settled"]
    gone = [TopicPartition("settled", int(partition), offset) for partition, offset in end.items()]
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.delete_records(gone).values():
        future.result()
    (checkpoint / "jettison" / "settle" / "settled.json").unlink()
    part = reconcile(spark, checkpoint, answers, tmp_path / "part", sources=source, look_rows=PER_BATCH)
    assert [lost.first for lost in part.lost] == [0]
    # All batches shed, so nothing bounds the times of the rows that are gone: no window is settled, and none is guessed.
    assert (part.settled, part.ready) == (0, 0)
    assert part.lost_windows > 5
    assert not (tmp_path / "part").exists()
