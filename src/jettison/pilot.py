"""The control loop of one running query: batch report in, plan out, everything on record.

It has a fast path, run as soon as a batch is reported (expected statistics, controller, policy, publish), a clock that
plans on while the next batch runs, so that a fresh plan is there when that one ends, and a slow path on a thread of its
own (exact row counts, ledger), so that a plan is never late because a count is. Whatever fails
here, the query goes on and keeps every row: a failed step publishes a plan that keeps everything, and if even that
fails the plan's lease runs out.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from jettison import restart
from jettison.batch_report import BatchReport, Counted
from jettison.control import Controller, ControlSettings
from jettison.group_books import GroupBooks
from jettison.ledger import Ledger
from jettison.patience import Patience
from jettison.plan import DropPlan
from jettison.plan_board import PlanBoard, Publisher
from jettison.policies.base import (
    ContinuingPolicy,
    LearnsFromCounts,
    LearnsFromPassRate,
    LearnsFromRows,
    Policy,
    WeighsLoad,
)
from jettison.redact import redacted
from jettison.schedule import DEPENDENT_US, NEVER_US
from jettison.settings import Setting
from jettison.stats import Budget, EventTimes, PointStats, Stats
from jettison.storage import Folder
from jettison.tally import Tally
from jettison.touched import TouchedTimes

log = logging.getLogger("jettison")

_FINISHED = None
_TICK_S = 0.25  # between plans while a batch runs
_MOST_BEHIND = 32
_LONGEST_CAUSE = 200  # of a plan that must always find room
_RESTORED = "restored after a restart: "


ExactCounts = Callable[[BatchReport], Mapping[str, Counted]]
"""Counts by drop point, for a report whose counts are incomplete; none where they are not to be had. May block and raise."""


class Pilot:
    """Runs controller and policy for one query and keeps its books.

    Parameters
    ----------
    points
        Names of the drop points.
    policy, settings
        What to drop; when and how much.
    publisher
        Carries the plans.
    folder
        Where the controller's state is kept across restarts.
    ledger
        Where everything is recorded.
    exact_counts
        Called off the fast path to complete reports.
    protected
        Names of the drop points that have protected rows.
    entrance
        Names of those at which rows are counted for the totals; all of them where not given.
    dry_run
        The counts say what would have been kept; in truth every row was.
    """

    def __init__(
        self,
        points: tuple[str, ...],
        policy: Policy,
        settings: ControlSettings,
        publisher: Publisher,
        folder: Folder,
        ledger: Ledger,
        exact_counts: ExactCounts | None = None,
        *,
        protected: frozenset[str] = frozenset(),
        entrance: frozenset[str] = frozenset(),
        dry_run: bool = False,
    ) -> None:
        self._points = points
        self._policy = policy
        self._settings = settings
        self._publisher = publisher
        self._folder = folder
        self.ledger = ledger
        self._exact_counts = exact_counts
        self._dry_run = dry_run
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._closed = threading.Event()
        self._reports: queue.Queue[tuple[BatchReport, Stats] | None] = queue.Queue()
        self._unrecorded: set[int] = set()
        self._threads: list[threading.Thread] = []
        self._previous_start_s: float | None = None
        self._patience = Patience(publisher.lease_s)
        self._newest_us = -(2**63)
        self._plan_by_version: dict[int, DropPlan] = {}
        self.faults: Counter[str] = Counter()
        expected = {name: policy.input_share(name) for name in points} if isinstance(policy, WeighsLoad) else {}
        self.tally = Tally(protected, expected, entrance)
        self._groups = GroupBooks(policy, points)
        found = restart.found(publisher, ledger, folder, settings, self.fault)
        self._board = PlanBoard(publisher, found.schedule)
        self._touched = TouchedTimes(found.schedule.doubtful_until_us)
        self.controller = found.controller or Controller(settings)
        self.controller.dry_run = dry_run
        # The restored keep fraction stands, and late rows are thinned: a backlog has grown in the meantime.
        plan = self._proposed(found.last_plan, self._nothing_seen(0.0), self.controller.initial())
        cause = plan.cause if found.controller is None else _RESTORED + plan.cause
        self.plan = replace(plan, version=found.next_version, cause=cause)
        self._last_stats: Stats | None = None
        self._dependent = False
        self.aside: Callable[[BatchReport], None] = lambda _: None
        """Called with each report, off the fast path: it may block."""
        self.batch_runs: Callable[[], bool] = lambda: True
        """Whether a batch runs right now, or the query waits for rows or for its trigger."""
        self._on_record = self.plan
        self._last_version = self.plan.version - 1

    def start(self, **facts: Any) -> None:
        """Put the first plan in force and begin to renew it."""
        now_s = time.time()
        bound_s, points = self._settings.latency_bound_s, list(self._points)
        restored = self.plan.cause.startswith(_RESTORED)
        self.ledger.start(now_s, latency_bound_s=bound_s, points=points, restored=restored, **facts)
        self._attempt(lambda: self._put_in_force(self.plan, now_s, at_once=True))
        self._run(self._keep_books, "jettison-ledger")
        self._run(self._plan_on, "jettison-plan")
        self._run(self._renew_lease, "jettison-lease")

    def batch(self, report: BatchReport) -> None:
        """Fast path: decide the next plan from a finished batch."""
        with self._lock:
            self._unrecorded.add(report.batch_id)
            self._patience.heard(report.duration_s)
            self._board.batch_done(report.started_s)
            if report.input_rows and report.plan_version is None:
                self.fault("plan", f"batch {report.batch_id} found no valid plan and kept every row")
                self._attempt(self._board.renew)
            stats = self._expected(report)
            self._attempt(lambda: self._look_for_whole_answers(report))
            self._attempt(lambda: self._step(stats, report))
            self.tally.batch(report, self._latency_s(stats))
            self._last_stats = stats
            self._previous_start_s = stats.started_s
        self._reports.put((report, stats))

    def missed(self, batches: range, why: str) -> None:
        """Batches of which no report will come: the books are not complete, and say so."""
        with self._lock:
            self._unrecorded.update(batches)
        some = f"batch {batches[0]}" if len(batches) == 1 else f"batches {batches[0]} to {batches[-1]}"
        self.fault("report", f"{some}: {why}")

    def idle(self, now_s: float) -> None:
        """The source has nothing: return to keeping everything."""
        with self._lock:
            self._patience.heard()
            self._attempt(lambda: self._rest(now_s))
            self._last_stats = None

    def close(self, **facts: Any) -> None:
        """The query has ended: finish the books and stop all threads."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._reports.put(_FINISHED)
        for thread in self._threads:
            thread.join(timeout=30.0)
        try:
            self.ledger.stop(time.time(), faults=dict(self.faults), **facts)
        except Exception as error:
            self.fault("ledger", f"{type(error).__name__}: {error}")
        finally:
            self._closed.set()

    def await_close(self, timeout_s: float) -> bool:
        """Wait until `close` has finished the books; false if that takes longer, or if a batch is not on record."""
        return self._closed.wait(timeout_s) and not self._unrecorded

    def _step(self, stats: Stats, report: BatchReport) -> None:
        if report.sampled and isinstance(self._policy, LearnsFromRows):
            self._policy.learn_rows(report.batch_id, report.sampled)
        # A batch's duration belongs to the rows that were really processed.
        budget = self.controller.step(self._as_load(stats.everything_kept() if self._dry_run else stats))
        self._adopt(budget, stats, stats.committed_s)
        restart.save_controller(self._folder, self.controller)

    def _as_load(self, stats: Stats) -> Stats:
        if not isinstance(self._policy, WeighsLoad):
            return stats
        return self._policy.workload(stats, None if self._dry_run else self._plan_of(stats.plan_version))

    def _rest(self, now_s: float) -> None:
        self._adopt(self.controller.idle(now_s), self._nothing_seen(now_s), now_s)
        restart.save_controller(self._folder, self.controller)

    def _adopt(self, budget: Budget, stats: Stats, at_s: float) -> None:
        proposed = self._proposed(self._on_record, stats, budget)
        if proposed.same_settings(self.plan) or not self._board.has_room(proposed):
            return
        self._put_in_force(replace(proposed, version=self._last_version + 1), at_s)

    def _proposed(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        if isinstance(self._policy, ContinuingPolicy):
            return self._policy.continued(previous, stats, budget)
        return self._policy.plan(stats, budget)

    def _put_in_force(self, plan: DropPlan, at_s: float, *, at_once: bool = False) -> None:
        self._last_version = plan.version  # used up even if what follows fails: no two plans on record share a version
        self.ledger.plan(at_s, plan)  # on record before it is used
        self._on_record = plan  # what it decides stands, even should publishing fail half-way
        if plan.leaves_partial_answers and not self._dry_run:
            self._touched.open()
        from_s = self._board.post(plan, self._doubtful_until_us(), at_once=at_once)
        self.plan = plan
        self._plan_by_version[plan.version] = plan
        self.controller.planned(plan.version, from_s)
        for old in sorted(self._plan_by_version)[:-64]:
            del self._plan_by_version[old]

    def _look_for_whole_answers(self, report: BatchReport) -> None:
        """End the stretch in which answers may miss rows, once a batch has kept all and every plan after its own does."""
        self._touched.observe(report.batch_id, report.event_times)
        version = report.plan_version
        if not self._touched.is_open or version is None or report.event_times is None:
            return
        later = [entry.plan for entry in self._board.schedule.entries if entry.plan.version >= version]
        if later and not any(plan.leaves_partial_answers for plan in later):
            self._touched.close()
            self._board.restate(self._doubtful_until_us())

    def _doubtful_until_us(self) -> int:
        until_us = self._touched.until_us
        return DEPENDENT_US if self._dependent and until_us > NEVER_US else until_us

    def rows_are_dependent(self, point: str, multipliers: Sequence[str]) -> None:
        """Rows that share one decision can meet in one answer: say so in the answers from which rows were dropped."""
        log.warning("jettison: rows behind %r are multiplied (%s); bounds would be too short", point, multipliers[0])
        with self._lock:
            self._dependent = True
            self._attempt(lambda: self._board.restate(self._doubtful_until_us()))

    def _plan_on(self) -> None:
        """Plan on while a batch runs: it will end, and the next one is to find a plan made just before."""
        while not self._stopped.wait(_TICK_S):
            running = self.batch_runs()
            with self._lock:
                if self._last_stats is not None:
                    self._attempt(partial(self._tick, self._last_stats, running=running))

    def _tick(self, stats: Stats, *, running: bool) -> None:
        now_s = time.time()
        self._adopt(self.controller.forecast(now_s, running=running), stats, now_s)

    def _attempt(self, action: Callable[[], None]) -> None:
        """Run a part of the loop; if it fails, keep everything and start the controller afresh."""
        try:
            action()
        except Exception as error:
            self.fault("controller", f"{type(error).__name__}: {error}; every row is kept")
            self.controller = Controller(self._settings)
            self.controller.dry_run = self._dry_run
            everything = self._on_record.released(
                self._last_version + 1, redacted(f"controller failed: {error}")[:_LONGEST_CAUSE]
            )
            if not everything.points and not self.plan.points and self.plan is self._board.schedule.newest:
                return  # that is in force already: a file full of alike plans would have no room for the next
            try:
                self._put_in_force(everything, time.time())
            except Exception as second:
                self.plan = everything  # never renew the lease of a plan that drops rows
                self.fault("publish", f"{type(second).__name__}: {second}; the plan's lease will run out")

    def _plan_of(self, version: int | None) -> DropPlan | None:
        """The plan of that version, if it is one of the last ones; `None` stands for a batch that found no plan."""
        return None if version is None else self._plan_by_version.get(version)

    def _expected(self, report: BatchReport) -> Stats:
        """Statistics of a batch from its report, with expectations in place of missing counts."""
        in_force = self._plan_of(report.plan_version)
        try:
            self._groups.learn(report.groups, in_force, report.event_times)
        except Exception as error:
            self.fault("policy", f"{type(error).__name__}: {error}; no group was learned of")
        points = {name: self._expected_point(name, report, in_force) for name in self._points}
        return Stats(
            batch_id=report.batch_id,
            started_s=report.started_s,
            duration_s=report.duration_s,
            points=points,
            plan_version=report.plan_version,
            oldest_arrival_s=report.oldest_arrival_s,
            newest_arrival_s=report.newest_arrival_s,
            recent_rows_per_s=report.recent_rows_per_s,
            event_times=self._times_so_far(report),
            work_s=report.work_s,
            waiting_rows=report.waiting_rows,
        )

    def _times_so_far(self, report: BatchReport) -> EventTimes | None:
        if report.event_times is None:
            return None
        self._newest_us = max(self._newest_us, report.event_times.newest_us)
        return replace(report.event_times, newest_us=self._newest_us)

    def _expected_point(self, name: str, report: BatchReport, in_force: DropPlan | None) -> PointStats:
        seen = report.seen.get(name)
        if seen is None:
            seen = round(report.input_rows * self.tally.input_share(name, len(self._points)))
        protected = self.tally.protected_share(name)
        kept = report.kept.get(name)
        if kept is not None:
            counted = name in report.seen and not report.any_runs
            return PointStats(max(seen, kept), kept, protected, counted, *self._groups.known(name))
        setting = in_force.points.get(name) if in_force else None
        fraction = 1.0 if setting is None else self._share_kept(setting, report.event_times)
        kept = round(seen * (protected + (1 - protected) * fraction))
        return PointStats(seen, kept, protected, False, *self._groups.known(name))

    def _share_kept(self, setting: Setting, times: EventTimes | None) -> float:
        if times is not None and isinstance(self._policy, ContinuingPolicy):
            try:
                return self._policy.share_kept(setting, times)
            except Exception as error:
                self.fault("policy", f"{type(error).__name__}: {error}; the plan's own share is expected")
        return setting.keep_fraction

    def _latency_s(self, stats: Stats) -> float | None:
        """Latency of the row that waited longest: observed, or else inferred from the trigger before."""
        said = self.controller.said_of_arrivals
        if said and "arrival" not in self.faults:
            self.fault("arrival", said)
        observed_s = self.controller.latency_s(stats)
        if observed_s is not None or not stats.seen:
            return observed_s
        waited_since = stats.started_s if self._previous_start_s is None else self._previous_start_s
        return stats.committed_s - waited_since

    def _nothing_seen(self, now_s: float) -> Stats:
        points = {name: PointStats(0, 0, self.tally.protected_share(name)) for name in self._points}
        return Stats(batch_id=-1, started_s=now_s, duration_s=0.0, points=points)

    def _keep_books(self) -> None:
        """Slow path: complete each report with exact counts and record it."""
        while (item := self._reports.get()) is not _FINISHED:
            report, stats = item
            try:
                self._record(report, self._completed(report, stats))
                self.aside(report)
            except Exception as error:
                self.fault("ledger", f"{type(error).__name__}: {error}")

    def _completed(self, report: BatchReport, stats: Stats) -> Stats:
        if all(point.exact for point in stats.points.values()):
            return stats
        if report.nothing_new:
            return replace(stats, points={name: replace(point, exact=True) for name, point in stats.points.items()})
        counts = {} if self._exact_counts is None else self._counts(report, self._exact_counts)
        points = dict(stats.points)
        for name, counted in counts.items():
            seen, kept, exact = Counted(*counted)
            points[name] = replace(points[name], seen=seen, kept=kept, exact=exact)
        if report.any_runs and not all(point.exact for point in points.values()) and "estimate" not in self.faults:
            why = "the sink ran the plan of the batch never, in part or in ways that cannot be told apart"
            self.fault("estimate", f"row counts of batch {report.batch_id}, and maybe later ones, are estimates: {why}")
        return replace(stats, points=points)

    def _counts(self, report: BatchReport, exact_counts: ExactCounts) -> Mapping[str, Counted]:
        """What the backend counted; nothing where it cannot, or where asking would let the books fall behind."""
        behind = self._reports.qsize()
        try:
            if behind > _MOST_BEHIND:
                raise TimeoutError(f"the books are {behind} batches behind, so its counts are estimates")
            return exact_counts(report)
        except Exception as error:
            self.fault("accounting", f"batch {report.batch_id}: {error or type(error).__name__}")
            return {}

    def _record(self, report: BatchReport, stats: Stats) -> None:
        with self._lock:
            self.tally.exact(report, stats, self._plan_of(report.plan_version))
            latency_s = self.tally.latency_of(report.batch_id)
            closed = self._groups.take_closed()
        self.ledger.batch(stats, latency_s=latency_s)
        self._unrecorded.discard(stats.batch_id)
        for name, pane in closed:
            self.ledger.concept(stats.committed_s, name, pane)
        if all(point.exact for point in stats.points.values()):
            self._teach(stats)

    def _teach(self, stats: Stats) -> None:
        """Show the policy what a batch has really seen and kept; a policy that fails at it plans with what it knows."""
        with self._lock:
            in_force = self._plan_of(stats.plan_version)
            try:
                if isinstance(self._policy, LearnsFromCounts):
                    self._policy.learn_counts(stats.everything_kept() if self._dry_run else stats)
                if isinstance(self._policy, LearnsFromPassRate) and in_force is not None:
                    self._policy.learn_pass_rate(stats, in_force)
            except Exception as error:
                nothing = f"nothing was learned from batch {stats.batch_id}"
                self.fault("policy", f"{type(error).__name__}: {error}; {nothing}")

    def _renew_lease(self) -> None:
        """Keep the plan alive between batches, but not that of a controller which no longer hears of its query."""
        while not self._stopped.wait(self._publisher.lease_s / 3):
            with self._lock:
                try:
                    if self.plan is not self._board.schedule.newest:
                        self._board.post(self.plan, self._doubtful_until_us())  # it could not be published before
                    elif self.plan.keeps_everything or self._patience.lasts:
                        self._board.renew()
                    elif self._patience.ran_out():
                        self.fault("silence", "nothing was heard of the query for long; the plan's lease will run out")
                except Exception as error:  # the next renewal may succeed; if none does, the lease runs out
                    self.fault("publish", f"the plan's lease was not renewed: {error}")

    def fault(self, kind: str, detail: str) -> None:
        """Count a failure, put it on record, and warn the first time its kind occurs."""
        detail = redacted(detail)
        with self._lock:
            self.faults[kind] += 1
            first = self.faults[kind] == 1
        if first:
            log.warning("jettison: %s (further faults of this kind are only counted)", detail)
        try:
            self.ledger.fault(time.time(), kind, detail)
        except Exception:
            self.faults["ledger"] += 1

    def _run(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)
