"""What the demo's two runs come to: latency under overload, rows kept, and how good the answers are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from jettison.demo.experiment import Batch, Run
from jettison.demo.pipeline import WINDOW_S
from jettison.demo.schedule import Phase

FloatArray = npt.NDArray[np.float64]

# The controller may take this many batches of the overload to find its share.
SETTLING_BATCHES = 3
OVERLOAD_PHASE = 1


@dataclass(frozen=True, slots=True)
class Latency:
    """Row latency in the overload phase after the first batches; of rows still waiting at the end, their wait so far.

    `judged_batches` is how many batches that leaves; `None` stands for a latency of no row at all.
    `growth_s_per_s` is how fast the age of the oldest row without an answer grows: 0 where the query keeps up.
    `feed_late_s` is the longest that a file of the feed landed after it was due: what the overload really was.
    """

    judged_batches: int
    p50_s: float | None
    p95_s: float | None
    worst_s: float | None
    growth_s_per_s: float
    unanswered_rows: int
    feed_late_s: float


@dataclass(frozen=True, slots=True)
class Answers:
    """The delivered means against the exact ones, over windows that rows were dropped from.

    `bounds_coverage` is the share of answers whose 95 % bounds hold the exact mean. `None` where nothing was shed.
    """

    windows: int
    answers: int
    exact_answers: int
    mean_relative_error: float | None
    bounds_coverage: float | None
    groups_missing: int


def overload_span(phases: Sequence[Phase]) -> tuple[float, float]:
    """Begin and end of the overload, in seconds since the start of the run."""
    begin = sum(phase.duration_s for phase in phases[:OVERLOAD_PHASE])
    return begin, begin + phases[OVERLOAD_PHASE].duration_s


def overload_batches(run: Run, phases: Sequence[Phase], *, after: int = SETTLING_BATCHES) -> list[Batch]:
    """Batches that hold rows of the overload, after the first few."""
    assert run.landing is not None
    schedule, (begin, end) = run.landing.schedule, overload_span(phases)
    first, last = (
        int(np.searchsorted(schedule.arrival_us(np.arange(run.landed)), edge * 1e6)) for edge in (begin, end)
    )
    return [batch for batch in run.batches if batch.last > first and batch.first < last][after:]


def latency(run: Run, phases: Sequence[Phase]) -> Latency:
    """Judge the latency of one run under overload; an overload that ends within its first batches leaves no verdict."""
    begin, end = (run.started_s + edge for edge in overload_span(phases))
    batches = overload_batches(run, phases)
    value, weight, waits = row_latencies(run, batches, begin, end)
    return Latency(
        judged_batches=len(batches),
        p50_s=weighted_quantile(value, weight, 0.50),
        p95_s=weighted_quantile(value, weight, 0.95),
        worst_s=float(value.max()) if len(value) else None,
        # Over all of the overload: a query that falls behind has few batches, each longer than the one before.
        growth_s_per_s=_growth(run, overload_batches(run, phases, after=0)),
        unanswered_rows=int(weight[waits].sum()),
        feed_late_s=run.feed_late_s,
    )


def row_latencies(
    run: Run, batches: Sequence[Batch], begin_s: float, end_s: float
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Latency of sampled rows of some batches that arrived in a stretch of time, and of all rows that still wait.

    With each goes the number of rows that it stands for, and whether it still waits: then it is its wait so far.
    """
    assert run.landing is not None
    answered = run.batches[-1].last if run.batches else 0
    waiting = np.arange(answered, run.landed, max((run.landed - answered) // 2000, 1))
    samples = [(batch.sample(), batch.committed_s, batch.last - batch.first) for batch in batches]
    samples.append((waiting, run.ended_s, run.landed - answered))
    when = np.concatenate([run.landing.arrival_of(rows) for rows, _, _ in samples])
    value = np.concatenate([done_s - run.landing.arrival_of(rows) for rows, done_s, _ in samples])
    weight = np.concatenate([np.full(len(rows), count / max(len(rows), 1)) for rows, _, count in samples])
    waits = np.concatenate([np.full(len(rows), rows is waiting) for rows, _, _ in samples])
    inside = (when >= begin_s) & (when < end_s)
    return value[inside], weight[inside], waits[inside]


def _growth(run: Run, batches: Sequence[Batch]) -> float:
    assert run.landing is not None
    ages = [(batch.committed_s, float(batch.latencies(run.landing).max())) for batch in batches]
    if run.batches and run.batches[-1].last < run.landed:
        ages.append((run.ended_s, run.ended_s - float(run.landing.arrival_of([run.batches[-1].last])[0])))
    if len(ages) < 2:
        return 0.0
    when, age = np.array(ages).T
    return float(np.polyfit(when - when[0], age, 1)[0])


def kept_fraction(run: Run, phases: Sequence[Phase]) -> float | None:
    """Share of the rows kept under overload, after the first batches; over batches whose count is on record.

    `None` where there is no such batch.
    """
    batches = _counted(overload_batches(run, phases))
    seen = sum(batch.last - batch.first for batch in batches)
    return sum(batch.kept_fraction * (batch.last - batch.first) for batch in batches) / seen if seen else None


def kept_fraction_variation(run: Run, phases: Sequence[Phase]) -> float | None:
    """Standard deviation of the batches' kept fractions over their mean, in the steady part of the overload.

    `None` where there is no such batch, or no row was kept.
    """
    shares = np.array([batch.kept_fraction for batch in _counted(overload_batches(run, phases))])
    return float(shares.std() / shares.mean()) if shares.any() else None


def batches_not_counted(run: Run) -> int:
    """Batches of which the ledger has no exact count: they say nothing of the share kept."""
    return len(run.batches) - len(_counted(run.batches))


def _counted(batches: Sequence[Batch]) -> list[Batch]:
    return [batch for batch in batches if not math.isnan(batch.kept_fraction)]


def answers(spark: SparkSession, run: Run, output: Path) -> Answers:
    """Compare every delivered answer with the exact one."""
    assert run.landing is not None
    rows = spark.read.parquet(str(output)).selectExpr("unix_timestamp(window.start) as start", "zone", "fare").collect()
    truth = run.landing.truth(window_s=WINDOW_S, rows=run.landed).answers
    delivered = {(row.start, row.zone): row.fare for row in rows}
    windows = {start for start, _ in delivered}
    newest = max(windows, default=-math.inf)  # windows close in order: all up to this one must be there
    missing = [key for key in truth if key[0] <= newest and key not in delivered]
    shed = {key: fare for key, fare in delivered.items() if fare.status != "exact"}
    errors = [abs(fare.value / truth[key].fare_mean - 1.0) for key, fare in shed.items()]
    bounded = {key: fare for key, fare in shed.items() if fare.lower is not None}
    held = [fare.lower <= truth[key].fare_mean <= fare.upper for key, fare in bounded.items()]
    return Answers(
        windows=len(windows),
        answers=len(shed),
        exact_answers=len(delivered) - len(shed),
        mean_relative_error=float(np.mean(errors)) if errors else None,
        bounds_coverage=float(np.mean(held)) if held else None,
        groups_missing=len(missing),
    )


def weighted_quantile(values: FloatArray, weights: FloatArray, q: float) -> float | None:
    """The least value that a share `q` of the weight does not exceed; `None` of no values."""
    if not len(values):
        return None
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) >= q * weights.sum()
    return float(values[order][np.argmax(reached)])
