"""One meaning of a setting: Spark keeps the rows that `Setting.decide` keeps, row by row, with the same weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.core.decision import Candidates
from jettison.core.plan import DropPlan
from jettison.core.setting import SETTING_BY_KIND, Setting
from jettison.core.spec import Spec
from jettison.core.stats import Budget, EventTimes, PointStats, Stats
from jettison.core.storage import Folder
from jettison.policies import ConceptDrop, GroupDrop, LevelDrop, RandomDrop, RangeDrop, WindowDrop
from jettison.policies.groups.group_keys import GROUP_BITS
from jettison.policies.groups.group_setting import GroupSpec
from jettison.policies.network.range_setting import RangeSpec
from jettison.policies.priority.priority_setting import LevelSpec
from jettison.policies.regions.queries import RangeQueries
from jettison.policies.regions.sifter import Sifter
from jettison.policies.uniform.random_setting import RandomSpec
from jettison.runtime.schedule import Schedule
from jettison.source.space import Attribute
from jettison.spark.channel import Channel
from jettison.spark.drop_point import DropPoint
from jettison.spark.guard import guarded
from jettison.spark.mechanisms import _by_kind, mechanism_for
from spark_since import cases

pytestmark = pytest.mark.spark

SECOND, START = 1_000_000, 1_767_225_600_000_000
ROWS, PANE_US, TOKEN = 20_000, 10 * SECOND, "a query"
LATE_S = 600.0


@dataclass(frozen=True)
class Case:
    """A setting, and how it is compiled."""

    spec: Spec
    setting: Setting


def grouped(**changes: Any) -> GroupDrop:
    """Panes of ten seconds, of which two are known; groups by the upper halves of their hashes are filled in by the test."""
    made = GroupDrop(
        0.5, PANE_US, (START, START + PANE_US), (0.8, 0.3), ((), ()), ((), ()), 0.75, late_factor=0.5, late_after_s=LATE_S
    )  # fmt: skip
    return replace(made, **changes)


def regional(share: float, late: float) -> Case:
    space = [Attribute.number("value", 0, 20), Attribute.category("sector", ["a", "b"])]
    queries = RangeQueries(space, ["value > 15", "value < 3 and sector = 'b'"])
    values, sectors = np.arange(500) * 7 % 200 / 10, np.array(["a", "b", "c", None] * 125, object)
    policy = Sifter(queries, {"value": values, "sector": sectors}, regions=8)
    plan = policy.plan(Stats(0, 0.0, 1.0, {"rows": PointStats(1, 1)}), Budget(share, late, LATE_S, ""))
    return Case(policy.spec, plan.points["rows"])


def windowed(time: Any = "at") -> Case:
    policy = WindowDrop(time=time, window=("10 seconds", "5 seconds"), max_gap=3)
    plan = DropPlan(0)
    for batch in range(4):
        times = EventTimes(START + 10 * SECOND * batch, 10 * SECOND, START - 20 * SECOND)
        stats = Stats(batch, 0.0, 1.0, {"rows": PointStats(1, 1)}, event_times=times)
        plan = policy.continued(plan, stats, Budget(0.4, 0.4, LATE_S, ""))
    return Case(policy.spec, plan.points["rows"])


GROUPS = ConceptDrop(group="key", time="at", window="10 seconds").spec
WHOLE = GroupSpec(("key",), "at", PANE_US, whole=True)
LEVELS = LevelSpec(("value > 15", "value < 3 and sector = 'b'"))
CASES = {
    "random": lambda: Case(RandomSpec(), RandomDrop(0.3)),
    "random, late": lambda: Case(RandomSpec(), RandomDrop(0.3, 0.05, LATE_S)),
    "random, nothing": lambda: Case(RandomSpec(), RandomDrop(0.0)),
    "random, everything": lambda: Case(RandomSpec(), RandomDrop()),
    "random, only late": lambda: Case(RandomSpec(), RandomDrop(1.0, 0.1, LATE_S)),
    "priority": lambda: Case(LEVELS, LevelDrop(0.4, (1.0, 0.6, 0.1))),
    "priority, late": lambda: Case(LEVELS, LevelDrop(0.4, (1.0, 0.6, 0.0), 0.2, (0.7, 0.01, 0.0), LATE_S)),
    "range": lambda: Case(RangeSpec("value"), RangeDrop("value", ((2.5, 5.0), (10.0, 12.0)), 0.7)),
    "random in a network": lambda: Case(RangeSpec("value"), RandomDrop(0.3, 0.05, LATE_S)),
    "group": lambda: Case(GROUPS, grouped()),
    "group, no pane known": lambda: Case(GROUPS, GroupDrop(0.5, new_keep_fraction=0.5)),
    "group, by columns": lambda: Case(ConceptDrop(F.col("key"), F.col("at"), "10 seconds").spec, grouped()),
    "group, by expressions": lambda: Case(
        ConceptDrop([F.lower("key")], "at + interval 0 seconds", "10 seconds").spec, grouped()
    ),
    "group, whole": lambda: Case(WHOLE, grouped(whole=True)),
    "region": lambda: regional(0.4, 0.4),
    "region, late": lambda: regional(0.4, 0.1),
    "window": windowed,
    "window, by a column": lambda: windowed(F.col("at")),
}


def frame(spark: SparkSession) -> DataFrame:
    """Values, some of them missing; groups of many sizes; times around the panes; every third row is an hour old."""
    number, hour = F.col("id"), F.expr("interval 1 hour")
    return spark.range(ROWS).select(
        "id",
        F.when(number % 31 != 0, number * 7 % 200 / 10).alias("value"),
        F.element_at(F.array(*map(F.lit, ["a", "b", "c"])), (number % 3 + 1).cast("int")).alias("sector"),
        (number * number % 23).cast("string").alias("key"),
        F.timestamp_micros(F.lit(START - 10 * SECOND) + number * 7919 % (60 * SECOND)).alias("at"),
        (F.current_timestamp() - F.when(number % 3 == 0, hour).otherwise(hour * 0)).alias("arrived"),
    )


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> pd.DataFrame:
    """The same rows for numpy."""
    group, time_us = F.shiftright(F.xxhash64("key"), GROUP_BITS).alias("group"), F.unix_micros("at").alias("time_us")
    level = F.when(F.expr(LEVELS.levels[0]), 0).when(F.expr(LEVELS.levels[1]), 1).otherwise(2).alias("level")
    return frame(spark).select("id", "value", "sector", group, time_us, level).toPandas()


@pytest.mark.parametrize("name", cases(CASES))
def test_spark_decides_as_numpy_does(spark: SparkSession, tmp_path: Path, table: pd.DataFrame, name: str) -> None:
    case, rows = CASES[name](), frame(spark)
    setting = case.setting
    if isinstance(setting, GroupDrop) and setting.starts_us:
        first = tuple(sorted(table["group"].unique()[:9].tolist()))
        shares = tuple(0.1 * (place + 1) for place in range(len(first)))
        setting = replace(setting, groups=(first, first[:3]), keeps=(shares, shares[:3]))
    arrays = {name: table[name].to_numpy() for name in table}
    expected = setting.decide(case.spec, Candidates("rows", arrays["id"], arrays, arrays["id"] % 3 == 0, TOKEN))
    channel, mechanism = Channel(Folder(tmp_path), lease_s=60.0), mechanism_for(case.spec)
    channel.publish(Schedule.of(DropPlan(1, {"rows": setting})))
    point = DropPoint("rows", ("id",), arrival="arrived", observed=False, token=TOKEN)
    plan = channel.plan_row(spark, {"rows": mechanism}, metric=point.plan_metric)
    found = guarded(rows, point, mechanism, plan).select("id", "jt_weight").toPandas().sort_values("id")
    assert found["id"].tolist() == np.flatnonzero(expected.keep).tolist()
    assert found["jt_weight"].tolist() == expected.weight[expected.keep].tolist()
    assert name == "random, everything" or len(found) < ROWS


def test_every_kind_that_spark_executes_is_compared() -> None:
    assert {case().setting.kind for case in CASES.values()} == set(_by_kind) <= set(SETTING_BY_KIND)
