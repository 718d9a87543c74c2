"""The control loop of one running query: batch report in, plan out, everything on record.

It has a fast path, run as soon as a batch is reported (expected statistics, controller, policy, publish), a clock that
plans on while the next batch runs, so that a fresh plan is there when that one ends, and a slow path on a thread of its
own (`books`: exact row counts, ledger), so that a plan is never late because a count is. Whatever fails
here, the query goes on and keeps every row: a failed step publishes a plan that keeps everything, and if even that
fails the plan's lease runs out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from jettison.control.controller import Controller, ControlSettings
from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.core.redact import redacted
from jettison.core.stats import Budget, Stats
from jettison.core.storage import Folder
from jettison.policies.base import Policy
from jettison.runtime import restart
from jettison.runtime.books import Books, ExactCounts
from jettison.runtime.expected_stats import ExpectedStats
from jettison.runtime.faults import Faults
from jettison.runtime.inquiry import Told
from jettison.runtime.ledger import Ledger
from jettison.runtime.lessons import Lessons
from jettison.runtime.orders import Orders, Terms
from jettison.runtime.orders_in_force import OrdersInForce
from jettison.runtime.patience import Patience
from jettison.runtime.plan_board import PlanBoard, Publisher
from jettison.runtime.plan_file import look_every
from jettison.runtime.query_facts import QueryFacts
from jettison.runtime.schedule import NEVER_US, Doubts
from jettison.runtime.tally import Tally
from jettison.runtime.wholeness import Wholeness

log = logging.getLogger("jettison")

_TICK_S = 0.25  # between plans while a batch runs
_TICKS_A_LOOK = 4  # at the orders: a read each, which an object store answers slowly
_LONGEST_CAUSE = 200  # of a plan that must always find room, and of what is quoted
_RESTORED = "restored after a restart: "


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
        Where the state of controller and policy is kept across restarts.
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
    least_doubt_us
        What speaks against every answer, whatever the plans do; see `Wholeness`.
    terms
        What orders the query can follow; all that its settings allow where not given.
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
        least_doubt_us: int = NEVER_US,
        terms: Terms | None = None,
    ) -> None:
        self._points = points
        self._policy = policy
        self._publisher = publisher
        self._folder = folder
        self.ledger = ledger
        self._books = Books(ledger, exact_counts, self)
        self._dry_run = dry_run
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self._previous_start_s: float | None = None
        self._runs_since_s: float | None = None
        self._patience = Patience(publisher.lease_s)
        self.fault = Faults(ledger, self._lock)
        """Told the kind of what failed, and what happened in words."""
        self.faults = self.fault.counts
        expected = {name: share for name in points if (share := policy.input_share(name)) is not None}
        self.tally = Tally(protected, expected, entrance)
        self.lessons = Lessons(policy, self.tally, self._lock, self.fault, dry_run=dry_run)
        """What the policy learns, and the plans that batches ran under."""
        self._statistics = ExpectedStats(points, policy, self.tally, self.fault)
        self._orders = OrdersInForce(folder, ledger, terms or Terms(settings), policy.spare, self.fault)
        found = restart.found(publisher, ledger, folder, self._orders.settings, self.fault)
        self._board = PlanBoard(publisher, found.schedule, begun_us=found.begun_us)
        self._whole = Wholeness(found.schedule.doubts, least_doubt_us)
        self.facts = QueryFacts(self._whole, self._lock, self._restate_doubts, self.fault)
        """What the query's own plan says, as far as it was read."""
        self.controller = self._under_orders(found.controller or Controller(self._orders.settings))
        # The restored share stands, and late rows are thinned: a backlog has grown in the meantime.
        plan = restart.first_plan(
            policy,
            found.learned,
            partial(self._planned, found.last_plan, self._statistics.nothing_seen(0.0), self.controller.initial()),
            self.fault,
        )
        cause = plan.cause if found.controller is None else _RESTORED + plan.cause
        self.plan = replace(plan, version=found.next_version, cause=cause)
        self._last_stats: Stats | None = None
        self.aside: Callable[[BatchReport], None] = lambda _: None
        """Called with each report, off the fast path: it may block."""
        self.batch_runs: Callable[[], bool] = lambda: True
        """Whether a batch runs right now, or the query waits for rows or for its trigger."""
        self.produced: Callable[[], Told | None] = lambda: None
        """How many rows the source has had, as it last said; never blocks."""
        self._on_record = self.plan
        self.cause = self.plan.cause
        """Why the plan stands: it may be for another reason by now than when it was made."""
        self._last_version = self.plan.version - 1

    def start(self, **facts: Any) -> None:
        """Put the first plan in force and begin to renew it."""
        now_s = time.time()
        bound_s, points = self.latency_bound_s, list(self._points)
        restored = self.plan.cause.startswith(_RESTORED)
        if interval_s := self._orders.settings.trigger_interval_s:
            facts["trigger_s"] = interval_s
        if outline := dict(self._policy.outline()):
            facts["outline"] = outline
        self.ledger.start(now_s, latency_bound_s=bound_s, points=points, restored=restored, **facts)
        if still := "; ".join(self.orders.words()):
            log.warning("jettison: still in force: %s. `jettison set CHECKPOINT --clear all` ends it", still)
            self._orders.record(f"still in force: {still}")
        self._attempt(lambda: self._put_in_force(self.plan, now_s, at_once=True))
        if self.plan.version == 1:  # else the first batch may be one that the restart repeats
            self._runs_since_s = time.time()
        self._run(lambda: self._books.keep(lambda report: self.aside(report)), "jettison-ledger")
        self._run(self._plan_on, "jettison-plan")
        self._run(self._renew_lease, "jettison-lease")

    def batch(self, report: BatchReport) -> None:
        """Fast path: decide the next plan from a finished batch."""
        with self._lock:
            self._books.expect(report.batch_id)
            self._heard(report.duration_s)
            self._board.batch_done(report.started_s)
            if report.input_rows and (wrong := self._board.wrong_plan(report, repeated=self._runs_since_s is None)):
                self.fault("plan", wrong)
                self._attempt(self._board.renew)
            elif report.input_rows:
                self.fault.works("plan")
            # Expectations stand for counts that are missing.
            stats = self._statistics.of(report, self.lessons.reported(report))
            self._publisher.look_every = look_every(stats.kept)
            self._attempt(lambda: self._whole.batch(report, self.lessons.dropped_by(report.plan_version)))
            self._restate_doubts()
            self._attempt(lambda: self._step(stats))
            if self._whole.wants_a_new_version(self._board.schedule):
                again = replace(self.plan, version=self._last_version + 1, cause=self.cause)
                self._attempt(lambda: self._put_in_force(again, stats.committed_s))
            latency_s = self._latency_s(stats)
            self.tally.last_latency_s = self.tally.last_latency_s if latency_s is None else latency_s
            self._last_stats = stats
            self._previous_start_s, self._runs_since_s = stats.started_s, stats.committed_s
        self._books.add(report, stats, latency_s, self.lag)

    def missed(self, batches: range, why: str) -> None:
        """Batches of which no report will come: the books are not complete, and say so."""
        with self._lock:
            self._books.expect(*batches)
        which = f"batch {batches[0]}" if len(batches) == 1 else f"batches {batches[0]} to {batches[-1]}"
        self.fault("report", f"{which}: {why}")

    def idle(self, now_s: float) -> None:
        """The source has nothing: return to keeping everything."""
        with self._lock:
            self._heard()
            self._attempt(lambda: self._rest(now_s))
            self._last_stats, self._runs_since_s = None, time.time()

    def _heard(self, batch_s: float = 0.0) -> None:
        self._patience.heard(batch_s)
        self.fault.works("silence")

    def close(self, **facts: Any) -> None:
        """The query has ended: finish the books and stop all threads."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._books.finish()
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
        return self._closed.wait(timeout_s) and self._books.are_complete

    def _step(self, stats: Stats) -> None:
        # A batch's duration belongs to the rows that were really processed.
        budget = self.controller.step(self._as_load(stats.everything_kept() if self._dry_run else stats))
        self._adopt(budget, stats, stats.committed_s)
        restart.save(self._folder, self.controller, self._policy, self.fault)

    def _as_load(self, stats: Stats) -> Stats:
        return self._policy.workload(stats, self.lessons.dropped_by(stats.plan_version))

    def _rest(self, now_s: float) -> None:
        self._adopt(self.controller.idle(now_s), self._statistics.nothing_seen(now_s), now_s)
        restart.save(self._folder, self.controller, self._policy, self.fault)

    def _adopt(self, budget: Budget, stats: Stats, at_s: float) -> None:
        proposed = self._planned(self._on_record, stats, budget)
        if proposed.same_settings(self.plan):
            self.cause = proposed.cause
        elif self._board.has_room(proposed):
            self._put_in_force(replace(proposed, version=self._last_version + 1), at_s)
        self.fault.works("controller")

    def _planned(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        keep_all = self.orders.why_keep_all(budget.cause)
        if keep_all is not None:
            budget = replace(budget, share=1.0, late_share=1.0, cause=keep_all)
        stats = replace(stats, plan_bytes=self._publisher.room(self._policy.plan_bytes))
        plan = self._policy.continued(previous, stats, budget)
        return plan if keep_all is None or plan.keeps_everything else plan.released(plan.version, keep_all)

    def _put_in_force(self, plan: DropPlan, at_s: float, *, at_once: bool = False) -> None:
        self._last_version = plan.version  # used up even if what follows fails: no two plans on record share a version
        self.ledger.plan(at_s, plan, self._orders.over(self.controller.decision))  # on record before it is used
        self._on_record = plan  # what it decides stands, even should publishing fail half-way
        if not self._dry_run:
            self._whole.planned(plan, self._board.schedule)
        from_s = self._board.post(plan, self.doubts, at_once=at_once)
        self.fault.works("publish")
        self.plan, self.cause = plan, plan.cause
        self.lessons.planned(plan)
        self.controller.planned(plan.version, from_s)

    @property
    def latency_bound_s(self) -> float:
        """The bound that is held: the program's own, or the one that a person has set."""
        return self._orders.settings.latency_bound_s

    @property
    def orders(self) -> Orders:
        """What a person has set, and what stands until it is cleared."""
        return self._orders.orders

    def _follow(self, given: Orders) -> None:
        changed = self._orders.accept(given)
        if changed is None:
            return
        self._under_orders(self.controller).settings = self._orders.settings
        if changed:
            self._orders.record(changed)

    def _under_orders(self, controller: Controller) -> Controller:
        controller.dry_run = self._dry_run or self.orders.why_keep_all("") is not None
        return controller

    @property
    def doubts(self) -> Doubts:
        """In which answers rows may be missing."""
        return self._whole.doubts

    def _restate_doubts(self) -> None:
        self._attempt(lambda: self._board.restate(self.doubts))

    @property
    def why_not_shedding(self) -> str:
        """What has failed, in words, so that no row can be dropped now whatever the plan says; empty where nothing has."""
        failed = self.fault.why_not_shedding(keeps_everything=self.plan.keeps_everything)
        return self.facts.reads_no_plan or failed

    @property
    def running_plan(self) -> DropPlan | None:
        """The plan of the batch that runs, as far as its start is known: an older one than `plan` where that came later.

        `None` where the batch may be one that a restart repeats, under the plan of its first attempt.
        """
        with self._lock:
            since_s = self._runs_since_s
            return None if since_s is None else self._board.schedule.at(int(since_s * 1e6)) or DropPlan(0)

    @property
    def lag(self) -> tuple[int, float] | None:
        """Rows that have come and are in no batch on record, and how long they have waited; `None` where nobody knows."""
        with self._lock:
            return self.controller.lag(time.time())

    @property
    def runs_for_s(self) -> float:
        """How long the batch that runs has taken so far, as far as its start is known; about 0 where none runs."""
        with self._lock:
            return 0.0 if self._runs_since_s is None else max(time.time() - self._runs_since_s, 0.0)

    def _plan_on(self) -> None:
        """Plan on while a batch runs: it will end, and the next one is to find a plan made just before."""
        ticks = 0
        while not self._stopped.wait(_TICK_S):
            running, produced = self.batch_runs(), self.produced()
            ticks += 1
            given = self._orders.look() if ticks % _TICKS_A_LOOK == 0 else None
            with self._lock:
                if given is not None:
                    self._attempt(partial(self._follow, given))
                if not running and self._runs_since_s is not None:
                    self._runs_since_s = time.time()
                stats = self._last_stats
                # Nothing was reported, but the source knows something, or a person has spoken.
                if stats is None and (produced is not None or given is not None):
                    stats = self._statistics.nothing_seen(time.time())
                if stats is not None:
                    self._attempt(partial(self._tick, stats, running=running, produced=produced))

    def _tick(self, stats: Stats, *, running: bool, produced: Told | None) -> None:
        now_s = time.time()
        self._adopt(self.controller.forecast(now_s, running=running, produced=produced), stats, now_s)

    def _attempt(self, action: Callable[[], None]) -> None:
        """Run a part of the loop; if it fails, keep everything and start the controller afresh."""
        try:
            action()
        except Exception as error:
            self.fault("controller", f"{type(error).__name__}: {error}; every row is kept")
            self.controller = self._under_orders(Controller(self._orders.settings))
            everything = self._on_record.released(
                self._last_version + 1, redacted(f"controller failed: {error}")[:_LONGEST_CAUSE]
            )
            if not everything.points and not self.plan.points and self.plan is self._board.schedule.newest:
                return  # that is in force already: a file full of alike plans would have no room for the next
            try:
                self._put_in_force(everything, time.time())
            except Exception as second:
                self.plan, self.cause = everything, everything.cause  # never renew the lease of a plan that drops rows
                self.fault("publish", f"{type(second).__name__}: {second}; the plan's lease will run out")

    def _latency_s(self, stats: Stats) -> float | None:
        """Latency of the row that waited longest: observed, or else inferred from the trigger before."""
        self.fault.finding("arrival", self.controller.said_of_arrivals)
        self.fault.finding("source", self.controller.said_of_source)
        observed_s = self.controller.latency_s(stats)
        if observed_s is not None or not stats.seen:
            return observed_s
        waited_since = stats.started_s if self._previous_start_s is None else self._previous_start_s
        return stats.committed_s - waited_since

    def _renew_lease(self) -> None:
        """Keep the plan alive between batches, but not that of a controller which no longer hears of its query."""
        while not self._stopped.wait(self._publisher.lease_s / 3):
            with self._lock:
                try:
                    if self.plan is not self._board.schedule.newest:
                        self._board.post(self.plan, self.doubts)  # it could not be published before
                        self.fault.works("publish")
                    elif self.plan.keeps_everything or self._patience.lasts:
                        self._board.renew()
                        self.fault.works("publish")
                    elif self._patience.ran_out():
                        self.fault("silence", "nothing was heard of the query for long; the plan's lease will run out")
                except Exception as error:  # the next renewal may succeed; if none does, the lease runs out
                    self.fault("publish", f"the plan's lease was not renewed: {error}")

    def _run(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)
