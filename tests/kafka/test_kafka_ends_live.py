"""A real broker is asked how far its topics reach."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.lab.bench.kafka_feed import TopicFeed
from jettison.lab.demo.schedule import Phase

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
