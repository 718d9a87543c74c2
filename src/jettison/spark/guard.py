"""Puts a drop point on a stream, once; afterwards only the plan changes.

A guarded DataFrame is the input with some rows removed and the column `jt_weight` added: the inverse of the
probability that the row was kept. Which rows those are is the mechanism's affair; what every mechanism shares is
here: fail open, protected rows, the dry run, and counting. Where the mechanism takes a sample for its policy, the
column `jt_sampled` marks its rows. In a dry run `jt_would_weigh` is the weight that a row would have,
and null if it would be dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.runtime.plan_file import MOST_OFTEN
from jettison.spark import validate
from jettison.spark.drop_point import (
    ARRIVALS_US,
    KEPT,
    LOOK_EVERY,
    NOW_US,
    PLAN,
    RECENT,
    SAMPLE,
    SEEN,
    WEIGHT,
    DropPoint,
    arrived_us,
    identity_hash,
)
from jettison.spark.mechanisms import Mechanism

SAMPLED, WOULD_WEIGH = "jt_sampled", "jt_would_weigh"
_KEEP = "jt_keep"
_RECENT = "jt_recent"
_ARRIVED = "jt_arrived"
_SAMPLE = "jt_sample"
RECENT_US = 1_000_000
"""Rows that arrived this shortly before their batch are counted apart: they tell how many arrive *now*."""
_OLD, _NEW, _RANKS = 0.01, 0.99, 500  # single wild timestamps lie outside these quantiles; found to 1 in 500


def guarded(rows: DataFrame, point: DropPoint, mechanism: Mechanism, plan: DataFrame | Column) -> DataFrame:
    """Apply a drop point to `rows`.

    `plan` is the channel's row with the mechanism's fields under the point's name, or such fields beside each row.
    """
    seen, fields, passing = _with_helpers(rows, point, mechanism, plan)
    seen, sample = _with_sample(seen, point, mechanism)
    keep, weight, would_be = _decision(seen, point, mechanism, fields)
    if mechanism.stays and not point.dry_run:
        return _emptied(seen, rows.columns, point, mechanism, fields, keep, weight)
    marks = mechanism.marks(fields)
    if point.dry_run or point.observed:
        more = [*sample, *_learned(mechanism, keep), *_arrival_counts(point)]
        seen = _with_arrivals(seen, point, fields, F.lit(1.0))
        counted = seen.observe(point.metric, *_seen_and_kept(keep), *more)
        left = counted if point.dry_run else counted.where(keep)
        would = {WOULD_WEIGH: F.when(keep, would_be)} if point.dry_run else {}
        return left.withColumns({WEIGHT: weight, **would, **marks}).drop(*passing, _SAMPLE, _RECENT, _ARRIVED)
    # The plan ends here. Left in the filter's condition and in a column that the optimizer may compute later, it would
    # travel on, and where the compiled stage ends behind the guard, as at `from_json`, be copied into every row.
    decided = seen.withColumn(_KEEP, computed_once(keep))
    kept = decided.where(F.col(_KEEP) | F.expr(point.kept_mark))
    weighted = kept.withColumns({WEIGHT: computed_once(weight), **marks})
    return _marked(weighted, point, mechanism, fields, [*passing, _KEEP], sample)


def _with_helpers(
    rows: DataFrame, point: DropPoint, mechanism: Mechanism, plan: DataFrame | Column
) -> tuple[DataFrame, Column, list[str]]:
    """The rows with plan and helper columns, the plan's fields, and the names of all that is dropped again."""
    validate.no_reserved_column(rows, [PLAN], where=point.place)
    seen, fields, names = _with_plan(rows if point.observed else rows.where(point.seen_mark), point, plan)
    helpers = mechanism.helpers(seen, point, fields)
    passing = [*names, *(name for columns in helpers for name in columns)]
    reserved = [_KEEP, _RECENT, _ARRIVED, _SAMPLE, WOULD_WEIGH]
    validate.no_reserved_column(rows, [*passing, *reserved], where=point.place)
    for columns in helpers:
        seen = seen.withColumns({name: computed_once(column) for name, column in columns.items()})
    return seen, fields, passing


def _with_plan(rows: DataFrame, point: DropPoint, plan: DataFrame | Column) -> tuple[DataFrame, Column, list[str]]:
    """The rows with the plan beside them, its fields as a struct, and the names of its columns.

    Without a valid plan there is no row to join, and all fields are null. They stand side by side, because a struct is a
    new object for every row; but drop points that share a reading of the plan share what is broadcast too.
    """
    if isinstance(plan, Column):
        return rows.withColumn(PLAN, computed_once(plan)), F.col(PLAN), [PLAN]
    if point.group is not None:
        joined = rows.join(F.broadcast(plan), how="left")
        return joined.withColumn(PLAN, computed_once(F.col(PLAN)[point.name])), F.col(PLAN), [PLAN]
    fields = plan.select(F.col(PLAN)[point.name].alias(PLAN)).select(f"{PLAN}.*")
    names = {name: f"{PLAN}_{name}" for name in fields.columns}
    joined = rows.join(F.broadcast(fields.withColumnsRenamed(names)), how="left")
    return joined, F.struct(*[F.col(long).alias(name) for name, long in names.items()]), [*names.values()]


