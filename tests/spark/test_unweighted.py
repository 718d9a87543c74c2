"""Counts and sums that take no notice of dropped rows are named, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison import functions as jf
from jettison.spark import doubts
from jettison.spark.explained import Node, analyzed_plan, explained
from jettison.spark.unweighted import unweighted
from told_stream import Told

pytestmark = pytest.mark.spark
Query = Callable[[DataFrame], DataFrame]


def joined(rows: DataFrame) -> DataFrame:
    left = jf.join_side(rows.withColumn("jt_whole", F.lit(False)).withColumnRenamed("id", "left_id"), "left")
    right = jf.join_side(rows.withColumn("jt_whole", F.lit(False)).withColumnRenamed("id", "right_id"), "right")
    pairs = left.join(right.drop("value", "vip", "at"), "key")
    return jf.join_totals(pairs, ["at"], "key", left_id="left_id", right_id="right_id")


RIGHT: dict[str, Query] = {
    "no aggregate": lambda g: g.where("value > 1"),
    "ours": lambda g: g.groupBy("key").agg(jt.count(), jt.sum("value"), jt.avg("value"), jt.percentile("value", 0.5)),
    "evidence": lambda g: g.groupBy("key").agg(jt.avg("value"), jf.evidence("value")),
    "weights added up": lambda g: g.groupBy("key").agg(F.count("*").alias("kept"), F.sum("jt_weight").alias("rows")),
    "weights handed on": lambda g: g.groupBy("key", "id").agg(
        F.sum("value").alias("value"), F.max("jt_weight").alias("jt_weight")
    ),
    "estimates added up": lambda g: g.groupBy("key").agg(jt.count().alias("n")).agg(F.sum("n.value"), F.count("*")),
    "neither counts nor sums": lambda g: g.groupBy("key").agg(
        F.avg("value"), F.max("value"), F.percentile("value", 0.5)
    ),
    "pairs of a join": joined,
}
WRONG: dict[str, tuple[Query, list[str]]] = {
    "count": (lambda g: g.groupBy("key").count(), ["count(1) AS count"]),
    "beside ours": (
        lambda g: g.groupBy("key").agg(jt.avg("value"), F.count("*").alias("n"), F.sum("value").alias("s")),
        ["count(1) AS n", "sum(value) AS s"],
    ),
    "beside a percentile": (
        lambda g: g.groupBy("key").agg(jt.percentile("value", 0.5), F.count("*").alias("n")),
        ["count(1) AS n"],
    ),
    "in an expression": (
        lambda g: g.groupBy("key").agg((F.sum("value") / 60).alias("rate")),
        ["(sum(value) / cast(60 as double)) AS rate"],
    ),
    "without weights": (lambda g: g.select("key").groupBy("key").agg(F.count("key").alias("n")), ["count(key) AS n"]),
    "distinct": (
        lambda g: g.agg(F.approx_count_distinct("key").alias("n")),
        ["approx_count_distinct(key, 0.05, 0, 0) AS n"],
    ),
}


def found_in(shedder: jt.Shedder, answers: DataFrame, *, every_row_stays: bool = False) -> list[str]:
    guards = [point.kept_mark for point in shedder._assembly.points.values()]
    return unweighted(analyzed_plan(explained(answers.explain)), guards, every_row_stays=every_row_stays)


@pytest.fixture(scope="module")
def once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[jt.Shedder, DataFrame, DataFrame]:
    """One guard for all queries that only have to be looked at, with the rows before it and behind it."""
    folder = tmp_path_factory.mktemp("once")
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "checkpoint")
    (folder / "in").mkdir()
    reader = spark.readStream.schema("id long, key string, value double, vip boolean, at timestamp")
    rows = reader.json(str(folder / "in"))
    return shedder, rows, shedder.guard(rows, row_id="id")


@pytest.fixture
def guarded(once: tuple[jt.Shedder, DataFrame, DataFrame], own_doubts: None) -> tuple[jt.Shedder, DataFrame]:
    shedder, rows, kept = once
    doubts.register(rows.sparkSession, shedder._assembly._channel)  # each test has forgotten all that were
    return shedder, kept


@pytest.mark.parametrize("case", RIGHT)
def test_what_weighs_its_rows_is_not_named(guarded: tuple[jt.Shedder, DataFrame], case: str) -> None:
    shedder, kept = guarded
    assert found_in(shedder, RIGHT[case](kept)) == []


@pytest.mark.parametrize("case", WRONG)
def test_plain_counts_and_sums_are_named(guarded: tuple[jt.Shedder, DataFrame], case: str) -> None:
    shedder, kept = guarded
    query, expected = WRONG[case]
    assert found_in(shedder, query(kept)) == expected


def test_rows_that_no_guard_has_seen_may_be_counted(once: tuple[jt.Shedder, DataFrame, DataFrame]) -> None:
    shedder, rows, _ = once
    assert found_in(shedder, rows.groupBy("key").count()) == []


def test_where_dropped_rows_stay_they_may_be_counted(guarded: tuple[jt.Shedder, DataFrame]) -> None:
    shedder, kept = guarded
    answers = kept.groupBy("key").agg(F.count("*"), F.sum("value").alias("s"))
    assert found_in(shedder, answers, every_row_stays=True) == ["sum(value) AS s"]


@pytest.mark.usefixtures("interpreted", "one_partition")
@pytest.mark.parametrize("plain", [True, False])
def test_a_running_query_says_so_once(spark: SparkSession, tmp_path: Path, *, plain: bool) -> None:
    def counted(rows: DataFrame) -> DataFrame:
        n = F.struct(F.count("*").alias("value"), F.lit("plain").alias("status")) if plain else jt.count()
        return rows.withWatermark("at", "1 second").groupBy(F.window("at", "1 minute"), "key").agg(n.alias("n"))

    with Told(spark, tmp_path, counted) as run:
        run.batch(("a", "10:00:00"))
        run.batch(("a", "10:01:00"))
        assert run.shedder.status().faults.get("answers", 0) == int(plain)
    details = [record["detail"] for record in run.shedder.ledger.records("fault")]
    assert [detail for detail in details if "plain counts and sums" in detail and "jt.count" in detail] == details


GUARDED = "~Filter (SPARK_PARTITION_ID() < -1234567890)"


@pytest.mark.parametrize(
    ("results", "below", "expected"),
    [
        ("sum(body_weight#3) AS s#9, count(1) AS n#10L", "", ["sum(body_weight) AS s", "count(1) AS n"]),
        ("sum(jt_weight#3) AS s#9, sum(fare#4) AS t#10, count(1) AS n#11L", "", ["sum(fare) AS t"]),
        ("sum((jt_weight#3 * fare#4)) AS s#9, sum(my_jt_weight#5) AS t#10", "", ["sum(my_jt_weight) AS t"]),
        ("sum(w#5) AS s#9, count(1) AS n#10L", "~Project [jt_weight#3 AS v#4, (v#4 * 2.0) AS w#5]", []),
        ("sum(v#4) AS s#9, sum(u#5) AS t#10", "~Project [jt_weight#3 AS v#4, fare#2 AS u#5]", ["sum(u) AS t"]),
        ("sum(fare#2) AS s#9, max(jt_weight#3) AS jt_weight#10", "", []),
    ],
)
def test_only_what_is_made_of_weights_is_excused(results: str, below: str, expected: list[str]) -> None:
    plan = [Node(text) for text in (f"~Aggregate [k#1], [k#1, {results}]", below, GUARDED) if text]
    for above, under in pairwise(plan):
        above.connect(under)
    assert unweighted(plan, [GUARDED[7:]]) == expected
