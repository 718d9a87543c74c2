"""Notices queries over a guarded stream that were not started by their shedder: nobody sheds there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

log = logging.getLogger("jettison")

_lock = threading.Lock()
_started: set[str] = set()
_launches = 0


@contextmanager
def launching() -> Iterator[Callable[[str], None]]:
    """While a shedder starts its query; it is to tell the run that it has started."""
    global _launches
    with _lock:
        _launches += 1
    try:
        yield _started.add
    finally:
        with _lock:
            _launches -= 1


def is_launching() -> bool:
    """Whether a shedder is just starting a query, whose run nobody knows yet."""
    return _launches > 0


def is_foreign(run: str) -> bool:
    """Whether no shedder has started a run. One that is just being started is known in a moment, with its next batch."""
    return not is_launching() and run not in _started


class UnstartedWatch(StreamingQueryListener):
    """Warns once of each run that reads a shedder's plan although no shedder has started it."""

    def __init__(self) -> None:
        super().__init__()
        self._plan_metrics: set[str] = set()
        self._warned: set[str] = set()

    def begin(self, spark: SparkSession, plan_metric: str) -> None:
        """Watch for queries that observe a plan under this name."""
        if not self._plan_metrics:
            spark.streams.addListener(self)
        self._plan_metrics.add(plan_metric)

    def end(self, spark: SparkSession) -> None:
        """Take the listener off the session: no query is watched any more."""
        if self._plan_metrics:
            spark.streams.removeListener(self)
        self._plan_metrics.clear()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing can be told yet of what the query reads."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Look whether the batch has read a plan."""
        run = str(event.progress.runId)
        guarded = any(name in self._plan_metrics for name in event.progress.observedMetrics)
        if not guarded or run in self._warned or not is_foreign(run):
            return
        self._warned.add(run)
        log.warning(
            "jettison: query %s reads a guarded stream, but was not started by its shedder: no row is shed, counted or "
            "put on record. Hint: write `shedder.start(writer)` in place of `writer.start()`.",
            event.progress.name or run,
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing to do."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing to do."""
