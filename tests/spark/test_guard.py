"""What a guarded DataFrame keeps, and what its plan is made of."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.plan import DropPlan
from jettison.core.storage import Folder
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime.schedule import Schedule
from jettison.spark.channel import Channel
from jettison.spark.drop_point import DropPoint, identity_hash
from jettison.spark.guard import _arrival_counts, _with_arrivals, guarded
from jettison.spark.mechanisms import RandomMechanism
from spark_since import ACCOUNTING


@pytest.fixture
def keep(spark: SparkSession, tmp_path: Path) -> Callable[..., DataFrame]:
    """Guard a *batch* DataFrame under a plan: the same native columns, without the machinery of a query."""
    channel = Channel(Folder(tmp_path / "plan"), lease_s=60.0)

    def run(rows: DataFrame, setting: RandomDrop, id: tuple[str, ...] = ("id",), **point: object) -> DataFrame:
        channel.publish(Schedule.of(DropPlan(1, {"rows": setting})))
        drop_point = DropPoint("rows", id, observed=False, **point)  # type: ignore[arg-type]
        plan = channel.plan_row(spark, {"rows": RandomMechanism()}, metric=drop_point.plan_metric)
        # Evaluated at once, because the next plan replaces the file that a lazy DataFrame would read.
        return guarded(rows, drop_point, RandomMechanism(), plan).localCheckpoint()

    return run


def ids(rows: DataFrame) -> set[int]:
    return {row.id for row in rows.select("id").collect()}


def within_sampling_error(kept: int, decisions: int, keep_fraction: float, *, rows_per_decision: int = 1) -> bool:
    """Four standard deviations of a binomial: a correct guard fails once in 16,000 tests."""
    deviation = math.sqrt(decisions * keep_fraction * (1 - keep_fraction)) * rows_per_decision
    return abs(kept - decisions * rows_per_decision * keep_fraction) <= 4 * deviation


@pytest.mark.parametrize("keep_fraction", [0.01, 0.3, 0.5, 0.97])
@pytest.mark.parametrize(
    "identity",
    [
        pytest.param("id", id="sequential ids"),
        pytest.param("concat('ride number ', id)", id="string keys"),
        pytest.param("id * 1048576", id="ids in large steps"),
        pytest.param("timestamp_seconds(id)", id="timestamps"),
    ],
)
def test_share_kept_is_within_sampling_error(
    spark: SparkSession, keep: Callable[..., DataFrame], identity: str, keep_fraction: float
) -> None:
    rows = spark.range(100_000).select(F.expr(identity).alias("id"))
    assert within_sampling_error(keep(rows, RandomDrop(keep_fraction)).count(), 100_000, keep_fraction)


def test_rows_with_the_same_identity_share_one_fate(spark: SparkSession, keep: Callable[..., DataFrame]) -> None:
    rows = spark.range(50_000).select((F.col("id") % 5_000).alias("id"))
    kept = keep(rows, RandomDrop(0.3))
    assert {row["count"] for row in kept.groupBy("id").count().collect()} == {10}
    assert within_sampling_error(kept.count(), 5_000, 0.3, rows_per_decision=10)


IDS = ("tenant", "key")


@pytest.mark.parametrize(
    ("tenant", "key"),
    [("null", "null"), ("'a'", "null"), ("null", "id"), ("'a'", "if(id % 2 = 0, null, 'b')")],
    ids=["all null", "one always null", "the other", "sometimes null"],
)
def test_rows_whose_id_is_not_complete_are_told_apart_by_what_they_hold(spark, keep, tenant: str, key: str) -> None:
    rows = spark.range(20_000).selectExpr("id", f"cast({tenant} as string) tenant", f"cast({key} as string) key")
    incomplete = rows.where("tenant is null or key is null")
    kept = keep(rows, RandomDrop(0.3), IDS).where("tenant is null or key is null")
    assert within_sampling_error(kept.count(), incomplete.count(), 0.3)
    assert ids(keep(incomplete.repartition(7), RandomDrop(0.3), IDS)) == ids(kept)


NESTED = {
    "struct": "named_struct('a', cast(null as long), 'b', cast(null as string))",
    "struct in a struct": "named_struct('a', 7L, 'b', named_struct('c', cast(null as long)))",
    "array": "array(cast(null as long), 7L, null)",
    "array of structs": "array(named_struct('a', 7L, 'b', cast(null as long)))",
    "struct of an array": "named_struct('a', array('a', null), 'b', 7L)",
}


@pytest.mark.parametrize("kind", NESTED)
def test_rows_with_a_null_within_their_id_are_told_apart_by_what_they_hold(spark, keep, kind: str) -> None:
    rows = spark.range(20_000).selectExpr("id", f"{NESTED[kind]} key")
    kept = keep(rows, RandomDrop(0.3), ("key",))
    assert within_sampling_error(kept.count(), 20_000, 0.3)
    assert ids(keep(rows.repartition(7), RandomDrop(0.3), ("key",))) == ids(kept)


@pytest.mark.parametrize(
    "id",
    [
        "named_struct('a', if(id % 2 = 0, id div 2, null), 'b', if(id % 2 = 0, null, id div 2))",
        "array(if(id % 2 = 0, id div 2, null), if(id % 2 = 0, null, id div 2))",
    ],
    ids=["struct", "array"],
)
def test_where_a_null_stands_tells_rows_apart(spark, keep, id: str) -> None:
    """A null leaves Spark's own hash as it was, so that two ids with the same values elsewhere would share one."""
    kept = keep(spark.range(20_000).selectExpr(f"{id} key", "id div 2 pair"), RandomDrop(0.3), ("key",))
    by_pair = {
        row["count"]: row["n"]
        for row in kept.groupBy("pair").count().groupBy("count").agg(F.count("*").alias("n")).collect()
    }
    assert within_sampling_error(by_pair.get(2, 0), 10_000, 0.09)


