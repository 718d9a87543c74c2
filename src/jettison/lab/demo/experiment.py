"""One run of a query, plain or shed, over rides that arrive on schedule: of the demo's, and of those that benchmarks run."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import jettison as jt
from jettison.errors import JettisonError, refuse
from jettison.lab.bench.kafka_feed import TopicFeed, topic_options, topic_rides
from jettison.lab.demo.feed import RideFeed
from jettison.lab.demo.landing import Landing
from jettison.lab.demo.pipeline import INTERVAL_S, POINT, Runner, fares, raw_rides, started
from jettison.lab.demo.schedule import Phase
from jettison.runtime.status import Status
from jettison.spark.listener import report_of

# Often enough to look alive, seldom enough not to take part in the experiment.
_POLL_S = 0.5
_PATIENCE_S = 60.0
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

    @property
    def rows(self) -> int:
        return self.last - self.first

    @property
    def counted(self) -> bool:
        """Whether its count is on record."""
        return not math.isnan(self.kept_fraction)

    def sample(self) -> npt.NDArray[np.int64]:
        """Evenly spaced rows of the batch."""
        return np.linspace(self.first, self.last - 1, num=min(_SAMPLES_PER_BATCH, self.rows)).astype(np.int64)

    def latencies(self, landing: Landing) -> npt.NDArray[np.float64]:
        """Latency of the rows of `sample`; a file that lands late counts as waiting time too."""
        return self.committed_s - landing.arrival_of(self.sample())


@dataclass(frozen=True, slots=True)
class Run:
    """What one run did. Times are seconds since the epoch.

    Parameters
    ----------
    name, landing
        What the run is called, and what arrived.
    started_s, query_started_s, ended_s
        When rows began to arrive, when the query was started, and when the run was judged.
    batches
        Those with rows that ended by then.
    landed
        How many rows arrived.
    feed_late_s
        The longest that a file landed after it was due: what the overload really was.
    load_average
        Of the machine at the end. Far above the number of cores: others were at work too.
    """

    name: str
    landing: Landing
    started_s: float
    query_started_s: float
    ended_s: float
    batches: Sequence[Batch] = ()
    landed: int = 0
    feed_late_s: float = 0.0
    load_average: float = field(default_factory=lambda: os.getloadavg()[0])


@dataclass(frozen=True, slots=True)
class Moment:
    """What the terminal shows while a run goes on; `kept_fraction` is that of the last batches on record."""

    run: str
    elapsed_s: float
    total_s: float
    arrival_rows_per_s: float
    kept_fraction: float
    latency_s: float
    note: str = ""


Watch = Callable[[Moment], None]


def run_fares(
    spark: SparkSession,
    folder: Path,
    phases: Sequence[Phase],
    bound_s: float | None,
    watch: Watch,
    address: str | None = None,
    known: float | None = None,
) -> Run:
    """Run the demo's query guarded, with a latency bound, or without one as it is: on files, or on a Kafka broker.

    `known` is the capacity in rows a second that the guard is told.
    """
    name = "plain" if bound_s is None else "shed"
    if address is None:
        feed = RideFeed(folder / "in", phases, interval_s=INTERVAL_S)
        writer, runner = fares(raw_rides(spark, folder / "in"), folder, bound_s, known=known)
    else:
        feed, topic = TopicFeed(address, name, phases), topic_options(address, name)
        writer, runner = fares(topic_rides(spark, topic), folder, bound_s, jt.KafkaEnds(topic), known=known)
    return run_query(name, feed, writer, runner, watch=watch)


def run_query(
    name: str,
    feed: RideFeed,
    writer: DataStreamWriter,
    runner: Runner,
    *,
    watch: Watch | None = None,
    least_batches: int = 0,
) -> Run:
    """Run a query for as long as its rides arrive, which begins before it does.

    Parameters
    ----------
    name, feed, writer
        What the run is called, what arrives, and the query.
    runner
        The query's shedder, whose guard is called `POINT`, or the checkpoint of a plain query.
    watch
        Told every now and then where the run stands.
    least_batches
        The query goes on until so many have ended, even where no more rides arrive.
    """
    shedder = runner if isinstance(runner, jt.Shedder) else None
    return run_begun(name, feed, partial(started, writer, runner), shedder, watch=watch, least_batches=least_batches)


def run_begun(
    name: str,
    feed: RideFeed,
    begin: Callable[[], StreamingQuery],
    shedder: jt.Shedder | None = None,
    *,
    watch: Watch | None = None,
    least_batches: int = 0,
) -> Run:
    """The same of a query that starts in a way of its own; without a shedder to ask, every row counts as kept."""
    with feed:
        query_started_s = time.time()
        query = begin()
        try:
            meter, progress = _Meter(name, feed, query), Progress.of(query)
            end_s = feed.started_s + feed.schedule.duration_s
            while (now_s := time.time()) < end_s and query.isActive:
                time.sleep(min(_POLL_S, end_s - now_s))
                progress.look()
                if watch is not None:
                    watch(meter.moment(shedder))
            ended_s = time.time()
            while len(progress.gather()) < least_batches and query.isActive and time.time() < ended_s + _PATIENCE_S:
                time.sleep(_POLL_S)
            events = progress.gather()
        finally:
            query.stop()
    if error := query.exception():
        raise error
    if len(events) < least_batches:
        hint = "this machine is too busy to measure anything now"
        refuse(f"{least_batches} batches", str(len(events)), hint=hint, error=JettisonError)
    if shedder is not None:
        shedder.await_books()
    report = feed.wait()
    batches = _batches(events, None if shedder is None else shedder.ledger)
    return Run(name, feed.landing, feed.started_s, query_started_s, ended_s, batches, report.rows, report.worst_late_s)


class Progress:
    """Every batch with rows of a running query, although Spark keeps the `retained` last events alone.

    It raises where an event was forgotten before a look: what follows would be taken for other rows.
    """

    def __init__(self, query: StreamingQuery, retained: int) -> None:
        self._query, self._retained = query, retained
        self._last_batch = -1
        self._with_rows: dict[int, StreamingQueryProgress] = {}

    @classmethod
    def of(cls, query: StreamingQuery) -> Progress:
        retained = SparkSession.active().conf.get("spark.sql.streaming.numRecentProgressUpdates")
        return cls(query, int(str(retained)))

    def look(self) -> None:
        """Gather once half of what Spark keeps is new: reading all of it takes long."""
        last = self._query.lastProgress
        if last is not None and last.batchId - self._last_batch >= self._retained // 2:
            self.gather()

    def gather(self) -> list[StreamingQueryProgress]:
        """The batches so far, in their order."""
        events = self._query.recentProgress
        if events and events[0].batchId > self._last_batch + 1:
            found = f"batch {self._last_batch}, and then {events[0].batchId}"
            refuse("the progress of every batch", found, hint="look more often", error=JettisonError)
        for event in events:
            if event.numInputRows:
                self._with_rows[event.batchId] = event
            # Of a query that waits, an event has the number of the batch to come.
            self._last_batch = max(self._last_batch, event.batchId - (not event.numInputRows))
        return list(self._with_rows.values())


class _Meter:
    """Reads off a running query what the terminal shows, without asking it for more than its last batch."""

    def __init__(self, name: str, feed: RideFeed, query: StreamingQuery) -> None:
        self._name, self._feed, self._query = name, feed, query
        self._last_batch, self._taken = -1, 0
        self._counted, self._kept_fraction = (0, 0), 1.0

    def moment(self, shedder: jt.Shedder | None) -> Moment:
        self._count()
        now_s = time.time()
        elapsed_s = now_s - self._feed.started_s
        waiting = self._taken < self._feed.schedule.rows
        oldest_s = float(self._feed.landing.arrival_of([self._taken])[0]) if waiting else now_s
        status = None if shedder is None else shedder.status()
        return Moment(
            run=self._name,
            elapsed_s=elapsed_s,
            total_s=self._feed.schedule.duration_s,
            arrival_rows_per_s=_rate_at(self._feed.phases, elapsed_s),
            kept_fraction=1.0 if status is None else self._kept(status),
            # The oldest row without an answer: what a person at the dashboard waits for right now.
            latency_s=max(now_s - oldest_s, 0.0),
            note="" if status is None else status.cause,
        )

    def _kept(self, status: Status) -> float:
        """A plan is for the next batch, and says nothing of late rows."""
        seen, kept = status.rows_by_point.get(POINT, self._counted)
        if seen > self._counted[0]:
            self._kept_fraction = (kept - self._counted[1]) / (seen - self._counted[0])
            self._counted = seen, kept
        return self._kept_fraction

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


def _batches(progress: Sequence[StreamingQueryProgress], ledger: jt.Ledger | None) -> list[Batch]:
    """Batches in their order, each with what the ledger counted; a plain query has none and keeps everything.

    Rows are taken in the order of their arrival: from a topic of several partitions to within a file of the schedule.
    """
    points = {record["batch_id"]: record["points"][POINT] for record in ledger.records("batch")} if ledger else {}
    kept = {batch_id: point["kept"] / max(point["seen"], 1) for batch_id, point in points.items() if point["exact"]}
    batches: list[Batch] = []
    taken = 0
    for event in progress:
        report = report_of(event, (), {})
        share = 1.0 if ledger is None else kept.get(event.batchId, math.nan)
        end_s = report.started_s + report.duration_s
        batches.append(Batch(event.batchId, report.started_s, end_s, taken, taken + event.numInputRows, share))
        taken += event.numInputRows
    return batches
