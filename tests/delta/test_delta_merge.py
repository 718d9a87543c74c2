"""Exact answers take the place of approximate ones in the Delta table to which the live query writes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core import storage
from jettison.errors import InvalidInput, InvalidSetting, Unsupported
from jettison.lab.bench.maven_jars import DELTA, jars
from jettison.lab.bench.streams import KeepShare
from jettison.runtime.owner import Owner
from jettison.settle.audited import audit
from jettison.settle.settled_record import load, save
from jettison.settle.settlement import Settlement, reconcile
from jettison.spark.session import LOCAL

pytestmark = [pytest.mark.spark]

SCHEMA = "id long, key string, at timestamp"
FILES, ROWS_PER_FILE = 6, 40


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .config(map=dict(LOCAL))
        .config("spark.jars", ",".join(map(str, jars(DELTA))))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def answers(rows: DataFrame) -> DataFrame:
    by_window = rows.withWatermark("at", "1 second").groupBy(F.window("at", "10 seconds"), "key")
    return by_window.agg(jt.count(window="window").alias("n"), F.max("id").alias("newest"))


def source(reader: Any) -> Any:
    return reader.format("json").schema(SCHEMA).option("maxFilesPerTrigger", 1)


def land(folder: Path, files: range) -> None:
    """A row a second; files are taken in the order of their age."""
    (folder / "in").mkdir(exist_ok=True)
    for file in files:
        rows = range(file * ROWS_PER_FILE, (file + 1) * ROWS_PER_FILE)
        at = [f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}.25Z" for second in rows]
        lines = [json.dumps({"id": row, "key": "ab"[row % 2], "at": at}) for row, at in zip(rows, at, strict=True)]
        path = folder / "in" / f"{file}.json"
        path.write_text("\n".join(lines))
        os.utime(path, (file, file))


class Shares(KeepShare):
    """Keeps a part of the rows in the middle of the stream."""

    def plan(self, stats: Any, budget: Any) -> Any:
        self.keep_fraction = 0.4 if 0 <= stats.batch_id < 3 else 1.0
        return super().plan(stats, budget)


def run_live(spark: SparkSession, folder: Path, table: str) -> None:
    shedder = jt.Shedder(latency="1 hour", checkpoint=folder / "checkpoint", policy=Shares(1.0))
    kept = shedder.guard(source(spark.readStream).load(str(folder / "in")), row_id="id")
    writer = answers(kept).writeStream.format("delta").option("path", table)
    shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    assert shedder.await_books()


def found(frame: DataFrame) -> dict[Any, tuple[int, int]]:
    rows = frame.collect()
    told = {(row["window"]["start"], row["key"]): (row["n"]["value"], row["newest"]) for row in rows}
    assert len(told) == len(rows), "each answer once"
    return told


def test_exact_answers_take_the_place_of_approximate_ones(spark: SparkSession, tmp_path: Path) -> None:
    table, to = str(tmp_path / "table"), tmp_path / "settled"

    def given() -> DataFrame:
        return spark.read.format("delta").load(table)

    def versions() -> int:
        return spark.sql(f"describe history delta.`{table}`").count()

    def settle(**options: Any) -> Settlement:
        return reconcile(spark, tmp_path / "checkpoint", answers, to, sources=source, merge=table, **options)

    land(tmp_path, range(FILES))
    run_live(spark, tmp_path, table)
    before, commits = found(given()), versions()
    assert given().where("n.status <> 'exact'").count() > 0

    home = storage.home(tmp_path / "checkpoint")
    owner = Owner(home)
    owner.claim(lambda _: None)
    try:
        with pytest.raises(Unsupported, match="would fail when the column is added"):
            settle()
    finally:
        owner.release()

    done = reconcile(spark, tmp_path / "checkpoint", answers, to, sources=source, part_rows=ROWS_PER_FILE)
    assert (found(given()), versions()) == (before, commits)
    by_policy, *_ = audit(spark, tmp_path / "checkpoint", table, keys=["key"])
    assert by_policy.compared > 0
    assert settle().settled == 0
    truth = found(answers(source(spark.read).load(str(tmp_path / "in")).withColumn("jt_weight", F.lit(1.0))))
    exact = given().where("settled_at is not null")
    assert done.settled == len(load(home).settled) > 3
    assert len({key for key, _ in found(exact)}) == done.settled
    assert exact.where("n.status <> 'exact' or n.lower <> n.value or n.upper <> n.value").count() == 0
    rest = found(given().where("settled_at is null"))
    assert rest == {key: before[key] for key in rest}, "what was not settled is as it was"
    assert found(given()) == {key: truth[key] for key in found(given())}
    assert set(before) <= set(found(given())), "and groups of which no row was kept are there now"

    commits += len(load(home).parts)
    assert versions() == commits
    assert settle().settled == 0
    assert versions() == commits, "nothing to do, and nothing done"

    # A run that ended between merging answers and saying so.
    record = load(home)
    parts = tuple(msgspec.structs.replace(part, merged="") for part in record.parts)
    save(home, record.saying(parts=parts))
    whole = found(given())
    settle()
    assert (found(given()), versions()) == (whole, commits + len(parts))


def test_what_is_no_table_of_these_answers_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    land(tmp_path, range(2))
    run_live(spark, tmp_path, table)
    other = str(tmp_path / "other")
    with pytest.raises(InvalidInput, match="must be a Delta table"):
        reconcile(spark, tmp_path / "checkpoint", answers, tmp_path / "to", sources=source, merge=other)
    spark.read.format("delta").load(table).withColumn("team", F.lit("a")).write.format("delta").save(other)
    with pytest.raises(InvalidSetting, match="must have the answers' columns"):
        reconcile(spark, tmp_path / "checkpoint", answers, tmp_path / "to", sources=source, merge=other)


def test_a_live_query_goes_on_writing_to_a_merged_table(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    land(tmp_path, range(FILES))
    run_live(spark, tmp_path, table)
    reconcile(spark, tmp_path / "checkpoint", answers, tmp_path / "to", sources=source, merge=table)
    rows = spark.read.format("delta").load(table).count()
    land(tmp_path, range(FILES, FILES + 2))
    run_live(spark, tmp_path, table)
    now = spark.read.format("delta").load(table)
    assert now.count() > rows
    assert now.where("settled_at is not null").count() > 0
