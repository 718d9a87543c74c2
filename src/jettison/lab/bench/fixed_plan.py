"""A guard under one plan that nobody changes: what rows and plan cost without listener, pilot and ledger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.core.storage import Folder
from jettison.policies.base import Policy
from jettison.runtime.schedule import Schedule
from jettison.spark.channel import Channel
from jettison.spark.drop_point import DropPoint
from jettison.spark.guard import guarded
from jettison.spark.mechanisms import mechanism_for


def under_fixed_plan(
    rows: DataFrame, folder: Path, policy: Policy, keep_fraction: float, row_id: Sequence[str]
) -> DataFrame:
    """`rows` behind a drop point whose plan, on file in `folder`, keeps a fixed share."""
    channel = Channel(Folder(folder), lease_s=3600.0)
    stats = Stats(0, 0.0, 1.0, {"rows": PointStats(1, 1)})
    plan = policy.plan(stats, Budget(keep_fraction, keep_fraction, 3600.0, "benchmark"))
    channel.publish(Schedule.of(DropPlan(1, plan.points)))
    point, mechanism = DropPoint("rows", tuple(row_id), observed=False), mechanism_for(policy.spec)
    plan_row = channel.plan_row(rows.sparkSession, {"rows": mechanism}, metric=point.plan_metric)
    return guarded(rows, point, mechanism, plan_row)