def test_rows_that_have_all_of_a_nested_id_share_one_fate(spark, keep) -> None:
    key = "named_struct('a', if(id < 10000, null, id % 500), 'b', array(id % 500, 1L))"
    kept = keep(spark.range(20_000).selectExpr("id", f"{key} key"), RandomDrop(0.3), ("key",)).where(
        "key.a is not null"
    )
    assert {row["count"] for row in kept.groupBy("key").count().collect()} == {20}


def test_rows_that_have_all_their_id_share_one_fate_whatever_else_they_hold(spark, keep) -> None:
    rows = spark.range(20_000).selectExpr("id", "if(id < 10000, null, id % 500) key", "'a' tenant")
    kept = keep(rows, RandomDrop(0.3), IDS).where("key is not null")
    assert {row["count"] for row in kept.groupBy("key").count().collect()} == {20}


def test_an_id_that_cannot_be_null_costs_no_look_at_other_columns(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(10).selectExpr("id", "id as part", "cast(null as string) other")
    point = DropPoint("rows", ("id", "part"), observed=False)
    assert "other" not in str(identity_hash(rows, point))
    assert "other" in str(identity_hash(rows, DropPoint("rows", ("id", "other"))))


@pytest.mark.parametrize("every", [16, 256, None])
def test_arrivals_are_looked_at_whatever_the_ids_are(spark: SparkSession, every: int | None) -> None:
    """One row in so many, of rows without a complete id as of all others: otherwise none or all of them."""
    rows = spark.range(16_000).selectExpr("id", "cast(null as string) key", "'a' tenant", "current_timestamp() at")
    plan = F.struct(F.lit(0).alias("now_us"), F.lit(every).cast("bigint").alias("look_every"))
    point = DropPoint("rows", IDS, arrival="at")
    looked_at = _with_arrivals(rows, point, plan, F.lit(1.0)).where("jt_arrived is not null")
    assert within_sampling_error(looked_at.count(), 16_000, 1 / (every or 16))


def test_single_wild_timestamps_do_not_reach_the_observed_arrivals(spark: SparkSession) -> None:
    """Two of 16,000 rows, all of them looked at; rows arrive within ten seconds."""
    begin_s = 1_790_000_000
    at = f"timestamp_millis({begin_s}000L + id * 10000 div 16000)"
    wild = "when 5000 then timestamp'1970-01-02' when 11000 then timestamp'9999-12-30'"
    rows = spark.range(16_000).selectExpr("id", f"case id {wild} else {at} end at")
    plan = F.struct(F.lit(0).alias("now_us"), F.lit(1).cast("bigint").alias("look_every"))
    point = DropPoint("rows", ("id",), arrival="at")
    looked_at = _with_arrivals(rows, point, plan, F.lit(1.0))
    assert looked_at.where("year(timestamp_micros(jt_arrived)) in (1970, 9999)").count() == 2
    (observed,) = looked_at.agg(*_arrival_counts(point)).select("arrivals_us").collect()
    oldest_us, newest_us = observed.arrivals_us
    assert begin_s <= oldest_us / 1e6 <= begin_s + 1
    assert begin_s + 9 <= newest_us / 1e6 <= begin_s + 10


def test_a_lower_fraction_keeps_a_subset(spark: SparkSession, keep: Callable[..., DataFrame]) -> None:
    rows = spark.range(20_000)
    kept = [ids(keep(rows, RandomDrop(fraction))) for fraction in (0.0, 0.1, 0.3, 0.7, 0.9999, 1.0)]
    assert all(lower <= higher for lower, higher in itertools.pairwise(kept))
    assert len(kept[0]) == 0
    assert len(kept[-1]) == 20_000


def test_the_same_rows_are_kept_whatever_the_partitioning(spark: SparkSession, keep: Callable[..., DataFrame]) -> None:
    # A retried task, and a replayed batch that is split differently, must decide alike.
    rows = spark.range(20_000)
    once = ids(keep(rows.repartition(1), RandomDrop(0.4)))
    assert once == ids(keep(rows.repartition(7, F.rand()), RandomDrop(0.4)))


def test_weights_are_the_inverse_of_the_probability(spark: SparkSession, keep: Callable[..., DataFrame]) -> None:
    kept = keep(spark.range(1_000), RandomDrop(0.25))
    assert {row.jt_weight for row in kept.collect()} == {4.0}
    everything = keep(spark.range(1_000), RandomDrop())
    assert {row.jt_weight for row in everything.collect()} == {1.0}


def test_weights_multiply_along_a_path(spark: SparkSession, keep: Callable[..., DataFrame]) -> None:
    once_guarded = spark.range(1_000).withColumn("jt_weight", F.lit(3.0))
    assert {row.jt_weight for row in keep(once_guarded, RandomDrop(0.5)).collect()} == {6.0}


def test_protected_rows_are_never_dropped_and_weigh_one(spark: SparkSession, keep: Callable[..., DataFrame]) -> None:
    rows = spark.range(10_000).withColumn("vip", F.when(F.col("id") % 100 == 0, True).when(F.col("id") % 7 == 0, None))
    kept = keep(rows, RandomDrop(0.05), protect=F.col("vip")).collect()
    vips = [row for row in kept if row.vip]
    assert len(vips) == 100
    assert {row.jt_weight for row in vips} == {1.0}
    assert {row.jt_weight for row in kept if not row.vip} == {20.0}
    assert within_sampling_error(len(kept) - len(vips), 9_900, 0.05)


def test_late_rows_are_thinned_harder(spark: SparkSession, keep: Callable[..., DataFrame]) -> None:
    age_s = F.when(F.col("id") % 2 == 0, 10).when(F.col("id") % 5 == 0, None).otherwise(0)
    rows = spark.range(20_000).withColumn("at", F.timestamp_seconds(F.unix_timestamp(F.current_timestamp()) - age_s))
    setting = RandomDrop(1.0, late_keep_fraction=0.1, late_after_s=5.0)
    kept = keep(rows, setting, arrival="at").collect()
    late = [row for row in kept if row.id % 2 == 0]
    assert len(kept) - len(late) == 10_000  # fresh rows, and rows of unknown age
    assert within_sampling_error(len(late), 10_000, 0.1)
    assert {row.jt_weight for row in late} == {10.0}


def test_two_drop_points_decide_independently(spark: SparkSession, tmp_path: Path) -> None:
    channel = Channel(Folder(tmp_path), lease_s=60.0)
    channel.publish(Schedule.of(DropPlan(1, {"a": RandomDrop(0.5), "b": RandomDrop(0.5)})))
    rows = spark.range(20_000).toDF("id")
    for name in ("a", "b"):
        point = DropPoint(name, ("id",), observed=False)
        plan = channel.plan_row(spark, {name: RandomMechanism()}, metric=name)
        rows = guarded(rows, point, RandomMechanism(), plan)
    assert within_sampling_error(rows.count(), 20_000, 0.25)


def explained(query: object) -> str:
    captured = io.StringIO()
    with contextlib.redirect_stdout(captured):
        query.explain()  # type: ignore[attr-defined]
    return captured.getvalue()


@pytest.mark.parametrize("accounting", ACCOUNTING)
def test_a_guarded_query_has_no_python_operator_and_one_plan_read(
    source, numbered, tmp_path: Path, accounting: str
) -> None:
    source.land(numbered(0, 100))
    shedder = jt.Shedder(latency="5 seconds", checkpoint=tmp_path / "checkpoint", accounting=accounting)
    rows = shedder.guard(source.stream(), row_id="id", arrival="at", protect="vip")
    query = shedder.start(rows.groupBy("key").count().writeStream.format("noop").outputMode("complete"))
    query.processAllAvailable()
    plan = explained(query)
    query.stop()
    assert "Filter" in plan
    for operator in ("Python", "Pandas", "Arrow", "MapPartitions", "MapInArrow"):
        assert operator not in plan
    # Every other use of the plan reuses the one subquery that reads it.
    assert plan.count("FileScan binaryFile") == 1


def compilations(spark: SparkSession) -> int:
    """Pieces of generated code that this session has compiled so far, from Spark's own metrics servlet."""
    with urllib.request.urlopen(f"{spark.sparkContext.uiWebUrl}/metrics/json/") as response:
        histograms = json.load(response)["histograms"]
    return next(value["count"] for name, value in histograms.items() if name.endswith("CodeGenerator.compilationTime"))


def test_generated_code_is_the_same_in_every_batch(spark: SparkSession, source, numbered, tmp_path: Path) -> None:
    """Code that spells out the batch's time or the plan's numbers would be compiled again in every micro-batch."""
    channel = Channel(Folder(tmp_path / "plan"), lease_s=60.0)
    channel.publish(Schedule.of(DropPlan(0)))
    point = DropPoint("rows", ("id",), arrival="at", observed=False)
    plan = channel.plan_row(spark, {"rows": RandomMechanism()}, metric=point.plan_metric)
    kept = guarded(source.stream(), point, RandomMechanism(), plan)
    query = kept.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    compiled = []
    for batch in range(6):
        setting = RandomDrop(0.1 + batch / 10, 0.04 + batch / 100, 7.8 + batch)
        channel.publish(Schedule.of(DropPlan(batch + 1, {"rows": setting})))
        source.land(numbered(100 * batch, 100 * batch + 100))
        query.processAllAvailable()
        compiled.append(compilations(spark))
    query.stop()
    assert compiled[0] > 0
    assert compiled[-1] == compiled[2], "the first batches compile; later ones find everything compiled"


def test_the_library_calls_no_private_api() -> None:
    source_files = Path(jt.__file__).parent.rglob("*.py")
    private = ("._jvm", "._jsc", "._jdf", "._jsparkSession", "._sc.", "._gateway", "_to_java", "java_gateway")
    offenders = [(path.name, word) for path in source_files for word in private if word in path.read_text()]
    assert offenders == []
