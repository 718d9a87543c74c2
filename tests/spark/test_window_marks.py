"""The columns that decide about a row agree with the pure arithmetic."""

from __future__ import annotations

import json
import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, EventTimes, PointStats, Stats
from jettison.policies.window.query_fan import Branch
from jettison.policies.window.window_drop import WindowDrop
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_marks import WindowMarks
from jettison.policies.window.window_needs import Pipeline
from jettison.spark.drop_point import DropPoint
from jettison.spark.mechanisms.window_mechanism import WindowMechanism, first_holding, floor_divided


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_dropped_as_the_pure_rule_says(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)

    def grid() -> Grid:
        slide = chance.randint(1, 40)
        return Grid(slide + chance.randint(0, 80), slide, chance.randint(-50, 50))

    branches = tuple(
        Branch(f"q{i}", Pipeline(tuple(grid() for _ in range(chance.randint(1, 3)))), 400) for i in range(1 + seed % 2)
    )
    policy = WindowDrop(time="at", queries=branches)
    marks, base = WindowMarks(), chance.choice([0, -(10**9), 1_767_225_600_000_000])
    plan = DropPlan(0, {"rows": marks})
    for step in range(4):
        times = EventTimes(base + 400 * step, 60, base + 400 * step - 300)
        stats = Stats(0, 0.0, 0.0, {"rows": PointStats(1, 1)}, event_times=times)
        plan = policy.continued(plan, stats, Budget(0.4, 0.4, 3.0, "test"))
    marks = plan.points["rows"]
    assert isinstance(marks, WindowMarks)
    assert not marks.keeps_everything
    mechanism = WindowMechanism(policy.spec)
    setting = F.from_json(F.lit(json.dumps(json.loads(plan.to_json())["points"]["rows"])), mechanism.schema)
    fields = mechanism.plan_fields(F.col("setting"), F.lit(0))
    rows = (
        spark.range(base, base + 3000)
        .withColumn("at", F.timestamp_micros("id"))
        .withColumn("setting", setting)
        .withColumn("plan", F.struct(*[column.alias(name) for name, column in fields.items()]))
    )
    keep, _ = mechanism.decision(rows, DropPoint("rows", ("id",)), F.col("plan"))
    pipeline = branches[0].pipeline
    found = rows.select("id", keep.alias("keep"), first_holding(pipeline, F.unix_micros("at")).alias("first")).collect()
    assert [row["first"] for row in found] == [pipeline.first_holding(row["id"]) for row in found]
    assert [row["keep"] for row in found] == [marks.needs(policy.fan, row["id"]) for row in found]
    assert 0 < sum(row["keep"] for row in found) < len(found)


def test_division_rounds_down_on_both_sides_of_the_epoch(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(t,) for t in (-(6 * 10**16), -11, -10, -1, 0, 9, 10, 2 * 10**17)], "t long")
    for by in (1, 7, 10, 3_600_000_000):
        found = rows.select("t", floor_divided(F.col("t"), by).alias("q")).collect()
        assert [row.q for row in found] == [row.t // by for row in found]


@pytest.mark.parametrize(("marks", "kept"), [("kkk", None), ("kdv", [True, False, True])])
def test_while_no_window_is_dropped_there_is_nothing_to_look_into(
    spark: SparkSession, marks: str, kept: list[bool] | None
) -> None:
    mechanism = WindowMechanism(WindowDrop(time="at", window=10, max_gap=3).spec)
    text = json.dumps({"first": [0], "marks": [marks], "opens_us": [[None] * 3]})
    row = spark.range(1).withColumn("setting", F.from_json(F.lit(text), mechanism.schema))
    fields = mechanism.plan_fields(F.col("setting"), F.lit(0))
    plan = F.struct(*[column.alias(name) for name, column in fields.items()])
    second = F.struct(F.timestamp_seconds(F.lit(10)).alias("start"), F.timestamp_seconds(F.lit(20)).alias("end"))
    (found,) = row.withColumn("plan", plan).select("plan", mechanism.delivers(0, second, F.col("plan"))).collect()
    assert found[0]["kept0"] == kept
    assert found[1] == (kept is None)


def test_rows_and_windows_decades_away_from_all_marks_are_kept(spark: SparkSession) -> None:
    mechanism = WindowMechanism(WindowDrop(time="at", window="1 millisecond", max_gap=3).spec)
    now_us = 1_767_225_600_000_000
    text = json.dumps({"first": [now_us // 1000], "marks": ["dd"], "opens_us": [[now_us + 2000] * 2]})
    fields = mechanism.plan_fields(F.from_json(F.lit(text), mechanism.schema), F.lit(0))
    rows = (
        spark.createDataFrame([(0,), (now_us,), (now_us + 2000,), (200_000_000_000_000_000,)], "us long")
        .withColumn("at", F.timestamp_micros("us"))
        .withColumn("plan", F.struct(*[column.alias(name) for name, column in fields.items()]))
    )
    needed, _ = mechanism.decision(rows, DropPoint("rows", ("us",)), F.col("plan"))
    not_dropped = mechanism.not_dropped(0, F.struct(F.col("at").alias("start")), F.col("plan"))
    found = rows.select("us", needed.alias("needed"), not_dropped.alias("kept")).collect()
    assert [(row.needed, row.kept) for row in found] == [(row.us != now_us,) * 2 for row in found]
