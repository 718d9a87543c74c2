"""When to shed and how much: the controller that keeps row latency under its bound, and does no harm.

Pure: it knows neither the clock nor the policy nor the engine. It learns from each finished micro-batch (`step`), and
while a batch runs it is asked a few times a second what the next one may keep (`forecast`). `docs/controller.md` has the
states, the formulas and the measured behaviour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from jettison.control.actuation import PlanHistory
from jettison.control.arrivals import CHANGE, Arrivals
from jettison.control.budget_figures import BudgetFigures
from jettison.control.causes import about_the_clock
from jettison.control.control_settings import ControlSettings
from jettison.control.engine import Engine
from jettison.control.load_model import Costs, LoadModel, Running
from jettison.control.next_batch import NextBatch, Source
from jettison.control.next_budget import NextBudget, late_after_s
from jettison.control.outlook import Ahead, Outlook
from jettison.control.produced import Produced
from jettison.control.startup import COLDEST, StartUp
from jettison.core.documents import plain, restored
from jettison.core.stats import Budget, Stats
from jettison.errors import refuse

__all__ = ["ControlSettings", "Controller"]

_FEW, _CUT = 5, 0.25  # before so many batches were measured, a batch keeps this part of the share before it
_CATCH_UP = 0.9  # load below which a young process catches up with what came while it was slow
_WAITED_FOR = 0.8  # the same as the second batch shows it by its length alone
_CATCH_UP_RUNNING = 1.15  # the same as a single batch may show it
_FALLING = 0.3  # how far costs may be from final as long as no batch was in time
_LONGEST, _LONGEST_S = 4.0, 25.0  # bounds, and seconds: a batch that takes longer than both is not risked for that
_OVERRUN = 3.0  # times the expected length, from which a running batch says that more rows come than thought
_RISING = 1.3  # the same where the last batch already had far more rows than the one before
_LAST_CALL = 0.5  # of the bound: a batch that has run for longer leaves no time to see whether it is only a slow one
_LEAD_S, _TICK_S = 0.1, 0.2  # until a plan counts, and until the middle of the time for which it is the newest
_MOST = 100.0  # logarithms of costs, and evidence for them


@dataclass
class _Memory:
    """What outlives the process; the controller holds each under the same name."""

    model: LoadModel
    arrivals: Arrivals
    plans: PlanHistory
    budget: Budget
    shedding: bool


class Controller:
    """Keep every row while the latency bound allows it, else the largest steady share that holds the bound.

    Rows are dropped only if keeping them would break the bound *and* dropping helps. Call `initial` when the query
    starts, `step` after every micro-batch, `forecast` while one runs, `planned` when a budget has become a plan, and
    `idle` when nothing arrives. A share always lies between `least_share` and 1.

    Examples
    --------
    >>> controller = Controller(ControlSettings(latency_bound_s=3.0))
    >>> controller.initial().share
    1.0
    >>> from jettison.core.stats import PointStats
    >>> for n, rows in enumerate([200_000, 300_000, 400_000, 500_000, 600_000]):
    ...     budget = controller.step(Stats(n, 2.0 * n, 0.1 + 4e-6 * rows, {"rides": PointStats(rows, rows)}))
    >>> budget.share < 1, controller.shedding
    (True, True)
    """

    def __init__(self, settings: ControlSettings) -> None:
        self.settings = settings
        self.dry_run = False
        """Whether plans are only made, and every row is kept all the same."""
        self.model = LoadModel()
        self.arrivals = Arrivals(settings.row_cap)
        self._produced = Produced()
        self.plans = PlanHistory()
        self.budget = Budget(1.0, 1.0, settings.latency_bound_s, "start: no batch has been measured yet")
        self.shedding = False
        self._start = StartUp()
        self._engine = Engine()
        self._protected = 0.0
        self._basis: tuple[Outlook, Ahead, float, float] | None = None

    def latency_s(self, stats: Stats) -> float | None:
        """Latency of the row of a batch that waited longest, by the engine's clock; `None` where that was not observed."""
        if stats.worst_latency_s is None or self.arrivals.incredible:
            return None
        # Slow delivery is part of a row's latency; what is beyond it is another clock.
        return stats.worst_latency_s - (self.arrivals.offset_s - self._outlook(None).delivery_s)

    def lag(self, now_s: float) -> tuple[int, float] | None:
        """Rows that no batch on record has taken, by the source's own word, and how long the oldest of them has waited."""
        engine, produced = self._engine, self._produced
        if engine.last is None or produced.since_s is None:
            return None
        started_s, committed_s = engine.last
        served_s = engine.taken_until_s(self.arrivals.served_until_s, committed_s, self.settings.trigger_interval_s)
        rows = round(Source(served_s, started_s, engine.waiting, produced=produced).rows(now_s, 0.0))
        return rows, max(now_s - served_s, 0.0) if rows else 0.0

    @property
    def said_of_arrivals(self) -> str:
        """What is odd about the arrival column, in words; empty where nothing is."""
        return about_the_clock(self.arrivals, self.settings.latency_bound_s)

    @property
    def said_of_source(self) -> str:
        """Why the source is not believed, in words; empty where it is."""
        if not self._produced.refuted:
            return ""
        return "the source says that other numbers of rows come than batches hold, and is not believed any more"

    @property
    def decision(self) -> BudgetFigures:
        """The figures behind the last budget."""
        return (
            BudgetFigures.unmeasured(self.budget)
            if self._basis is None
            else BudgetFigures.of(self.budget, *self._basis)
        )

    def initial(self) -> Budget:
        """Budget for the first batch of a process: everything, or after a restart the share that held before.

        The first batch of a query may start on a backlog of any size, but whether its rows are late is not known before
        its clock is: late rows are thinned only where rows were dropped before the restart.
        """
        self.model.expect_warm_up()
        self.arrivals.begin()
        self._engine.begin()
        self._start, self._basis = StartUp(), None
        keep = self.budget.share
        late = min(keep, self.settings.late_share) if self.shedding else keep
        cause = "start: no batch has been measured yet"
        if late < keep:
            cause = "start: rows that are already late are thinned until a batch has been measured"
        self.budget = Budget(keep, late, late_after_s(self.settings, self.arrivals, self.budget), cause)
        return self.budget

    def planned(self, version: int, from_s: float = 0.0) -> None:
        """Note that plan `version` carries the last budget from `from_s` on; a known version changes nothing."""
        self.plans.add(version, from_s, self._as_executed(self.budget))

    def idle(self, now_s: float) -> Budget:
        """Budget while nothing arrives: keep everything."""
        self.arrivals.idle(now_s)
        self._engine.pause()
        self.shedding, self._basis = False, None
        self.budget = Budget(
            1.0, 1.0, late_after_s(self.settings, self.arrivals, self.budget), "no rows arrive: keep all"
        )
        return self.budget

    def step(self, stats: Stats) -> Budget:
        """Learn from a batch that has committed; the budget for the next batch that has not started."""
        waited_since_s = None if self._engine.last is None else self.arrivals.served_until_s
        self._compare(stats)
        slowness = self._slowness(stats.started_s, stats.committed_s)
        falling = (slowness - 1) / (COLDEST - 1)
        falling = falling if self._start.over else max(falling, _FALLING)
        self.model.observe(stats.seen, stats.kept, stats.duration_s, stats.work_s, falling)
        self.arrivals.observe(stats)
        self._engine.reported(stats)
        self._protected = stats.protected_share
        in_time = waited_since_s is not None and self.model.ready
        limit_s = self._outlook(self._costs()).limit_s
        in_time = in_time and stats.committed_s - (waited_since_s or 0.0) <= limit_s
        self._start.observe(stats, in_time, self._slowness(stats.started_s, stats.committed_s))
        self._decide(stats.committed_s, reported=True)
        if stats.plan_version is None and stats.seen > 0 and self.shedding:
            cause = f"{self.budget.cause}; the last batch could not read its plan and kept everything"
            self.budget = replace(self.budget, cause=cause)
        return self.budget

    def forecast(self, now_s: float, *, running: bool = True, produced: tuple[float, float] | None = None) -> Budget:
        """Budget for the next batch that has not started, when nothing new was reported since `step`.

        `running` is false while the engine waits for rows or for its trigger; `produced` is a time, and how many rows
        the source had had by then, where it can be asked.
        """
        if produced is not None:
            self._produced.tell(*produced)
        self._produced.expire(now_s)
        waits = self._engine.looked_at(now_s, running=running)
        if self._engine.last is not None and not (waits and self.settings.trigger_interval_s == 0):
            self._decide(now_s, reported=False)
        elif self._engine.last is None:
            self._decide_before_a_report(now_s)
        return self.budget

    def to_dict(self) -> dict[str, Any]:
        """What outlives the process, fit for JSON; `from_dict` restores it."""
        memory: dict[str, Any] = plain(_Memory(**{each.name: getattr(self, each.name) for each in fields(_Memory)}))
        return memory

    @classmethod
    def from_dict(cls, settings: ControlSettings, document: Mapping[str, Any]) -> Controller:
        """Restore what `to_dict` gave, under settings that may have changed meanwhile; go on with `initial`."""
        controller = cls(settings)
        try:
            memory = restored(document, _Memory, most=_MOST)
        except ValueError as error:
            hint = "start with a new Controller; it learns the load again within a few batches"
            refuse("state of a controller", f"{error!r}", hint=hint, cause=error)
        for each in fields(memory):
            setattr(controller, each.name, getattr(memory, each.name))
        controller.arrivals.given_cap = settings.row_cap
        share = max(memory.budget.share, settings.least_share)
        controller.budget = replace(memory.budget, share=share, late_share=min(memory.budget.late_share, share))
        return controller

    def _compare(self, stats: Stats) -> None:
        """Hold the source to what the batch held, and to what it left."""
        last = self._engine.last
        if last is None or (stats.waiting_rows is None and self.arrivals.row_cap is not None):
            return
        more = 0.0 if stats.waiting_rows is None else stats.waiting_rows - (self._engine.waiting or 0.0)
        self._produced.held(stats.seen + more, last[0], stats.started_s)

    def _costs(self) -> Costs | None:
        """What batches cost: measured, or before that as the hint says."""
        if self.model.ready:
            return self.model.costs
        hint = self.settings.capacity_rows_per_s
        return None if hint is None else Costs(0.0, 0.1 / hint, 0.9 / hint)

    def _outlook(self, costs: Costs | None, rate: float | None = None) -> Outlook:
        rate = (self.arrivals.rows_per_s or 0.0) if rate is None else rate
        cap, offset_s = self.arrivals.cap_for_next(), self.arrivals.offset_s
        least = max(self.settings.least_share, self._protected)
        return Outlook(self.settings, costs or Costs(0.0, 0.0, 0.0), rate, cap, offset_s, self.model.noise, least)

    @property
    def _told(self) -> Produced | None:
        """What the source says of rows to come, where it was also said what so many rows cost.

        Measured costs are those of batches like the ones that have run: of a far larger one they say too little.
        """
        known = self.settings.capacity_rows_per_s is not None and self._produced.since_s is not None
        return self._produced if known else None

    def _rate(self) -> float | None:
        """Rows that arrive per second: as counted by batches, unless the source knows of a change."""
        counted, told = self.arrivals.rows_per_s, None if self._told is None else self._told.rows_per_s
        changed = told is not None and (counted is None or abs(told - counted) > CHANGE * counted)
        return told if changed else counted

    def _decide(self, now_s: float, *, reported: bool) -> None:
        costs, rate = self._costs(), self._rate()
        if costs is None or rate is None:
            self._decide_by_time(now_s)
            return
        coming = self._look_ahead(now_s, costs, rate)
        ahead = coming.ahead
        outlook = self._outlook(costs, coming.rate)
        # In doubt what rows cost, how many come and what dropping saves, they are kept: the next batches will tell.
        doubt, helps = outlook, True
        if self.model.ready and (self._start.over or coming.rate == coming.rate_in_doubt):
            doubt = self._outlook(self.model.costs_in_doubt(coming.in_doubt.rows, coming.running), coming.rate_in_doubt)
            rows = max(coming.in_doubt.rows, doubt.usual_rows)
            helps = self.model.saving_in_doubt(rows, outlook.least_share) >= outlook.least_saving
        shed = helps and outlook.must_shed(ahead) and doubt.must_shed(coming.in_doubt)
        if shed and not self._start.over and self._catches_up(outlook, coming.lasts_s, now_s):
            # The process is young: the load is below its capacity to be, so what it was too slow for is only delayed.
            self.shedding, self.budget = False, self._following(outlook, ahead).catch_up(self._start.started_s)
        elif shed or (self.shedding and not (reported and (outlook.may_leave or not helps))):
            self._shed(outlook, ahead)
        else:
            self.shedding, self.budget = False, self._following(outlook, ahead).keep_all()
        self._basis = outlook, coming.expected, coming.waiting, coming.lag_s

    def _look_ahead(self, now_s: float, costs: Costs, rate: float) -> NextBatch:
        engine, interval_s = self._engine, self.settings.trigger_interval_s
        assert engine.last is not None
        start_s = self._starts_s
        served_s = engine.taken_until_s(self.arrivals.served_until_s, start_s, interval_s)
        late_after_s = self.settings.latency_bound_s if self.arrivals.observed else math.inf
        cap = self.arrivals.cap_for_next()
        source = Source(served_s, engine.last[0], engine.waiting, cap, late_after_s, self._told)
        known = rate
        waiting = source.rows(now_s, rate)
        ahead, source = source.taken_at(start_s, rate)
        if now_s < start_s:
            return NextBatch(ahead, rate, ahead, known, ahead.wait_s, ahead, waiting, start_s - now_s)
        budget = self._in_force(start_s)
        expected_s = ahead.duration_s(costs, budget.share, budget.late_share)
        elapsed_s = now_s - start_s
        lasts_s = ends_s = soonest_s = max(expected_s, 1.05 * elapsed_s)
        if engine.looked:
            # What is planned now counts only if the batch that runs ends before the next plan is made: plan for that.
            usual_s = min(expected_s, self._outlook(costs, rate).target_s)
            ends_s, soonest_s = max(usual_s, elapsed_s + _TICK_S), max(usual_s, elapsed_s + _LEAD_S)
        rising, cheap = self.arrivals.rising, self.model.costs_in_doubt(ahead.rows) if self.model.ready else costs
        cheap_s = ahead.duration_s(cheap, budget.share, budget.late_share)
        guessed, fewer = self._told is None, 1.0  # otherwise it is known how many rows have come
        if guessed and elapsed_s > (_RISING if rising else _OVERRUN) * expected_s:
            # It runs far longer than rows and costs explain: more rows have come, or they have become costlier.
            rate *= costs.more_rows(expected_s, elapsed_s if rising else math.sqrt(elapsed_s * expected_s))
            if elapsed_s > _LAST_CALL * self.settings.latency_bound_s:
                known = rate
        elif guessed and rising and ends_s < cheap_s:
            # Should it end sooner than even costs in doubt explain, fewer rows have come; far sooner, for certain.
            fewer = cheap.more_rows(cheap_s, ends_s)
        coming, known = min(_OVERRUN * fewer, 1.0) * rate, fewer * known
        following, in_doubt, expected = (
            source.taken_at(start_s + max(each_s, interval_s), each)[0]
            for each_s, each in ((ends_s, coming), (soonest_s, known), (lasts_s, rate))
        )
        lag_s, waiting = max(lasts_s, interval_s) - elapsed_s, source.rows(now_s, rate)
        running = Running(ahead.rows, ahead.kept(budget.share, budget.late_share), elapsed_s)
        return NextBatch(following, coming, in_doubt, known, lasts_s, expected, waiting, lag_s, running)

    @property
    def _starts_s(self) -> float:
        return self._engine.starts_s(self.settings.trigger_interval_s)

    def _catches_up(self, outlook: Outlook, lasts_s: float, now_s: float) -> bool:
        """Whether the process, once it is warm, keeps up with the load and works off what it was too slow for.

        Less than a second of work must arrive a second, by the last batch, and by the one that runs. A hint of the
        capacity stands for what is measured as long as that may be far from final.
        """
        assert self._engine.last is not None
        started_s, committed_s = self._engine.last
        if not self._start.may_catch_up(committed_s):
            return outlook.sustainable >= 1.0
        costs, slowness = outlook.costs, self._slowness(started_s, committed_s)
        if self.settings.capacity_rows_per_s is not None and slowness > 1.0:
            return outlook.rate <= self.settings.capacity_rows_per_s
        rows = outlook.rate * lasts_s
        if costs.predict(rows, rows) / slowness > max(_LONGEST * self.settings.latency_bound_s, _LONGEST_S):
            return False
        load = outlook.rate * (costs.per_seen_row_s + costs.per_kept_row_s) / slowness
        elapsed_s = now_s - self._starts_s - costs.fixed_s
        waited_s = committed_s - self.arrivals.served_until_s
        running = elapsed_s / max(waited_s, 1e-3) / self._slowness(committed_s, now_s)
        if self._in_force(committed_s).share >= 1.0 and running > _CATCH_UP_RUNNING:
            return False
        return load <= _CATCH_UP

    def _slowness(self, from_s: float, to_s: float) -> float:
        return self._start.slowness(from_s, to_s, self.model.costs if self.model.ready else None)

    def _in_force(self, start_s: float) -> Budget:
        return self._as_executed(self.plans.at(start_s) or self.budget)

    def _as_executed(self, budget: Budget) -> Budget:
        return replace(budget, share=1.0, late_share=1.0) if self.dry_run else budget

    def _decide_by_time(self, now_s: float) -> None:
        """Before rate and costs are known: what the second batch takes for the rows that arrived during the first."""
        assert self._engine.last is not None
        started_s, committed_s = self._engine.last
        elapsed_s, first_s = now_s - self._starts_s, committed_s - started_s
        if elapsed_s <= _WAITED_FOR * first_s * self._slowness(committed_s, max(now_s, committed_s)):
            if not self.shedding:
                cause = "start: the batches so far do not tell yet how fast rows arrive and what they cost"
                self.budget = replace(self.budget, cause=cause)
            return
        # One "row" a second arrives, and costs what the second batch has shown by now.
        load = elapsed_s / first_s
        outlook = self._outlook(Costs(0.0, 0.1 * load, 0.9 * load), 1.0)
        late = max(1.05 * elapsed_s - self.settings.latency_bound_s, 0.0) if self.arrivals.observed else 0.0
        ahead = Ahead(1.05 * elapsed_s, 1.05 * elapsed_s - late, late)
        if outlook.must_shed(ahead):
            self._shed(outlook, ahead)
            cause = f"the second batch takes {elapsed_s:.0f} s for the rows of {first_s:.0f} s"
            self.budget = replace(self.budget, cause=f"{cause}: keep {self.budget.share:.2f}")

    def _decide_before_a_report(self, now_s: float) -> None:
        """While the first batch runs, by what the source says and the hint of the capacity, where both are there."""
        since_s, rate, costs = self._produced.since_s, self._produced.rows_per_s, self._costs()
        if since_s is None or rate is None or costs is None:
            return
        outlook, ends_s = self._outlook(costs, rate), now_s + _TICK_S
        if rate <= max(self.settings.capacity_rows_per_s or 0.0, outlook.capacity_rows_per_s):
            return  # what a process is too slow for at first is only delayed
        since_s = max(since_s, self._engine.free_s)  # whoever waits for rows has taken all there were
        ahead = Ahead(ends_s - since_s, self._produced.came(since_s, ends_s, rate) or 0.0, 0.0)
        if outlook.must_shed(ahead):
            self._shed(outlook, ahead)

    def _shed(self, outlook: Outlook, ahead: Ahead) -> None:
        few = 0 < self.model.batches < _FEW
        last = self._engine.last
        at_least = _CUT * self._in_force(last[1]).share if few and last is not None else 0.0
        self.shedding, self.budget = True, self._following(outlook, ahead).shed(at_least)

    def _following(self, outlook: Outlook, ahead: Ahead) -> NextBudget:
        return NextBudget(self.settings, self.arrivals, self.budget, outlook, ahead)
