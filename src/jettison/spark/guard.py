"""Compiles a drop point into native Spark columns, once; afterwards only the plan changes.

A guarded DataFrame is the input with some rows removed and the column `jt_weight` added: the inverse of the
probability that the row was kept. The decision compares a hash of the row's identity with a threshold, so that a
retried task keeps the same rows and a lower keep fraction keeps a subset of a higher one. While nothing is dropped,
the hash is not even computed.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

WEIGHT = "jt_weight"
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class DropPoint:
    """Where rows may be dropped, and how they are told apart.

    Parameters
    ----------
    name
        Unique among the drop points of a shedder.
    id
        Columns whose values identify a row; rows that agree in all of them share one decision.
    arrival
        Timestamp column of the row's arrival at the source, or `None`.
    protect
        Predicate of rows that are never dropped, or `None`.
    dry_run
        Decide and count, but drop nothing.
    observed
        Count rows by `observe` on the row path. Otherwise the filters are marked, and their own row counts tell.
    """

    name: str
    id: tuple[str, ...]
    arrival: str | None = None
    protect: Column | None = None
    dry_run: bool = False
    observed: bool = True

    @property
    def metric(self) -> str:
        """Name of the drop point's counts among the observed metrics."""
        return f"jettison:{self.name}"

    @property
    def plan_metric(self) -> str:
        """Name of the plan version that the drop point read, among the observed metrics."""
        return f"jettison-plan:{self.name}"

    @property
    def seen_mark(self) -> str:
        """Text that only the filter which counts rows seen contains."""
        return f"SPARK_PARTITION_ID() >= {_mark(self.name, 'seen')}"

    @property
    def kept_mark(self) -> str:
        """Text that only the filter which drops rows contains."""
        return f"SPARK_PARTITION_ID() < {_mark(self.name, 'kept')}"


def plan_fields(name: str) -> dict[str, Column]:
    """What the guard of drop point `name` needs of the plan, as expressions over the parsed plan."""
    setting = F.col("points")[name]
    keep, late = setting["keep_fraction"], setting["late_keep_fraction"]
    return {
        "everything": (keep >= 1.0) & F.coalesce(late >= 1.0, F.lit(True)),
        "threshold": _threshold(keep),
        "weight": _weight(keep),
        "late_threshold": _threshold(F.coalesce(late, keep)),
        "late_weight": _weight(F.coalesce(late, keep)),
        "late_after_us": F.coalesce((setting["late_after_s"] * 1e6).cast("bigint"), F.lit(_HIGHEST)),
    }


def guarded(rows: DataFrame, point: DropPoint, plan: Column) -> DataFrame:
    """Apply a drop point to `rows`; `plan` is the channel's subquery over the fields of `plan_fields`."""
    decision, weight = _decision(rows, point, plan)
    if point.dry_run:
        kept = _observe_both(rows, point, decision)
        weight = F.lit(1.0)
    elif point.observed:
        kept = _observe_both(rows, point, decision).where(decision)
    else:
        kept = _marked(rows, point, decision)
        if point.arrival:
            kept = kept.observe(point.metric, F.count(F.lit(1)).alias("kept"), *_arrivals(point.arrival))
    if WEIGHT in rows.columns:  # weights multiply along a path
        weight = F.col(WEIGHT) * weight
    return kept.withColumn(WEIGHT, weight)


def _decision(rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
    """Whether a row is kept, and its weight if it is."""
    field = {name: plan[name] for name in plan_fields(point.name)}
    everything = F.coalesce(field["everything"], F.lit(True))  # no valid plan: keep everything
    threshold, weight = field["threshold"], field["weight"]
    if point.arrival:
        age_us = F.unix_micros(F.current_timestamp()) - F.unix_micros(rows[point.arrival].cast("timestamp"))
        late = F.coalesce(age_us > field["late_after_us"], F.lit(False))
        threshold = F.when(late, field["late_threshold"]).otherwise(threshold)
        weight = F.when(late, field["late_weight"]).otherwise(weight)
    keep = everything | (_hash(rows, point) <= threshold)
    weight = F.when(everything, F.lit(1.0)).otherwise(weight)
    if point.protect is not None:
        protected = F.coalesce(point.protect, F.lit(False))
        keep, weight = keep | protected, F.when(protected, F.lit(1.0)).otherwise(weight)
    return keep, weight


def _hash(rows: DataFrame, point: DropPoint) -> Column:
    # The salt makes the decisions of two drop points on the same identity independent.
    return F.xxhash64(F.lit(zlib.crc32(point.name.encode())), *[rows[column] for column in point.id])


def _threshold(keep_fraction: Column) -> Column:
    """The largest hash that is kept. Exact at 1; at 0 one hash in 2**64 is still kept."""
    inside = (keep_fraction * float(2**64) + float(_LOWEST)).cast("bigint")
    return F.when(keep_fraction >= 1.0, F.lit(_HIGHEST)).when(keep_fraction <= 0.0, F.lit(_LOWEST)).otherwise(inside)


def _weight(keep_fraction: Column) -> Column:
    return F.when(keep_fraction > 0.0, 1.0 / keep_fraction)


def _observe_both(rows: DataFrame, point: DropPoint, decision: Column) -> DataFrame:
    counts = [F.count(F.lit(1)).alias("seen"), F.count_if(decision).alias("kept")]
    return rows.observe(point.metric, *counts, *(_arrivals(point.arrival) if point.arrival else []))


def _marked(rows: DataFrame, point: DropPoint, decision: Column) -> DataFrame:
    """Filter between two marks, so that the filters' own row counts are the rows seen and kept.

    The marks never change a decision: a partition has no negative number. They make the conditions
    non-deterministic in the optimizer's eyes, so that neither filter is merged with one of the user's or moved.
    """
    always = F.spark_partition_id() >= _mark(point.name, "seen")
    never = F.spark_partition_id() < _mark(point.name, "kept")
    return rows.where(always).where(decision | never)


def _mark(name: str, side: str) -> int:
    return -1 - zlib.crc32(f"{side} {name}".encode()) // 2


def _arrivals(arrival: str) -> list[Column]:
    micros = F.unix_micros(F.col(arrival).cast("timestamp"))
    return [F.min(micros).alias("oldest_us"), F.max(micros).alias("newest_us")]
