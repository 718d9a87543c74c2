"""Turns Spark's progress events into batch reports for the pilot. Asynchronous: it never blocks the query."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from jettison.batch_report import BatchReport
from jettison.concept.book import KeptGroups
from jettison.pilot import Pilot
from jettison.spark.channel import version_read
from jettison.spark.drop_point import DropPoint
from jettison.spark.guard import RECENT_US
from jettison.stats import EventTimes


class ProgressListener(StreamingQueryListener):
    """Feeds the events of one query run to its pilot; those of other queries are ignored.

    Events that come before the run is known (`bind`) wait until it is. The end of the run goes to `on_end`, with the
    error that ended it if there was one.
    """

    def __init__(self, pilot: Pilot, points: tuple[DropPoint, ...], on_end: Callable[[str | None], None]) -> None:
        super().__init__()
        self._pilot = pilot
        self._points = points
        self._on_end = on_end
        self._lock = threading.RLock()
        self._run_id: str | None = None
        self._early: list[tuple[str, Callable[[], None]]] = []

    def bind(self, run_id: str) -> None:
        """Name the run to listen to."""
        with self._lock:  # held while the early ones are told, so that no later event overtakes them
            self._run_id = run_id
            early, self._early = self._early, []
            for of_run, action in early:
                if of_run == run_id:
                    action()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to do: `bind` follows."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch has ended."""
        progress = event.progress
        self._dispatch(str(progress.runId), lambda: self._tell(progress))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """The source had nothing to offer for a while."""
        now_s = _epoch_s(event.timestamp)
        self._dispatch(str(event.runId), lambda: self._pilot.idle(now_s))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query has ended, for whatever reason."""
        error = event.exception
        # On a thread of its own: closing waits for the books, and other queries' events must not wait with it.
        thread = threading.Thread(target=lambda: self._on_end(error), name="jettison-close", daemon=True)
        self._dispatch(str(event.runId), thread.start)

    def _tell(self, progress: StreamingQueryProgress) -> None:
        try:
            report = report_of(progress, self._points)
        except Exception as error:  # Spark would only log it, and `bind` would pass it on to the user
            self._pilot.fault("report", f"batch {progress.batchId} cannot be read ({type(error).__name__}: {error})")
        else:
            self._pilot.batch(report)

    def _dispatch(self, run_id: str, action: Callable[[], None]) -> None:
        with self._lock:
            if self._run_id is None:
                self._early.append((run_id, action))
                return
            ours = run_id == self._run_id
        if ours:
            action()


def report_of(progress: StreamingQueryProgress, points: tuple[DropPoint, ...]) -> BatchReport:
    """What one progress event says about the drop points."""
    observed: dict[str, Any] = {name: row.asDict() for name, row in progress.observedMetrics.items()}
    rows = {point.name: observed[point.metric] for point in points if point.metric in observed}
    versions = [version_read(observed, point.plan_metric) for point in points]
    oldest = [row["oldest_us"] for row in rows.values() if row.get("oldest_us") is not None]
    newest = [row["newest_us"] for row in rows.values() if row.get("newest_us") is not None]
    return BatchReport(
        run_id=str(progress.runId),
        batch_id=progress.batchId,
        started_s=_epoch_s(progress.timestamp),
        duration_s=progress.durationMs.get("triggerExecution", progress.batchDuration) / 1e3,
        input_rows=progress.numInputRows,
        plan_version=None if None in versions else min((v for v in versions if v is not None), default=None),
        seen={name: row["seen"] for name, row in rows.items() if "seen" in row},
        kept={name: row["kept"] for name, row in rows.items()},
        oldest_arrival_s=min(oldest) / 1e6 if oldest else None,
        newest_arrival_s=max(newest) / 1e6 if newest else None,
        recent_rows_per_s=_recent_rows_per_s(rows, {point.name: observed.get(point.plan_metric) for point in points}),
        event_times=_event_times(progress.eventTime or {}),
        work_s=progress.durationMs["addBatch"] / 1e3 if "addBatch" in progress.durationMs else None,
        waiting_rows=_waiting_rows([(source.latestOffset, source.endOffset) for source in progress.sources]),
        sampled={name: _sampled(row["sample"]) for name, row in rows.items() if row.get("sample") is not None},
        groups={name: _kept_groups(row) for name, row in rows.items() if row.get("groups_until_us") is not None},
    )


def _kept_groups(row: Mapping[str, Any]) -> KeptGroups:
    """The largest groups among the rows kept, where a mechanism observes groups."""
    listed = [(key, kept) for key, kept in row["groups"] or () if key is not None]
    keys, kept = zip(*listed, strict=True) if listed else ((), ())
    mean, deviation = row.get("value_mean"), row.get("value_deviation")
    variation = abs(deviation / mean) if mean and deviation is not None else None
    return KeptGroups(keys, kept, row["grouped"], row["groups_until_us"], variation)


def _sampled(text: str) -> NDArray[np.float64]:
    """Rows from the text that they were observed as; a missing value is NaN."""
    return np.array(json.loads(text), dtype=np.float64)


def _recent_rows_per_s(rows: Mapping[str, Any], plans: Mapping[str, Any]) -> float | None:
    """Arrival rate from the start of the last second before the batch until its newest row, over all drop points."""
    rates = []
    for name, row in rows.items():
        now_us = (plans[name] or {}).get("now_us")
        if now_us is None or row.get("recent") is None:
            continue
        covered_us = row["newest_us"] - (now_us - RECENT_US)
        if covered_us >= RECENT_US / 4:  # less than that says too little
            rates.append(row["recent"] / covered_us * 1e6)
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
