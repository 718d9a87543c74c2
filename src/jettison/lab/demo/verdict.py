"""What the demo's two runs come to: latency under overload, rows kept, and how good the answers are."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from jettison.lab.demo.experiment import Batch, Run
from jettison.lab.demo.pipeline import WINDOW_S
from jettison.lab.demo.schedule import Phase

FloatArray = npt.NDArray[np.float64]

# The controller may take this many batches of the overload to find its share.
SETTLING_BATCHES = 3
HELD_SHARE = 0.25
"""A bound counts as held if it holds for good before more than this share of the overload has passed."""
HELD_BATCHES = 5
"""So many batches, after the first few, it takes to judge."""
OVERLOAD_PHASE, MINUTE_S = 1, 60.0


class Held(enum.Enum):
    """Whether a run held its latency bound under overload."""

    YES = "yes"
    CAME_BACK = "came back"
    NO = "no"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Latency:
    """Row latency under overload; of rows still waiting at the end, their wait so far.

    `latency_peak_s` is that of all batches with rows of the overload. `back_under_bound_s` counts from the step of the
    load until every later batch is within `bound_s`: 0 if all are, `None` if the last one is not, or a row that waits. As a
    share of the overload's length, at most 1, it is `over_bound_share`. `over_bound_batches` and `over_bound_rows` count
    the batches with rows from the step on that are not within it, and the rows in them that are not.

    `latency_p50_s`, `latency_p95_s` and `latency_worst_s` are over the `judged_batches`, those after the first few; `None`
    if there are none. `latency_growth_s_per_s` is how fast the age of the oldest row without an answer grows over the
    overload: 0 where the query keeps up, 1 where no batch ends, and below 0 while it catches up.
    """

    bound_s: float
    latency_peak_s: float | None
    back_under_bound_s: float | None
    over_bound_share: float
    over_bound_batches: int
    over_bound_rows: int
    judged_batches: int
    latency_p50_s: float | None
    latency_p95_s: float | None
    latency_worst_s: float | None
    latency_growth_s_per_s: float
    unanswered_rows: int
    feed_late_s: float

    @property
    def held(self) -> Held:
        """Whether the bound was held: with 95 % of the rows judged within, and soon enough after the step."""
        if self.back_under_bound_s is None or (self.latency_p95_s is not None and self.latency_p95_s > self.bound_s):
            return Held.NO
        if self.over_bound_share > HELD_SHARE:
            return Held.CAME_BACK
        return Held.YES if self.judged_batches >= HELD_BATCHES else Held.UNKNOWN


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows kept under overload, after the first batches; over batches of which the ledger has an exact count.

    `kept_fraction_variation` is the standard deviation of the batches' shares over their mean. `None` where there is no
    such batch. `batches_not_counted` are those of the whole run that say nothing of the share kept.
    """

    kept_fraction: float | None
    kept_fraction_variation: float | None
    batches_not_counted: int


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


@dataclass(frozen=True, slots=True)
class FirstMinute:
    """What a run did with the rows that arrived in its first minute.

    `kept_below_capacity` is the share kept of those that arrived before the overload, which had better be 1; shares are
    over batches that ended and whose count is on record. `None` where there is no such batch, or no row.
    `unanswered_rows` are those in no batch that ended: what was dropped of them is not known.
    """

    first_batch_s: float | None
    latency_p95_s: float | None
    latency_worst_s: float | None
    kept_fraction: float | None
    kept_below_capacity: float | None
    unanswered_rows: int


