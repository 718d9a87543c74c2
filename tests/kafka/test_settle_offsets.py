"""What batches took of topics is read by their offsets, whatever has become of the topics since, and counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.streams import KeepShare
from jettison.settle.settlement import reconcile

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROWS, PER_BATCH, START_MS = 400, 100, 1_767_225_600_000


def answers(rows: DataFrame) -> DataFrame:
    window = F.window("timestamp", "5 seconds")
    return rows.withWatermark("timestamp", "1 second").groupBy(window, "partition").agg(jt.count().alias("n"))


def found(frame: DataFrame) -> dict[Any, int]:
    return {(row["window"]["start"], row["partition"]): row["n"]["value"] for row in frame.collect()}


def produce(address: str, topic: str, rows: int = ROWS) -> None:
    """A new topic of two partitions, with a row every tenth of a second."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    client = AdminClient({"bootstrap.servers": address})  # lives until the topic is there
    client.create_topics([NewTopic(topic, 2, 1)])[topic].result(30.0)
    producer = Producer({"bootstrap.servers": address})
    for row in range(rows):
        producer.produce(topic, b"x", partition=row % 2, timestamp=START_MS + 100 * row)
    assert not producer.flush(30.0)


def of(address: str, **options: str) -> Callable[[Any], Any]:
    given = {"kafka.bootstrap.servers": address, "maxOffsetsPerTrigger": str(PER_BATCH)} | options
    return lambda reader: reader.format("kafka").options(**given)


class Middle(KeepShare):
    """Drops rows of all batches but the last ones."""

    def plan(self, stats: Any, budget: Any) -> Any:
        self.keep_fraction = 0.3 if stats.batch_id < 1 else 1.0
        return super().plan(stats, budget)


def run_live(spark: SparkSession, source: Callable[[Any], Any], folder: Path) -> Path:
    checkpoint = folder / "checkpoint"
    shedder = jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=Middle(0.3))
    kept = shedder.guard(source(spark.readStream).load(), row_id=["partition", "offset"], arrival="timestamp")
    writer = answers(kept).writeStream.format("parquet").option("path", str(folder / "out"))
    shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    assert shedder.await_books()
    assert shedder.ledger.totals().dropped > 0
    return checkpoint


def truth(spark: SparkSession, address: str, topic: str) -> dict[Any, int]:
    rows = spark.read.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic).load()
    return found(answers(rows.withColumn("jt_weight", F.lit(1.0))))


def test_new_partitions_and_topics_and_times_to_start_at_are_none_of_its_business(
    spark: SparkSession, address: str, tmp_path: Path
) -> None:
    from confluent_kafka.admin import AdminClient, NewPartitions

    produce(address, "rows-first")
    true = truth(spark, address, "rows-first")
    source = of(address, subscribePattern="rows-.*", startingTimestamp=str(START_MS))
    checkpoint = run_live(spark, source, tmp_path)
    client = AdminClient({"bootstrap.servers": address})
    client.create_partitions([NewPartitions("rows-first", 3)])["rows-first"].result(30.0)
    produce(address, "rows-second", 10)
    done = reconcile(spark, checkpoint, answers, tmp_path / "settled", sources=source)
    exact = found(spark.read.parquet(str(tmp_path / "settled")))
    assert (done.lost, done.ready) == ((), 0)
    assert done.settled > 3
    assert exact == {key: true[key] for key in exact}


def test_rows_that_spark_has_counted_twice_are_not_lost(spark: SparkSession, address: str, tmp_path: Path) -> None:
    """As it may where `foreachBatch` runs two actions: what lies between the offsets is there, so it is all there is."""
    produce(address, "doubled")
    true, source = truth(spark, address, "doubled"), of(address, subscribe="doubled", startingOffsets="earliest")
    checkpoint = run_live(spark, source, tmp_path)
    for file in (checkpoint / "jettison" / "ledger").glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            for each in line.get("taken", {}).get("sources", ()):
                each["rows"] *= 2
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = reconcile(spark, checkpoint, answers, tmp_path / "settled", sources=source)
    exact = found(spark.read.parquet(str(tmp_path / "settled")))
    assert (done.lost, done.ready) == ((), 0)
    assert done.settled > 3
    assert exact == {key: true[key] for key in exact}


@pytest.mark.parametrize("expired", ["of a batch on record", "of the one that is not", "none"])
def test_rows_that_have_expired_are_lost_though_a_batch_is_not_on_record(
    spark: SparkSession, address: str, tmp_path: Path, expired: str
) -> None:
    """Also where the source is told to make nothing of it."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    topic = f"gap-{expired.replace(' ', '-')}"
    produce(address, topic)
    true = truth(spark, address, topic)
    source = of(address, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    checkpoint = run_live(spark, source, tmp_path)
    missing = 1 if expired == "of a batch on record" else 0
    for file in (checkpoint / "jettison" / "ledger").glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        kept = [line for line in lines if line["record"] != "batch" or line["batch_id"] != missing]
        file.write_text("".join(json.dumps(line) + "\n" for line in kept))
    if expired != "none":
        gone = [TopicPartition(topic, partition, 10) for partition in (0, 1)]  # of batch 0
        client = AdminClient({"bootstrap.servers": address})
        for future in client.delete_records(gone).values():
            future.result(30.0)
    done = reconcile(spark, checkpoint, answers, tmp_path / "settled", sources=source)
    exact = found(spark.read.parquet(str(tmp_path / "settled"))) if done.settled else {}
    assert exact == {key: true[key] for key in exact}
    assert bool(done.lost) == (expired != "none")
    assert done.settled > 3 or expired != "none"
