"""The bounds of a query's answers on record: those given, and in a dry run those that would follow."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
import jettison.functions as jf
from jettison.errors import InvalidInput, InvalidSetting
from jettison.lab.bench.streams import KeepShare
from told_stream import await_plan, until

SHARE = 0.3


def answers(rows: DataFrame) -> DataFrame:
    """With a plain aggregate and the weights themselves beside the answers."""
    return rows.groupBy("key").agg(
        jt.avg("value").alias("value"),
        jt.sum("value").alias("total"),
        jt.count().alias("rows"),
        jt.percentile("value", 0.5).alias("median"),
        F.count("*").alias("plain"),
        F.sum("jt_weight").alias("weights"),
    )


def run(
    source,
    folder: Path,
    share: float = SHARE,
    *,
    dry_run: bool = False,
    watch: bool = True,
    query: Callable[[DataFrame], DataFrame] = answers,
):
    """One batch; its answers by key, and its record."""
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "c", policy=KeepShare(share), dry_run=dry_run)
    rows = shedder.guard(source.stream(), row_id="id")
    made = shedder.watch(rows, query) if watch else query(rows)
    name = f"answers_{folder.name}"
    query = shedder.start(made.writeStream.format("memory").queryName(name).outputMode("complete"))
    query.processAllAvailable()
    query.stop()
    found = {row["key"]: row for row in made.sparkSession.table(name).collect()}
    with_rows = [record for record in shedder.ledger.records("batch") if record.get("answers")]
    return found, with_rows[-1]["answers"] if with_rows else None, shedder


@pytest.fixture
def landed(source, numbered):
    source.land(numbered(0, 3500))
    return source


def half_widths(found, name):
    bounded = [row[name] for row in found.values() if row[name]["status"] == "bounded"]
    return sorted((one["upper"] - one["lower"]) / 2 / one["value"] for one in bounded)


@pytest.mark.usefixtures("interpreted", "one_partition")
def test_a_dry_run_foresees_the_bounds_that_follow_and_answers_as_if_nothing_were(landed, tmp_path: Path) -> None:
    dry, foreseen, shedder = run(landed, tmp_path / "dry", dry_run=True)
    shed, given, _ = run(landed, tmp_path / "shed")
    for name in ("value", "total", "rows", "median"):
        for row in dry.values():
            answer = row[name]
            assert (answer["status"], answer["lower"], answer["upper"]) == ("exact", answer["value"], answer["value"])
            assert answer.asDict().keys() == {"value", "lower", "upper", "kept", "status"}
        widths = half_widths(shed, name)
        assert given[name]["median"] == pytest.approx(statistics.median(widths), rel=0.02)
        assert (given[name]["answers"], given[name]["bounded"], given[name]["foreseen"]) == (7, 7, False)
        assert (foreseen[name]["answers"], foreseen[name]["bounded"], foreseen[name]["foreseen"]) == (7, 7, True)
        assert foreseen[name]["median"] == pytest.approx(given[name]["median"], rel=0.2)
        assert 0.0 < foreseen[name]["median_error"] < foreseen[name]["p95"]
        assert given[name]["median_error"] is None, "the truth is not known there"
    assert all(row["weights"] == pytest.approx(500, rel=1e-5) and row["plain"] == 500 for row in dry.values())
    assert sum(row["rows"]["value"] for row in dry.values()) == 3500
    assert shedder.status().bounds["value"].median == foreseen["value"]["median"]
    assert "value would be" in str(shedder.status())


@pytest.mark.long
@pytest.mark.usefixtures("interpreted", "one_partition")
def test_where_nothing_would_be_dropped_no_bound_is_foreseen(landed, tmp_path: Path) -> None:
    _, foreseen, _ = run(landed, tmp_path / "whole", 1.0, dry_run=True)
    assert (foreseen["rows"]["answers"], foreseen["rows"]["bounded"], foreseen["rows"]["median"]) == (7, 0, None)


@pytest.mark.usefixtures("interpreted", "one_partition")
def test_a_dry_run_that_nobody_watches_has_nothing_of_it_in_its_plan(landed, tmp_path: Path) -> None:
    dry, foreseen, _ = run(landed, tmp_path / "alone", dry_run=True, watch=False)
    assert foreseen is None
    assert all(row["weights"] == 500.0 for row in dry.values())


@pytest.mark.long
@pytest.mark.usefixtures("interpreted", "one_partition")
@pytest.mark.parametrize("dry_run", [False, True])
def test_values_that_are_no_numbers_keep_no_batch_off_the_record(landed, tmp_path: Path, dry_run: bool) -> None:
    def odd(rows: DataFrame) -> DataFrame:
        value, key = F.col("value"), F.col("key")
        some = F.when(key == "k0", math.nan).when(key == "k1", math.inf).when(key == "k2", 1e200 * value)
        columns = {"some": some.otherwise(value), "all": F.lit(math.nan), "endless": F.lit(-math.inf)}
        return rows.groupBy("key").agg(*[jt.avg(column).alias(name) for name, column in columns.items()])

    _, said, shedder = run(landed, tmp_path / "odd", dry_run=dry_run, query=odd)
    assert not shedder.status().faults
    assert said["some"]["answers"] == 7
    assert 0.0 < said["some"]["median"] < said["some"]["p95"] < 1.0, "of the four groups that have bounds"
    assert [said[name][part] for name in ("all", "endless") for part in ("median", "p95", "p95_error")] == [None] * 6


@pytest.mark.long
@pytest.mark.usefixtures("interpreted", "one_partition")
def test_the_marks_of_a_dry_run_are_no_weights(landed, tmp_path: Path) -> None:
    """Neither for what borrows nor for the totals of joins: to them all rows weigh 1."""

    def evidence(rows: DataFrame) -> DataFrame:
        return rows.groupBy("key").agg(jt.avg("value").alias("value"), jf.evidence("value").alias("seen"))

    def totals(rows: DataFrame) -> DataFrame:
        both = {f"{side}_weight": F.col("jt_weight") for side in ("left", "right")}
        pairs = rows.withColumns(both | {f"{side}_whole": F.lit(False) for side in ("left", "right")})
        return pairs.groupBy("key").agg(jt.avg("value").alias("value"), F.sum(jf.pair_weight()).alias("pairs"))

    found, _, _ = run(landed, tmp_path / "evidence", dry_run=True, query=evidence)
    assert {(row["seen"]["effective_rows"], row["seen"]["rows"], row["seen"]["kept"]) for row in found.values()} == {
        (None, 500.0, 500)
    }
    pairs, _, _ = run(landed, tmp_path / "totals", dry_run=True, query=totals)
    assert {row["pairs"] for row in pairs.values()} == {500.0}


@pytest.mark.long
@pytest.mark.usefixtures("interpreted", "one_partition")
@pytest.mark.parametrize("dry_run", [False, True])
def test_rows_that_are_multiplied_behind_the_guard_are_never_called_bounded(
    source, numbered, tmp_path: Path, dry_run: bool
) -> None:
    """From the batch on before which the query's plan was read; in the one before, nothing can have been dropped."""

    def exploded(rows: DataFrame) -> DataFrame:
        twice = rows.withColumn("copy", F.explode(F.array(F.lit(0), F.lit(1))))
        return twice.groupBy("key").agg(jt.avg("value").alias("value"), jt.count().alias("rows"))

    policy = KeepShare(1.0)
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "c", policy=policy, dry_run=dry_run)
    made = shedder.watch(shedder.guard(source.stream(), row_id="id"), exploded)
    query = shedder.start(made.writeStream.format("memory").queryName("exploded").outputMode("complete"))
    pilot = shedder._run.pilot
    with shedder:
        source.land(numbered(0, 700))
        query.processAllAvailable()
        until(lambda: pilot.tally.batches)
        policy.keep_fraction = SHARE
        pilot.idle(time.time())
        until(lambda: pilot.plan.points["rows"].keep_fraction == SHARE)
        await_plan(pilot)
        source.land(numbered(700, 4200))
        query.processAllAvailable()
        rows = made.sparkSession.table("exploded").collect()
        query.stop()
        assert shedder.close()
    said = shedder.status().bounds["value"]
    assert (said.bounded, said.dependent, said.median) == (0, 7, None)
    assert "dependent rows" in str(shedder.status())
    for row in rows:
        assert [row[name]["status"] for name in ("value", "rows")] == ["exact" if dry_run else "dependent rows"] * 2


