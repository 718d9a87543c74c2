"""A real broker is asked how far its topics reach."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.lab.bench.fault_topic import Topic
from jettison.lab.bench.kafka import running_broker
from jettison.lab.bench.kafka_feed import TopicFeed
from jettison.lab.demo.schedule import Phase
from jettison.runtime import inquiry
from jettison.runtime.inquiry import Inquiry
from jettison.spark import kafka_ends

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROWS = 5_000


@pytest.mark.parametrize(
    ("topic", "chosen"),
    [
        ("ends-a", {"subscribe": "ends-a"}),
        ("ends-b", {"subscribePattern": "ends-[b]"}),
        ("ends-c", {"assign": '{"ends-c": [0, 1]}'}),
    ],
)
def test_ends_are_the_rows_of_a_topic_and_a_query_says_its_lag(
    spark: SparkSession, address: str, tmp_path: Path, topic: str, chosen: dict[str, str]
) -> None:
    options = {"kafka.bootstrap.servers": address, "startingOffsets": "earliest"} | chosen
    feed = TopicFeed(address, topic, [Phase(1.0, ROWS)])
    with feed:
        assert feed.wait().rows == ROWS
    ends = jt.KafkaEnds(options)
    assert ends() == ROWS

    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", ask=ends)
    raw = spark.readStream.format("kafka").options(**options).load()
    rows = shedder.guard(raw, row_id=["partition", "offset"], arrival="timestamp")
    with shedder:
        shedder.start(rows.writeStream.format("noop"))
        end_s = time.monotonic() + 60.0
        while shedder.status().lag_rows != 0 or shedder.status().batches == 0:
            assert time.monotonic() < end_s, shedder.status()
            time.sleep(0.1)
    assert shedder.status().faults == {}
    assert shedder.status().rows_seen == ROWS


def test_a_broker_that_stands_still_is_given_up_and_believed_once_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_ends, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(inquiry, "_RETRY_S", 0.5)
    said: list[str] = []

    def until(rows: float | None) -> None:
        end_s = time.monotonic() + 60.0
        while (None if (told := asking()) is None else told.rows) != rows:
            assert time.monotonic() < end_s, said
            time.sleep(0.05)

    with running_broker() as broker:
        topic = Topic(broker.address, "paused")
        topic.append([b"{}"] * 7)
        asking = Inquiry(jt.KafkaEnds(topic.options(10)), said.append).start()
        try:
            until(7.0)
            broker.pause()
            until(None)
            broker.resume()
            topic.append([b"{}"] * 4)
            until(11.0)
            assert len(said) == 1
        finally:
            broker.resume()
            asking.stop()
