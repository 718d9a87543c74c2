"""What one run came to: how long rows waited, which windows were late, and how far answers were from the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jettison.lab.demo.experiment import Run
from jettison.lab.demo.verdict import row_latencies
from jettison.lab.prove.loads import Load
from jettison.lab.prove.workload import Workload

_NAN = math.nan
ANSWER_BOUNDS = 2.0
"""Bounds on row latency within which an answer must come after its window was due."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is said of a run. What could not be measured is not a number.

    Parameters
    ----------
    latency_p50_s, latency_p95_s, latency_p99_s
        Of rows that arrive from the beginning of the overload on; rows that wait at the end count with their wait so far.
    late_windows
        Share of the windows whose answers came later than two bounds after they were due, or never. A window is due when
        the row arrives that moves the watermark past it; one batch takes that row, and the next brings the answer.
    rows_processed
        Share of the rows that arrived and that the query worked on; of a rival without books, what it was set to.
    error_mean, error_p95
        Relative error of the answers that came, late ones included.
    groups_missing
        Share of the answers that are not there although their window is.
    utility
        Mean over all answers that were due: 1 less the relative error, at least 0; 0 where it is late or missing.
    coverage
        Share of the bounds given that hold the truth.
    recovery_s
        From the end of the overload until every later batch is within the bound; infinite if that is never, not a number
        where the load has no overload that ends.
    cpu_s
        Task CPU.
    feed_late_s
        The longest that a file landed after it was due.
    batches_a_window
        How many batches rows of one window came in, about: policies that learn from a window's earlier batches need many.
    load_average
        Of the machine at the end: far above the number of cores, others were at work too.
    """

    latency_p50_s: float = _NAN
    latency_p95_s: float = _NAN
    latency_p99_s: float = _NAN
    late_windows: float = _NAN
    rows_processed: float = _NAN
    error_mean: float = _NAN
    error_p95: float = _NAN
    groups_missing: float = _NAN
    utility: float = _NAN
    coverage: float = _NAN
    recovery_s: float = _NAN
    cpu_s: float = _NAN
    load_average: float = _NAN
    feed_late_s: float = _NAN
    batches_a_window: float = _NAN


MEASURES = {one.name: one.name.endswith("_s") for one in fields(Figures)}
"""All figures, and whether they are seconds."""
LARGER_IS_BETTER = {"rows_processed", "utility", "coverage"}


def latencies(run: Run, load: Load) -> tuple[float, float, float]:
    """Quantiles of row latency from the beginning of the overload on."""
    rows = row_latencies(run, run.batches).between(run.started_s + load.begin_s)
    found = [rows.quantile(q) for q in (0.5, 0.95, 0.99)]
    return tuple(_NAN if one is None else one for one in found)  # type: ignore[return-value]


def recovery_s(run: Run, load: Load, bound_s: float) -> float:
    """Seconds from the end of the overload until every later batch is within the bound."""
    if not 0.0 < load.end_s < load.duration_s:
        return _NAN
    end_s = run.started_s + load.end_s
    over = [
        batch.committed_s
        for batch in run.batches
        if batch.committed_s > end_s and batch.latencies(run.landing).max() > bound_s
    ]
    answered = run.batches[-1].last if run.batches else 0
    waits = answered < run.landed and run.ended_s - float(run.landing.arrival_of([answered])[0]) > bound_s
    if waits:
        return math.inf
    return max(over) - end_s if over else 0.0


def batches_a_window(run: Run, window_s: float) -> float:
    """Batches that begin within a window's length, of those that hold rows."""
    length_s = run.batches[-1].committed_s - run.batches[0].started_s if run.batches else 0.0
    return len(run.batches) * window_s / length_s if length_s > 0.0 else _NAN


