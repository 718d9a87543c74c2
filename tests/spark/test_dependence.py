"""Which plans of real queries multiply rows between a guard and its answers."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.plan import DropPlan
from jettison.schedule import Schedule
from jettison.spark import aggregates as jt
from jettison.spark.channel import Channel
from jettison.spark.dependence import Node, multipliers, plan_of_execution, plan_of_text
from jettison.spark.drop_point import DropPoint, mark_number
from jettison.spark.guard import guarded as behind_a_guard
from jettison.spark.mechanisms import RandomMechanism
from jettison.storage import Folder

pytestmark = pytest.mark.spark

POINT = DropPoint("here", ("id",), observed=False)
Query = Callable[[DataFrame], DataFrame]


def sliding() -> Column:
    return F.window("time", "20 seconds", "10 seconds")


def marked(rows: DataFrame) -> DataFrame:
    """What the guard leaves in a plan."""
    kept = rows.withColumn("jt_keep", F.xxhash64("id") > 0).where(
        F.col("jt_keep") | (F.spark_partition_id() < mark_number(POINT.name, "kept"))
    )
    return kept.drop("jt_keep").withColumn("jt_weight", F.when(F.spark_partition_id() >= 0, F.lit(2.0)))


@pytest.fixture(scope="module")
def guarded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = str(tmp_path_factory.mktemp("dependence") / "rows")
    rows = spark.range(200).select(
        "id",
        F.timestamp_seconds("id").alias("time"),
        (F.col("id") % 7).alias("key"),
        F.array("id", F.col("id") + 1).alias("xs"),
        F.col("id").alias("a"),
        F.col("id").alias("b"),
    )
    rows.write.parquet(folder)
    return marked(spark.read.parquet(folder))


def lookup(rows: DataFrame, keys: int, copies: int = 1) -> DataFrame:
    made = rows.sparkSession.range(keys * copies).select((F.col("id") % keys).alias("key"), F.lit("n").alias("name"))
    return made.repartition(2)  # so that Spark does not see through it


def words(rows: DataFrame) -> DataFrame:
    return rows.select("id", "time", "jt_weight", F.explode("xs").alias("x"))


def total(rows: DataFrame, *by: Any) -> DataFrame:
    return rows.groupBy(*by).agg(F.sum("jt_weight"))


def by_row(rows: DataFrame, *by: Any) -> DataFrame:
    return rows.groupBy(*by, "id").agg(F.sum("x").alias("all"), F.max("jt_weight").alias("jt_weight"))


DEPENDENT: dict[str, tuple[Query, str]] = {
    "explode": (lambda g: total(words(g), "x"), "Generate"),
    "explode before a filter and a shuffle": (lambda g: total(words(g).repartition(3).where("x > 3")), "Generate"),
    "unpivot": (lambda g: total(g.unpivot(["id", "jt_weight"], ["a", "b"], "name", "x"), "x"), "Expand"),
    "join": (lambda g: total(g.join(lookup(g, 7, 2), "key"), "name"), "Join"),
    "left join": (lambda g: total(g.join(lookup(g, 7, 2), "key", "left"), "name"), "Join"),
    "cross join": (lambda g: total(g.crossJoin(lookup(g, 2).drop("key")), "name"), "Join|Cartesian"),
    "semi join in which the guard decides": (
        lambda g: lookup(g, 7).join(g, "key", "semi").groupBy().count(),
        "Join",
    ),
    "union with itself": (lambda g: total(g.select("jt_weight", "a").union(g.select("jt_weight", "b"))), "Union"),
    "sliding windows that are not grouped by": (lambda g: total(g.select("*", sliding()), "key"), "Expand"),
    "python": (lambda g: total(g.select("jt_weight").mapInArrow(lambda b: b, "jt_weight double")), "MapInArrow"),
    "put together too finely": (lambda g: total(by_row(words(g), "x")), "Generate"),
    "windows of one row put together": (
        lambda g: total(by_row(g.select("id", "jt_weight", F.col("a").alias("x"), sliding()), "window")),
        "Expand",
    ),
    "multiplied after it was put together": (
        lambda g: total(by_row(words(g), "time").select("jt_weight", F.explode(F.array("all", "all")))),
        "Generate",
    ),
    "grouped by another id": (
        lambda g: total(by_row(g.select("jt_weight", F.explode("xs").alias("id"), F.lit(1).alias("x")))),
        "Generate",
    ),
}

INDEPENDENT: dict[str, Query] = {
    "plain": lambda g: total(g, "key"),
    "sliding window": lambda g: total(g, sliding(), "key"),
    "sliding window by another name": lambda g: total(g.select("*", sliding().alias("w")), "w"),
    "rollup": lambda g: g.rollup("key").agg(F.sum("jt_weight")),
    "distinct counts": lambda g: g.groupBy("key").agg(F.countDistinct("a"), F.countDistinct("b"), F.sum("jt_weight")),
    "unpivot by name": lambda g: total(g.unpivot(["id", "jt_weight"], ["a", "b"], "name", "x"), "name"),
    "semi join": lambda g: total(g.join(lookup(g, 7, 2), "key", "semi")),
    "join with distinct keys": lambda g: total(g.join(lookup(g, 7, 2).dropDuplicates(["key"]), "key"), "name"),
    "union with others": lambda g: total(g.select("jt_weight").union(g.sparkSession.range(3).select(F.lit(1.0)))),
    "explode behind the aggregate": lambda g: total(g, "key").select(F.explode(F.array("key", "key"))),
    "put together by row": lambda g: total(by_row(words(g))),
    "put together by row and group": lambda g: total(by_row(words(g), "x"), "x"),
    "put together by row and weight": lambda g: total(words(g).select("id", "jt_weight").distinct()),
}


def explained(rows: DataFrame, capsys: pytest.CaptureFixture[str]) -> list[Node]:
    capsys.readouterr()
    rows.explain()
    return plan_of_text(capsys.readouterr().out)


@pytest.mark.parametrize("case", DEPENDENT)
def test_what_multiplies_rows_is_named(guarded, case, capsys):
    query, operator = DEPENDENT[case]
    found = multipliers(explained(query(guarded), capsys), POINT.kept_mark, POINT.id)
    assert found
    assert all(any(word in one for word in operator.split("|")) for one in found)


@pytest.mark.parametrize("case", INDEPENDENT)
def test_rows_that_meet_no_copy_of_themselves_are_not_flagged(guarded, case, capsys):
    assert multipliers(explained(INDEPENDENT[case](guarded), capsys), POINT.kept_mark, POINT.id) == []


def test_a_guard_that_counts_by_observing_is_found_too(guarded, capsys):
    observed = guarded.observe(POINT.metric, F.count(F.lit(1)))
    assert multipliers(explained(total(words(observed)), capsys), POINT.metric)
    assert multipliers(explained(total(observed), capsys), POINT.metric) == []


def test_the_plan_that_a_second_guard_reads_multiplies_nothing(spark, guarded, tmp_path, capsys):
    channel = Channel(Folder(tmp_path), lease_s=60.0)
    channel.publish(Schedule.of(DropPlan(1)))
    second = DropPoint("there", ("id",), observed=False)
    plan = channel.plan_row(spark, {"there": RandomMechanism()}, metric="second")
    twice = behind_a_guard(guarded, second, RandomMechanism(), plan)
    total(twice, "key").explain()
    assert multipliers(plan_of_text(capsys.readouterr().out), POINT.kept_mark, POINT.id) == []


def test_a_plan_without_the_guard_tells_nothing(guarded, capsys):
    other = DropPoint("there", ("id",))
    assert multipliers(explained(total(words(guarded)), capsys), other.kept_mark) is None
    assert multipliers(plan_of_text("No physical plan. Waiting for data."), POINT.kept_mark) is None


def test_all_branches_that_use_the_same_rows_again_are_followed(guarded, capsys):
    """Spark plans the shared part once and only refers to it in the second branch."""
    shared = guarded.select("key", "xs", "jt_weight").repartition(2, "key").where(F.size("xs") > 1)
    packed = shared.select("key", "jt_weight", F.expr("transform(xs, x -> x + 1)").alias("xs"))
    both = total(packed.where("size(xs) > 0"), "key").union(
        total(packed.select("key", "jt_weight", F.explode("xs").alias("x")), "key")
    )
    both.collect()
    assert multipliers(explained(both, capsys), POINT.kept_mark)


def test_a_line_break_in_a_literal_does_not_cut_the_plan(guarded, capsys):
    broken = words(guarded.where(F.concat(F.col("key").cast("string"), F.lit("\n+x\n   y")) != "\n"))
    assert multipliers(explained(total(broken), capsys), POINT.kept_mark)


def executed(spark: SparkSession, mark: str) -> list[dict[str, Any]]:
    """What the driver's interface says of executions with a mark, the latest last."""
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/sql"
    time.sleep(0.5)  # the interface lags behind
    with urllib.request.urlopen(f"{url}?details=true&planDescription=false&offset=0&length=10000") as response:
        executions = json.load(response)
    return [one for one in executions if any(mark in node.get("desc", "") for node in one["nodes"])]


