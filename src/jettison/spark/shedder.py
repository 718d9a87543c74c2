"""The public face of Jettison on Spark: guard a stream, start its query, see how it is doing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from jettison.control.control_settings import LATE_SHARE, ControlSettings, rows_per_batch
from jettison.core import storage
from jettison.core.documents import Positive, checked
from jettison.core.durations import Duration, seconds
from jettison.errors import InvalidInput, refuse
from jettison.policies import Policy, UniformDrop
from jettison.runtime.advice import advice
from jettison.runtime.chooser import Auto
from jettison.runtime.companion import Companion
from jettison.runtime.inquiry import Asked
from jettison.runtime.ledger import Ledger
from jettison.runtime.status import Status
from jettison.spark import validate
from jettison.spark.assembly import Accounting, Assembly
from jettison.spark.channel import Channel
from jettison.spark.chosen_policy import chosen_policy
from jettison.spark.read_files import ReadFiles
from jettison.spark.run import Run

log = logging.getLogger("jettison")


class Shedder:
    """Holds the row latency of one streaming query under a bound by dropping rows at its guards.

    While the query keeps up, nothing is dropped, but for rows that are already older than the bound when the query
    starts (where `arrival` is given). When more arrives than it can process, the guards keep as large a
    share as the bound allows, and every row carries its weight. Changing the share needs no restart. If anything of
    Jettison fails, every row is kept.

    The books of a run are closed when its query ends; a program that may end before that is noticed, or that wants the
    query stopped with it, uses the shedder as a context manager, or calls `close`.

    Parameters
    ----------
    latency
        Bound on row latency, from arrival at the source to the commit of its micro-batch: `"3 seconds"`.
    checkpoint
        The query's checkpoint location. The plan, the controller's state and the ledger live in `jettison/` under it.
    policy
        What to drop; `UniformDrop()` if not given. `"auto"`, or `jettison.policy.Auto(...)` with what is known of the query,
        leaves the choice to the rules of the README.
    dry_run
        Decide and count, but drop nothing; `watch` foresees the errors that would follow.
    trigger
        Interval of the query's trigger, `"1 second"`; leave it out where a batch starts as soon as the one before ends.
    peak_rows_per_s
        Highest arrival rate that is shed; what comes beyond it waits in the source. `rows_per_trigger` says what cap the
        source needs for that. Give it where a query may start on a large backlog.
    capacity_rows_per_s
        Rows per second that the query processes once it is warm, for those who know; used until measurements take over.
    headroom
        Part of the bound that is aimed at, in (0, 1]; the rest absorbs noise.
    least_share
        Share of the fresh rows that is processed at least, however high the load.
    late_share
        Share to process, while rows are dropped, of those that are older than the bound when their batch starts. They miss
        it whatever happens, but losing all of them would leave a hole in the answers. 0.05 unless given; refused where no
        guard has an `arrival`.
    accounting
        How rows are counted: `"metrics"` reads the counts that Spark's filters keep anyway, through the driver's web
        interface, and costs nothing on the row path; `"observe"` needs no web interface but costs some tens of
        nanoseconds a row, as does `arrival` in either case; `"auto"` takes the first where the web interface answers,
        unless it failed in the run before.
    plan_lease
        How long a plan counts after its controller last gave a sign of life.
    ask
        Says how many rows the source has had: `KafkaEnds` for Kafka, or any function. Folders of files are found without
        it. It tells the lag, `status().lag_rows`; with `capacity_rows_per_s` a rise is also seen before the batch that meets
        it. It is called on a thread of its own, may fail, and returns `None` where it does not know.
    """

    def __init__(
        self,
        *,
        latency: Duration,
        checkpoint: str | Path,
        policy: Policy | Auto | Literal["auto"] | None = None,
        dry_run: bool = False,
        trigger: Duration | None = None,
        peak_rows_per_s: float | None = None,
        capacity_rows_per_s: float | None = None,
        headroom: float = 0.8,
        least_share: float = 0.01,
        late_share: float | None = None,
        accounting: Accounting = "auto",
        plan_lease: Duration = "30 seconds",
        ask: Asked | None = None,
    ) -> None:
        self.latency_bound_s = seconds(latency, name="latency")
        self._checkpoint = validate.checkpoint(checkpoint)
        self._folder = storage.home(checkpoint)
        self.policy_cause = ""
        """Why the policy was chosen, where that was left to the rules."""
        if isinstance(policy, Auto) or policy == "auto":
            policy, self.policy_cause = chosen_policy(
                policy if isinstance(policy, Auto) else Auto(), self._folder, dry_run=dry_run
            )
            log.info("the policy is %s: %s", type(policy).__name__, self.policy_cause)
        self.policy: Policy = UniformDrop() if policy is None else policy
        if not isinstance(self.policy, Policy):
            hint = "pass an instance, such as policy=jettison.UniformDrop()"
            refuse("`policy` must be a `jettison.policy.Policy`", repr(policy), hint=hint, error=InvalidInput)
        if accounting not in ("auto", "metrics", "observe"):
            hint = "'auto' takes what the session offers"
            refuse("`accounting` must be 'auto', 'metrics' or 'observe'", repr(accounting), hint=hint)
        if peak_rows_per_s is not None:
            checked("peak_rows_per_s", peak_rows_per_s, Positive)
        self._peak_rows_per_s = peak_rows_per_s
        trigger_s = 0.0 if trigger is None else seconds(trigger, name="trigger")
        if trigger_s >= self.latency_bound_s:
            hint = "a row waits up to a whole interval before its batch starts: trigger more often, or raise `latency`"
            refuse("`trigger` must be shorter than `latency`", f"{trigger!r} and {latency!r}", hint=hint)
        self._settings = ControlSettings(
            latency_bound_s=self.latency_bound_s,
            headroom=headroom,
            least_share=least_share,
            late_share=LATE_SHARE if late_share is None else late_share,
            trigger_interval_s=trigger_s,
            row_cap=self.rows_per_trigger,
            capacity_rows_per_s=capacity_rows_per_s,
        )
        self._late_share = late_share
        self._dry_run = dry_run

        lease_s = seconds(plan_lease, name="plan_lease")
        channel = Channel(self._folder, lease_s=lease_s, size=self.policy.plan_bytes)
        self._assembly = Assembly(self.policy, self.checkpoint, self._folder, channel, accounting, dry_run=dry_run)
        if ask is not None and not callable(ask):
            hint = "pass jettison.KafkaEnds(options), or a function without arguments"
            refuse("`ask` must be callable", type(ask).__name__, hint=hint, error=InvalidInput)
        self._ask = ask
        self._streams: list[DataFrame] = []
        self._run: Run | None = None
        self._companions: list[Companion] = []

    @property
    def checkpoint(self) -> str:
        """The query's checkpoint location."""
        return self._checkpoint.uri

    @property
    def rows_per_trigger(self) -> int | None:
        """Rows that one micro-batch should take at most: the source's own cap, such as Kafka's `maxOffsetsPerTrigger`.

        As many as arrive at `peak_rows_per_s` within half the bound, the longest that a batch may last. A smaller cap
        would delay rows that could have been dropped; a larger one lets a backlog make the first batch too long. `None`
        without `peak_rows_per_s`.
        """
        peak = self._peak_rows_per_s
        return None if peak is None else rows_per_batch(peak, self.latency_bound_s)

    def attach(self, companion: Companion) -> None:
        """Show in `status` what else drops rows in the query, such as `load_aware`, and close its books with the query's."""
        if self._companions:
            expected, hint = "one companion a query", f"leave one of the two out; {self._companions[0].name!r} is there"
            refuse(expected, f"{companion.name!r} as a second one", hint=hint)
        if self._dry_run:
            hint = f"{companion.name!r} cannot be tried out without dropping; leave it out of the dry run"
            refuse("a query that drops rows, with a companion in it", "dry_run=True", hint=hint)
        self._companions.append(companion)

    def guard(
        self,
        rows: DataFrame,
        *,
        row_id: Column | str | Sequence[Column | str],
        arrival: Column | str | None = None,
        protect: Column | str | None = None,
        name: str | None = None,
    ) -> DataFrame:
        """Return `rows` with a drop point on it and the column `jt_weight` added.

        Put it as close to the source as you can: what is dropped here costs nothing further on.

        Parameters
        ----------
        rows
            A streaming DataFrame.
        row_id
            Columns that identify a row, such as `["partition", "offset"]`. Rows equal in all of them share one fate; rows
            with a null in one of them are told apart by all that they hold.
        arrival
            Timestamp column of the arrival at the source. With it latency is measured from the rows themselves, and
            a backlog is thinned first; without it latency is inferred from trigger times.
        protect
            Predicate of rows that are never dropped.
        name
            Name of the drop point in plans and the ledger.
        """
        if self._run is not None:
            refuse("`guard` must be called before `start`", "a query that runs already", hint="use one Shedder a query")
        guarded = self._assembly.guard(rows, row_id, arrival, protect, name)
        self._streams.append(rows)
        return guarded

    def read_plan_together(self, spark: SparkSession, names: Sequence[str], *, group: str) -> None:
        """Let the drop points `names`, whose guards follow, share one reading of the plan in every micro-batch."""
        self._assembly.read_plan_together(spark, names, group)

    def guarding(
        self,
        *,
        row_id: Column | str | Sequence[Column | str],
        arrival: Column | str | None = None,
        protect: Column | str | None = None,
        name: str | None = None,
    ) -> Callable[[DataFrame], DataFrame]:
        """`guard` for `DataFrame.transform`: `rows.transform(shedder.guarding(row_id="id"))`."""
        return lambda rows: self.guard(rows, row_id=row_id, arrival=arrival, protect=protect, name=name)

    def deliver(
        self, answers: DataFrame, *, window: Column | str = "window", query: str | None = None, name: str | None = None
    ) -> DataFrame:
        """Return the answers of windows that were kept whole: with `WindowDrop`, each of them is exact.

        Put it on the windowed aggregate itself. Write the query in append mode, where a window is delivered once, when
        it closes.

        Parameters
        ----------
        answers
            The aggregate of a guarded stream.
        window
            Its column that Spark's `window` made.
        query
            Which of the policy's queries it is, where several share the input.
        name
            The drop point in front of it, where there are several.
        """
        return self._assembly.deliver(answers, window, query, name)

    def watch(self, rows: DataFrame, answers: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Return `answers(rows)`, and have on record how wide the bounds of its answers are.

        Of every batch out of which answers come, status, ledger and page say by aggregate how wide bounds are in the median
        and at most in 95 % of the answers, relative to the answer. In a dry run the answers are those over all rows, and
        what is on record is how wide the bounds would be if the rows were dropped that the plans say.

        Parameters
        ----------
        rows
            What `guard` returned.
        answers
            Makes of these rows a DataFrame with `jt.` aggregates among its columns. All else of the query may come after it.

        Notes
        -----
        Of drop points that follow one another, a dry run foresees the last alone; and rows of which nothing would be
        kept (a keep fraction of 0) are taken for rows that stay.
        """
        return self._assembly.watch(rows, answers)

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start the query of `writer` with this shedder's checkpoint, and begin to control it.

        A `checkpointLocation` that the writer has been given is replaced: Spark lets nobody look at it.
        """
        if not self._assembly.points:
            refuse("`start` needs a guarded stream", "none", hint="call `shedder.guard(...)` on its source first")
        if self._run is not None:
            refuse("`start` must be called once", "a second call", hint="use one Shedder a query")
        if not (hasattr(writer, "option") and hasattr(writer, "start")):
            hint = "pass df.writeStream"
            refuse("`writer` must be a DataStreamWriter", repr(writer), hint=hint, error=InvalidInput)
        self._assembly.refuse_incomplete(self.latency_bound_s)
        if (cap := self.rows_per_trigger) is not None:
            log.info("the source should hand over at most %d rows in a micro-batch (Kafka: maxOffsetsPerTrigger)", cap)
        self._run = self._assembly.new_run(self._control(), self._companions, self._disowned)
        try:
            source = ReadFiles(self._streams) if self._ask is None else self._ask
            why = {"policy_cause": self.policy_cause} if self.policy_cause else {}
            return self._run.launch(writer, source, policy=type(self.policy).__name__, dry_run=self._dry_run, **why)
        except BaseException:
            self._run = None
            raise

    def close(self, timeout: Duration = "30 seconds") -> bool:
        """Stop the query if it still runs, and finish its books; false if a batch is not on record in time."""
        if self._run is None:
            self._assembly.forget()
            return True
        self._run.stop()
        return self.await_books(timeout)

    def __enter__(self) -> Shedder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def status(self) -> Status:
        """How the query is doing right now, or did until it ended."""
        return self._started("`status`").status(dry_run=self._dry_run)

    def advice(self) -> list[str]:
        """What the last hour on record says: which bounds can be held, what they cost, what to set at the source."""
        return advice(self._folder)

    @property
    def ledger(self) -> Ledger:
        """The query's ledger, to read while it runs or afterwards."""
        return Ledger(self._folder / "ledger")

    def await_books(self, timeout: Duration = "30 seconds") -> bool:
        """Wait until the query has ended and everything about it is in the ledger.

        False if that takes too long, or if a batch could not be put on record.
        """
        return self._started("`await_books`").await_books(seconds(timeout, name="timeout"))

    def _started(self, method: str) -> Run:
        if self._run is None:
            hint = "call `shedder.start(writer)` first"
            refuse(f"{method} needs a query that was started", "none", hint=hint)
        return self._run

    def _control(self) -> ControlSettings:
        """The settings, without the thinning of late rows where no drop point knows when its rows arrived."""
        if any(point.arrival for point in self._assembly.points.values()):
            return self._settings
        if self._late_share is not None:
            hint = "pass the column that says when rows arrived to `guard`, or leave `late_share` out"
            refuse("`late_share` needs a guard with `arrival`", f"{self._late_share:g}, and no `arrival`", hint=hint)
        return replace(self._settings, late_share=1.0)

    def _disowned(self, reason: str) -> None:
        if self._run is not None:
            self._run.disowned(reason)