def _with_sample(seen: DataFrame, point: DropPoint, mechanism: Mechanism) -> tuple[DataFrame, list[Column]]:
    """The rows with those marked that the policy is to be shown, and the aggregate that shows them, if there are any."""
    sampling = mechanism.sample(seen, point)
    if sampling is None:
        return seen, []
    # A column of its own, because what is observed is interpreted for every row, and not compiled.
    with_order = seen.withColumn(_SAMPLE, computed_once(sampling.order))
    sampled = F.col(_SAMPLE).isNotNull()
    if SAMPLED in seen.columns:  # a row is marked if it belongs to the sample of any drop point on its path
        sampled = F.col(SAMPLED) | sampled
    return with_order.withColumn(SAMPLED, sampled), [sampling.report(F.col(_SAMPLE)).alias(SAMPLE)]


def _decision(seen: DataFrame, point: DropPoint, mechanism: Mechanism, fields: Column) -> tuple[Column, Column, Column]:
    """Whether a row is kept, the weight that it leaves with, and the one that it would have if a dry run were none."""
    keep, weight = mechanism.decision(seen, point, fields)
    keep, weight = F.coalesce(keep, F.lit(True)), F.coalesce(weight, F.lit(1.0))  # no valid plan: keep everything
    if point.protect is not None:
        protected = F.coalesce(point.protect, F.lit(False))
        keep, weight = keep | protected, F.when(protected, F.lit(1.0)).otherwise(weight)
    before = F.col(WEIGHT) if WEIGHT in seen.columns else None
    along = weight if before is None else before * weight  # weights multiply along a path
    return keep, along if not point.dry_run else F.lit(1.0) if before is None else before, along


def _marked(
    kept: DataFrame,
    point: DropPoint,
    mechanism: Mechanism,
    fields: Column,
    passing: Sequence[str],
    sample: Sequence[Column],
) -> DataFrame:
    """The kept rows without what was only passing by, observed for what filters cannot count, if there is any."""
    kept = _with_arrivals(kept, point, fields, F.col(WEIGHT))
    counts = [*sample, *_learned(mechanism, F.lit(True)), *_arrival_counts(point)]
    # The plan is dropped before the rows are observed, because there every column is copied.
    kept = kept.drop(*(name for name in passing if name not in mechanism.learns_from))
    if not counts:
        return kept
    counted = kept.observe(point.metric, F.count(F.lit(1)).alias(KEPT), *counts)
    return counted.drop(_RECENT, _ARRIVED, _SAMPLE, *mechanism.learns_from)


def _emptied(
    seen: DataFrame,
    columns: Sequence[str],
    point: DropPoint,
    mechanism: Mechanism,
    fields: Column,
    keep: Column,
    weight: Column,
) -> DataFrame:
    """All rows, the dropped ones without weight and without the values of all columns but those that stay.

    They are emptied before they are observed, because there every column is copied.
    """
    stays, kept = {*mechanism.stays, point.arrival}, F.col(_KEEP)
    values = [
        F.col(f"`{name}`") if name in stays else F.when(kept, F.col(f"`{name}`")).alias(name)
        for name in columns
        if name != WEIGHT
    ]
    arrivals = _arrivals(seen, point, fields, F.lit(1.0))
    helpers = [kept, *map(F.col, mechanism.learns_from), *(column.alias(name) for name, column in arrivals.items())]
    decided = seen.withColumn(_KEEP, computed_once(keep))
    emptied = decided.select(*values, F.when(kept, weight).alias(WEIGHT), *helpers)
    more = [*_learned(mechanism, kept), *_arrival_counts(point)]
    counted = emptied.observe(point.metric, *_seen_and_kept(kept), *more)
    return counted.drop(_KEEP, _RECENT, _ARRIVED, *mechanism.learns_from)


def computed_once(column: Column) -> Column:
    """The same values, in a form that the optimizer does not copy to every place where the column is used.

    Filters are pushed below projections, with the projected expressions put in place of their names: a helper would be
    computed once for every use. It leaves alone what is not deterministic.
    """
    return F.when(F.spark_partition_id() >= 0, column)


def _seen_and_kept(keep: Column) -> list[Column]:
    return [F.count(F.lit(1)).alias(SEEN), F.count_if(keep).alias(KEPT)]


def _learned(mechanism: Mechanism, keep: Column) -> list[Column]:
    return [column.alias(name) for name, column in mechanism.learned(keep).items()]


def _with_arrivals(seen: DataFrame, point: DropPoint, fields: Column, rows: Column) -> DataFrame:
    return seen if point.arrival is None else seen.withColumns(_arrivals(seen, point, fields, rows))


def _arrivals(seen: DataFrame, point: DropPoint, fields: Column, rows: Column) -> dict[str, Column]:
    """Columns that tell when rows arrived; `rows` is what a row stands for. Computed before they are observed, because
    what is observed is interpreted for every row, and not compiled.
    """
    if point.arrival is None:
        return {}
    arrived = arrived_us(F.col(point.arrival))
    # The lowest bits of the hash, where decisions compare the highest.
    every = F.coalesce(fields[LOOK_EVERY], F.lit(MOST_OFTEN).cast("bigint"))
    looked_at = identity_hash(seen, point).bitwiseAND(every - 1) == 0
    return {
        _RECENT: F.when(arrived >= fields[NOW_US] - RECENT_US, rows),
        _ARRIVED: F.when(looked_at, arrived),
    }


def _arrival_counts(point: DropPoint) -> list[Column]:
    """When rows arrived, where that is known: quantiles of a sample, so that single wild timestamps count for nothing."""
    if point.arrival is None:
        return []
    quantiles = F.percentile_approx(_ARRIVED, [_OLD, _NEW], _RANKS)
    return [F.sum(_RECENT).alias(RECENT), quantiles.alias(ARRIVALS_US)]
