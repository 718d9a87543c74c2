"""Drops before a real stream-stream join: pairs carry the right weights, and totals come back within their bounds."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget
from jettison.errors import InvalidSetting
from jettison.policies.groups.join_drop import JoinDrop
from jettison.spark.join_totals import join_side, join_totals
from spark_since import GROUPS_COUNTED

pytestmark = [pytest.mark.spark, GROUPS_COUNTED]

START = 1_767_225_600
BATCHES = 6
LEFT_VALUE_RIGHT = (("left", "ad"), ("left", "value"), ("right", "ad"))


class Third(JoinDrop):
    """A third of the rows, whatever the controller says."""

    def plan(self, stats, budget) -> DropPlan:
        return JoinDrop.plan(self, stats, Budget(0.3, 0.3, 3600.0, "a third"))


def land(folder: Path, side: int, rows: int = 6000, batches: int = BATCHES, *, closed: bool = False) -> pa.Table:
    """A minute of rows on keys by Zipf's law, a file for each batch, and then rows much later, if `closed`."""
    folder.mkdir()
    random = np.random.default_rng(side)
    key = np.minimum(random.zipf(1.4, rows), 3000)
    value = np.round(random.gamma(2.0, 5.0, rows), 2)
    us = np.sort(random.integers(0, 60_000_000, rows)) + START * 1_000_000
    table = pa.table({"id": np.arange(rows), "us": us, "ad": key, "value": value})
    batch = (us - START * 1_000_000) * batches // 60_000_000
    for number in range(batches):
        _write(folder, number, table.filter(pa.array(batch == number)))
    if closed:
        some = np.arange(60)  # so many, on keys of their own, that one of them is kept
        late = np.full(60, (START + 600) * 1_000_000)
        _write(
            folder, batches, pa.table({"id": rows + some, "us": late, "ad": -1 - side - 10 * some, "value": 0.0 * some})
        )
    return table


def _write(folder: Path, number: int, rows: pa.Table) -> None:
    times = rows["us"].cast(pa.timestamp("us", tz="UTC"))
    path = folder / f"{number}.parquet"
    pq.write_table(rows.drop(["us"]).append_column("at", times), path)
    os.utime(path, (START + number, START + number))


@pytest.mark.long
def test_count_and_sum_of_a_join_come_back_within_their_bounds(spark: SparkSession, tmp_path: Path) -> None:
    sides = {side: land(tmp_path / side, number) for number, side in enumerate(("left", "right"))}
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=Third("ad", "at", "1 minute"))

    def guarded(side: str) -> DataFrame:
        reader = spark.readStream.schema("id BIGINT, at TIMESTAMP, ad BIGINT, value DOUBLE")
        rows = reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / side))
        kept = join_side(shedder.guard(rows, row_id="id", name=side), side)
        return kept.withColumnRenamed("id", f"{side}_id").withColumnRenamed("value", f"{side}_value").drop("at")

    pairs = guarded("left").join(guarded("right"), "ad")
    writer = pairs.writeStream.format("parquet").option("path", str(tmp_path / "pairs")).trigger(availableNow=True)
    query = shedder.start(writer)
    query.awaitTermination()
    shedder.await_books()
    assert shedder.status().faults == {}
    totals = shedder.ledger.totals()
    assert totals.seen == 12_000
    assert totals.kept < 6000
    plans = list(shedder.ledger.records("plan"))
    assert any(group for plan in plans for group in plan["points"]["left"]["groups"]), "no key was ever heavy"
    left, value, right = (sides[side][column].to_numpy() for side, column in LEFT_VALUE_RIGHT)
    matches = np.bincount(right, minlength=left.max() + 1)[left]
    kept = spark.read.parquet(str(tmp_path / "pairs")).withColumn("minute", F.lit(0))
    assert kept.where("left_whole").count() > 0
    assert kept.where("not left_whole and left_weight > 1").count() > 0
    for column, truth in ((None, matches.sum()), ("left_value", (value * matches).sum())):
        found = join_totals(
            kept, ["minute"], "ad", left_id="left_id", right_id="right_id", value=column, confidence=0.9999
        ).first()
        assert found is not None
        assert found["lower"] <= truth <= found["upper"]
        assert found["upper"] - found["lower"] < truth
        assert kept.count() < 0.5 * matches.sum()


def one_key(spark: SparkSession, left: int, right: int, weight: float) -> DataFrame:
    """All pairs of some rows that share a key, each kept row standing for as many."""
    rows = spark.range(left).select(
        F.col("id").alias("left_id"), F.lit("90071992547409.93").cast("decimal(16,2)").alias("price")
    )
    pairs = rows.crossJoin(spark.range(right).select(F.col("id").alias("right_id")))
    added = {"left_weight": F.lit(weight), "right_weight": F.lit(1.0), "minute": F.lit(0), "ad": F.lit(7)}
    return pairs.withColumns(added | {f"{side}_whole": F.lit(False) for side in ("left", "right")})


