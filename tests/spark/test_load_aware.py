"""`load_aware` on live queries: costs learned in executors, dear rows dropped first, costs kept over a restart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.storage import home
from jettison.costs.cost_book import FILE, costs_folder
from jettison.errors import InvalidInput, InvalidSetting, MissingColumn
from jettison.runtime.companion import reports
from jettison.spark.load_aware import LoadAware

OUT = "id long, key string, started double"


def busy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sleeps 20 ms for a dear row and 1 ms for another, and stamps when it got each."""
    for batch in batches:
        started = []
        for key in batch["key"].to_pylist():
            started.append(time.time())
            time.sleep(0.020 if key == "dear" else 0.001)
        yield pa.record_batch({"id": batch["id"], "key": batch["key"], "started": pa.array(started)})


def rows(start: int, stop: int, dear_every: int = 10) -> list[dict[str, object]]:
    at = datetime.now(UTC).isoformat()
    return [
        {"id": i, "key": "dear" if i % dear_every == 0 else "cheap", "value": 1.0, "vip": False, "at": at}
        for i in range(start, stop)
    ]


def run(wrapped: LoadAware, stream: DataFrame, folder: Path) -> DataFrame:
    query = (
        stream.mapInArrow(wrapped, OUT)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    wrapped.close()
    return stream.sparkSession.read.parquet(str(folder / "out"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "checkpoint").mkdir()
    return tmp_path


def wrap(folder: Path, **options: object) -> LoadAware:
    return jt.load_aware(busy, key="key", checkpoint=folder / "checkpoint", **options)  # type: ignore[arg-type]


def test_with_time_to_spare_every_row_passes_and_costs_are_learned(spark: SparkSession, source, folder: Path) -> None:
    for number in range(3):
        source.land(rows(100 * number, 100 * (number + 1)))
    wrapped = wrap(folder, max_wait="1 hour", arrival="at")
    result = run(wrapped, source.stream(), folder)
    status = wrapped.status()
    assert sorted(row.id for row in result.collect()) == list(range(300))
    assert (status.rows_seen, status.rows_kept, status.rows_over) == (300, 300, 0)
    mean_s = {one.key: one.mean_s for one in status.costliest}
    assert set(mean_s) == {"dear", "cheap"}
    # A busy machine makes sleeps longer, never shorter.
    assert mean_s["dear"] >= 0.019
    assert mean_s["cheap"] < mean_s["dear"]
    (beside,) = reports(home(folder / "checkpoint"))
    assert {row[0] for row in beside.rows} == {"dear", "cheap"}
    assert (beside.name, beside.status) == ("busy", str(status))
    assert str(status).startswith("ended, 300 of 300 rows kept")


def test_an_overload_is_shed_by_cost_and_the_bound_holds(spark: SparkSession, source, folder: Path) -> None:
    source.land(rows(0, 100))
    teacher = wrap(folder, max_wait="1 hour", arrival="at")
    run(teacher, source.stream(), folder)
    source.land(rows(1000, 6000))  # 15 s of work
    wrapped = wrap(folder, max_wait="2 seconds")
    result = run(wrapped, source.stream(), folder).where("id >= 1000")
    status = wrapped.status()
    kept = {row.key: row["count"] for row in result.groupBy("key").count().collect()}
    assert kept["cheap"] > 5 * kept.get("dear", 0)
    assert status.rows_kept == sum(kept.values()) < 5000
    assert status.mean_wait_s <= 2.0
    # What the function itself saw: first to last row of the partition.
    seen = result.selectExpr("max(started) - min(started) as span").first()
    assert seen is not None
    assert seen.span <= 2.0 * 1.2


def test_a_shedder_takes_one_function_and_none_in_a_dry_run(spark: SparkSession, folder: Path) -> None:
    shedder = jt.Shedder(latency="1 hour", checkpoint=folder / "checkpoint")
    jt.load_aware(busy, key="key", max_wait="0.1 seconds", shedder=shedder).close()
    with pytest.raises(InvalidSetting, match="one companion a query, got 'busy' as a second one"):
        jt.load_aware(busy, key="key", max_wait="0.1 seconds", shedder=shedder)
    dry = jt.Shedder(latency="1 hour", checkpoint=folder / "dry", dry_run=True)
    with pytest.raises(InvalidSetting, match="got dry_run=True"):
        jt.load_aware(busy, key="key", max_wait="0.1 seconds", shedder=dry)


def test_with_a_guard_around_it_the_query_shows_the_function_and_one_ledger_holds_both(
    spark: SparkSession, source, folder: Path
) -> None:
    for number in range(3):
        source.land(rows(100 * number, 100 * (number + 1)))
    shedder = jt.Shedder(latency="1 hour", checkpoint=folder / "checkpoint")
    guarded = shedder.guard(source.stream(), row_id="id", arrival="at")
    scored = jt.load_aware(busy, key="key", max_wait="0.1 seconds", shedder=shedder)
    writer = guarded.mapInArrow(scored, OUT).writeStream.format("noop").trigger(availableNow=True)
    shedder.start(writer).awaitTermination()
    assert shedder.await_books()
    status = shedder.status()
    assert status.companions["busy"] == scored.status()
    assert {one.key for one in status.companions["busy"].costliest} >= {"dear"}
    assert "costliest: " in str(status)
    assert "busy: ended, " in str(status)
    records = list(shedder.ledger.records("function"))
    assert [one["batch_id"] for one in records] == [0, 1, 2]
    # Each batch is some 0.3 s of work for 0.1 s: the guard lets all pass, and the function is spared its dear rows.
    assert shedder.ledger.totals().dropped == 0
    totals = shedder.ledger.totals("function")
    assert (totals.seen, totals.kept) == (300, status.companions["busy"].rows_kept)
    for one in records:
        assert sum(one["dropped_keys"].values()) == one["points"]["busy"]["dropped"] > 0
        assert "rows were dropped so that the others start within 0.1 s" in one["cause"]


def test_bounds_that_would_make_guard_and_function_fight_are_refused(spark: SparkSession, folder: Path) -> None:
    shedder = jt.Shedder(latency="2 seconds", checkpoint=folder / "checkpoint")
    with pytest.raises(InvalidSetting, match=r"at least 2.5 times the function's `max_wait`, 2.5 s, got 2 s"):
        jt.load_aware(busy, key="key", max_wait="1 second", shedder=shedder)
    with pytest.raises(InvalidSetting, match="pass `shedder` alone"):
        jt.load_aware(busy, key="key", max_wait="0.1 seconds", shedder=shedder, checkpoint=folder)


def test_costs_survive_a_restart_and_damage_is_no_disaster(spark: SparkSession, source, folder: Path) -> None:
    source.land(rows(0, 200))
    first = wrap(folder, max_wait="1 hour")
    run(first, source.stream(), folder)
    second = wrap(folder, max_wait="1 hour")
    second.close()
    assert second._book.version == first._book.version > 0
    assert second._book.costs.rows_learned == first._book.costs.rows_learned == 200
    assert second.status().costliest == first.status().costliest
    costs_folder(folder / "checkpoint").replace(FILE, b"rubbish")
    source.land(rows(200, 300))
    third = wrap(folder, max_wait="1 hour")
    run(third, source.stream(), folder)
    assert third.status().rows_kept == 100
    assert third._book.costs.rows_learned == 100


def test_a_missing_column_is_named(spark: SparkSession, source, folder: Path) -> None:
    source.land(rows(0, 10))
    wrapped = jt.load_aware(busy, key="colour", max_wait="1 second", checkpoint=folder / "checkpoint")
    with pytest.raises(StreamingQueryException, match="colour"):
        run(wrapped, source.stream(), folder)
    wrapped.close()


def test_columns_are_looked_at_before_the_query_starts(spark: SparkSession, source, folder: Path) -> None:
    stream = source.stream().withColumn("both", F.struct("key", "vip"))
    for options, match in (
        ({"key": "kex"}, "did you mean 'key'"),
        ({"key": "key", "arrival": "id"}, "`arrival` must name a timestamp column"),
        ({"key": "key", "value": "key"}, "`value` must name a column of numbers"),
        ({"key": "key", "value": jt.ValueUtility([(0, 1, 1.0)], column="fare")}, "'fare' for load_aware"),
        ({"key": "both"}, "`key` must name a column of single values, got 'both' of type struct"),
    ):
        wrapped = jt.load_aware(busy, max_wait="1 second", checkpoint=folder, **options)  # type: ignore[arg-type]
        with pytest.raises((InvalidSetting, MissingColumn), match=match):
            wrapped.map(stream, OUT)
        wrapped.close()
    wrapped = jt.load_aware(busy, key="key", arrival="at", max_wait="1 second", checkpoint=folder)
    assert wrapped.map(stream, OUT).columns == ["id", "key", "started"]
    wrapped.close()


def test_columns_may_be_expressions_which_the_function_does_not_see(spark: SparkSession, source, folder: Path) -> None:
    source.land(rows(0, 40))
    got = folder / "columns"

    def named(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            got.write_text(",".join(batch.schema.names))
            yield pa.record_batch({"id": batch["id"]})

    options = {"arrival": F.to_timestamp("at"), "value": F.col("value") * 2, "checkpoint": folder / "checkpoint"}
    wrapped = jt.load_aware(named, key=F.upper("key"), max_wait="1 hour", **options)  # type: ignore[arg-type]
    stream = source.stream()
    writer = wrapped.map(stream, "id long").writeStream.format("noop").trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    wrapped.close()
    assert got.read_text().split(",") == stream.columns
    assert {one.key for one in wrapped.status().costliest} == {"DEAR", "CHEAP"}
    with pytest.raises(StreamingQueryException, match=r"got 'jt_key' .* by `LoadAware.map`"):
        run(wrapped, source.stream(), folder / "other")


def test_a_second_function_on_a_checkpoint_is_refused_while_the_first_is_open(
    spark: SparkSession, folder: Path
) -> None:
    first = wrap(folder, max_wait="1 second")
    with pytest.raises(InvalidSetting, match=r"one open function a checkpoint, 'busy' .* call `close\(\)`"):
        wrap(folder, max_wait="1 second")
    first.close()
    second = wrap(folder, max_wait="1 second")
    first.close()  # closing twice does not open the way for a third
    with pytest.raises(InvalidSetting, match="one open function"):
        wrap(folder, max_wait="1 second")
    second.close()


def test_a_folder_that_cannot_be_written_is_warned_of_once(
    spark: SparkSession, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrapped = wrap(folder, max_wait="1 second")
    wrapped._accounts = None  # type: ignore[assignment] # fails like a full disk, each time
    for _ in range(3):
        wrapped._lay_down()
    wrapped.close()
    assert sum("could not be written" in one.message for one in caplog.records) == 1


@pytest.mark.parametrize("max_wait", [0, "soon", "32 parsecs", None])
def test_a_bound_that_is_no_duration_is_refused(spark: SparkSession, max_wait: object) -> None:
    with pytest.raises(
        InvalidSetting, match=f"`max_wait` must be a positive duration, got {max_wait!r}. Hint: write '3 s"
    ):
        jt.load_aware(busy, key="key", max_wait=max_wait)  # type: ignore[arg-type]


def test_what_is_no_function_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="must be a function"):
        jt.load_aware(3, key="key", max_wait="1 second")  # type: ignore[arg-type]


@pytest.mark.parametrize("sketch", [2048, (2, 2048, 1), (2, 1.5)])
def test_a_sketch_without_a_shape_is_refused(spark: SparkSession, sketch: object) -> None:
    with pytest.raises(InvalidSetting, match=r"two whole numbers, rows and columns, got .* for load_aware"):
        jt.load_aware(busy, key="key", max_wait="1 second", sketch=sketch)  # type: ignore[arg-type]
