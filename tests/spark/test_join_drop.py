"""Drops before a real stream-stream join: pairs carry the right weights, and totals come back within their bounds."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.plan import DropPlan
from jettison.policies.join_drop import JoinDrop
from jettison.spark.joins import join_side, join_totals
from jettison.stats import Budget

pytestmark = pytest.mark.spark

START = 1_767_225_600
BATCHES = 6


class Third(JoinDrop):
    """A third of the rows, whatever the controller says."""

    def plan(self, stats, budget) -> DropPlan:
        return JoinDrop.plan(self, stats, Budget(0.3, 0.3, 3600.0, "a third"))


def land(folder: Path, side: int) -> tuple[np.ndarray, np.ndarray]:
    """A minute of rows on keys by Zipf's law, a file for each batch; keys and values of all of them."""
    folder.mkdir()
    random = np.random.default_rng(side)
    key = np.minimum(random.zipf(1.4, 6000), 3000)
    value = np.round(random.gamma(2.0, 5.0, len(key)), 2)
    at = np.sort(random.uniform(0, 60, len(key)))
    for batch in range(BATCHES):
        here = np.flatnonzero(at // (60 / BATCHES) == batch)
        times = pa.array(((START + at[here]) * 1e6).astype("int64")).cast(pa.timestamp("us", tz="UTC"))
        path = folder / f"{batch}.parquet"
        pq.write_table(pa.table({"id": here, "at": times, "ad": key[here], "value": value[here]}), path)
        os.utime(path, (START + batch, START + batch))
    return key, value


def test_count_and_sum_of_a_join_come_back_within_their_bounds(spark: SparkSession, tmp_path: Path) -> None:
    sides = {side: land(tmp_path / side, number) for number, side in enumerate(("left", "right"))}
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=Third("ad", "at", "1 minute"))

    def guarded(side: str) -> DataFrame:
        reader = spark.readStream.schema("id BIGINT, at TIMESTAMP, ad BIGINT, value DOUBLE")
        rows = reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / side))
        kept = join_side(shedder.guard(rows, id="id", name=side), side)
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
    (left, value), (right, _) = sides["left"], sides["right"]
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
