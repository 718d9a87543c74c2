"""What it costs to read a row's group, by how `group=` is given: task CPU of one query over a uniform drop at equal rows.

The plan names every group, and keeps groups whole that it does not name, as `ConceptDrop` plans once a window is known. So
the group of every row is read; where a plan keeps no group whole, most are not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.core.plan import DropPlan
from jettison.core.setting import Setting
from jettison.core.storage import Folder
from jettison.lab.bench import concept
from jettison.lab.bench.result import Result
from jettison.lab.bench.streams import in_turn, median, median_ratio, task_cpu_s
from jettison.policies import RandomDrop, UniformDrop
from jettison.policies.groups.allocation import allocate
from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.groups.group_keys import GROUP_BITS
from jettison.policies.groups.group_setting import GroupDrop
from jettison.runtime.schedule import Schedule
from jettison.spark.channel import Channel
from jettison.spark.drop_point import DropPoint
from jettison.spark.guard import guarded
from jettison.spark.mechanisms import mechanism_for

FORMS = {
    "a column of its own, as the record's key": "key",
    "a fixed place of the text's bytes": concept.FIXED_PLACE,
    "a fixed place of the text": "substring(value, 40, 6)",
    "a regular expression": """regexp_extract(value, '"route":"([^"]*)', 1)""",
    "two searches in the text": concept.ROUTE,
}
"""Ways to read the route of a ride, whose JSON has it at the same place in every row."""
_BARS = {"a column of its own, as the record's key": 1.1, "two searches in the text": 1.3}
_PANE_US = 600 * 10**6
_LEASE_S = 24 * 3600.0


def group_forms(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Nanoseconds of task CPU a row, each form beside the uniform drop that ran next to it."""
    concept.land(spark, folder / "in", rows_per_batch=concept.ROWS_PER_BATCH, batches=2)
    rides = spark.read.schema(concept.SCHEMA).parquet(str(folder / "in"))
    queries = {"uniform": _query(spark, rides, folder / "uniform", None)}
    for number, (name, form) in enumerate(FORMS.items()):
        queries[name] = _query(spark, rides, folder / str(number), form)
    rows = rides.count()
    found = in_turn(
        {name: partial(_cpu_ns, spark, query, rows) for name, query in queries.items()}, repetitions, warm_ups=2
    )
    uniform = found.pop("uniform")
    config = {"rows": rows, "groups": concept.GROUPS, "keep_fraction": concept.KEEP, "repetitions": repetitions}
    return [
        Result(
            f"group from {name}, over uniform",
            median(costs, float),
            "ns a row",
            median(uniform, float),
            median_ratio(costs, uniform, float),
            at_most=_BARS.get(name),
            config={**config, "group": FORMS[name]},
        )
        for name, costs in found.items()
    ]


def _query(spark: SparkSession, rides: DataFrame, folder: Path, form: str | None) -> Callable[[], DataFrame]:
    """The grouped mean of `concept-mean` over rides that are thinned by the group that `form` reads, or at random."""
    folder.mkdir()
    setting: Setting
    if form is None:
        setting, mechanism = RandomDrop(concept.KEEP), mechanism_for(UniformDrop().spec)
    else:
        setting = _setting(rides, form)
        mechanism = mechanism_for(ConceptDrop(group=form, time="time", window=concept.WINDOW).spec)
    point = DropPoint("rides", ("offset",), observed=False)
    channel = Channel(Folder(folder), lease_s=_LEASE_S)
    channel.publish(Schedule.of(DropPlan(1, {point.name: setting})))

    def answers() -> DataFrame:
        plan = channel.plan_row(spark, {point.name: mechanism}, metric=point.plan_metric)
        return concept.grouped(guarded(rides, point, mechanism, plan), "dropped", F.expr(concept.WEIGHTED))

    return answers


def _setting(rides: DataFrame, form: str) -> GroupDrop:
    """Equal caps of all groups, so that the share of rows is kept; the first pane holds all rows."""
    group = F.shiftright(F.xxhash64(F.expr(form)), GROUP_BITS)
    counts = {row["group"]: row["count"] for row in rides.groupBy(group.alias("group")).count().collect()}
    groups = np.array(sorted(counts))
    rows = np.array([counts[one] for one in groups], float)
    keeps = allocate(rows, concept.KEEP * rows.sum()).rows / rows
    return GroupDrop(keep_fraction=concept.KEEP).naming(
        _PANE_US, [(0, 1.0, groups, keeps)], keep_fraction=concept.KEEP, new=concept.KEEP
    )


def _cpu_ns(spark: SparkSession, query: Callable[[], DataFrame], rows: int) -> float:
    before = task_cpu_s(spark)
    query().write.format("noop").mode("overwrite").save()
    return (task_cpu_s(spark) - before) / rows * 1e9