@pytest.mark.parametrize(
    ("keys", "copies", "how", "flagged"),
    [
        (7, 1, "inner", False),
        (7, 1, "left", False),
        (5, 1, "left", False),
        (7, 2, "inner", True),
        (7, 2, "left", True),
        (4, 2, "inner", True),  # more rows than before, though some were lost
        (3, 2, "inner", True),  # fewer rows than before, and yet all of them twice
        (5, 1, "inner", True),  # rows were lost: that none was doubled is not to be seen
    ],
)
def test_a_join_is_cleared_by_its_row_counts(spark, guarded, keys, copies, how, flagged):
    total(guarded.join(lookup(guarded, keys, copies), "key", how), "name").collect()
    plan = plan_of_execution(executed(spark, POINT.kept_mark)[-1])
    found = multipliers(plan, POINT.kept_mark, POINT.id)
    assert found is not None
    assert bool(found) is flagged


def test_a_streaming_query_is_read_in_both_ways(spark, tmp_path, capsys):
    """Nested: explode, one row of each decision, a sliding window on top."""
    spark.range(100).select("id", F.timestamp_seconds("id").alias("time")).coalesce(1).write.json(str(tmp_path / "in"))
    point = DropPoint("streamed", ("id",))
    raw = (
        spark.readStream.schema("id long, time timestamp").json(str(tmp_path / "in")).withWatermark("time", "1 second")
    )
    kept = raw.where((F.col("id") % 2 == 0) | (F.spark_partition_id() < mark_number(point.name, "kept")))
    rows = kept.select("id", "time", F.lit(2.0).alias("jt_weight"), F.explode(F.array("id", "id")).alias("x"))
    short = rows.groupBy(sliding()).agg(jt.sum("x"))
    right = by_row(rows, sliding()).groupBy("window").agg(jt.sum("all"))
    for name, query, flagged in (("short", short, True), ("right", right, False)):
        writer = query.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
        running = writer.option("checkpointLocation", str(tmp_path / name)).start()
        try:
            assert running.awaitTermination(60)
            capsys.readouterr()
            running.explain()
        finally:
            running.stop()
        assert bool(multipliers(plan_of_text(capsys.readouterr().out), point.kept_mark, point.id)) is flagged
        ours = [one for one in executed(spark, point.kept_mark) if f"runId = {running.runId}" in one["description"]]
        verdicts = [multipliers(plan_of_execution(one), point.kept_mark, point.id) for one in ours]
        assert [bool(found) for found in verdicts if found is not None] == [flagged]  # only one batch had rows