@pytest.mark.usefixtures("interpreted", "one_partition")
@pytest.mark.parametrize("ended", [False, True])
def test_answers_whose_plan_nobody_reads_are_never_called_bounded(
    spark: SparkSession, landed, tmp_path: Path, ended: bool
) -> None:
    """Inside of `foreachBatch`, and over stored rows while the guarded query runs and after it."""
    statuses: list[str] = []

    def count(rows: DataFrame) -> list[str]:
        return [row["n"]["status"] for row in rows.groupBy("key").agg(jt.count().alias("n")).collect()]

    def answered(batch: DataFrame, number: int) -> None:
        stored = batch.withColumn("copy", F.explode(F.array(F.lit(0), F.lit(1))))
        statuses.extend(count(stored))
        batch.write.mode("append").parquet(str(tmp_path / "stored"))

    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "c", policy=KeepShare(SHARE))
    with shedder:
        query = shedder.start(shedder.guard(landed.stream(), row_id="id").writeStream.foreachBatch(answered))
        query.processAllAvailable()
        if ended:
            query.stop()
            assert shedder.close()
        statuses += count(spark.read.parquet(str(tmp_path / "stored")))
    assert statuses == ["dependent rows"] * 14


def test_what_cannot_be_watched_is_refused(source, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", dry_run=True)
    rows = shedder.guard(source.stream(), row_id="id")
    with pytest.raises(InvalidInput, match="needs the guarded rows themselves"):
        shedder.watch(rows.where("value > 0"), answers)
    other = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "d")
    with pytest.raises(InvalidInput, match="needs answers of"):
        other.watch(other.guard(source.stream(), row_id="id"), lambda rows: rows.groupBy("key").count())
    with pytest.raises(InvalidSetting, match="called once"):
        other.watch(rows, answers)
