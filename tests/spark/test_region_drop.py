"""Regional drops on Spark keep the rows that the same filter keeps in numpy, and each region its share."""

from __future__ import annotations

import contextlib
import io
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.hashing import salt, thresholds
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, InvalidSetting, MissingColumn
from jettison.policies.regions.build import Sample, build
from jettison.policies.regions.region_setting import PLAN_MOST_CELLS, RegionDrop, fingerprint
from jettison.policies.regions.sifter import Sifter
from jettison.runtime.schedule import Schedule
from jettison.source.partition import Leaf, grown
from jettison.source.raster import Raster
from jettison.source.space import CELLS, Attribute, Space
from jettison.spark.channel import Channel
from jettison.spark.drop_point import DropPoint
from jettison.spark.guard import guarded
from jettison.spark.mechanisms import RegionMechanism
from sifter_cases import drop_of, random_queries, random_rows, setting_of
from spark_since import ACCOUNTING, ROWS_SAMPLED

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
        channel.publish(Schedule.of(DropPlan(1, {"rows": setting})))
        drop_point = DropPoint("rows", ("id",), observed=False, **point)  # type: ignore[arg-type]
        mechanism = RegionMechanism(space)
        mechanism.check(rows, drop_point)
        plan = channel.plan_row(spark, {"rows": mechanism}, metric=drop_point.plan_metric)
        return guarded(rows, drop_point, mechanism, plan).localCheckpoint()

    return run


class Throttled(Sifter):
    """A sifter whose budget the test sets, whatever the controller says."""

    throttler = 1.0

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        return super().plan(stats, Budget(self.throttler, self.throttler, 3600.0, "test"))


def frame(spark: SparkSession, space: Space, points: np.ndarray) -> DataFrame:
    """Rows as a user has them: categories as text, missing values as nulls."""
    rows = []
    for number, point in enumerate(points.tolist()):
        row: list[object] = [number]
        for attribute, value in zip(space.attributes, point, strict=True):
            inside = value == value and attribute.low <= value <= attribute.high
            if attribute.values:
                row.append(None if value != value else attribute.values[int(value)] if inside else "elsewhere")
            else:
                row.append(None if value != value else value)
        rows.append(row)
    kinds = ", ".join(f"{one.name} {'string' if one.values else 'double'}" for one in space.attributes)
    return spark.createDataFrame(rows, f"id long, {kinds}")


@pytest.mark.parametrize("partitioning", ["grid", "data", "query", "qdpart"])
@pytest.mark.parametrize("regions", [1, 60])
def test_rows_fall_into_the_same_regions_as_in_numpy(spark, keep, partitioning, regions):
    random = np.random.default_rng(regions)
    queries = random_queries(random, MIXED, 20)
    sampled = Sample.of(queries, random_rows(random, MIXED, 300))
    partition = build(queries, sampled, regions=regions, partitioning=partitioning).partition
    points = random_rows(random, MIXED, 800)
    # Every second region is kept whole, the others not at all, and so is what lies outside: no chance is left.
    shares = np.append(np.arange(partition.regions) % 2, partition.regions % 2)
    kept = keep(frame(spark, MIXED, points), setting_of(MIXED, partition, shares), MIXED)
    expected = np.flatnonzero(shares[partition.region_of(MIXED.codes(points))])
    assert sorted(row.id for row in kept.collect()) == expected.tolist()


def test_values_far_outside_missing_or_at_an_edge_are_told_from_those_inside(spark, keep):
    space = Space([Attribute.number("x", -1, 1), Attribute.integer("y", 0, 3)])
    queries = jt.RangeQueries(space, ["x > 0 and y = 2"])
    inf, nan = float("inf"), float("nan")
    values = [-1.0, 1.0, 0.0, -1.0000001, 1.0000001, -1e300, 1e300, -inf, inf, nan, -0.0, 1e-300]
    points = np.array([[x, y] for x in values for y in (0.0, 3.0, 4.0, -1.0, 1e18)])
    partition = build(queries, Sample.of(queries, points), regions=6, partitioning="grid").partition
    for outside in (0.0, 1.0):
        shares = np.append(np.arange(partition.regions) % 2, outside)
        kept = keep(frame(spark, space, points), setting_of(space, partition, shares), space)
        expected = np.flatnonzero(shares[partition.region_of(space.codes(points))])
        assert sorted(row.id for row in kept.collect()) == expected.tolist()


