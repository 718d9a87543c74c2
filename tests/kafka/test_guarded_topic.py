"""A guarded query on a real broker: the rows kept, the ledger and the counts agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.kafka_feed import PARTITIONS, TopicFeed
from jettison.lab.bench.streams import KeepShare
from jettison.lab.demo.schedule import Phase

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROWS = 20_000


@pytest.fixture(scope="module")
def topic(address: str) -> str:
    feed = TopicFeed(address, "guarded", [Phase(1.0, ROWS)])
    with feed:
        assert feed.wait().rows == ROWS
    return "guarded"


def options(address: str, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": address, "subscribe": topic, "startingOffsets": "earliest"}


def test_every_row_of_the_schedule_is_the_record_that_it_should_be(
    spark: SparkSession, address: str, topic: str
) -> None:
    number = F.regexp_extract(F.col("value").cast("string"), r'"r(\d+)"', 1).cast("long")
    records = spark.read.format("kafka").options(**options(address, topic)).load()
    rows = records.select("partition", "offset", number.alias("row")).collect()
    assert sorted(row.row for row in rows) == list(range(ROWS))
    assert all(row.offset * PARTITIONS + row.partition == row.row for row in rows)


@pytest.mark.parametrize("keep_fraction", [1.0, 0.3])
def test_rows_kept_and_ledger_and_counts_agree(
    spark: SparkSession, address: str, topic: str, tmp_path: Path, checkpoint: Path, keep_fraction: float
) -> None:
    per_batch = ROWS // 4
    reader = spark.readStream.format("kafka").options(**options(address, topic))
    raw = reader.option("maxOffsetsPerTrigger", per_batch).load()
    shedder = jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=KeepShare(keep_fraction))
    kept = shedder.guard(raw, row_id=["partition", "offset"], arrival="timestamp", name="rides")
    writer = kept.select("partition", "offset", "jt_weight").writeStream.format("parquet")
    query = shedder.start(writer.option("path", str(tmp_path / "out")).trigger(availableNow=True))
    query.awaitTermination()
    assert shedder.await_books()

    out = spark.read.parquet(str(tmp_path / "out")).collect()
    batches = list(shedder.ledger.records("batch"))
    points = [batch["points"]["rides"] for batch in batches]
    assert [batch["batch_id"] for batch in batches] == list(range(4))
    assert all(point["exact"] and point["seen"] == per_batch for point in points)
    assert sum(point["kept"] for point in points) == len(out)
    assert len({(row.partition, row.offset) for row in out}) == len(out)
    assert {row.partition for row in out} == set(range(PARTITIONS))
    totals = shedder.ledger.totals()
    assert (totals.seen, totals.kept, totals.dropped) == (ROWS, len(out), ROWS - len(out))
    if keep_fraction == 1.0:
        assert len(out) == ROWS
        assert {row.jt_weight for row in out} == {1.0}
    else:
        assert 0 < len(out) < ROWS
        # What is kept stands for all: within five standard deviations.
        assert sum(row.jt_weight for row in out) == pytest.approx(ROWS, rel=5 * (0.7 / 0.3 / ROWS) ** 0.5)