@pytest.mark.usefixtures("vouched_for")
@pytest.mark.parametrize("value", [None, "price"])
def test_totals_have_the_shape_of_all_answers(spark, value):
    def totals(left: int, weight: float) -> Row:
        pairs = one_key(spark, left, 40, weight)
        found = join_totals(pairs, ["minute"], F.col("ad"), left_id=F.col("left_id"), right_id="right_id", value=value)
        own = pairs.groupBy("minute").agg((F.count("*") if value is None else F.sum(value)).alias("own"))
        assert found.columns == ["minute", "value", "lower", "upper", "kept", "status"]
        assert found.schema["value"].dataType == own.schema["own"].dataType
        return found.join(own, "minute").first()

    whole, few, many = totals(40, 1.0), totals(10, 2.0), totals(40, 2.0)
    assert (whole["value"], whole["kept"], whole["status"]) == (whole["own"], 1600, "exact")
    assert whole["lower"] == whole["upper"] == float(whole["value"])
    assert (few["status"], many["status"]) == ("few rows", "bounded")
    assert few["lower"] < few["value"] < few["upper"]


@pytest.mark.parametrize("by", [["minute"], "minute"])
def test_totals_that_nobody_vouches_for_have_no_bounds(spark, by):
    found = join_totals(one_key(spark, 40, 40, 1.0), by, "ad", left_id="left_id", right_id="right_id").first()
    assert tuple(found)[1:] == (1600, None, None, 1600, "unconfirmed")


def test_a_drop_point_that_is_no_side_of_the_join_is_refused(source, tmp_path):
    policy = jt.JoinDrop("key", "at", "1 minute", sides=("views", "clicks"))
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy)
    with pytest.raises(InvalidSetting, match="'views' or 'clicks'"):
        shedder.guard(source.stream(), row_id="id")
    assert "jt_whole" in shedder.guard(source.stream(), row_id="id", name="clicks").columns


def test_bounds_cover_the_count_of_a_join_with_a_time_range(spark):
    random, truths, kept = np.random.default_rng(5), [], []
    for draw in range(120):
        left, right = random.uniform(0, 30, 80), random.uniform(0, 40, 90)
        apart = right[None, :] - left[:, None]
        near = (apart >= 0) & (apart <= 10)
        truths.append(near.sum())
        chosen = near & (random.random(80) < 0.4)[:, None] & (random.random(90) < 0.5)[None, :]
        ids = np.argwhere(chosen)
        kept.append(pa.table({"draw": np.full(len(ids), draw), "left_id": ids[:, 0], "right_id": ids[:, 1]}))
    pairs = spark.createDataFrame(pa.concat_tables(kept)).select(
        "*",
        *(F.lit(of_one).alias(name) for name, of_one in {"ad": 7, "left_weight": 2.5, "right_weight": 2.0}.items()),
        *(F.lit(False).alias(f"{side}_whole") for side in ("left", "right")),
    )
    found = {
        row["draw"]: row for row in join_totals(pairs, ["draw"], "ad", left_id="left_id", right_id="right_id").collect()
    }
    covered = np.mean([found[draw]["lower"] <= truth <= found[draw]["upper"] for draw, truth in enumerate(truths)])
    assert 0.88 <= covered <= 0.99


def test_totals_come_out_of_the_streaming_query_itself_over_a_join_with_a_time_range(spark, tmp_path):
    sides = {
        side: land(tmp_path / side, 2 + number, 2500, 3, closed=True) for number, side in enumerate(("left", "right"))
    }
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=Third("ad", "at", "1 minute"))

    def guarded(side: str) -> DataFrame:
        reader = spark.readStream.schema("id BIGINT, at TIMESTAMP, ad BIGINT, value DOUBLE")
        rows = reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / side))
        kept = join_side(shedder.guard(rows, row_id="id", name=side), side)
        renamed = {"id": f"{side}_id", "value": f"{side}_value", "ad": f"{side}_ad", "at": f"{side}_at"}
        return kept.withColumnsRenamed(renamed).withWatermark(f"{side}_at", "0 seconds")

    near = F.expr("left_ad = right_ad AND right_at BETWEEN left_at AND left_at + INTERVAL 10 SECONDS")
    pairs = guarded("left").join(guarded("right"), near)
    totals = join_totals(
        pairs, [F.window("left_at", "30 seconds")], "left_ad", left_id="left_id", right_id="right_id", confidence=0.9999
    )
    found: list[Row] = []
    writer = totals.writeStream.foreachBatch(lambda batch, number: found.extend(batch.collect()))
    shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    shedder.await_books()
    assert not shedder.status().faults.keys() - {"estimate"}
    assert shedder.ledger.totals().kept < 0.6 * 5000
    left, right = (sides[side] for side in ("left", "right"))
    apart = right["us"].to_numpy()[None, :] - left["us"].to_numpy()[:, None]
    same = right["ad"].to_numpy()[None, :] == left["ad"].to_numpy()[:, None]
    partners = (same & (apart >= 0) & (apart <= 10_000_000)).sum(axis=1)
    window = (left["us"].to_numpy() // 1_000_000 - START) // 30
    assert len(found) == 2
    for row in found:
        truth = partners[window == (row["window"]["start"].timestamp() - START) // 30].sum()
        assert row["lower"] <= truth <= row["upper"]
        assert row["lower"] < row["value"] < row["upper"]
        assert row["status"] == "bounded"
        assert row["upper"] - row["lower"] < truth