def test_a_raster_that_is_too_large_for_the_table_keeps_everything(spark, keep):
    space = Space([Attribute.number("x", 0, 1), Attribute.number("y", 0, 1)])
    cuts = tuple(np.linspace(1, CELLS + 1, math.isqrt(PLAN_MOST_CELLS)).astype(int).tolist())
    cells = (0,) * (len(cuts) + 1) ** 2
    assert len(cells) > PLAN_MOST_CELLS
    rows = spark.range(100).selectExpr("id", "0.5d as x", "0.5d as y")
    setting = RegionDrop(0.0, fingerprint(space), (cuts, cuts), cells, (0,) * 4, (0.0,))
    assert keep(rows, setting, space).count() == 100


def test_cuts_that_crowd_in_a_corner_of_the_domain_are_told_apart(spark, keep):
    space = Space([Attribute.number("x", 0, 1e9)])
    random = np.random.default_rng(1)
    points = random.random((2000, 1)) * 1e5
    queries = jt.RangeQueries.from_boxes(space, points[:50], points[:50] + 2e3)
    built = build(queries, Sample.of(queries, points), regions=64, partitioning="data")
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


@pytest.mark.parametrize(
    ("throttler", "fairness", "sample_every"),
    [(0.05, 1.0, 0), (0.2, 0.5, 0), pytest.param(0.3, 1.0, 50, marks=ROWS_SAMPLED)],
)
def test_weights_add_up_for_the_whole_stream_and_for_every_query(spark, keep, throttler, fairness, sample_every):
    """With most regions at 0 they came to 0.29 of the truth; and rows with nulls matched no query and were all kept."""
    space = Space([Attribute.number("x", 0, 1), Attribute.number("y", 0, 1)])
    queries = jt.RangeQueries(space, ["x > 0.6", "x > 0.9 and y > 0.8", "y < 0.5", "x < 0.3 and y is not null"])
    random = np.random.default_rng(5)
    points = random.random((60_000, 2)) * 1.02
    points[random.random(points.shape) < 0.1] = np.nan
    policy = Throttled(queries, points[:3000], regions=17, fairness=fairness, sample_every=sample_every)
    policy.throttler = throttler
    seen = Stats(0, 1e9, 1.0, {"rows": PointStats(1000, 1000)})
    setting = policy.plan(seen, Budget(1.0, 1.0, 1.0, "")).points["rows"]
    rows = spark.createDataFrame(pa.table({"id": np.arange(len(points)), "x": points[:, 0], "y": points[:, 1]}))
    nulls = rows.replace(float("nan"), None, ["x"])  # a null and a NaN are the same to it
    kept = keep(nulls, setting, space)
    ids, weights = (np.array(column) for column in zip(*kept.select("id", "jt_weight").collect(), strict=True))
    assert len(ids) / len(points) == pytest.approx(throttler, rel=0.1)
    assert np.isnan(points[ids]).any(axis=1).mean() < 0.3
    chance = np.zeros(len(points))
    chance[:] = 1.0 - drop_of(policy.filter(throttler), points)
    if sample_every:
        chance = 1 / sample_every + (1 - 1 / sample_every) * chance
    np.testing.assert_allclose(weights, 1.0 / chance[ids])
    query, point = queries.matches(points)
    kept_query, kept_row = queries.matches(points[ids])
    wanted = np.bincount(kept_query, weights=weights[kept_row], minlength=len(queries))
    totals = [(weights.sum(), np.arange(len(points))), *((wanted[q], point[query == q]) for q in range(len(queries)))]
    for total, members in totals:
        error = math.sqrt(((1.0 - chance[members]) / chance[members]).sum())
        assert total == pytest.approx(len(members), abs=4.0 * error)
        assert error < 0.2 * len(members)


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


@ROWS_SAMPLED
def test_the_plan_is_native_and_what_is_observed_was_computed_before(spark, tmp_path):
    channel = Channel(Folder(tmp_path / "plan"), lease_s=60.0)
    channel.publish(Schedule.of(DropPlan(1)))
    mechanism = RegionMechanism(MIXED, sample_every=100)
    rows = spark.range(10).selectExpr("id", "1.5d as price", "2 as qty", "'tech' as sector")
    point = DropPoint("rows", ("id",), observed=False)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        guarded(rows, point, mechanism, channel.plan_row(spark, {"rows": mechanism}, metric="m")).explain("formatted")
    assert "Python" not in text.getvalue()
    # Observed expressions are interpreted, row by row: they must find the order of the sample ready.
    observed = [line for line in text.getvalue().splitlines() if "min_by" in line]
    assert observed
    assert not [line for line in observed if "xxhash64" in line]


