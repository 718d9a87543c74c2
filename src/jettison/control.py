"""When to shed and how much: the controller that keeps row latency under its bound, and does no harm.

Pure: it knows neither the clock nor the policy nor the engine. It learns from each finished micro-batch (`step`), and
while a batch runs it is asked a few times a second what the next one may keep (`forecast`). `docs/controller.md` has the
states, the formulas and the measured behaviour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from jettison.actuation import PlanHistory, budget_from_list, budget_to_list, finite
from jettison.arrivals import Arrivals, optional
from jettison.causes import about_the_clock, why_keep_all, why_shed
from jettison.control_settings import ControlSettings, row_cap
from jettison.errors import InvalidSetting, explain
from jettison.load_model import Costs, LoadModel
from jettison.outlook import HELPS, Ahead, Outlook
from jettison.startup import COLDEST, StartUp
from jettison.stats import Budget, Stats

__all__ = ["ControlSettings", "Controller", "row_cap"]

_AT_STAKE = 0.9  # of the latency bound: a latency foreseen past this lets smaller cuts through
_FEW, _CUT = 5, 0.25  # before so many batches were measured, a batch keeps this part of what the one before it keeps
_CATCH_UP = 0.9  # load below which a young process catches up with what came while it was slow
_CATCH_UP_RUNNING = 1.15  # the same as a single batch may show it
_FALLING = 0.3  # how far costs may be from final as long as no batch was in time
_LONGEST, _LONGEST_S = 4.0, 25.0  # bounds, and seconds: a batch that takes longer than both is not risked for that
_OVERRUN = 3.0  # times the expected length, from which a running batch says that more rows come than thought
_RISING = 1.3  # the same where the last batch already had far more rows than the one before
_LAST_CALL = 0.5  # of the bound: a batch that has run for longer leaves no time to see whether it is only a slow one
_SOON, _TICK_S = 0.6, 0.15  # a cut waits for this part of the running batch's expected length, less what a plan takes
_WAITS_S = 0.2  # without a batch, after which the engine waits for rows or its trigger; less passes between any two
_STEADY = 0.05  # of the bound: by how much the age from which rows are late must change to be changed


class _Next(NamedTuple):
    """The next batch that has not started.

    Parameters
    ----------
    ahead, rate
        The batch, and the arrival rate to expect.
    in_doubt, rate_in_doubt
        The same, should a batch that runs too long be a slow one, and not one of more rows.
    running_share
        Share that the batch before it runs under.
    early
        Whether that one is far from its end.
    """

    ahead: Ahead
    rate: float
    in_doubt: Ahead
    rate_in_doubt: float
    running_share: float
    early: bool


class _Source(NamedTuple):
    """What waits: arrivals after `served_s`; `waiting` rows as of `since_s`, where that is known, and what came since."""

    served_s: float
    since_s: float
    waiting: float | None


class Controller:
    """Keep every row while the latency bound allows it, else the largest steady share that holds the bound.

    Rows are dropped only if keeping them would break the bound *and* dropping helps. Call `initial` when the query
    starts, `step` after every micro-batch, `forecast` while one runs, `planned` when a budget has become a plan, and
    `idle` when nothing arrives. The keep fraction always lies between `min_keep_fraction` and 1.

    Examples
    --------
    >>> controller = Controller(ControlSettings(latency_bound_s=3.0))
    >>> controller.initial().keep_fraction
    1.0
    >>> from jettison.stats import PointStats
    >>> for n, rows in enumerate([200_000, 300_000, 400_000, 500_000, 600_000]):
    ...     budget = controller.step(Stats(n, 2.0 * n, 0.1 + 4e-6 * rows, {"rides": PointStats(rows, rows)}))
    >>> budget.keep_fraction < 1, controller.shedding
    (True, True)
    """

    def __init__(self, settings: ControlSettings) -> None:
        self.settings = settings
        self.dry_run = False
        """Whether plans are only made, and every row is kept all the same."""
        self._model = LoadModel()
        self._arrivals = Arrivals(settings.row_cap)
        self._plans = PlanHistory()
        self._budget = Budget(1.0, 1.0, settings.latency_bound_s, "start: no batch has been measured yet")
        self._shedding = False
        self._provisional = False
        self._batches_shed = 0
        self._start = StartUp()
        self._last: tuple[float, float] | None = None
        self._free_s, self._free_since_s = -math.inf, math.inf
        self._protected = 0.0
        self._waiting: float | None = None
        self._ticking = False
        self._predicted_latency_s: float | None = None

    @property
    def model(self) -> LoadModel:
        """What batches cost, as learned so far."""
        return self._model

    @property
    def shedding(self) -> bool:
        """Whether rows are being dropped."""
        return self._shedding

    @property
    def rows_per_s(self) -> float | None:
        """Arrival rate as last estimated; `None` before there is an estimate."""
        return self._arrivals.rows_per_s

    @property
    def arrivals(self) -> Arrivals:
        """What is known of arrivals."""
        return self._arrivals

    def latency_s(self, stats: Stats) -> float | None:
        """Latency of the row of a batch that waited longest, by the engine's clock; `None` where that was not observed."""
        if stats.worst_latency_s is None or self._arrivals.incredible:
            return None
        # Slow delivery is part of a row's latency; what is beyond it is another clock.
        return stats.worst_latency_s - (self._arrivals.offset_s - self._outlook(None).delivery_s)

    @property
    def said_of_arrivals(self) -> str:
        """What is odd about the arrival column, in words; empty where nothing is."""
        return about_the_clock(self._arrivals, self.settings.latency_bound_s)

    @property
    def predicted_latency_s(self) -> float | None:
        """Latency foreseen for the oldest row of the batch that will run under the last budget."""
        return self._predicted_latency_s

    def initial(self) -> Budget:
        """Budget for the first batch of a process: everything, or after a restart the share that held before.

        The first batch of a query may start on a backlog of any size, but whether its rows are late is not known before
        its clock is: late rows are thinned only where rows were dropped before the restart.
        """
        self._model.expect_warm_up()
        self._arrivals.begin()
        self._start, self._last, self._waiting = StartUp(), None, None
        self._free_s, self._free_since_s = -math.inf, math.inf
        keep = self._budget.keep_fraction
        late = min(keep, self.settings.late_keep_fraction) if self._shedding else keep
        cause = "start: no batch has been measured yet"
        if late < keep:
            cause = "start: rows that are already late are thinned until a batch has been measured"
        self._budget = Budget(keep, late, self._late_after_s(0.0), cause)
        return self._budget

    def planned(self, version: int, from_s: float = 0.0) -> None:
        """Note that plan `version` carries the last budget from `from_s` on; a known version changes nothing."""
        self._plans.add(version, from_s, self._budget)

    def idle(self, now_s: float) -> Budget:
        """Budget while nothing arrives: keep everything."""
        self._arrivals.idle(now_s)
        self._end_shedding()
        self._last, self._predicted_latency_s, self._waiting = None, None, None
        self._budget = Budget(1.0, 1.0, self._late_after_s(0.0), "no rows arrive: keep all")
        return self._budget

    def step(self, stats: Stats) -> Budget:
        """Learn from a batch that has committed; the budget for the next batch that has not started."""
        waited_since_s = None if self._last is None else self._arrivals.served_until_s
        falling = (self._slowness(stats.started_s, stats.committed_s) - 1) / (COLDEST - 1)
        falling = falling if self._start.over else max(falling, _FALLING)
        self._model.observe(stats.seen, stats.kept, stats.duration_s, stats.work_s, falling)
        self._arrivals.observe(stats)
        self._last = stats.started_s, stats.committed_s
        self._waiting = None if stats.waiting_rows is None else float(stats.waiting_rows)
        self._protected = stats.protected_share
        in_time = waited_since_s is not None and self._model.ready
        limit_s = self._outlook(self._costs()).limit_s
        self._start.observe(stats, in_time and stats.committed_s - (waited_since_s or 0.0) <= limit_s)
        if self._shedding and (self._ran_shed(stats) or self._budget.keep_fraction >= 1.0):
            self._batches_shed += 1
        self._decide(stats.committed_s, reported=True)
        if stats.plan_version is None and stats.seen > 0 and self._shedding:
            cause = f"{self._budget.cause}; the last batch could not read its plan and kept everything"
            self._budget = replace(self._budget, cause=cause)
        return self._budget

    def forecast(self, now_s: float, *, running: bool = True) -> Budget:
        """Budget for the next batch that has not started, when nothing new was reported since `step`.

        `running` is false while the engine waits for rows or for its trigger.
        """
        self._ticking = True
        self._free_since_s = math.inf if running else min(self._free_since_s, now_s)
        waits = now_s - self._free_since_s >= _WAITS_S
        if waits:
            self._free_s = now_s
        if self._last is not None and not (waits and self.settings.trigger_interval_s == 0):
            self._decide(now_s, reported=False)
        return self._budget

    def to_dict(self) -> dict[str, Any]:
        """What outlives the process, fit for JSON; `from_dict` restores it."""
        return {
            "model": self._model.to_dict(),
            "arrivals": self._arrivals.to_dict(),
            "plans": self._plans.to_dict(),
            "budget": budget_to_list(self._budget),
            "shedding": self._shedding,
            "provisional": self._provisional,
            "batches_shed": self._batches_shed,
            "predicted_latency_s": self._predicted_latency_s,
        }

    @classmethod
    def from_dict(cls, settings: ControlSettings, document: Mapping[str, Any], *, dry_run: bool = False) -> Controller:
        """Restore what `to_dict` gave, under settings that may have changed meanwhile; go on with `initial`."""
        controller = cls(settings)
        try:
            controller._model = LoadModel.from_dict(document["model"])
            controller._arrivals = Arrivals.from_dict(document["arrivals"], settings.row_cap)
            controller._plans = PlanHistory.from_dict(document["plans"])
            budget = budget_from_list(document["budget"])
            keep = max(budget.keep_fraction, settings.min_keep_fraction)
            controller._budget = replace(
                budget, keep_fraction=keep, late_keep_fraction=min(budget.late_keep_fraction, keep)
            )
            controller._shedding = bool(document["shedding"])
            controller._provisional = bool(document["provisional"])
            controller._batches_shed = int(finite(document["batches_shed"], 0))
            controller._predicted_latency_s = optional(document["predicted_latency_s"])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            hint = "start with a new Controller; it learns the load again within a few batches"
            raise InvalidSetting(explain("state of a controller", f"{error!r}", hint=hint)) from error
        return controller

    def _costs(self) -> Costs | None:
        """What batches cost: measured, or before that as the hint says."""
        if self._model.ready:
            return self._model.costs
        hint = self.settings.capacity_rows_per_s
        return None if hint is None else Costs(0.0, 0.1 / hint, 0.9 / hint)

    def _outlook(self, costs: Costs | None, rate: float | None = None) -> Outlook:
        rate = (self._arrivals.rows_per_s or 0.0) if rate is None else rate
        cap, offset_s = self._arrivals.cap_for_next(), self._arrivals.offset_s
        least = max(self.settings.min_keep_fraction, self._protected)
        return Outlook(self.settings, costs or Costs(0.0, 0.0, 0.0), rate, cap, offset_s, self._model.noise, least)

    def _decide(self, now_s: float, *, reported: bool) -> None:
        costs, rate = self._costs(), self._arrivals.rows_per_s
        if costs is None or rate is None:
            self._decide_by_time(now_s)
            return
        coming = self._look_ahead(now_s, costs, rate)
        ahead = coming.ahead
        outlook = self._outlook(costs, coming.rate)
        # In doubt what rows cost, how many come and what dropping saves, they are kept: the next batches will tell.
        doubt, helps = outlook, True
        if self._model.ready and (self._start.over or coming.rate == coming.rate_in_doubt):
            doubt = self._outlook(self._model.costs_in_doubt(coming.in_doubt.rows), coming.rate_in_doubt)
            helps = self._model.saving_in_doubt(coming.in_doubt.rows, outlook.least_keep_fraction) >= HELPS
        shed = helps and outlook.must_shed(ahead) and doubt.must_shed(coming.in_doubt)
        if shed and not self._start.over and self._catches_up(outlook, ahead, now_s):
            # The process is young: the load is below its capacity to be, so what it was too slow for is only delayed.
            self._end_shedding()
            self._catch_up(outlook, ahead)
            return
        if not self._shedding and shed:
            self._shedding, self._provisional = True, not reported
        elif self._shedding and reported:
            lasted = self._provisional or self._batches_shed >= self.settings.min_shed_batches
            self._provisional = False
            if not shed and lasted and (outlook.may_leave or not helps):
                self._end_shedding()
        present = self._budget
        if self._shedding:
            self._shed(outlook, ahead, coming.running_share)
        else:
            self._keep_all(outlook, ahead)
        if coming.early and self._ticking and self._arrivals.rising and present.keep_fraction >= 1.0:
            # There is time to look again: should the batch that runs end soon, then less has come than is feared.
            self._budget = present

    def _look_ahead(self, now_s: float, costs: Costs, rate: float) -> _Next:
        assert self._last is not None
        interval_s = self.settings.trigger_interval_s
        start_s = self._starts_at(now_s)
        served_s = self._arrivals.served_until_s
        if interval_s == 0 and self._free_s >= start_s:
            served_s = max(served_s, self._free_s)  # whoever waits for rows has taken all there were
        source = _Source(served_s, self._last[0], self._waiting)
        known = rate
        ahead, source = self._batch_at(start_s, source, rate)
        if now_s < start_s:
            return _Next(ahead, rate, ahead, known, self._budget.keep_fraction, False)
        budget = self._in_force(start_s)
        expected_s = ahead.duration_s(costs, budget.keep_fraction, budget.late_keep_fraction)
        elapsed_s = now_s - start_s
        early = elapsed_s < _SOON * expected_s - _TICK_S
        rising = self._arrivals.rising
        if elapsed_s > (_RISING if rising else _OVERRUN) * expected_s:
            # It runs far longer than rows and costs explain: more rows have come, or they have become costlier.
            fixed_s = min(costs.fixed_s, expected_s / 2)
            more = (elapsed_s - fixed_s) / (expected_s - fixed_s)
            rate *= more if rising else math.sqrt(more)
            if elapsed_s > _LAST_CALL * self.settings.latency_bound_s:
                known = rate
        start_s += max(expected_s, 1.05 * elapsed_s, interval_s)
        following, in_doubt = (self._batch_at(start_s, source, each)[0] for each in (rate, known))
        return _Next(following, rate, in_doubt, known, budget.keep_fraction, early)

    def _starts_at(self, now_s: float) -> float:
        """When the batch after the last one reported has started, or will."""
        assert self._last is not None
        started_s, committed_s = self._last
        interval_s = self.settings.trigger_interval_s
        if interval_s == 0 or self._free_s <= committed_s:
            return max(committed_s, started_s + interval_s, self._free_s)
        return started_s + interval_s * math.ceil((self._free_s - started_s) / interval_s)

    def _batch_at(self, start_s: float, source: _Source, rate: float) -> tuple[Ahead, _Source]:
        """The batch triggered at `start_s`, and the source behind it."""
        wait_s = max(start_s - source.served_s, 0.0)
        there = rate * wait_s
        if source.waiting is not None:
            there = source.waiting + rate * max(start_s - source.since_s, 0.0)
        rows = min(there, self._arrivals.cap_for_next())
        late = rate * max(wait_s - self.settings.latency_bound_s, 0.0) if self._arrivals.observed else 0.0
        late = min(late, rows)
        served_s = start_s if rows == there else source.served_s + rows / max(rate, 1e-9)
        left = None if source.waiting is None else there - rows
        return Ahead(wait_s, rows - late, late), _Source(min(served_s, start_s), start_s, left)

    def _catches_up(self, outlook: Outlook, ahead: Ahead, now_s: float) -> bool:
        """Whether the process, once it is warm, keeps up with the load and works off what it was too slow for.

        Less than a second of work must arrive a second, by the last batch, and by the one that runs. A hint of the
        capacity stands for what is measured as long as that may be far from final.
        """
        assert self._last is not None
        started_s, committed_s = self._last
        if not self._start.may_catch_up(committed_s):
            return outlook.sustainable >= 1.0
        costs, slowness = outlook.costs, self._slowness(started_s, committed_s)
        if self.settings.capacity_rows_per_s is not None and slowness > 1.0:
            return outlook.rate <= self.settings.capacity_rows_per_s
        if ahead.duration_s(costs, 1.0, 1.0) / slowness > max(_LONGEST * self.settings.latency_bound_s, _LONGEST_S):
            return False
        load = outlook.rate * (costs.per_seen_row_s + costs.per_kept_row_s) / slowness
        elapsed_s = now_s - self._starts_at(now_s) - costs.fixed_s
        waited_s = committed_s - self._arrivals.served_until_s
        running = elapsed_s / max(waited_s, 1e-3) / self._slowness(committed_s, now_s)
        if self._in_force(committed_s).keep_fraction >= 1.0 and running > _CATCH_UP_RUNNING:
            return False
        return load <= _CATCH_UP

    def _slowness(self, from_s: float, to_s: float) -> float:
        slowness = self._start.slowness(from_s, to_s, self._model.costs if self._model.ready else None)
        # Batches that grow because ever more rows come are no sign of a process that is slow for a while.
        return math.sqrt(slowness) if self._arrivals.rising else slowness

    def _in_force(self, start_s: float) -> Budget:
        budget = self._plans.at(start_s) or self._budget
        return replace(budget, keep_fraction=1.0, late_keep_fraction=1.0) if self.dry_run else budget

    def _ran_shed(self, stats: Stats) -> bool:
        """Whether the batch ran under a plan that drops rows, or would drop them if this were no dry run."""
        budget = self._plans.at(stats.started_s)
        return stats.kept < stats.seen or (self.dry_run and budget is not None and budget.keep_fraction < 1.0)

    def _decide_by_time(self, now_s: float) -> None:
        """Before rate and costs are known: what the second batch takes for the rows that arrived during the first."""
        assert self._last is not None
        started_s, committed_s = self._last
        elapsed_s, first_s = now_s - self._starts_at(now_s), committed_s - started_s
        if elapsed_s <= first_s * self._slowness(committed_s, max(now_s, committed_s)):
            return
        # One "row" a second arrives, and costs what the second batch has shown by now.
        load = elapsed_s / first_s
        outlook = self._outlook(Costs(0.0, 0.1 * load, 0.9 * load), 1.0)
        late = max(1.05 * elapsed_s - self.settings.latency_bound_s, 0.0) if self._arrivals.observed else 0.0
        ahead = Ahead(1.05 * elapsed_s, 1.05 * elapsed_s - late, late)
        if outlook.must_shed(ahead):
            self._shedding = self._provisional = True
            self._shed(outlook, ahead, 0.0)
            cause = f"the second batch takes {elapsed_s:.0f} s for the rows of {first_s:.0f} s"
            self._budget = replace(self._budget, cause=f"{cause}: keep {self._budget.keep_fraction:.2f}")

    def _catch_up(self, outlook: Outlook, ahead: Ahead) -> None:
        """Keep all that has come since the process started; of a backlog from before that, as little as of late rows."""
        self._keep_all(outlook, ahead)
        start_s, bound_s = self._start.started_s, self.settings.latency_bound_s
        if not self._arrivals.observed or self._arrivals.served_until_s >= start_s - bound_s:
            return
        late, behind_s = self.settings.late_keep_fraction, self._arrivals.served_until_s + ahead.wait_s - start_s
        # In steps of the bound, so that the age makes few plans; a little too high spares rows.
        late_after_s = self._late_after_s(bound_s * math.ceil(max(behind_s, 0.0) / bound_s))
        cause = f"{self._budget.cause}; rows that waited before the start are late already and are thinned"
        self._budget = Budget(1.0, late, late_after_s, cause)

    def _keep_all(self, outlook: Outlook, ahead: Ahead) -> None:
        self._predicted_latency_s = ahead.wait_s + ahead.duration_s(outlook.costs, 1.0, 1.0)
        cause = "; ".join(filter(None, (why_keep_all(outlook), self.said_of_arrivals)))
        self._budget = Budget(1.0, 1.0, self._late_after_s(0.0), cause)

    def _shed(self, outlook: Outlook, ahead: Ahead, running_share: float) -> None:
        keep, late = outlook.shares(ahead)
        if self._model.batches < _FEW:
            keep = max(keep, _CUT * running_share)
        keep = self._steadied(outlook, ahead, keep)
        late = min(late, keep)
        present = self._budget.late_keep_fraction
        if abs(late - present) <= self.settings.dead_band * present and present <= keep:
            late = present
        self._predicted_latency_s = ahead.wait_s + ahead.duration_s(outlook.costs, keep, late)
        cause = "; ".join(filter(None, (why_shed(outlook, ahead, keep), self.said_of_arrivals)))
        self._budget = Budget(keep, late, self._late_after_s(0.0), cause)

    def _steadied(self, outlook: Outlook, ahead: Ahead, keep: float) -> float:
        """The present keep fraction where the wanted one is near it and the bound is not at stake, or shedding is new."""
        present = self._budget.keep_fraction
        if keep >= 1.0 and not self._provisional and self._batches_shed < self.settings.min_shed_batches:
            return present
        change, dead_band = abs(keep - present) / max(present, 1e-9), self.settings.dead_band
        if present >= 1.0 or change > dead_band:
            return keep
        if change <= dead_band / 2:
            return present
        in_time = ahead.wait_s + ahead.duration_s(outlook.costs, present, present) <= _AT_STAKE * outlook.limit_s
        return present if in_time or keep >= present else keep

    def _late_after_s(self, more_s: float) -> float:
        """Age from which rows are late by their stamps; small changes are not worth a plan."""
        wanted_s = max(self.settings.latency_bound_s + self._arrivals.offset_s + more_s, 1e-3)
        present_s = self._budget.late_after_s
        return present_s if abs(wanted_s - present_s) <= _STEADY * self.settings.latency_bound_s else wanted_s

    def _end_shedding(self) -> None:
        self._shedding, self._provisional, self._batches_shed = False, False, 0
