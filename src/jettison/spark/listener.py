"""Turns Spark's progress events into batch reports for the pilot. Asynchronous: it never blocks the query."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

from jettison.core.batch_report import BatchReport
from jettison.core.stats import EventTimes
from jettison.runtime.pilot import Pilot
from jettison.spark.channel import version_read
from jettison.spark.drop_point import ARRIVALS_US, KEPT, NOW_US, RECENT, SEEN, DropPoint
from jettison.spark.guard import RECENT_US
from jettison.spark.mechanisms import Mechanism
from jettison.spark.unstarted import is_foreign

# Spark's own sinks that run the plan of a batch once, as they describe themselves. Of all others that is not known.
_RUNS_ONCE = re.compile(
    r"(org\.apache\.spark\.[\w.]+[.$])?(NoopTable|ConsoleTable|ForeachWriterTable|KafkaTable|MemorySink|FileSink)\b"
)


class ProgressListener(StreamingQueryListener):
    """Feeds the batches of one query run to its pilot, each once and in order, and tells it of others under its plans.

    It is added after the query has started: the start of any query calls all listeners on a thread of that query, and
    Python keeps a thread for each such thread of the JVM. What happened before is taken from the query itself, and so is
    what no event tells of because the session was stopped; Spark remembers the last hundred batches or so, and those
    before them are missing, which the pilot is told. The end of the run goes to `on_end`, with the error that ended it
    if there was one. `report` makes of an event what the pilot reads. Who observes one of `plan_metrics` reads its plans.
    """

    def __init__(
        self,
        pilot: Pilot,
        report: Callable[[StreamingQueryProgress], BatchReport],
        run_id: str,
        on_end: Callable[[str | None], None],
        plan_metrics: Collection[str] = (),
    ) -> None:
        super().__init__()
        self._pilot = pilot
        self._report = report
        self._run_id = run_id
        self._on_end = on_end
        self._lock = threading.RLock()
        self._last_batch = -1
        self._plan_metrics = plan_metrics
        self._foreign: set[str] = set()

    def attach(self, streams: StreamingQueryManager, query: StreamingQuery) -> None:
        """Begin to listen to a query that has started."""
        with self._lock:  # no event overtakes what came before it
            streams.addListener(self)
            self.catch_up(query)

    def catch_up(self, query: StreamingQuery) -> None:
        """Take in the batches that no event has told of."""
        with self._lock:
            last = query.lastProgress
            if last is None or last.batchId + _is_batch(last) <= self._last_batch + 1:
                return
            for progress in query.recentProgress:
                if _is_batch(progress):
                    self._tell(progress)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to do: our own query has started already."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch has ended."""
        run, observed = str(event.progress.runId), event.progress.observedMetrics
        if run == self._run_id:
            with self._lock:
                self._tell(event.progress)
        elif run not in self._foreign and any(name in observed for name in self._plan_metrics) and is_foreign(run):
            self._foreign.add(run)
            self._pilot.shared(event.progress.name or run)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """The source had nothing to offer for a while."""
        if str(event.runId) == self._run_id:
            self._pilot.idle(_epoch_s(event.timestamp))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query has ended, for whatever reason."""
        if str(event.runId) == self._run_id:
            error = event.exception
            # On a thread of its own: closing waits for the books, and other queries' events must not wait with it.
            threading.Thread(target=lambda: self._on_end(error), name="jettison-close", daemon=True).start()

    def _tell(self, progress: StreamingQueryProgress) -> None:
        batch, expected = progress.batchId, self._last_batch + 1
        if batch < expected:
            return
        self._last_batch = batch
        if batch > expected > 0:  # a run may begin with any batch
            self._pilot.missed(range(expected, batch), "missing among the events, and forgotten by Spark")
        try:
            report = self._report(progress)
        except Exception as error:  # Spark would only log it
            self._pilot.missed(range(batch, batch + 1), f"its report cannot be read ({type(error).__name__}: {error})")
        else:
            self._pilot.batch(report)


def _is_batch(progress: StreamingQueryProgress) -> bool:
    """Whether a batch was run; an idle query reports progress too, under the number of the batch to come."""
    return "addBatch" in progress.durationMs


def report_of(
    progress: StreamingQueryProgress, points: tuple[DropPoint, ...], mechanisms: Mapping[str, Mechanism]
) -> BatchReport:
    """What one progress event says about the drop points, each of which has a mechanism."""
    observed: dict[str, Any] = {name: row.asDict() for name, row in progress.observedMetrics.items()}
    rows = {point.name: observed[point.metric] for point in points if point.metric in observed}
    versions = [version_read(observed, point.plan_metric) for point in points]
    arrivals = [row[ARRIVALS_US] for row in rows.values() if row.get(ARRIVALS_US)]
    return BatchReport(
        run_id=str(progress.runId),
        batch_id=progress.batchId,
        started_s=_epoch_s(progress.timestamp),
        duration_s=progress.durationMs.get("triggerExecution", progress.batchDuration) / 1e3,
        input_rows=progress.numInputRows,
        plan_version=None if None in versions else min((v for v in versions if v is not None), default=None),
        seen={name: row[SEEN] for name, row in rows.items() if SEEN in row},
        kept={name: row[KEPT] for name, row in rows.items()},
        oldest_arrival_s=min(oldest for oldest, _ in arrivals) / 1e6 if arrivals else None,
        newest_arrival_s=max(newest for _, newest in arrivals) / 1e6 if arrivals else None,
        recent_rows_per_s=_recent_rows_per_s(rows, {point.name: observed.get(point.plan_metric) for point in points}),
        event_times=_event_times(progress.eventTime or {}),
        work_s=progress.durationMs["addBatch"] / 1e3 if "addBatch" in progress.durationMs else None,
        waiting_rows=_waiting_rows([(source.latestOffset, source.endOffset) for source in progress.sources]),
        observed={name: read for name, row in rows.items() if (read := mechanisms[name].read(row)) is not None},
        nothing_new=bool(progress.sources) and all(each.startOffset == each.endOffset for each in progress.sources),
        any_runs=_RUNS_ONCE.match(progress.sink.description) is None,
    )


def _recent_rows_per_s(rows: Mapping[str, Any], plans: Mapping[str, Any]) -> float | None:
    """Arrival rate from the start of the last second before the batch until its newest row, over all drop points."""
    rates = []
    for name, row in rows.items():
        now_us = (plans[name] or {}).get(NOW_US)
        if now_us is None or row.get(RECENT) is None or not row.get(ARRIVALS_US):
            continue
        covered_us = row[ARRIVALS_US][1] - (now_us - RECENT_US)
        if covered_us >= RECENT_US / 4:  # less than that says too little
            rates.append(row[RECENT] / covered_us * 1e6)
    return sum(rates) if rates else None


def _waiting_rows(offsets: Sequence[tuple[str | None, str | None]]) -> int | None:
    """Rows that the sources had and the batch did not take, where all of them tell offsets by topic and partition."""
    if not offsets:
        return None
    waiting = 0
    try:
        for latest, end in offsets:
            taken = json.loads(end or "")
            for topic, partitions in json.loads(latest or "").items():
                waiting += sum(max(at - taken[topic][one], 0) for one, at in partitions.items())
    except (ValueError, TypeError, KeyError, AttributeError):  # not Kafka's offsets
        return None
    return int(waiting)


def _event_times(reported: Mapping[str, str]) -> EventTimes | None:
    """Times that the rows carry, for queries with a watermark; Spark counts them in milliseconds, rounded down."""
    if "max" not in reported:
        return None
    newest, mean = (_epoch_s(reported[name]) * 1e6 for name in ("max", "avg"))
    watermark = round(_epoch_s(reported["watermark"]) * 1e6) if "watermark" in reported else 0
    return EventTimes(round(newest) + 999, max(round(2 * (newest - mean)), 0), watermark if watermark > 0 else None)


def _epoch_s(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).astimezone(UTC).timestamp()