def test_columns_are_checked_before_anything_starts(spark, keep):
    space = Space([Attribute.number("price", 0, 1)])
    with pytest.raises(MissingColumn, match="price"):
        keep(spark.range(3), RegionDrop(), space)
    with pytest.raises(InvalidSetting, match="must be a number"):
        keep(spark.range(3).withColumn("price", F.lit("dear")), RegionDrop(), space)
    with pytest.raises(InvalidInput, match="must not have a column 'jt_cell'"):
        keep(spark.range(3).withColumns({"price": F.lit(0.5), "jt_cell": F.lit(1)}), RegionDrop(), space)


@ROWS_SAMPLED
@pytest.mark.parametrize("accounting", ACCOUNTING)
def test_a_running_query_teaches_its_sifter_the_stream_and_the_pass_rate(spark, tmp_path, accounting):
    # The sample that the user gives is small and of another stream; what comes is x*x, mostly near 0.
    space = [Attribute.number("x", 0, 1)]
    queries = jt.RangeQueries(space, [f"x between {low / 50} and {low / 50 + 0.03}" for low in range(25, 48)])
    policy = Throttled(queries, {"x": np.linspace(0.3, 1, 50)}, regions=8, sample_every=20, partitioning="data")
    policy.throttler = 0.4
    files, rows = 9, 50_000
    ids = spark.range(0, files * rows, 1, files)
    spread = F.col("id") * 0.7548776662466927 % 1.0
    ids.select("id", (spread * spread).alias("x")).write.parquet(str(tmp_path / "made"))
    (tmp_path / "in").mkdir()
    stream = spark.readStream.schema("id long, x double").parquet(str(tmp_path / "in"))
    told, learn = [], policy.learn
    policy.learn = lambda lesson: told.extend(lesson.observed.values()) or learn(lesson)
    shedder = jt.Shedder(policy=policy, latency="1 hour", checkpoint=tmp_path / "checkpoint", accounting=accounting)
    sifted = shedder.guard(stream, row_id="id")
    out = str(tmp_path / "out")
    query = shedder.start(sifted.writeStream.format("parquet").option("path", out))
    for number, file in enumerate(sorted((tmp_path / "made").glob("part-*.parquet")), start=1):
        file.rename(tmp_path / "in" / file.name)
        query.processAllAvailable()
        # Batches this small outrun their reports on a busy machine, and so what they teach.
        until = time.monotonic() + 120.0
        while shedder.status().batches < number and time.monotonic() < until:
            time.sleep(0.02)
    query.stop()
    assert shedder.await_books()
    assert shedder.status().faults == {}
    plans, last = list(shedder.ledger.records("plan")), list(shedder.ledger.records("batch"))[-4:]

    kept = spark.read.parquet(out)
    marked = kept.where("jt_sampled")
    # Marked by the hash alone, so none of them was dropped: as many as of all rows, in every part of the stream.
    every = spark.range(0, files * rows)
    token = (tmp_path / "checkpoint" / "jettison" / "token").read_text()
    salted = F.xxhash64(F.lit(salt("rows", token)).cast("bigint"), "id")
    marks = every.where(salted <= int(thresholds(np.array(1 / 20))))
    assert marked.count() == marks.count()
    assert marked.join(marks, "id").count() == marks.count()
    # Each was told once, up to a thousand a batch.
    assert [len(one) for one in told] == [1000] * files
    assert len({value for one in told for value in one.ravel().tolist()}) == 1000 * files
    # Regions follow the stream: half of its rows lie below 0.25, where the given sample had none.
    cuts = np.array(policy.filter(0.4).partition.cut) / CELLS
    assert (cuts < 0.25).sum() >= 3
    assert plans[0]["points"]["rows"]["cuts"] != plans[-1]["points"]["rows"]["cuts"]
    seen = sum(one["points"]["rows"]["seen"] for one in last)
    assert sum(one["points"]["rows"]["kept"] for one in last) / seen == pytest.approx(0.4, rel=0.01)
    assert kept.agg(F.sum("jt_weight")).first()[0] == pytest.approx(files * rows, rel=0.01)
