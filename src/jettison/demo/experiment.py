"""One run of the demo's query, plain or shed, over the same schedule of arrivals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt
from jettison.demo.feed import RideFeed
from jettison.demo.landing import Landing
from jettison.demo.pipeline import INTERVAL_S, guarded_rides, plain_fares, raw_rides, shed_fares
from jettison.demo.schedule import Phase
from jettison.spark.listener import report_of

# Often enough to look alive, seldom enough not to take part in the experiment.
_POLL_S = 0.5
_SAMPLES_PER_BATCH = 200


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch: the rows `first` to `last - 1` of the feed, committed at `committed_s`.

    `kept_fraction` is not a number where the ledger has no exact count of the batch.
    """

    batch_id: int
    started_s: float
    committed_s: float
    first: int
    last: int
    kept_fraction: float

    def sample(self) -> npt.NDArray[np.int64]:
        """Evenly spaced rows of the batch."""
        count = min(_SAMPLES_PER_BATCH, self.last - self.first)
        return np.linspace(self.first, self.last - 1, num=count).astype(np.int64)

    def latencies(self, landing: Landing) -> npt.NDArray[np.float64]:
        """Latency of the rows of `sample`; a file that lands late counts as waiting time too."""
        return self.committed_s - landing.arrival_of(self.sample())


@dataclass(slots=True)
class Run:
    """What one run did. Times are seconds since the epoch; `feed_late_s` is the longest that a file landed late."""

    name: str
    started_s: float
    ended_s: float = 0.0
    batches: list[Batch] = field(default_factory=list)
    landing: Landing | None = None
    landed: int = 0
    feed_late_s: float = 0.0
    ledger: jt.Ledger | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """What the terminal shows while a run goes on."""

    run: str
    elapsed_s: float
    total_s: float
    arrival_rows_per_s: float
    kept_fraction: float
    latency_s: float
    note: str = ""


Watch = Callable[[Moment], None]


def run_plain(spark: SparkSession, folder: Path, phases: Sequence[Phase], watch: Watch) -> Run:
    """Run the query as it is."""
    fares = plain_fares(raw_rides(spark, folder / "in"))
    writer = fares.writeStream.format("parquet").option("path", str(folder / "out"))
    start = writer.option("checkpointLocation", str(folder / "checkpoint")).start
    return _run("plain", folder, phases, start, lambda: (1.0, ""), watch)


def run_shed(spark: SparkSession, folder: Path, phases: Sequence[Phase], bound_s: float, watch: Watch) -> Run:
    """Run the same query guarded, with a latency bound."""
    shedder = jt.Shedder(latency=bound_s, checkpoint=folder / "checkpoint")
    rides = guarded_rides(shedder, raw_rides(spark, folder / "in"))
    writer = shed_fares(rides).writeStream.format("parquet").option("path", str(folder / "out"))

    def glance() -> tuple[float, str]:
        status = shedder.status()
        return status.keep_fraction["rides"], status.cause

    run = _run("shed", folder, phases, lambda: shedder.start(writer), glance, watch)
    run.ledger = shedder.ledger
    shedder.await_books()
    _with_kept_fractions(run)
    return run


def _run(
    name: str,
    folder: Path,
    phases: Sequence[Phase],
    start: Callable[[], StreamingQuery],
    glance: Callable[[], tuple[float, str]],
    watch: Watch,
) -> Run:
    query = start()
    try:
        with RideFeed(folder / "in", phases, interval_s=INTERVAL_S) as feed:
            run = Run(name, feed.started_s, landing=feed.landing)
            end_s = feed.started_s + sum(phase.duration_s for phase in phases)
            meter = _Meter(run, query, phases)
            while time.time() < end_s:
                time.sleep(_POLL_S)
                watch(meter.moment(*glance()))
            run.landed = feed.landed_rows()
        run.ended_s = time.time()
        run.feed_late_s = feed.wait().worst_late_s  # it was stopped above, should it have lagged behind its schedule
        run.batches = _batches(query.recentProgress)
    finally:
        query.stop()
    if error := query.exception():
        raise error
    return run


class _Meter:
    """Reads off a running query what the terminal shows, without asking it for more than its last batch."""

    def __init__(self, run: Run, query: StreamingQuery, phases: Sequence[Phase]) -> None:
        self._run = run
        self._query = query
        self._phases = phases
        self._last_batch = -1
        self._taken = 0

    def moment(self, kept_fraction: float, note: str) -> Moment:
        """Where the run stands now."""
        self._count()
        now_s = time.time()
        elapsed_s = now_s - self._run.started_s
        assert self._run.landing is not None
        waiting = self._taken < self._run.landing.schedule.rows
        oldest_s = float(self._run.landing.arrival_of([self._taken])[0]) if waiting else now_s
        return Moment(
            run=self._run.name,
            elapsed_s=elapsed_s,
            total_s=sum(phase.duration_s for phase in self._phases),
            arrival_rows_per_s=_rate_at(self._phases, elapsed_s),
            kept_fraction=kept_fraction,
            # The oldest row without an answer: what a person at the dashboard waits for right now.
            latency_s=max(now_s - oldest_s, 0.0),
            note=note,
        )

    def _count(self) -> None:
        last = self._query.lastProgress
        if last is None or last.batchId == self._last_batch:
            return
        if last.batchId == self._last_batch + 1:
            self._taken += last.numInputRows
        else:  # some batches were shorter than the time between two looks
            self._taken = sum(progress.numInputRows for progress in self._query.recentProgress)
        self._last_batch = last.batchId


def _rate_at(phases: Sequence[Phase], elapsed_s: float) -> float:
    for phase in phases:
        if elapsed_s < phase.duration_s:
            return phase.rows_per_s
        elapsed_s -= phase.duration_s
    return 0.0


def _batches(progress: Sequence[StreamingQueryProgress]) -> list[Batch]:
    batches: list[Batch] = []
    taken = 0
    for event in progress:
        if not event.numInputRows:
            continue
        report = report_of(event, ())
        committed_s = report.started_s + report.duration_s
        batches.append(
            Batch(event.batchId, report.started_s, committed_s, taken, taken + event.numInputRows, kept_fraction=1.0)
        )
        taken += event.numInputRows
    return batches


def _with_kept_fractions(run: Run) -> None:
    """Read from the ledger what each batch kept."""
    assert run.ledger is not None
    points = {record["batch_id"]: record["points"]["rides"] for record in run.ledger.records("batch")}
    kept = {batch_id: point["kept"] / max(point["seen"], 1) for batch_id, point in points.items() if point["exact"]}
    run.batches = [replace(batch, kept_fraction=kept.get(batch.batch_id, math.nan)) for batch in run.batches]
