"""One run of a guarded query: started under control, and ended with its books closed, however it ends.

A query's end shows some time later, and not at all once the process has ended. So the books are closed by whoever
notices the end first: the listener, a call that waits for the query or stops it, `close`, or the end of the process.
"""

from __future__ import annotations

import atexit
import contextlib
import re
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.runtime.companion import Companion
from jettison.runtime.inquiry import Asked, Inquiry
from jettison.runtime.owner import Owner
from jettison.runtime.pilot import Pilot
from jettison.runtime.status import Status
from jettison.spark import doubts
from jettison.spark.channel import Channel
from jettison.spark.drop_point import DropPoint
from jettison.spark.listener import IDLE_AFTER_S, ProgressListener, ended_s, report_of
from jettison.spark.mechanisms import Mechanism
from jettison.spark.plan_reader import PlanReader
from jettison.spark.session import shaping
from jettison.spark.spark_errors import explained
from jettison.spark.unstarted import launching
from jettison.spark.untold_trigger import UntoldTrigger

_LOOK_AGAIN_S = 0.1
_CLOSING_S = 60.0
_IDLE_AFTER = "spark.sql.streaming.noDataProgressEventInterval"
_by_checkpoint: dict[str, Run] = {}


class Run:
    """Starts a query and keeps its pilot informed until it ends.

    Books of `companions` are closed with its own, `owner` lets go of the checkpoint, and answers look into `channel` until
    then. What answers are is observed as `answers_metric`.
    """

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: str,
        pilot: Pilot,
        points: Mapping[str, DropPoint],
        mechanisms: Mapping[str, Mechanism],
        companions: Sequence[Companion],
        owner: Owner,
        channel: Channel,
        answers_metric: str = "",
    ) -> None:
        self._spark, self._streams = spark, spark.streams
        self._checkpoint, self._channel, self._owner = checkpoint, channel, owner
        self.pilot, self._points, self._companions = pilot, tuple(points), companions
        self._report = partial(
            report_of, points=tuple(points.values()), mechanisms=mechanisms, answers_metric=answers_metric
        )
        self._plan_reader = PlanReader(pilot.facts, tuple(points.values()), mechanisms)
        self._trigger: UntoldTrigger | None = None
        self._query: StreamingQuery | None = None
        self._listener: ProgressListener | None = None
        self._inquiry: Inquiry | None = None
        self._lock = threading.Lock()
        self._closing = False
        self._closed = threading.Event()
        self.error: str | None = None

    def launch(self, writer: DataStreamWriter, source: Asked, **facts: Any) -> StreamingQuery:
        """Start the query of `writer`; where that fails, nothing is left behind but a record of it.

        `source` is asked how many rows have come.
        """
        _by_checkpoint[self._checkpoint] = self
        atexit.register(self._at_exit)
        try:
            self.pilot.start(session=shaping(self._spark), **facts)
            with launching() as started:
                query = writer.option("checkpointLocation", self._checkpoint).start()
                started(str(query.runId))
        except BaseException as error:
            self.close("the query did not start")
            if ours := explained(error):
                raise ours from error
            raise
        self._trigger = UntoldTrigger(self.pilot.controller.settings.trigger_interval_s, self.pilot.fault)
        self._query = query
        doubts.started(self._spark, self._channel)
        self._listener = ProgressListener(
            self.pilot, self._report, str(query.runId), self.close, self._plan_reader.plan_metrics, self._idle_after_s()
        )
        self._listener.attach(self._streams, query)
        for_plans = self.pilot.controller.settings.capacity_rows_per_s is not None
        self._inquiry = Inquiry(source, partial(self.pilot.fault, "source"), for_plans=for_plans).start()
        self.pilot.produced = self._inquiry
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

    def status(self, *, dry_run: bool) -> Status:
        """How the query is doing right now, or did until it ended."""
        plan, tally, ended = self.pilot.plan, self.pilot.tally, self.has_ended
        bound_s, orders = self.pilot.latency_bound_s, self.pilot.orders
        keep = self._shares(plan)
        of_late = {name: setting.keep_fraction_of_late for name, setting in plan.points.items() if name in keep}
        late = {name: share for name, share in of_late.items() if share != keep[name]}
        only_late = late and all(share >= 1.0 for share in keep.values())
        mode = "keeping everything" if plan.keeps_everything else "thinning late rows" if only_late else "shedding"
        if failed := self.pilot.why_not_shedding:
            mode = "not shedding"
        lag_rows, lag_s = (None, None) if ended or (lag := self.pilot.lag) is None else lag
        return Status(
            mode="ended" if ended else "dry run" if dry_run or orders.dry_run else mode,
            keep_fraction=keep,
            plan_version=plan.version,
            cause=self.pilot.cause,
            latency_s=tally.last_latency_s,
            latency_bound_s=bound_s,
            batches=tally.batches,
            rows_seen=tally.seen,
            rows_kept=tally.kept,
            faults=dict(self.pilot.faults),
            not_shedding=failed,
            companions={companion.name: companion.status() for companion in self._companions},
            late_keep_fraction=late,
            rows_by_point=dict(tally.by_point),
            estimated_batches=tally.estimated,
            error=self._error() if ended and self.error is None else self.error,
            running_batch=self._running_batch(plan, bound_s),
            lag_rows=lag_rows,
            lag_s=lag_s,
            orders=tuple(orders.words()),
            bounds=dict(tally.bounds),
        )

    def _shares(self, plan: DropPlan) -> dict[str, float]:
        settings = {name: plan.points.get(name) for name in self._points}
        return {name: 1.0 if setting is None else setting.keep_fraction for name, setting in settings.items()}

    def _running_batch(self, plan: DropPlan, bound_s: float) -> str:
        """What is to be said of the batch that runs: that it takes long, and what it keeps under an older plan."""
        runs_s = self.pilot.runs_for_s
        long = f"the batch that runs has taken {runs_s:.0f} s so far" if runs_s > bound_s else ""
        return "; ".join(filter(None, (self._running_shares(plan), long)))

    def _running_shares(self, plan: DropPlan) -> str:
        running = self.pilot.running_plan
        if running is None:
            return "but a batch that was begun before the restart keeps the rows of its first attempt"
        shares = self._shares(running)
        if shares == self._shares(plan):
            return ""
        kept = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        keeps = "all its rows" if running.keeps_everything else f"what the plan before says ({kept})"
        return f"from the next batch on: the batch that runs keeps {keeps}"

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
        self.error = None if error is None else str(explained(error) or error)
        try:
            self._finish()
        finally:
            self._closed.set()

    def _finish(self) -> None:
        if self._query is not None and self._listener is not None:
            with contextlib.suppress(Exception):  # a JVM that is gone tells nothing
                self._listener.catch_up(self._query)
        for companion in self._companions:  # before the pilot: once its books are closed, all are
            try:
                companion.close()
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                self.pilot.fault("ledger", f"the books of {companion.name!r} are not closed ({why})")
        self.pilot.close(error=self.error)
        if self._listener is not None:
            self._listener.detach()
        if self._inquiry is not None:
            self._inquiry.stop()
        with contextlib.suppress(Exception):  # the session may be gone, and its view with it
            doubts.ended(self._spark, self._channel, self.pilot.doubts.otherwise_us)
        self._owner.release()
        _by_checkpoint.pop(self._checkpoint, None)
        atexit.unregister(self._at_exit)

    def disowned(self, reason: str) -> None:
        """Another driver holds the checkpoint: nothing may be written there any more."""
        self.pilot.fault("owner", f"{reason}; this query is no longer controlled")
        self.close(reason)

    def batch_runs(self) -> bool:
        """Whether a batch runs right now; true where that cannot be told."""
        if self._query is None or self._trigger is None:
            return True
        try:
            status = self._query.status
            self._trigger.look(status["message"], status["isDataAvailable"], self._last_ended_s)
            return bool(status["isTriggerActive"] and status["isDataAvailable"])
        except Exception:  # the JVM may be gone
            return True

    def _last_ended_s(self) -> float | None:
        last = None if self._query is None else self._query.lastProgress
        return None if last is None else ended_s(last)

    def look_at_plan(self, report: BatchReport) -> None:
        """Read the query's plan once rows have run through it; called off the fast path."""
        if self._query is not None and report.input_rows:
            self._plan_reader.read(self._query)

    def _idle_after_s(self) -> float:
        """After how long without rows Spark itself calls a query idle."""
        said = re.fullmatch(r"(\d+)(ms)?", self._spark.conf.get(_IDLE_AFTER, None) or "")
        return int(said[1]) / 1e3 if said else IDLE_AFTER_S

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
            except StreamingQueryException as error:
                if ours := explained(error):
                    raise ours from error
                raise
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
