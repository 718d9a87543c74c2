"""A guarded query while it is being built: its drop points, how each is executed, and what a run of it is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.control.controller import ControlSettings
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, InvalidSetting, refuse
from jettison.policies import Policy
from jettison.runtime.books import ExactCounts
from jettison.runtime.companion import Companion
from jettison.runtime.ledger import Ledger
from jettison.runtime.orders import Terms
from jettison.runtime.owner import Owner
from jettison.runtime.pilot import Pilot
from jettison.runtime.schedule import DEPENDENT_US, NEVER_US, UNKNOWN_US
from jettison.spark import doubts, validate
from jettison.spark.channel import Channel
from jettison.spark.drop_point import WEIGHT, DropPoint, refuse_equal_marks
from jettison.spark.guard import WOULD_WEIGH, guarded
from jettison.spark.mechanisms import Mechanism, mechanism_for
from jettison.spark.metrics import MetricCounts, by_metrics, note_trouble
from jettison.spark.query_token import query_token
from jettison.spark.run import Run, close_ended
from jettison.spark.unstarted import UnstartedWatch
from jettison.spark.watched import foreseeing, marked, watched

Accounting = Literal["auto", "metrics", "observe"]


class Assembly:
    """Collects the drop points of one query; the plan lies in `folder`, under its checkpoint."""

    def __init__(
        self,
        policy: Policy,
        checkpoint: str,
        folder: Folder,
        channel: Channel,
        accounting: Accounting,
        *,
        dry_run: bool,
    ) -> None:
        self._policy = policy
        self._checkpoint, self._folder = checkpoint, folder
        self._channel = channel
        self._accounting, self._dry_run = accounting, dry_run
        self.owner = Owner(folder)
        self.points: dict[str, DropPoint] = {}
        self.mechanisms: dict[str, Mechanism] = {}
        self.spark: SparkSession | None = None
        """The session of the guarded streams; `None` before there is one."""
        self.plan_read_s = 0.0
        """What one read of the plan takes, as measured when the first drop point was made."""
        self._entrance: list[str] = []
        self._together: tuple[str, DataFrame] | None = None
        self._metrics: bool | None = None
        self._watch = UnstartedWatch()
        self._marked: list[tuple[DataFrame, DataFrame]] = []  # guarded rows, and the same with marked weights
        self._watches_answers = False
        self._shed_before_us = NEVER_US

    def guard(
        self,
        rows: DataFrame,
        row_id: Column | str | Sequence[Column | str],
        arrival: Column | str | None,
        protect: Column | str | None,
        name: str | None,
    ) -> DataFrame:
        """Put a drop point on `rows`."""
        name = validate.new_name(name, self.points)
        where = f"drop point {name!r}"
        validate.streaming(rows, where=where)
        validate.weight(rows, WEIGHT, where=where)
        mechanism = mechanism_for(self._policy.spec)
        self._refuse_unplanned(name)
        if protect is not None and not self._policy.takes_protected:
            refuse(
                f"`protect` must be left out with {type(self._policy).__name__}",
                "a predicate",
                where=where,
                hint="that policy can except no rows; leave `protect` out or take another policy",
            )
        columns, first = rows.columns, WEIGHT not in rows.columns  # no other guard stands before it
        rows, identity, arrived = validate.identified(rows, row_id, arrival, where=where)
        protected = None if protect is None else validate.predicate(rows, protect, where=where)
        self._connect(rows.sparkSession)
        # Kept rows have to be observed for their arrivals in any case; these two need the dropped ones as well.
        among_all = bool(mechanism.stays) or (arrived is not None and mechanism.drops_stretches)
        point = DropPoint(
            name=name,
            row_id=identity,
            arrival=arrived,
            protect=protected,
            dry_run=self._dry_run,
            observed=self._dry_run or among_all or not self._counts_by_metrics(rows.sparkSession),
            group=None if self._together is None else self._together[0],
            token=self._token(),
        )
        refuse_equal_marks(point, self.points.values())
        mechanism.check(rows, point)
        if self._together is None:
            plan = self._channel.plan_row(rows.sparkSession, {point.name: mechanism}, metric=point.plan_metric)
        else:
            plan = self._together[1]
        result = guarded(rows, point, mechanism, plan)
        self.points[point.name] = point
        self.mechanisms[point.name] = mechanism
        if first:
            self._entrance.append(point.name)
        elif len(self.points) == 1:
            self._shed_before_us = UNKNOWN_US
        self._watch.begin(rows.sparkSession, point.plan_metric)
        result = result.drop(*(name for name in rows.columns if name not in columns))
        if not self._dry_run:
            return result
        would = result.withColumn(WEIGHT, marked(F.col(WOULD_WEIGH))).drop(WOULD_WEIGH)
        result = result.drop(WOULD_WEIGH)
        self._marked.append((result, would))
        return result

    def deliver(self, answers: DataFrame, window: Column | str, query: str | None, name: str | None) -> DataFrame:
        """The answers that the mechanism of a drop point lets out."""
        point, mechanism = validate.only(self.mechanisms, name, "name", "call `guard` first")
        plan = self._channel.newest_plan(answers.sparkSession, point, mechanism)
        whole = mechanism.deliver(answers, window, query, plan, where=f"drop point {point!r}")
        return answers if self._dry_run else whole

    def watch(self, rows: DataFrame, answers: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """The answers of guarded rows, with their bounds observed."""
        if self._watches_answers:
            refuse(
                "`watch` must be called once", "a second call", hint="let one function return all answers of the query"
            )
        self._watches_answers = True
        if not self._dry_run:
            return watched(answers(rows), self.answers_metric)
        would = [other for plain, other in self._marked if plain is rows]
        if not would:
            hint = "pass what `guard` returned, and let the function do all that comes after it"
            refuse(
                "in a dry run `watch` needs the guarded rows themselves", "other rows", hint=hint, error=InvalidInput
            )
        with foreseeing():
            return watched(answers(would[0]), self.answers_metric)

    @property
    def answers_metric(self) -> str:
        """Name of what `watch` observes."""
        return f"jettison-answers:{self._token()}"

    def read_plan_together(self, spark: SparkSession, names: Sequence[str], group: str) -> None:
        """Let the drop points `names`, whose guards follow, share one reading of the plan in every micro-batch.

        Each reading is a small job; for a network of many drop points they would add up. All of them then also see the
        same version.
        """
        self._connect(spark)
        mechanisms = dict.fromkeys(names, mechanism_for(self._policy.spec))
        metric = DropPoint(group, (), group=group, token=self._token()).plan_metric
        self._together = (group, self._channel.plan_row(spark, mechanisms, metric=metric))

    def refuse_incomplete(self, latency_bound_s: float) -> None:
        """Raise an error where the query cannot be started, or its bound cannot be held whatever is dropped."""
        for name, mechanism in self.mechanisms.items():
            mechanism.check_before_start(where=f"drop point {name!r}")
        # Only what was measured in this session: what else a trigger costs is not known before one has run.
        if latency_bound_s <= self.plan_read_s:
            refuse(
                f"`latency` must exceed the fixed cost of one trigger, here {self.plan_read_s:.2g} s to read a plan",
                f"{latency_bound_s:g} s",
                hint="raise the bound; micro-batches have a fixed cost of some tenths of a second at least",
            )

    def new_run(
        self, settings: ControlSettings, companions: Sequence[Companion], on_loss: Callable[[str], None]
    ) -> Run:
        """Claim the checkpoint and make a run; `on_loss` is called should another driver take the checkpoint."""
        assert self.spark is not None
        close_ended(self._checkpoint)
        with validate.writable(self._folder):
            self.owner.claim(on_loss)
        try:
            with validate.writable(self._folder):
                run = self._run(self.spark, settings, companions)
        except BaseException:
            self.owner.release()
            raise
        self._watch.end(self.spark)
        return run

    def forget(self) -> None:
        """Nothing was started: leave no listener and no view behind."""
        if self.spark is not None:
            self._watch.end(self.spark)
            with suppress(Exception):  # the session may be gone, and its view with it
                doubts.unregister(self.spark, self._channel)

    def _run(self, spark: SparkSession, settings: ControlSettings, companions: Sequence[Companion]) -> Run:
        entrance = self._entrance or list(self.points)[:1]
        pilot = Pilot(
            tuple(self.points),
            self._policy,
            settings,
            self._channel,
            self._folder,
            Ledger.open(self._folder / "ledger", entrance=entrance),
            self._exact_counts(spark),
            protected=frozenset(name for name, point in self.points.items() if point.protect is not None),
            entrance=frozenset(entrance),
            dry_run=self._dry_run,
            # No weight stands for what a companion drops.
            terms=Terms(
                settings,
                max([self.plan_read_s, *(one.least_latency_s for one in companions)]),
                "".join(one.name for one in companions),
            ),
            least_doubt_us=self._shed_before_us if all(one.keeps_answers_exact for one in companions) else DEPENDENT_US,
        )
        if self._channel.damage is not None:
            pilot.fault("plan", f"the plan on file could not be read, and was replaced ({self._channel.damage})")
        metric = self.answers_metric if self._watches_answers else ""
        run = Run(
            spark, self._checkpoint, pilot, self.points, self.mechanisms, companions, self.owner, self._channel, metric
        )
        doubts.register(spark, self._channel)  # once more: a start that failed has ended it
        pilot.aside, pilot.batch_runs = run.look_at_plan, run.batch_runs
        return run

    def _refuse_unplanned(self, name: str) -> None:
        if self._policy.points is not None and name not in self._policy.points:
            names = " or ".join(map(repr, self._policy.points))
            expected = f"a drop point under {type(self._policy).__name__} must be one that it plans for, {names}"
            refuse(expected, repr(name), hint="pass one of these names to `guard`", error=InvalidSetting)

    def _connect(self, spark: SparkSession) -> None:
        """Make sure that the plan file exists and that Spark sees what this process writes."""
        if self.spark is None:
            validate.since(spark, (4, 0), "a guard")
            close_ended(self._checkpoint)
            with validate.writable(self._folder):
                self.owner.refuse_second()
                self._channel.prepare()
            self.plan_read_s = self._channel.read_cost_s(spark)
            self.spark = spark
            doubts.register(spark, self._channel)

    def _token(self) -> str:
        """What tells this query's decisions from those of all others, over the life of its checkpoint."""
        return query_token(self._folder)

    def _counts_by_metrics(self, spark: SparkSession) -> bool:
        if self._metrics is None:
            self._metrics = self._accounting != "observe" and by_metrics(
                spark, self._folder, required=self._accounting == "metrics"
            )
        return self._metrics

    def _exact_counts(self, spark: SparkSession) -> ExactCounts | None:
        points = [point for point in self.points.values() if not point.observed]
        url = validate.web_interface(spark) if points else None
        if url is None:
            return None
        lost = partial(note_trouble, self._folder)
        return MetricCounts(url, spark.sparkContext.applicationId, points, lost)