def answer_figures(
    spark: SparkSession, workload: Workload, truth: DataFrame, output: Path, run: Run, bound_s: float
) -> dict[str, float]:
    """Hold the answers in `output` against the truth, over the windows that were due two bounds before the run ended.

    Of a workload with very many answers those of some keys are looked at, the same in every run.
    """
    within_s = ANSWER_BOUNDS * bound_s
    if not any(output.glob("*.parquet")):
        return {"late_windows": 1.0, "groups_missing": _NAN, "utility": 0.0}
    keys = [*(["end"] if workload.end_is_key else []), *workload.keys]
    came = spark.read.parquet(str(output)).withColumn("came", F.col("_metadata.file_modification_time"))
    answers = _narrow(_sample(came, workload), workload, keys, F.max("came").alias("came"))
    expected = _narrow(_sample(truth, workload), workload, keys, F.max("end").alias("due_end")).select(
        *keys, "due_end", *(F.col(one).alias(f"true_{one}") for one in workload.measures)
    )
    due = _due(spark, workload, expected, run, within_s)
    joined = expected.join(F.broadcast(due), "due_end").join(answers, keys, "left")
    in_time = F.coalesce(F.unix_micros("came") / 1e6 <= F.col("due_s") + within_s, F.lit(False))
    there = F.col("came").isNotNull()
    parts = [_judged(answers.schema, one) for one in workload.measures]
    error = sum((part["error"] for part in parts), F.lit(0.0)) / len(parts)
    judged = joined.select(
        "due_end",
        there.alias("there"),
        in_time.alias("in_time"),
        F.when(there, error).alias("error"),
        F.array(*(F.when(there, part["error"]) for part in parts)).alias("errors"),
        F.array(*(part["held"].cast("double") for part in parts)).alias("held"),
    ).cache()
    worth = F.when(F.col("in_time"), F.greatest(1.0 - F.col("error"), F.lit(0.0))).otherwise(0.0)
    held = F.filter("held", lambda one: one.isNotNull())
    windows = judged.groupBy("due_end").agg(
        F.count("*").alias("answers"),
        F.count_if("there").alias("there"),
        # A window is as late as the last of its answers that came; one of which none came is late.
        F.coalesce(F.min(F.when(F.col("there"), F.col("in_time"))), F.lit(False)).alias("in_time"),
        F.sum(worth).alias("worth"),
        F.sum("error").alias("error"),
        F.count("error").alias("errors"),
        F.sum(F.size(held)).alias("bounds"),
        F.sum(F.aggregate(held, F.lit(0.0), lambda so_far, one: so_far + one)).alias("held"),
    )
    found = windows.collect()
    errors = judged.where("there").select(F.explode("errors").alias("error"))
    high = errors.agg(F.percentile_approx("error", 0.95, 10_000)).first() if found else None
    judged.unpersist()
    delivered = [one for one in found if one.there]
    return {
        "late_windows": _mean(sum(not one.in_time for one in found), len(found)),
        "groups_missing": 1.0 - _mean(sum(one.there for one in delivered), sum(one.answers for one in delivered)),
        "utility": _mean(sum(one.worth for one in found), sum(one.answers for one in found)),
        "error_mean": _mean(sum(one.error or 0.0 for one in delivered), sum(one.errors for one in delivered)),
        "error_p95": _NAN if high is None or high[0] is None else float(high[0]),
        "coverage": _mean(sum(one.held for one in found), sum(one.bounds for one in found)),
    }


def _mean(total: float, count: int) -> float:
    return total / count if count else _NAN


def _sample(rows: DataFrame, workload: Workload) -> DataFrame:
    if workload.judged_one_in == 1:
        return rows
    return rows.where(F.pmod(F.xxhash64(*workload.keys), F.lit(workload.judged_one_in)) == 0)


def _due(spark: SparkSession, workload: Workload, truth: DataFrame, run: Run, within_s: float) -> DataFrame:
    """Windows that are judged, each with the time at which it was due."""
    ends = [row[0] / 1e6 for row in truth.select(F.unix_micros("due_end")).distinct().collect()]
    arrivals = workload.arrival_s([end + workload.delay_s for end in ends])
    due = [(end, run.started_s + at) for end, at in zip(ends, arrivals, strict=True)]
    rows = [(int(end * 1e6), at) for end, at in due if at + within_s <= run.ended_s]
    made = spark.createDataFrame(rows, "end_us BIGINT, due_s DOUBLE")
    return made.select(F.timestamp_micros("end_us").alias("due_end"), "due_s")


def _narrow(answers: DataFrame, workload: Workload, keys: Sequence[str], more: Column) -> DataFrame:
    """One answer for each key: sums, where several sessions of a key would have to be told apart by their ends."""
    if workload.end_is_key:
        first = [F.first(one).alias(one) for one in workload.measures]
        return answers.groupBy(*keys).agg(*first, more)
    sums = [F.sum(_value(answers.schema, one)).alias(one) for one in workload.measures]
    return answers.groupBy(*keys).agg(*sums, more)


def _value(schema: StructType, measure: str) -> Column:
    column = F.col(measure)
    return (column["value"] if isinstance(schema[measure].dataType, StructType) else column).cast("double")


def _judged(schema: StructType, measure: str) -> dict[str, Column]:
    """The relative error of one measure, and whether its bounds hold the truth, null where it has none."""
    true, value = F.col(f"true_{measure}").cast("double"), _value(schema, measure)
    error = F.when(true == 0.0, F.when(value == 0.0, 0.0).otherwise(1.0)).otherwise(F.abs(value / true - 1.0))
    held = F.lit(None).cast("boolean")
    if isinstance(schema[measure].dataType, StructType):
        bounded = F.col(measure)["status"] == "bounded"
        held = F.when(bounded, true.between(F.col(measure)["lower"], F.col(measure)["upper"]))
    return {"error": error, "held": held}
