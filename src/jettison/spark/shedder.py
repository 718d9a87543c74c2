"""The public face of Jettison on Spark: guard a stream, start its query, see how it is doing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from jettison import plan_file, storage
from jettison.control import ControlSettings, row_cap
from jettison.durations import Duration, seconds
from jettison.errors import InvalidInput, InvalidSetting, explain
from jettison.ledger import Ledger
from jettison.owner import Owner
from jettison.pilot import ExactCounts, Pilot
from jettison.policies import Policy, UniformDrop
from jettison.spark import accounting, doubts, validate
from jettison.spark.channel import Channel
from jettison.spark.deliver import delivered
from jettison.spark.drop_point import DropPoint, refuse_equal_marks
from jettison.spark.guard import WEIGHT, guarded
from jettison.spark.load_aware import LoadAware
from jettison.spark.mechanisms import Mechanism, WindowMechanism, mechanism_for
from jettison.spark.metrics import MetricCounts
from jettison.spark.run import Run, close_ended
from jettison.spark.unstarted import UnstartedWatch
from jettison.status import Status
from jettison.storage import Folder

Accounting = Literal["auto", "metrics", "observe"]
_TOKEN_FILE = "token"


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
        What to drop; `UniformDrop()` if not given.
    dry_run
        Decide and count, but drop nothing.
    accounting
        How rows are counted: `"metrics"` reads the counts that Spark's filters keep anyway, through the driver's web
        interface, and costs nothing on the row path; `"observe"` needs no web interface but costs some tens of
        nanoseconds a row, as does `arrival` in either case; `"auto"` takes the first where the web interface answers,
        unless it failed in the run before.
    control
        Finer settings of the controller; its bound is `latency`.
    plan_lease
        A plan is obeyed for this long after its controller last gave a sign of life.
    plan_size
        Fixed size of the plan file in bytes; what the policy's plans need (`plan_bytes`), or 64 kB, unless given.
    """

    def __init__(
        self,
        *,
        latency: Duration,
        checkpoint: str | Path,
        policy: Policy | None = None,
        dry_run: bool = False,
        accounting: Accounting = "auto",
        control: Mapping[str, Any] | None = None,
        plan_lease: Duration = "30 seconds",
        plan_size: int | None = None,
    ) -> None:
        self.latency_bound_s = seconds(latency, name="latency")
        self.policy: Policy = UniformDrop() if policy is None else policy
        if not isinstance(self.policy, Policy):
            hint = "pass an instance, such as policy=jettison.UniformDrop()"
            raise InvalidInput(explain("`policy` must have a method `plan(stats, budget)`", repr(policy), hint=hint))
        if accounting not in ("auto", "metrics", "observe"):
            expected = "`accounting` must be 'auto', 'metrics' or 'observe'"
            raise InvalidSetting(explain(expected, repr(accounting), hint="'auto' takes what the session offers"))
        self._settings = _control_settings(self.latency_bound_s, control or {})
        self._checkpoint = Folder(checkpoint)
        self._folder = storage.home(checkpoint)
        self._dry_run = dry_run
        self._accounting = accounting
        size = getattr(self.policy, "plan_bytes", plan_file.DEFAULT_SIZE) if plan_size is None else plan_size
        self._channel = Channel(self._folder, lease_s=seconds(plan_lease, name="plan_lease"), size=size)
        self._owner = Owner(self._folder)
        self._points: dict[str, DropPoint] = {}
        self._entrance: list[str] = []
        self._mechanisms: dict[str, Mechanism] = {}
        self._delivered: set[tuple[str, str]] = set()
        self._together: tuple[str, DataFrame] | None = None
        self._spark: SparkSession | None = None
        self._plan_read_s = 0.0
        self._metrics: bool | None = None
        self._watch = UnstartedWatch()
        self._run: Run | None = None
        self._functions: list[LoadAware] = []

    @property
    def checkpoint(self) -> str:
        """The query's checkpoint location."""
        return self._checkpoint.uri

    def attach(self, function: LoadAware) -> None:
        """Show a function under load-aware shedding in `status`, and close its books with the query's."""
        if self._functions:
            raise InvalidSetting(
                explain(
                    "one function under load-aware shedding a query",
                    "a second one",
                    hint="a checkpoint holds the costs of one; wrap the function that is dearest",
                )
            )
        if self._dry_run:
            raise InvalidSetting(
                explain(
                    "a query that drops rows, around a function under load-aware shedding",
                    "dry_run=True",
                    hint="a function cannot be tried out without dropping; leave `load_aware` out of the dry run",
                )
            )
        self._functions.append(function)

    def guard(
        self,
        rows: DataFrame,
        *,
        id: str | Sequence[str],
        arrival: str | None = None,
        protect: Column | str | None = None,
        name: str | None = None,
    ) -> DataFrame:
        """Return `rows` with a drop point on it and the column `jt_weight` added.

        Put it as close to the source as you can: what is dropped here costs nothing further on.

        Parameters
        ----------
        rows
            A streaming DataFrame.
        id
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
            expected, hint = "`guard` must be called before `start`", "use one Shedder a query"
            raise InvalidSetting(explain(expected, "a query that runs already", hint=hint))
        name = self._new_name(name)
        where = f"drop point {name!r}"
        validate.streaming(rows, where=where)
        validate.weight(rows, WEIGHT, where=where)
        mechanism = mechanism_for(self.policy)
        identity = validate.identity(rows, id, where=where)
        arrival = None if arrival is None else validate.timestamp(rows, arrival, where=where)
        protected = None if protect is None else validate.predicate(rows, protect, where=where)
        self._connect(rows.sparkSession)
        # Kept rows have to be observed for their arrivals in any case; these two need the dropped ones as well.
        among_all = bool(mechanism.stays) or (arrival is not None and mechanism.drops_stretches)
        point = DropPoint(
            name=name,
            id=identity,
            arrival=arrival,
            protect=protected,
            dry_run=self._dry_run,
            observed=self._dry_run or among_all or not self._counts_by_metrics(rows.sparkSession),
            group=None if self._together is None else self._together[0],
            token=self._token(),
        )
        refuse_equal_marks(point, self._points.values())
        mechanism.check(rows, point)
        if self._together is None:
            plan = self._channel.plan_row(rows.sparkSession, {point.name: mechanism}, metric=point.plan_metric)
        else:
            plan = self._together[1]
        result = guarded(rows, point, mechanism, plan)
        self._points[point.name] = point
        self._mechanisms[point.name] = mechanism
        if WEIGHT not in rows.columns:  # no other guard stands before it
            self._entrance.append(point.name)
        self._watch.begin(rows.sparkSession, point.plan_metric)
        return result

    def deliver(
        self, answers: DataFrame, *, window: str = "window", query: str | None = None, name: str | None = None
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
        point, mechanism = validate.only(self._mechanisms, name, "name", "call `guard` first")
        if not isinstance(mechanism, WindowMechanism):
            where, hint = f"drop point {point!r}", "write the answers as they are: each carries its own bounds"
            got = type(self.policy).__name__
            raise InvalidSetting(explain("`deliver` belongs to WindowDrop", got, where=where, hint=hint))
        places = {branch.name: place for place, branch in enumerate(mechanism.fan.branches)}
        query, place = validate.only(places, query, "query", "name one of the policy's queries")
        self._delivered.add((point, query))
        if self._dry_run:
            return answers
        plan = self._channel.newest_plan(answers.sparkSession, point, mechanism)
        return delivered(answers, window, place, mechanism, plan)

    def read_plan_together(self, spark: SparkSession, names: Sequence[str], *, group: str) -> None:
        """Let the drop points `names`, whose guards follow, share one reading of the plan in every micro-batch.

        Each reading is a small job; for a network of many drop points they would add up. All of them then also see the
        same version.
        """
        self._connect(spark)
        mechanisms = dict.fromkeys(names, mechanism_for(self.policy))
        metric = DropPoint(group, (), group=group, token=self._token()).plan_metric
        self._together = (group, self._channel.plan_row(spark, mechanisms, metric=metric))

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start the query of `writer` with this shedder's checkpoint, and begin to control it."""
        if self._spark is None or not self._points:
            hint = "call `shedder.guard(...)` on its source first"
            raise InvalidSetting(explain("`start` needs a guarded stream", "none", hint=hint))
        if self._run is not None:
            expected, hint = "`start` must be called once", "use one Shedder a query"
            raise InvalidSetting(explain(expected, "a second call", hint=hint))
        if not (hasattr(writer, "option") and hasattr(writer, "start")):
            raise InvalidInput(explain("`writer` must be a DataStreamWriter", repr(writer), hint="pass df.writeStream"))
        self._refuse_partial_windows()
        self._refuse_impossible_bound()
        close_ended(self.checkpoint)
        self._owner.claim(self._disowned)
        try:
            self._run = self._new_run(self._spark)
        except BaseException:
            self._owner.release()
            raise
        self._watch.end(self._spark)
        try:
            return self._run.launch(writer, policy=type(self.policy).__name__, dry_run=self._dry_run)
        except BaseException:
            self._run = None
            raise

    def close(self, timeout: Duration = "30 seconds") -> bool:
        """Stop the query if it still runs, and finish its books; false if a batch is not on record in time."""
        if self._run is None:
            if self._spark is not None:
                self._watch.end(self._spark)
            return True
        self._run.stop()
        return self.await_books(timeout)

    def __enter__(self) -> Shedder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def status(self) -> Status:
        """How the query is doing right now, or did until it ended."""
        return self._started("`status`").status(self.latency_bound_s, dry_run=self._dry_run)

    @property
    def ledger(self) -> Ledger:
        """The query's ledger, to read while it runs or afterwards."""
        return Ledger(self._folder / "ledger")

    def await_books(self, timeout: Duration = "30 seconds") -> bool:
        """Wait until the query has ended and everything about it is in the ledger.

        False if that takes too long, or if a batch could not be put on record.
        """
        return self._started("`await_books`").await_books(seconds(timeout, name="timeout"))

    def row_cap(self, peak_rows_per_s: float) -> int:
        """Rows a micro-batch should take at most, for the source's own cap such as `maxOffsetsPerTrigger`.

        Arrivals up to `peak_rows_per_s` are shed to hold the bound; beyond it the source delays them, so that one
        huge batch cannot break the bound for everything that follows. Where the controller is to know the cap too, take
        `jettison.row_cap` before the shedder is made, and pass it as `control={"row_cap": cap}`.
        """
        return row_cap(peak_rows_per_s, self.latency_bound_s)

    def _started(self, method: str) -> Run:
        if self._run is None:
            expected, hint = f"{method} needs a query that was started", "call `shedder.start(writer)` first"
            raise InvalidSetting(explain(expected, "none", hint=hint))
        return self._run

    def _control(self) -> ControlSettings:
        """The settings, without the thinning of late rows where no drop point knows when its rows arrived."""
        if any(point.arrival for point in self._points.values()):
            return self._settings
        return replace(self._settings, late_keep_fraction=1.0)

    def _new_run(self, spark: SparkSession) -> Run:
        entrance = self._entrance or list(self._points)[:1]
        pilot = Pilot(
            tuple(self._points),
            self.policy,
            self._control(),
            self._channel,
            self._folder,
            Ledger.open(self._folder / "ledger", entrance=entrance),
            self._exact_counts(spark),
            protected=frozenset(name for name, point in self._points.items() if point.protect is not None),
            entrance=frozenset(entrance),
            dry_run=self._dry_run,
        )
        points = tuple(self._points.values())
        run = Run(spark, self.checkpoint, pilot, points, self._functions, self._owner, self._channel)
        pilot.aside, pilot.batch_runs = run.look_for_dependent_rows, run.batch_runs
        return run

    def _disowned(self, reason: str) -> None:
        if self._run is not None:
            self._run.disowned(reason)

    def _new_name(self, name: str | None) -> str:
        if name is None:
            return "rows" if not self._points else f"rows{len(self._points) + 1}"
        return validate.new_name(name, self._points)

    def _connect(self, spark: SparkSession) -> None:
        """Make sure that the plan file exists and that Spark sees what this process writes."""
        if self._spark is None:
            close_ended(self.checkpoint)
            self._owner.refuse_second()
            self._channel.prepare()
            self._plan_read_s = self._channel.read_cost_s(spark)
            self._spark = spark
            doubts.register(spark, self._channel)

    def _token(self) -> str:
        """What tells this query's decisions from those of all others, over the life of its checkpoint."""
        content = self._folder.read(_TOKEN_FILE)
        if content is None:
            content = uuid4().hex.encode()
            self._folder.replace(_TOKEN_FILE, content)
        return content.decode("ascii", "replace")

    def _counts_by_metrics(self, spark: SparkSession) -> bool:
        if self._metrics is None:
            self._metrics = self._accounting != "observe" and accounting.by_metrics(
                spark, self._folder, required=self._accounting == "metrics"
            )
        return self._metrics

    def _exact_counts(self, spark: SparkSession) -> ExactCounts | None:
        points = [point for point in self._points.values() if not point.observed]
        url = validate.web_interface(spark) if points else None
        if url is None:
            return None
        lost = partial(accounting.note_trouble, self._folder)
        return MetricCounts(url, spark.sparkContext.applicationId, points, lost)

    def _refuse_partial_windows(self) -> None:
        for name, mechanism in self._mechanisms.items():
            branches = mechanism.fan.branches if isinstance(mechanism, WindowMechanism) else ()
            for branch in branches:
                if (name, branch.name) not in self._delivered:
                    expected = "with WindowDrop the answers must go through `shedder.deliver(...)`"
                    got, where = f"none that did for {branch.name!r}", f"drop point {name!r}"
                    hint = "windows that were dropped in part would come out wrong"
                    raise InvalidSetting(explain(expected, got, where=where, hint=hint))

    def _refuse_impossible_bound(self) -> None:
        # Only what was measured in this session: what else a trigger costs is not known before one has run.
        if self.latency_bound_s <= self._plan_read_s:
            raise InvalidSetting(
                explain(
                    f"`latency` must exceed the fixed cost of one trigger, here {self._plan_read_s:.2g} s to read a plan",
                    f"{self.latency_bound_s:g} s",
                    hint="raise the bound; micro-batches have a fixed cost of some tenths of a second at least",
                )
            )


def _control_settings(bound_s: float, given: Mapping[str, Any]) -> ControlSettings:
    known = [field.name for field in fields(ControlSettings) if field.name != "latency_bound_s"]
    if unknown := sorted(set(given) - set(known)):
        raise InvalidSetting(
            explain(f"`control` takes {', '.join(known)}", ", ".join(map(repr, unknown)), hint="the bound is `latency`")
        )
    return ControlSettings(latency_bound_s=bound_s, **given)
