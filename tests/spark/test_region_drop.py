"""Regional drops on Spark keep the rows that the same filter keeps in numpy, and each region its share."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.errors import InvalidSetting, MissingColumn
from jettison.plan import DropPlan
from jettison.policies.sifter import Sifter
from jettison.settings import RegionDrop
from jettison.sifter.build import Sample
from jettison.sifter.choose import candidates
from jettison.sifter.partition import Leaf, grown
from jettison.sifter.raster import Raster
from jettison.sifter.space import Attribute, Space
from jettison.spark.channel import Channel
from jettison.spark.drop_point import DropPoint
from jettison.spark.guard import guarded
from jettison.spark.mechanisms import RegionMechanism, mechanism_for
from jettison.storage import Folder
from sifter_cases import random_queries, random_rows, setting_of

pytestmark = pytest.mark.spark

MIXED = Space(
    [
        Attribute.number("price", -5.0, 7.5),
        Attribute.integer("qty", 0, 40),
        Attribute.category("sector", ["tech", "food", "steel"]),
    ]
)


@pytest.fixture
def keep(spark: SparkSession, tmp_path: Path) -> Callable[..., DataFrame]:
    """Guard a batch DataFrame under a regional plan."""
    channel = Channel(Folder(tmp_path / "plan"), lease_s=60.0)

    def run(rows: DataFrame, setting: RegionDrop, space: Space, **point: object) -> DataFrame:
        channel.publish(DropPlan(1, {"rows": setting}))
        drop_point = DropPoint("rows", ("id",), observed=False, **point)  # type: ignore[arg-type]
        mechanism = RegionMechanism(space)
        plan = channel.subquery(spark, "rows", mechanism, metric=drop_point.plan_metric)
        return guarded(rows, drop_point, mechanism, plan).localCheckpoint()

    return run


def frame(spark: SparkSession, space: Space, points: np.ndarray) -> DataFrame:
    """Rows as a user has them: categories as text, missing values as nulls."""
    rows = []
    for number, point in enumerate(points.tolist()):
        row: list[object] = [number]
        for attribute, value in zip(space.attributes, point, strict=True):
            inside = value == value and attribute.low <= value <= attribute.high
            if attribute.values:
                row.append(attribute.values[int(value)] if inside else "elsewhere")
            else:
                row.append(None if value != value else value)
        rows.append(row)
    kinds = ", ".join(f"{one.name} {'string' if one.values else 'double'}" for one in space.attributes)
    return spark.createDataFrame(rows, f"id long, {kinds}")


@pytest.mark.parametrize("partitioning", ["grid", "data", "query", "qdpart"])
@pytest.mark.parametrize("regions", [1, 16, 60])
def test_rows_fall_into_the_same_regions_as_in_numpy(spark, keep, partitioning, regions):
    random = np.random.default_rng(regions)
    queries = random_queries(random, MIXED, 20)
    sampled = Sample.of(queries, random_rows(random, MIXED, 300))
    partition = candidates(queries, sampled, regions=regions, partitioning=partitioning)[0].partition
    points = random_rows(random, MIXED, 800)
    # Every second region is kept whole, the others not at all, and what lies outside is kept: no chance is left.
    shares = np.append(np.arange(partition.regions) % 2, 1.0)
    kept = keep(frame(spark, MIXED, points), setting_of(MIXED, partition, shares), MIXED)
    expected = np.flatnonzero(shares[partition.region_of(MIXED.codes(points))])
    assert sorted(row.id for row in kept.collect()) == expected.tolist()


def test_cuts_that_crowd_in_a_corner_of_the_domain_are_told_apart(spark, keep):
    space = Space([Attribute.number("x", 0, 1e9)])
    random = np.random.default_rng(1)
    points = random.random((2000, 1)) * 1e5
    queries = jt.RangeQueries.from_boxes(space, points[:50], points[:50] + 2e3)
    built = candidates(queries, Sample.of(queries, points), regions=64, partitioning="data")[0]
    shares = np.append(np.arange(built.partition.regions) % 2, 1.0)
    kept = keep(frame(spark, space, points), setting_of(space, built.partition, shares), space)
    expected = np.flatnonzero(shares[built.partition.region_of(space.codes(points))])
    assert built.partition.regions > 40
    assert sorted(row.id for row in kept.collect()) == expected.tolist()


def test_each_region_keeps_its_share_and_weighs_its_rows(spark, keep):
    space = Space([Attribute.number("x", 0, 4)])
    root = Leaf.domain(1)
    root.split_at(0, [2**22, 2**23, 3 * 2**22])
    shares = np.array([0.05, 0.5, 0.9, 0.0, 1.0])
    rows = spark.range(200_000).select("id", (F.col("id") % 5).cast("double").alias("x"))
    rows = rows.withColumn("x", F.col("x") + 0.5)  # 4.5 lies outside
    kept = keep(rows, setting_of(space, grown(root), shares), space)
    found = {
        row.x: (row.kept, row.weight)
        for row in kept.groupBy("x").agg(F.count("*").alias("kept"), F.max("jt_weight").alias("weight")).collect()
    }
    for region, share in enumerate(shares):
        count, weight = found.get(region + 0.5, (0, 1 / share if share else None))
        assert abs(count - 40_000 * share) <= 4 * math.sqrt(40_000 * share * (1 - share))
        assert weight == (pytest.approx(1 / share) if share else None)


def test_late_rows_have_a_share_of_their_own(spark, keep):
    space = Space([Attribute.number("x", 0, 1)])
    partition = grown(Leaf.domain(1))
    raster = Raster.of(partition)
    setting = setting_of(space, partition, [1.0, 1.0], late=[0.0, 0.0], late_after_s=60.0)
    assert len(raster.cells) == 3
    at = F.when(F.col("id") % 4 == 0, F.current_timestamp() - F.expr("interval 2 minutes")).otherwise(
        F.current_timestamp()
    )
    rows = spark.range(1000).select("id", F.lit(0.5).alias("x"), at.alias("at"))
    assert keep(rows, setting, space, arrival="at").count() == 750


@pytest.mark.parametrize("setting", [RegionDrop(), "foreign"])
def test_without_a_plan_for_these_attributes_everything_is_kept_with_weight_one(spark, keep, setting):
    space = Space([Attribute.number("x", 0, 1)])
    if setting == "foreign":
        other = Space([Attribute.number("x", 0, 2)])
        setting = setting_of(other, grown(Leaf.domain(1)), [0.0, 0.0])
    rows = spark.range(1000).select("id", F.rand(1).alias("x"))
    kept = keep(rows, setting, space)
    assert kept.count() == 1000
    assert kept.where("jt_weight != 1.0").count() == 0


def test_protected_rows_are_never_dropped(spark, keep):
    space = Space([Attribute.number("x", 0, 1)])
    setting = setting_of(space, grown(Leaf.domain(1)), [0.0, 0.0])
    rows = spark.range(1000).select("id", F.lit(0.5).alias("x"))
    assert keep(rows, setting, space, protect=F.col("id") % 10 == 0).count() == 100


def test_the_plan_is_native(spark, tmp_path):
    channel = Channel(Folder(tmp_path / "plan"), lease_s=60.0)
    channel.publish(DropPlan(1))
    mechanism = RegionMechanism(MIXED)
    rows = spark.range(10).selectExpr("id", "1.5d as price", "2 as qty", "'tech' as sector")
    point = DropPoint("rows", ("id",), observed=False)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        guarded(rows, point, mechanism, channel.subquery(spark, "rows", mechanism, metric="m")).explain("formatted")
    assert "Python" not in text.getvalue()


def test_columns_are_checked_before_anything_starts(spark, keep):
    space = Space([Attribute.number("price", 0, 1)])
    with pytest.raises(MissingColumn, match="price"):
        keep(spark.range(3), RegionDrop(), space)
    with pytest.raises(InvalidSetting, match="must be a number"):
        keep(spark.range(3).withColumn("price", F.lit("dear")), RegionDrop(), space)


def test_a_sifter_guards_a_stream(spark, source, numbered, tmp_path):
    queries = jt.RangeQueries([Attribute.number("value", 0, 100)], ["value > 90", "value < 5 or value > 95"])
    policy = jt.Sifter(queries, {"value": np.arange(100.0)}, regions=8)
    assert isinstance(mechanism_for(policy), RegionMechanism)
    shedder = jt.Shedder(policy=policy, latency="1 hour", checkpoint=tmp_path / "checkpoint")
    guarded_stream = shedder.guard(source.stream(), id="id")
    source.land(numbered(0, 500))
    query = shedder.start(
        guarded_stream.writeStream.format("memory").queryName("sifted").trigger(processingTime="200 milliseconds")
    )
    try:
        query.processAllAvailable()
        assert spark.table("sifted").count() == 500  # nothing to shed
        assert spark.table("sifted").where("jt_weight != 1.0").count() == 0
    finally:
        query.stop()
    assert isinstance(policy, Sifter)
    assert shedder.status().faults == {}
