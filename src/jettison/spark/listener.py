"""Turns what a query says of its batches into reports for the pilot. Asynchronous: it never blocks the query.

The query is asked for its last batch some times a second. A `StreamingQueryListener` in Python would be told of it, but
Spark hands an event over piece by piece, in a hundred calls between the JVM and Python, for every listener and every
query of the session: that took more CPU than a small batch itself.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

from jettison.control.arrivals import YEAR_S
from jettison.core.batch_report import BatchReport
from jettison.core.stats import EventTimes
from jettison.runtime.pilot import Pilot
from jettison.spark.channel import version_read
from jettison.spark.drop_point import ARRIVALS_US, KEPT, NOW_US, RECENT, SEEN, DropPoint
from jettison.spark.guard import RECENT_US
from jettison.spark.mechanisms import Mechanism
from jettison.spark.offsets_taken import taken_by
from jettison.spark.unstarted import is_foreign, is_launching
from jettison.spark.watched import bounds_of

# Spark's own sinks that run the plan of a batch once, as they describe themselves. Of all others that is not known.
_RUNS_ONCE = re.compile(
    r"(org\.apache\.spark\.[\w.]+[.$])?(NoopTable|ConsoleTable|ForeachWriterTable|KafkaTable|MemorySink|FileSink)\b"
)
# Between two questions. Less where batches are shorter: one that was missed makes Spark tell of all that it remembers.
_LOOK_AGAIN_S, _SOONEST_S = 0.1, 0.02
_LOOK_AROUND_S = 0.25  # between two looks at what changes rarely: the query's end, and other queries
IDLE_AFTER_S = 10.0
"""How long a source must have had nothing before that counts, where the session does not say otherwise."""


class ProgressListener:
    """Feeds the batches of one query run to its pilot, each once and in order, and tells it of others under its plans.

    Spark remembers the last hundred batches or so; those that were forgotten before they were asked for are missing,
    which the pilot is told. The end of the run goes to `on_end`, with the error that ended it if there was one. `report`
    makes of a batch's progress what the pilot reads. Who observes one of `plan_metrics` reads its plans.
    """

    def __init__(
        self,
        pilot: Pilot,
        report: Callable[[StreamingQueryProgress], BatchReport],
        run_id: str,
        on_end: Callable[[str | None], None],
        plan_metrics: Collection[str] = (),
        idle_after_s: float = IDLE_AFTER_S,
    ) -> None:
        self._pilot = pilot
        self._report = report
        self._on_end = on_end
        self._lock = threading.RLock()
        self._last_batch = -1
        self._plan_metrics = plan_metrics
        self._idle_after_s = idle_after_s
        self._heard_s = time.monotonic()
        self._wait_s = _LOOK_AGAIN_S
        self._others: dict[str, StreamingQuery] = {}
        self._known: set[str] = {run_id}
        self._stopped = threading.Event()

    def attach(self, streams: StreamingQueryManager, query: StreamingQuery) -> None:
        """Begin to ask a query that has started."""
        self.catch_up(query)
        threading.Thread(target=lambda: self._ask(streams, query), name="jettison-listener", daemon=True).start()

    def detach(self) -> None:
        """Ask no more."""
        self._stopped.set()

    def catch_up(self, query: StreamingQuery) -> None:
        """Take in the batches that have ended since the last time."""
        with self._lock:
            last = query.lastProgress
            if last is None or last.batchId + _is_batch(last) <= self._last_batch + 1:
                return
            is_next = _is_batch(last) and last.batchId == self._last_batch + 1
            for progress in [last] if is_next else query.recentProgress:
                if _is_batch(progress):
                    self._tell(progress)
            self._heard_s = time.monotonic()
            self._wait_s = min(max(last.batchDuration / 2e3, _SOONEST_S), _LOOK_AGAIN_S)

    def look_around(self, streams: StreamingQueryManager, query: StreamingQuery) -> None:
        """Tell the pilot if the source has nothing, and of other queries under its plans."""
        if time.monotonic() - self._heard_s >= self._idle_after_s:
            status = query.status
            if not status["isDataAvailable"] and status["message"].startswith("Waiting"):
                self._heard_s = time.monotonic()
                self._pilot.idle(time.time())
        for other in streams.active:
            if (run := str(other.runId)) not in self._known:
                self._others[run] = other
        for run, other in list(self._others.items()):
            ended, last = not other.isActive, other.lastProgress
            observed = {} if last is None else last.observedMetrics
            shares = any(name in observed for name in self._plan_metrics) and is_foreign(run)
            if last is not None and shares:
                self._pilot.facts.shared(last.name or run)
            # A batch without rows may not have read what it would observe, and a shedder's launch may be under way.
            if shares or ended or (last is not None and last.numInputRows and not is_launching()):
                self._known.add(run)
                del self._others[run]

    def _ask(self, streams: StreamingQueryManager, query: StreamingQuery) -> None:
        look_around_s = 0.0
        while not self._stopped.wait(self._pause_s()):
            try:
                around = time.monotonic() >= look_around_s
                runs = not around or query.isActive  # asked first: what is told after its end is all there is
                self.catch_up(query)
                if not runs:
                    error = query.exception()
                    self._on_end(None if error is None else str(error))
                    return
                if around:
                    look_around_s = time.monotonic() + _LOOK_AROUND_S
                    self.look_around(streams, query)
            except Exception as error:
                if not _answers(query):  # the JVM is gone, and whoever notices that closes the books
                    return
                self._pilot.fault(
                    "report", f"the query was not asked for its batches ({type(error).__name__}: {error})"
                )

    def _pause_s(self) -> float:
        """Until the next question: the longer nothing was heard, the longer."""
        return min(max(self._wait_s, (time.monotonic() - self._heard_s) / 20), _LOOK_AROUND_S)

    def _tell(self, progress: StreamingQueryProgress) -> None:
        batch, expected = progress.batchId, self._last_batch + 1
        if batch < expected:
            return
        self._last_batch = batch
        if batch > expected > 0:  # a run may begin with any batch
            self._pilot.missed(range(expected, batch), "missing among the events, and forgotten by Spark")
        try:
            report = self._report(progress)
        except Exception as error:  # the next one may be readable
            self._pilot.missed(range(batch, batch + 1), f"its report cannot be read ({type(error).__name__}: {error})")
        else:
            self._pilot.batch(report)


def _answers(query: StreamingQuery) -> bool:
    try:
        return query.isActive is not None
    except Exception:
        return False


def _is_batch(progress: StreamingQueryProgress) -> bool:
    """Whether a batch was run; an idle query reports progress too, under the number of the batch to come."""
    return "addBatch" in progress.durationMs


def ended_s(progress: StreamingQueryProgress) -> float:
    """When the trigger that reports so had ended, in seconds since 1970."""
    return _epoch_s(progress.timestamp) + _took_s(progress)


def report_of(
    progress: StreamingQueryProgress,
    points: tuple[DropPoint, ...],
    mechanisms: Mapping[str, Mechanism],
    answers_metric: str = "",
) -> BatchReport:
    """What one progress event says about the drop points, each of which has a mechanism."""
    observed = {name: _fields(row) for name, row in progress.observedMetrics.items()}
    rows = {point.name: observed[point.metric] for point in points if point.metric in observed}
    versions = [version_read(observed, point.plan_metric) for point in points]
    for row in rows.values():
        if row.get(ARRIVALS_US):
            row[ARRIVALS_US] = _near(row[ARRIVALS_US], _epoch_s(progress.timestamp))
    arrivals = [row[ARRIVALS_US] for row in rows.values() if row.get(ARRIVALS_US)]
    return BatchReport(
        run_id=str(progress.runId),
        batch_id=progress.batchId,
        started_s=_epoch_s(progress.timestamp),
        duration_s=_took_s(progress),
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
        taken=taken_by(progress),
        answers=bounds_of(observed.get(answers_metric)),
    )


def _took_s(progress: StreamingQueryProgress) -> float:
    return progress.durationMs.get("triggerExecution", progress.batchDuration) / 1e3


def _fields(row: Row) -> dict[str, Any]:
    """What was observed, by name; Spark Connect tells values and names apart."""
    told = row.asDict()
    if told.keys() != {"values", "schema"}:
        return told
    return {field["name"]: value for field, value in zip(told["schema"]["fields"], told["values"], strict=True)}


def _near(quantiles_us: Sequence[int], now_s: float) -> Sequence[int]:
    """Arrivals of a batch but for those a year off the clock, unless all are: of few rows a wild one is a quantile."""
    near = [each for each in quantiles_us if abs(each / 1e6 - now_s) <= YEAR_S]
    return [near[0], near[-1]] if near else quantiles_us


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
