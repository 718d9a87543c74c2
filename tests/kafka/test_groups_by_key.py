"""Groups by what a record has beside its value, its key or a header: dropped rows are never cast nor parsed."""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.fault_topic import PARTITIONS, Topic
from jettison.lab.bench.scripted import START_S, keep, scripted
from told_stream import await_plan, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

LARGE, SMALL, BATCHES, PER_BATCH = 3, 20, 4, 3000
NAMES = [*(f"large-{number}" for number in range(LARGE)), *(f"small-{number}" for number in range(SMALL))]
HEADER = "get(filter(headers, header -> header.key = 'route'), 0).value"


def group_of(row: int) -> str | None:
    """Of fifty rows one is of a small group and one of none; in each batch a small group has three."""
    return NAMES[LARGE + row // 50 % SMALL] if row % 50 == 0 else None if row % 50 == 1 else NAMES[row % LARGE]


ROWS = [group_of(row) for row in range(BATCHES * PER_BATCH)]


def append(address: str, topic: str, rows: range) -> None:
    """A batch is two seconds of event time; rows without a group have no key, and a header of another name or none."""
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for row in rows:
        group, trace = ROWS[row], [("trace", str(row).encode())]
        producer.produce(
            topic,
            json.dumps({"row": row, "fare": 2.5}).encode(),
            key=None if group is None else group.encode(),
            headers=[*trace, ("route", group.encode())] if group is not None else trace if row % 100 else None,
            partition=row % PARTITIONS,
            timestamp=START_S * 1000 + row * 2000 // PER_BATCH,
        )
    assert producer.flush(60) == 0


@pytest.mark.parametrize("group", ["key", HEADER], ids=["key", "header"])
def test_rows_are_dropped_by_group_before_their_value_is_read(
    spark: SparkSession, address: str, tmp_path: Path, checkpoint: Path, group: str
) -> None:
    name = "by-key" if group == "key" else "by-header"
    options = Topic(address, name).options(PER_BATCH)
    reader = spark.readStream.format("kafka").options(**options).option("includeHeaders", True)
    policy = scripted(jt.ConceptDrop, lambda batch: keep(0.2), group=group, time="timestamp", window="60 seconds")
    shedder = jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=policy)
    kept = shedder.guard(reader.load(), row_id=["partition", "offset"], name="rides")
    value = F.from_json(F.col("value").cast("string"), "row LONG, fare DOUBLE")
    rides = kept.select(F.col("key").cast("string"), "jt_weight", value.alias("ride"))
    writer = rides.select("key", "jt_weight", "ride.*").writeStream.format("parquet")
    plan = io.StringIO()
    with shedder:
        query = shedder.start(writer.option("path", str(tmp_path / "out")))
        run = shedder._run
        assert run is not None
        for batch in range(BATCHES):
            append(address, name, range(batch * PER_BATCH, (batch + 1) * PER_BATCH))
            query.processAllAvailable()
            until(lambda batch=batch: shedder.status().rows_seen == (batch + 1) * PER_BATCH)
            await_plan(run.pilot)
        with contextlib.redirect_stdout(plan):
            query.explain()

    out = spark.read.parquet(str(tmp_path / "out")).collect()
    assert all(ROWS[row.row] == row.key for row in out)
    assert len({row.row for row in out}) == len(out)
    totals = shedder.ledger.totals()
    assert (totals.seen, totals.kept, totals.estimated) == (len(ROWS), len(out), 0)
    assert 0.1 < len(out) / len(ROWS) < 0.4
    # Once groups are known: large ones are thinned, small ones are whole.
    came, later = Counter(ROWS[PER_BATCH:]), Counter(row.key for row in out if row.row >= PER_BATCH)
    assert all(later[name] < 0.5 * came[name] for name in NAMES[:LARGE])
    assert all(later[name] == came[name] for name in NAMES[LARGE:])
    assert sum(row.jt_weight for row in out) == pytest.approx(len(ROWS), rel=0.1)

    above, guard = plan.getvalue().split("Filter (jt_keep", 1)
    assert "from_json" in above
    assert "cast(value" in above
    guard = guard.split("BroadcastExchange", 1)[0]  # behind it come the plan of drops, and all of the query once more
    assert "from_json" not in guard
    assert "cast(value" not in guard
