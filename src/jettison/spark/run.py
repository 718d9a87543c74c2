"""One run of a guarded query: started under control, and ended with its books closed, however it ends.

Spark tells listeners of a query's end later, and not at all once the session or the process has ended. So the books
are closed by whoever notices the end first: the event, a call that waits for the query or stops it, `close`, or the end
of the process.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from jettison.batch_report import BatchReport
from jettison.owner import Owner
from jettison.pilot import Pilot
from jettison.spark import doubts
from jettison.spark.channel import Channel
from jettison.spark.drop_point import DropPoint
from jettison.spark.explained import dependent_rows
from jettison.spark.listener import ProgressListener
from jettison.spark.load_aware import LoadAware
from jettison.spark.unstarted import launching
from jettison.status import Status

_LOOK_AGAIN_S = 0.1
_CLOSING_S = 60.0
_by_checkpoint: dict[str, Run] = {}


class Run:
    """Starts a query and keeps its pilot informed until it ends.

    Parameters
    ----------
    spark
        The session.
    checkpoint
        The query's checkpoint location.
    pilot
        Controls the query.
    points
        Its drop points.
    functions
        Functions under load-aware shedding, whose books are closed with the query's.
    owner
        Holds the checkpoint, and lets go of it at the end.
    channel
        Carries the plans; answers look into it until the end.
    """

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: str,
        pilot: Pilot,
        points: tuple[DropPoint, ...],
        functions: Sequence[LoadAware],
        owner: Owner,
        channel: Channel,
    ) -> None:
        self._spark, self._streams = spark, spark.streams
        self._channel = channel
        self._looked_at: set[str] = set()
        self._checkpoint = checkpoint
        self.pilot = pilot
        self._points = points
        self._functions = functions
        self._owner = owner
        self._query: StreamingQuery | None = None
        self._listener: ProgressListener | None = None
        self._lock = threading.Lock()
        self._closing = False
        self._closed = threading.Event()
        self.error: str | None = None

    def launch(self, writer: DataStreamWriter, **facts: Any) -> StreamingQuery:
        """Start the query of `writer`; where that fails, nothing is left behind but a record of it."""
        _by_checkpoint[self._checkpoint] = self
        atexit.register(self._at_exit)
        try:
            self.pilot.start(**facts)
            with launching() as started:
                query = writer.option("checkpointLocation", self._checkpoint).start()
                started(str(query.runId))
        except BaseException:
            self.close("the query did not start")
            raise
        self._query = query
        self._listener = ProgressListener(self.pilot, self._points, str(query.runId), on_end=self.close)
        self._listener.attach(self._streams, query)
        self._close_with(query)
        return query

    @property
    def has_ended(self) -> bool:
        """Whether the query runs no more."""
        if self._closing or self._query is None:
            return self._closing
        try:
            return not self._query.isActive
        except Exception:  # whatever cannot be asked any more has ended
            return True

    def status(self, bound_s: float, *, dry_run: bool) -> Status:
        """How the query is doing right now, or did until it ended."""
        plan, tally = self.pilot.plan, self.pilot.tally
        settings = {point.name: plan.points.get(point.name) for point in self._points}
        keep = {name: 1.0 if setting is None else setting.keep_fraction for name, setting in settings.items()}
        late: dict[str, float] = {}
        for name, setting in settings.items():
            share = getattr(setting, "late_keep_fraction", None)
            if share is not None and share != keep[name]:
                late[name] = share
        only_late = late and all(share >= 1.0 for share in keep.values())
        mode = "keeping everything" if plan.keeps_everything else "thinning late rows" if only_late else "shedding"
        return Status(
            mode="ended" if self.has_ended else "dry run" if dry_run else mode,
            keep_fraction=keep,
            plan_version=plan.version,
            cause=plan.cause,
            latency_s=tally.last_latency_s,
            latency_bound_s=bound_s,
            batches=tally.batches,
            rows_seen=tally.seen,
            rows_kept=tally.kept,
            faults=dict(self.pilot.faults),
            functions={function.__name__: function.status() for function in self._functions},
            late_keep_fraction=late,
            rows_by_point=dict(tally.by_point),
            estimated_batches=tally.estimated,
            error=self.error,
        )

    def stop(self) -> None:
        """Stop the query if it runs, and finish its books."""
        if self._query is not None and not self.has_ended:
            self._query.stop()
        self._close_if_ended()

    def await_books(self, timeout_s: float) -> bool:
        """Wait until the query has ended and everything about it is on record; false if that takes too long."""
        deadline = time.monotonic() + timeout_s
        while not self.has_ended and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S)
        self._close_if_ended()
        return self.pilot.await_close(max(0.0, deadline - time.monotonic()))

    def close(self, error: str | None = None) -> None:
        """Take in what no event has told of, and finish the books. A second call waits for the first to have done it."""
        with self._lock:
            first, self._closing = not self._closing, True
        if not first:
            self._closed.wait(_CLOSING_S)
            return
        self.error = error
        try:
            self._finish()
        finally:
            self._closed.set()

    def _finish(self) -> None:
        if self._query is not None and self._listener is not None:
            with contextlib.suppress(Exception):  # a JVM that is gone tells nothing
                self._listener.catch_up(self._query)
        for function in self._functions:  # before the pilot: once its books are closed, all are
            try:
                function.close()
            except Exception as error:
                self.pilot.fault("ledger", f"the books of a function are not closed ({type(error).__name__}: {error})")
        self.pilot.close(error=self.error)
        if self._listener is not None:
            with contextlib.suppress(Exception):
                self._streams.removeListener(self._listener)
        with contextlib.suppress(Exception):  # the session may be gone, and its view with it
            doubts.unregister(self._spark, self._channel)
        self._owner.release()
        _by_checkpoint.pop(self._checkpoint, None)
        atexit.unregister(self._at_exit)

    def disowned(self, reason: str) -> None:
        """Another driver holds the checkpoint: nothing may be written there any more."""
        self.pilot.fault("owner", f"{reason}; this query is no longer controlled")
        self.close(reason)

    def batch_runs(self) -> bool:
        """Whether a batch runs right now; true where that cannot be told."""
        if self._query is None:
            return True
        try:
            status = self._query.status
            return bool(status["isTriggerActive"] and status["isDataAvailable"])
        except Exception:  # the JVM may be gone
            return True

    def look_for_dependent_rows(self, report: BatchReport) -> None:
        """Have answers say so if rows are multiplied between a guard and them; called off the fast path."""
        query = self._query
        unknown = [point for point in self._points if point.name not in self._looked_at]
        if query is None or not report.input_rows or not unknown:
            return
        for point in unknown:
            found = dependent_rows(query, point)
            if found:
                self.pilot.rows_are_dependent(point.name, found)
            if found is not None:
                self._looked_at.add(point.name)

    def _close_if_ended(self) -> None:
        if self.has_ended:
            self.close(self._error())

    def _error(self) -> str | None:
        try:
            found = None if self._query is None else self._query.exception()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None if found is None else str(found)

    def _at_exit(self) -> None:
        self.close(self._error() if self.has_ended else "the driver's process ended while the query ran")

    def _close_with(self, query: StreamingQuery) -> None:
        """Have the query's own methods close the books: after them a program may end at once."""
        await_termination, stop = query.awaitTermination, query.stop

        def await_and_close(timeout: int | None = None) -> bool | None:
            try:
                return await_termination(timeout)
            finally:
                self._close_if_ended()

        def stop_and_close() -> None:
            try:
                stop()
            finally:
                self._close_if_ended()

        query.awaitTermination, query.stop = await_and_close, stop_and_close  # type: ignore[method-assign]


def close_ended(checkpoint: str) -> None:
    """Close the books of a run in this process that has ended, should nobody have noticed."""
    run = _by_checkpoint.get(checkpoint)
    if run is not None:
        run._close_if_ended()
