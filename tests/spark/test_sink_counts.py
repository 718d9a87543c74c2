"""What sinks do with a batch, and whether its counts are then called exact: they are, or they are right."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.stats import PointStats
from jettison.lab.bench.streams import KeepShare
from spark_since import FILTERS_DESCRIBED

ROWS = 1000


def write(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def twice(rows: DataFrame) -> int:
    write(rows)
    return rows.count()


def empty_first(rows: DataFrame) -> int:
    return 0 if rows.isEmpty() else len(rows.collect())


def empty_last(rows: DataFrame) -> int:
    found = len(rows.collect())
    rows.isEmpty()
    return found


def persisted(rows: DataFrame) -> int:
    rows.persist()
    found = rows.count()
    write(rows.where("id < 10"))
    rows.unpersist()
    return found


def persisted_after_failing(rows: DataFrame) -> int:
    """The write that fails leaves rows in the cache, and the next one reads them from there."""
    rows.persist()
    fails = F.udf(lambda id: 1 // 0 if id == ROWS - 1 else id, "long")
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        write(rows.select(fails("id")))
    found = rows.count()
    rows.unpersist()
    return found


def failing_first(rows: DataFrame) -> int:
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        write(rows.select(F.udf(lambda id: 1 // 0, "long")("id")))
    return rows.count()


def described(rows: DataFrame) -> int:
    rows.sparkSession.sparkContext.setJobDescription("my own words")
    return sum(row["count"] for row in rows.groupBy("key").count().limit(100).collect())


def in_a_thread(rows: DataFrame) -> None:
    thread = threading.Thread(target=rows.count)
    thread.start()
    thread.join()


Sink = Callable[[DataFrame], Any]
EXACT: dict[str, Sink] = {
    "one action": lambda rows: len(rows.collect()),
    "two": twice,
    "isEmpty first": empty_first,
    "isEmpty last": empty_last,
    "persisted": persisted,
    "failing first": failing_first,
    "limit of an aggregate, described": described,
    "sorted limit": lambda rows: len(rows.orderBy("value").limit(ROWS).collect()),
}
"""Each returns how many rows it got."""
ESTIMATES: dict[str, Sink] = {
    "limit": lambda rows: rows.limit(10).collect(),
    "nothing": lambda rows: None,
    "persisted after failing": persisted_after_failing,
    "rdd": lambda rows: [rows.rdd.count(), rows.rdd.count()],
    "union with itself": lambda rows: rows.union(rows).count(),
    "a thread of its own": in_a_thread,
}


def ran(source, numbered, tmp_path: Path, sink: Sink, **settings: Any) -> tuple[Any, dict[str, Any], jt.Status]:
    """What the sink returned, what the ledger says of its batch, and the status at the end."""
    got = []
    source.land(numbered(0, ROWS))
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(0.4), **settings)
    rows = shedder.guard(source.stream(), row_id="id")
    query = shedder.start(rows.writeStream.foreachBatch(lambda batch, number: got.append(sink(batch))))
    query.processAllAvailable()
    query.stop()
    assert shedder.await_books()
    (record,) = shedder.ledger.records("batch")
    return got[0], record["points"]["rows"], shedder.status()


@FILTERS_DESCRIBED
@pytest.mark.parametrize("sink", EXACT)
def test_rows_are_counted_once_where_that_is_certain(source, numbered, tmp_path: Path, sink: str) -> None:
    kept, point, status = ran(source, numbered, tmp_path, EXACT[sink], accounting="metrics")
    assert point == {"seen": ROWS, "kept": kept, "dropped": ROWS - kept, "exact": True}
    assert 0 < kept < ROWS
    assert (status.faults, status.estimated_batches) == ({}, 0)


@FILTERS_DESCRIBED
@pytest.mark.parametrize("sink", ESTIMATES)
def test_counts_are_called_estimates_where_it_is_not(source, numbered, tmp_path: Path, sink: str) -> None:
    _, point, status = ran(source, numbered, tmp_path, ESTIMATES[sink], accounting="metrics")
    assert (point["exact"], status.faults, status.estimated_batches) == (False, {"estimate": 1}, 1)


@pytest.mark.parametrize("sink", ["limit", "nothing", "isEmpty last"])
def test_observed_counts_are_estimates_too(source, numbered, tmp_path: Path, sink: str) -> None:
    _, point, status = ran(source, numbered, tmp_path, (EXACT | ESTIMATES)[sink], accounting="observe")
    assert (point["exact"], status.faults) == (False, {"estimate": 1})


@FILTERS_DESCRIBED
def test_a_limit_in_the_query_itself_makes_counts_estimates(source, numbered, tmp_path: Path) -> None:
    source.land(numbered(0, ROWS))
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", accounting="metrics")
    rows = shedder.guard(source.stream(), row_id="id").limit(5)
    with shedder:
        shedder.start(rows.writeStream.format("noop")).processAllAvailable()
    (record,) = shedder.ledger.records("batch")
    assert not record["points"]["rows"]["exact"]


@FILTERS_DESCRIBED
def test_a_batch_without_rows_is_exact(source, numbered, tmp_path: Path) -> None:
    """A watermark that moves on makes Spark run a batch of no rows."""
    source.land(numbered(0, ROWS))
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(0.4), accounting="metrics")
    rows = shedder.guard(source.stream().withWatermark("at", "1 second"), row_id="id")
    windows = rows.groupBy("at").count()
    with shedder:
        query = shedder.start(windows.writeStream.foreachBatch(lambda batch, number: write(batch)).outputMode("append"))
        query.processAllAvailable()
    found = [record["points"]["rows"] for record in shedder.ledger.records("batch")]
    assert [(point["seen"], point["exact"]) for point in found] == [(ROWS, True), (0, True)]


@FILTERS_DESCRIBED
def test_rows_of_guards_in_a_row_count_once_at_the_entrance(source, numbered, tmp_path: Path) -> None:
    source.land(numbered(0, ROWS))
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(0.4), accounting="metrics")
    first = shedder.guard(source.stream(), row_id="id", name="first")
    second = shedder.guard(first, row_id="id", name="second")
    with shedder:
        shedder.start(second.writeStream.format("noop")).processAllAvailable()
    status = shedder.status()
    assert status.rows_seen == shedder.ledger.totals().seen == ROWS
    (seen, kept), (seen_next, kept_next) = status.rows_by_point["first"], status.rows_by_point["second"]
    assert (seen, status.rows_kept, seen_next) == (ROWS, kept, kept)
    assert PointStats(seen_next, kept_next).dropped > 0
    assert {name: (point.seen, point.kept) for name, point in shedder.ledger.totals_by_point().items()} == {
        "first": (seen, kept),
        "second": (seen_next, kept_next),
    }


def test_observed_counts_behind_a_limit_are_estimates(source, numbered, tmp_path: Path) -> None:
    """A predicate before the guard leaves as many rows unseen as a limit may, and is no reason for doubt."""
    source.land(numbered(0, ROWS))
    exact = []
    for name, query in (("limit", lambda rows: rows.limit(5)), ("where", lambda rows: rows.where("value > 1"))):
        shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / name, accounting="observe")
        rows = query(shedder.guard(source.stream().where("id >= 500"), row_id="id"))
        with shedder:
            shedder.start(rows.writeStream.format("noop")).processAllAvailable()
        (record,) = shedder.ledger.records("batch")
        exact.append(record["points"]["rows"]["exact"])
    assert exact == [False, True]