@dataclass(frozen=True, slots=True)
class RowLatencies:
    """Sampled rows: arrival, latency, how many rows each stands for, and whether it still waits."""

    arrival_s: FloatArray
    latency_s: FloatArray
    rows: FloatArray
    waits: npt.NDArray[np.bool_]

    def between(self, begin_s: float, end_s: float = math.inf) -> RowLatencies:
        inside = (self.arrival_s >= begin_s) & (self.arrival_s < end_s)
        return RowLatencies(self.arrival_s[inside], self.latency_s[inside], self.rows[inside], self.waits[inside])

    def quantile(self, q: float) -> float | None:
        """The least latency that a share `q` of the rows does not exceed; `None` of no rows."""
        if not len(self.rows):
            return None
        return float(np.quantile(self.latency_s, q, weights=self.rows, method="inverted_cdf"))

    @property
    def unanswered(self) -> int:
        """How many rows wait."""
        return round(float(self.rows[self.waits].sum()))


def overload_span(phases: Sequence[Phase]) -> tuple[float, float]:
    """Begin and end of the overload, in seconds since the start of the run."""
    begin = sum(phase.duration_s for phase in phases[:OVERLOAD_PHASE])
    return begin, begin + phases[OVERLOAD_PHASE].duration_s


def overload_batches(run: Run, phases: Sequence[Phase], *, after: int = SETTLING_BATCHES) -> list[Batch]:
    """Batches that hold rows of the overload, after the first few."""
    first, last = (run.landing.schedule.rows_by(edge_s * 1e6) for edge_s in overload_span(phases))
    return [batch for batch in run.batches if batch.last > first and batch.first < last][after:]


def latency(run: Run, phases: Sequence[Phase], bound_s: float) -> Latency:
    """Judge the latency of one run under overload; an overload that ends within its first batches leaves no verdict."""
    begin_s, end_s = overload_span(phases)
    begin, end = run.started_s + begin_s, run.started_s + end_s
    judged = overload_batches(run, phases)
    rows = row_latencies(run, judged).between(begin, end)
    oldest = [float(batch.latencies(run.landing).max()) for batch in overload_batches(run, phases, after=0)]
    if rows.unanswered:
        oldest.append(_waits_s(run))
    step = run.landing.schedule.rows_by(begin_s * 1e6)
    back_s, over = _back_under(run, step, begin, bound_s), _over(run, step, bound_s)
    return Latency(
        bound_s=bound_s,
        latency_peak_s=max(oldest, default=None),
        back_under_bound_s=back_s,
        over_bound_share=1.0 if back_s is None else min(back_s / (end_s - begin_s), 1.0),
        over_bound_batches=len(over),
        over_bound_rows=_rows_over(run, over, begin, bound_s),
        judged_batches=len(judged),
        latency_p50_s=rows.quantile(0.50) if judged else None,
        latency_p95_s=rows.quantile(0.95) if judged else None,
        latency_worst_s=rows.quantile(1.0) if judged else None,
        latency_growth_s_per_s=_growth(run, begin, end),
        unanswered_rows=rows.unanswered,
        feed_late_s=run.feed_late_s,
    )


def _waits_s(run: Run) -> float:
    """How long the oldest row without an answer has waited at the end; 0 if there is none."""
    answered = run.batches[-1].last if run.batches else 0
    return run.ended_s - float(run.landing.arrival_of([answered])[0]) if answered < run.landed else 0.0


def _back_under(run: Run, first_row: int, begin_s: float, bound_s: float) -> float | None:
    """Seconds from the step until every later batch is within the bound."""
    over = _over(run, first_row, bound_s)
    if _waits_s(run) > bound_s or (over and over[-1] is run.batches[-1]):
        return None
    return over[-1].committed_s - begin_s if over else 0.0


def _over(run: Run, first_row: int, bound_s: float) -> list[Batch]:
    """Batches with rows from this one on that are not within the bound."""
    return [b for b in run.batches if b.last > first_row and b.latencies(run.landing).max() > bound_s]


def _rows_over(run: Run, batches: Sequence[Batch], begin_s: float, bound_s: float) -> int:
    """Rows from then on that are not within the bound, those that still wait included."""
    rows = row_latencies(run, batches).between(begin_s)
    return round(float(rows.rows[rows.latency_s > bound_s].sum()))


