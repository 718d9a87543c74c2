"""The loop on a real broker: the controller itself decides what a query over a topic sheds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.kafka_feed import TopicFeed
from jettison.lab.demo.schedule import Phase
from live_stream import Collected, Live, costly, dropped

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CAPACITY_ROWS_PER_S = 900.0
"""At about 1 ms a row."""
CALM_S = 30.0


def test_below_capacity_all_is_kept_and_above_it_rows_go(
    spark: SparkSession, address: str, tmp_path: Path, checkpoint: Path
) -> None:
    phases = [Phase(CALM_S, 0.25 * CAPACITY_ROWS_PER_S), Phase(120.0, 3.0 * CAPACITY_ROWS_PER_S)]
    feed, sink = TopicFeed(address, "live", phases), Collected()
    with feed:
        began_s = time.time()
        source = {"kafka.bootstrap.servers": address, "subscribe": "live", "startingOffsets": "earliest"}
        raw = spark.readStream.format("kafka").options(**source).load()
        shedder = jt.Shedder(latency="6 seconds", checkpoint=checkpoint)
        kept = shedder.guard(raw, row_id=["partition", "offset"], arrival="timestamp")
        rows = costly(kept.withColumn("id", F.col("offset") * 2 + F.col("partition")), 1).select("id", "jt_weight")
        with Live(shedder, shedder.start(rows.writeStream.foreachBatch(sink))) as live:
            live.until(lambda: sum(1 for batch in live.batches() if dropped(batch)) >= 4, "four batches that drop rows")
    calm = [batch for batch in live.batches() if batch["started_s"] < began_s + CALM_S]
    assert len(calm) > 2
    assert sum(map(dropped, calm)) == 0, live.story()
    counted = [batch for batch in live.batches() if batch["points"]["rows"]["exact"]]
    assert any(map(dropped, counted)), live.story()
    assert [batch["points"]["rows"]["kept"] for batch in counted] == [
        len(sink.batches[batch["batch_id"]]) for batch in counted
    ]
    assert len({row.id for row in sink.rows}) == len(sink.rows), "a row came out twice"
    assert max(row.jt_weight for row in sink.rows) > 1.0
