"""Which plans of real queries multiply rows between a guard and its answers."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.core.plan import DropPlan
from jettison.core.storage import Folder
from jettison.runtime.schedule import Schedule
from jettison.spark import aggregates as jt
from jettison.spark.channel import Channel
from jettison.spark.dependence import multipliers
from jettison.spark.drop_point import DropPoint, mark_number
from jettison.spark.explained import Node, explained, physical_plan
from jettison.spark.guard import guarded as behind_a_guard
from jettison.spark.mechanisms import RandomMechanism

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
    "sample with replacement": (lambda g: total(g.sample(True, 2.0)), "Sample"),
    "grouped by what is made of the id": (
        lambda g: total(words(g).groupBy(F.abs("id").alias("id")).agg(F.max("jt_weight").alias("jt_weight"))),
        "Generate",
    ),
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
    "sample": lambda g: total(g.sample(0.5)),
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


def plan_of(rows: DataFrame) -> list[Node]:
    return physical_plan(explained(rows.explain))


@pytest.mark.parametrize("case", DEPENDENT)
def test_what_multiplies_rows_is_named(guarded, case):
    query, operator = DEPENDENT[case]
    found = multipliers(plan_of(query(guarded)), POINT.kept_mark, POINT.row_id)
    assert found
    assert all(any(word in one for word in operator.split("|")) for one in found)


@pytest.mark.parametrize("case", INDEPENDENT)
def test_rows_that_meet_no_copy_of_themselves_are_not_flagged(guarded, case):
    assert multipliers(plan_of(INDEPENDENT[case](guarded)), POINT.kept_mark, POINT.row_id) == []


@pytest.mark.parametrize(("name", "together"), [("id", True), ("user-id", False), ("user id", False), ("users", False)])
def test_a_name_that_ends_like_the_id_is_another_one(name, together):
    plan = f"""== Physical Plan ==
