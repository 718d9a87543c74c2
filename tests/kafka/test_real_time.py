"""Real-time mode, which Spark offers on Kafka: the guard's join is refused there, and the user is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.errors import Unsupported
from jettison.lab.bench.kafka_feed import TopicFeed
from jettison.lab.demo.schedule import Phase

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_a_guarded_topic_is_refused_with_the_reason(spark: SparkSession, address: str, checkpoint: Path) -> None:
    with TopicFeed(address, "real-time", [Phase(1.0, 1000)]) as feed:
        feed.wait()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
    shedder = jt.Shedder(latency="10 seconds", checkpoint=checkpoint)
    rows = shedder.guard(reader.option("subscribe", "real-time").load(), row_id=["partition", "offset"])
    writer = rows.select("value").writeStream.format("console").outputMode("update")
    query = shedder.start(writer.trigger(realTime="5 seconds"))
    with pytest.raises(Unsupported, match=r"must run in micro-batches.*Join.*Hint: leave `realTime` out"):
        query.awaitTermination(120)
    assert "must run in micro-batches" in str(shedder.status().error)
    (stop,) = shedder.ledger.records("stop")
    assert "must run in micro-batches" in stop["error"]