def row_latencies(run: Run, batches: Sequence[Batch]) -> RowLatencies:
    """Latency of sampled rows of some batches, and of all rows that still wait: of these, their wait so far."""
    answered = run.batches[-1].last if run.batches else 0
    waiting = np.arange(answered, run.landed, max((run.landed - answered) // 2000, 1))
    samples = [(batch.sample(), batch.committed_s, batch.rows) for batch in batches]
    samples.append((waiting, run.ended_s, run.landed - answered))
    sizes = [len(rows) for rows, _, _ in samples]
    arrival_s = run.landing.arrival_of(np.concatenate([rows for rows, _, _ in samples]))
    return RowLatencies(
        arrival_s=arrival_s,
        latency_s=np.repeat([done_s for _, done_s, _ in samples], sizes) - arrival_s,
        rows=np.repeat([count / max(size, 1) for (_, _, count), size in zip(samples, sizes, strict=True)], sizes),
        waits=np.arange(len(arrival_s)) >= len(arrival_s) - len(waiting),
    )


def _growth(run: Run, begin_s: float, end_s: float) -> float:
    """Slope of the oldest unanswered row's age, at moments and not at commits: a query far behind has hardly any."""
    moments = np.linspace(begin_s, min(end_s, run.ended_s), 1000)
    ended = np.searchsorted([batch.committed_s for batch in run.batches], moments, side="right")
    answered = np.array([0, *(batch.last for batch in run.batches)])[ended]
    # Where all rows have an answer, nobody waits.
    arrival = run.landing.arrival_of(np.minimum(answered, run.landed - 1))
    age = np.where(answered < run.landed, np.maximum(moments - arrival, 0.0), 0.0)
    return float(np.polyfit(moments - begin_s, age, 1)[0])


def kept(run: Run, phases: Sequence[Phase]) -> Kept:
    """What was kept of the overload."""
    counted = [batch for batch in overload_batches(run, phases) if batch.counted]
    shares = np.array([batch.kept_fraction for batch in counted])
    return Kept(
        kept_fraction=float(np.average(shares, weights=[batch.rows for batch in counted])) if counted else None,
        kept_fraction_variation=float(shares.std() / shares.mean()) if shares.any() else None,
        batches_not_counted=sum(not batch.counted for batch in run.batches),
    )


def first_minute(run: Run, phases: Sequence[Phase]) -> FirstMinute:
    """Judge the rows that arrived in the first minute, from the very first batch on."""
    first = run.batches[0] if run.batches else None
    rows = row_latencies(run, run.batches).between(run.started_s, run.started_s + MINUTE_S)
    calm_s, _ = overload_span(phases)
    return FirstMinute(
        first_batch_s=None if first is None else first.committed_s - first.started_s,
        latency_p95_s=rows.quantile(0.95),
        latency_worst_s=rows.quantile(1.0),
        kept_fraction=_kept_until(run, MINUTE_S),
        kept_below_capacity=_kept_until(run, calm_s),
        unanswered_rows=rows.unanswered,
    )


def _kept_until(run: Run, until_s: float) -> float | None:
    """Share kept of the rows that arrived up to then; a batch is taken to keep early and late rows alike."""
    last = run.landing.schedule.rows_by(until_s * 1e6)
    counted = [batch for batch in run.batches if batch.first < last and batch.counted]
    rows = [min(batch.last, last) - batch.first for batch in counted]
    return float(np.average([batch.kept_fraction for batch in counted], weights=rows)) if counted else None


def answers(spark: SparkSession, run: Run, output: Path) -> Answers:
    """Compare every delivered answer with the exact one."""
    rows = spark.read.parquet(str(output)).selectExpr("unix_timestamp(window.start) as start", "zone", "fare").collect()
    truth = run.landing.truth(window_s=WINDOW_S, rows=run.landed)
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