HashAggregate(keys=[], functions=[sum(jt_weight#19)])
+- HashAggregate(keys=[{name}#7], functions=[max(jt_weight#9)])
   +- Generate explode(xs#5), [{name}#7, jt_weight#9], false, [x#6]
      +- Filter {POINT.kept_mark}
         +- Scan json [id#1L,{name}#7,xs#5,jt_weight#9]
"""
    found = multipliers(physical_plan(plan), POINT.kept_mark, POINT.row_id)
    assert found is not None
    assert (found == []) is together


@pytest.mark.parametrize("name", ["lat, lon", "a (b"])
def test_copies_beside_a_name_with_commas_or_brackets_are_not_told_apart(name):
    plan = f"""== Physical Plan ==
HashAggregate(keys=[window#9, {name}#5], functions=[sum(jt_weight#8)])
+- Expand [[named_struct(start, 1), 1, w#8], [named_struct(start, 2), 1, w#8]], [window#9, {name}#5, w#8]
   +- Filter {POINT.kept_mark}
      +- Scan json [jt_weight#8]
"""
    found = multipliers(physical_plan(plan), POINT.kept_mark, POINT.row_id)
    assert [one.partition(" ")[0] for one in found or ()] == ["Expand"]


def test_a_guard_that_counts_by_observing_is_found_too(guarded):
    observed = guarded.observe(POINT.metric, F.count(F.lit(1)))
    assert multipliers(plan_of(total(words(observed))), POINT.metric)
    assert multipliers(plan_of(total(observed)), POINT.metric) == []


@pytest.mark.parametrize("others", [[], ["elsewhere", "beyond"]], ids=["alone", "of a network"])
def test_the_plan_that_a_second_guard_reads_multiplies_nothing(spark, guarded, tmp_path, others):
    """Of a plan that several guards read together each takes its part, and the optimizer gives that a name of its own."""
    channel = Channel(Folder(tmp_path), lease_s=60.0)
    channel.publish(Schedule.of(DropPlan(1)))
    second = DropPoint("there", ("id",), observed=False)
    plan = channel.plan_row(spark, dict.fromkeys(["there", *others], RandomMechanism()), metric=second.plan_metric)
    twice = behind_a_guard(guarded, second, RandomMechanism(), plan)
    assert multipliers(plan_of(total(twice, "key")), POINT.kept_mark, POINT.row_id) == []


def test_outputs_of_a_network_are_no_copies_of_each_other(guarded):
    def together(*outputs: DataFrame) -> DataFrame:
        numbered = [
            rows.select(F.lit(number).alias("jt_output"), F.struct("*").alias(f"row{number}"))
            for number, rows in enumerate(outputs)
        ]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), numbered)

    some = guarded.select("key", "jt_weight")
    assert multipliers(plan_of(together(total(guarded, "key"), guarded, some)), POINT.kept_mark) == []
    assert multipliers(plan_of(together(total(guarded, "key"), some.union(some))), POINT.kept_mark)


def test_a_plan_without_the_guard_tells_nothing(guarded):
    other = DropPoint("there", ("id",))
    assert multipliers(plan_of(total(words(guarded))), other.kept_mark) is None
    assert multipliers(physical_plan("No physical plan. Waiting for data."), POINT.kept_mark) is None


def test_all_branches_that_use_the_same_rows_again_are_followed(guarded):
    """Spark plans the shared part once and only refers to it in the second branch."""
    shared = guarded.select("key", "xs", "jt_weight").repartition(2, "key").where(F.size("xs") > 1)
    packed = shared.select("key", "jt_weight", F.expr("transform(xs, x -> x + 1)").alias("xs"))
    both = total(packed.where("size(xs) > 0"), "key").union(
        total(packed.select("key", "jt_weight", F.explode("xs").alias("x")), "key")
    )
    both.collect()
    assert multipliers(plan_of(both), POINT.kept_mark)


def test_both_sides_of_a_join_are_operators_of_their_own(guarded):
    plan = plan_of(guarded.join(lookup(guarded, 7), "key"))
    (join,) = [node for node in plan if "Join" in node.text]
    assert "\n" not in join.text
    assert len(join.children) == 2


def test_a_line_break_in_a_literal_does_not_cut_the_plan(guarded):
    broken = words(guarded.where(F.concat(F.col("key").cast("string"), F.lit("\n+x\n   y")) != "\n"))
    assert multipliers(plan_of(total(broken)), POINT.kept_mark)


STREAMS: dict[str, tuple[Query, bool]] = {
    "explode": (lambda rows: doubled(rows).groupBy(sliding()).agg(jt.sum("x")), True),
    "one row of each decision": (
        lambda rows: by_row(doubled(rows), sliding()).groupBy("window").agg(jt.sum("all")),
        False,
    ),
    # Which rows these let pass depends on those that were dropped.
    "drop duplicates": (lambda rows: total(rows.dropDuplicates(["id"]), sliding()), True),
    "within watermark": (lambda rows: total(rows.dropDuplicatesWithinWatermark(["id"]), sliding()), True),
    "limit": (lambda rows: rows.limit(1000), True),
}


def doubled(rows: DataFrame) -> DataFrame:
    return rows.select("id", "time", "jt_weight", F.explode(F.array("id", "id")).alias("x"))


@pytest.mark.parametrize("case", STREAMS)
def test_a_streaming_query_is_read_while_it_runs(spark, tmp_path, case):
    spark.range(100).select("id", F.timestamp_seconds("id").alias("time")).coalesce(1).write.json(str(tmp_path / "in"))
    point = DropPoint("streamed", ("id",))
    raw = (
        spark.readStream.schema("id long, time timestamp").json(str(tmp_path / "in")).withWatermark("time", "1 second")
    )
    kept = raw.where((F.col("id") % 2 == 0) | (F.spark_partition_id() < mark_number(point.name, "kept")))
    build, flagged = STREAMS[case]
    query = build(kept.withColumn("jt_weight", F.lit(2.0)))
    writer = query.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    running = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        assert running.awaitTermination(60)
        text = explained(running.explain)
    finally:
        running.stop()
    assert bool(multipliers(physical_plan(text), point.kept_mark, point.row_id)) is flagged


def test_other_threads_find_the_usual_output_while_a_plan_is_printed(monkeypatch):
    written: list[str] = []

    class Tee:
        """As people write them: it gives nothing back, and can what it can."""

        def write(self, text: str) -> None:
            written.append(text)

        def fileno(self) -> int:
            return 77

    monkeypatch.setattr(sys, "stdout", Tee())
    found, held = [], []

    def other() -> None:
        found.append((sys.stdout.write("hello"), sys.stdout.fileno()))
        held.append(sys.stdout)

    def explain(extended: bool) -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        print("a plan")

    assert explained(explain) == "a plan\n"
    held[0].write("kept for later")
    assert (found, written) == ([(5, 77)], ["hello", "kept for later"])


def test_two_plans_at_a_time_leave_the_output_where_it_was():
    """The first to finish put the second one's place back, for good."""
    usual, both, done = sys.stdout, threading.Barrier(2, timeout=0.5), []

    def explain(extended: bool) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):  # both are there only if nobody waits for the other
            both.wait()
        print("a plan")
        time.sleep(0.1 * len(done))
        done.append(extended)

    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(explained(explain))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["a plan\n"] * 2
    assert sys.stdout is usual
