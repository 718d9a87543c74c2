"""Puts a drop point on a stream, once; afterwards only the plan changes.

A guarded DataFrame is the input with some rows removed and the column `jt_weight` added: the inverse of the
probability that the row was kept. Which rows those are is the mechanism's affair; what every mechanism shares is
here: fail open, protected rows, the dry run, and counting. Where the mechanism takes a sample for its policy, the
column `jt_sampled` marks its rows.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.spark import validate
from jettison.spark.drop_point import DropPoint, mark_number
from jettison.spark.mechanisms import Mechanism

WEIGHT = "jt_weight"
SAMPLED = "jt_sampled"
PLAN = "jt_plan"
_RECENT = "jt_recent"
RECENT_US = 1_000_000
"""Rows that arrived this shortly before their batch are counted apart: they tell how many arrive *now*."""


def guarded(rows: DataFrame, point: DropPoint, mechanism: Mechanism, plan: Column) -> DataFrame:
    """Apply a drop point to `rows`; `plan` is the channel's subquery over the mechanism's fields.

    The subquery becomes a column before it is used: every use of it in an expression is planned anew in every
    micro-batch, and a mechanism uses several of its fields.
    """
    seen = rows if point.observed else _marked_seen(rows, point)
    seen = seen.withColumn(PLAN, computed_once(plan))
    helpers = mechanism.helpers(seen, F.col(PLAN))
    passing = [PLAN, *(name for columns in helpers for name in columns)]
    validate.no_reserved_column(rows, [*passing, _RECENT])
    for columns in helpers:
        seen = seen.withColumns({name: computed_once(column) for name, column in columns.items()})
    sampling = mechanism.sample(seen, point)
    sample = [] if sampling is None else [sampling.report.alias("sample")]
    if sampling is not None:  # a row is marked if it belongs to the sample of any drop point on its path
        marked = F.col(SAMPLED) | sampling.sampled if SAMPLED in rows.columns else sampling.sampled
        seen = seen.withColumn(SAMPLED, marked)
    keep, weight = mechanism.decision(seen, point, F.col(PLAN))
    keep, weight = F.coalesce(keep, F.lit(True)), F.coalesce(weight, F.lit(1.0))  # no valid plan: keep everything
    if point.protect is not None:
        protected = F.coalesce(point.protect, F.lit(False))
        keep, weight = keep | protected, F.when(protected, F.lit(1.0)).otherwise(weight)
    if WEIGHT in rows.columns:  # weights multiply along a path
        weight = F.col(WEIGHT) * weight
    if point.dry_run:
        unweighted = F.col(WEIGHT) if WEIGHT in rows.columns else F.lit(1.0)
        return _observe_both(seen, point, keep, sample).withColumn(WEIGHT, unweighted).drop(*passing)
    if point.observed:
        return _observe_both(seen, point, keep, sample).where(keep).withColumn(WEIGHT, weight).drop(*passing)
    kept = _marked_kept(seen, point, keep).withColumn(WEIGHT, weight)
    arrivals: list[Column] = []
    if point.arrival is not None:
        kept = kept.withColumn(_RECENT, _recent(point.arrival, F.col(WEIGHT)))
        arrivals = [F.sum(_RECENT).alias("recent"), *_arrivals(point.arrival)]
    # The plan is dropped before the rows are observed, because there every column is copied.
    kept = kept.drop(*passing)
    if not arrivals and not sample:
        return kept
    return kept.observe(point.metric, F.count(F.lit(1)).alias("kept"), *arrivals, *sample).drop(_RECENT)


def computed_once(column: Column) -> Column:
    """The same values, in a form that the optimizer does not copy to every place where the column is used.

    Filters are pushed below projections, with the projected expressions put in place of their names: the subquery
    would be planned, and a helper computed, once for every use. It leaves alone what is not deterministic.
    """
    return F.when(F.spark_partition_id() >= 0, column)


def _observe_both(rows: DataFrame, point: DropPoint, keep: Column, sample: list[Column]) -> DataFrame:
    counts = [F.count(F.lit(1)).alias("seen"), F.count_if(keep).alias("kept"), *sample]
    if point.arrival:
        counts += [F.sum(_recent(point.arrival, F.lit(1.0))).alias("recent"), *_arrivals(point.arrival)]
    return rows.observe(point.metric, *counts)


# Without `observe`, rows are counted by two filters, whose own row counts are the rows seen and kept. Their marks
# never change a decision: a partition has no negative number. They make the conditions non-deterministic in the
# optimizer's eyes, so that neither filter is merged with one of the user's or moved past it.


def _marked_seen(rows: DataFrame, point: DropPoint) -> DataFrame:
    return rows.where(F.spark_partition_id() >= mark_number(point.name, "seen"))


def _marked_kept(rows: DataFrame, point: DropPoint, keep: Column) -> DataFrame:
    return rows.where(keep | (F.spark_partition_id() < mark_number(point.name, "kept")))


def _recent(arrival: str, rows: Column) -> Column:
    return F.when(_micros(arrival) >= F.col(PLAN)["now_us"] - RECENT_US, rows)


def _arrivals(arrival: str) -> list[Column]:
    micros = _micros(arrival)
    return [F.min(micros).alias("oldest_us"), F.max(micros).alias("newest_us")]


def _micros(arrival: str) -> Column:
    return F.unix_micros(F.col(arrival).cast("timestamp"))
