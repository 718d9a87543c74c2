"""When to shed and how much: the controller that keeps row latency under its bound.

Pure: it knows neither the clock nor the policy nor the engine. After every micro-batch it gets `Stats` and answers
with a `Budget`. `docs/controller.md` has the states, the formulas and the measured behaviour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jettison.actuation import PlanHistory
from jettison.errors import InvalidSetting, explain
from jettison.load_model import Arrivals, LoadModel
from jettison.stats import Budget, Stats

_DECAY = 0.5  # of a batch's deviation from the target length, the part that the next one may still have
_SHORTEST = 0.5  # of the target length: a batch is never shortened further to save rows that waited too long
_AT_STAKE = 0.9  # of the latency bound: a latency foreseen past this lets the dead band's smallest cut through
_LOWEST, _HIGHEST = 0.4, 1.08  # times the sustainable keep fraction: how far one batch's may lie from it
_LEAVE_AT = 1.03  # sustainable keep fraction from which shedding ends


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """What the controller is asked to hold, and how eagerly.

    Parameters
    ----------
    latency_bound_s
        Highest row latency: commit of the micro-batch minus arrival of the row.
    headroom
        Share of the bound that is aimed at, in (0, 1]; the rest absorbs noise.
    min_keep_fraction
        Least share of fresh rows to keep, however high the load.
    late_keep_fraction
        Share to keep, while shedding, of rows already older than the bound when their batch starts: they miss it
        whatever happens, but losing all of them would leave a hole in the answers.
    trigger_interval_s
        Interval of the trigger; 0 when a batch starts as soon as the one before it has committed.
    row_cap
        Most rows that the source hands to one batch, where it has such a cap; see `row_cap`.
    min_shed_batches
        Batches that shedding lasts at least.
    dead_band
        Relative change of the keep fraction below which the present one stays.

    Examples
    --------
    >>> ControlSettings(latency_bound_s=3.0, headroom=1.5)
    Traceback (most recent call last):
    ...
    jettison.errors.InvalidSetting: `headroom` must lie in (0, 1], got 1.5. Hint: 0.8 leaves 20 % for noise.
    """

    latency_bound_s: float
    headroom: float = 0.8
    min_keep_fraction: float = 0.01
    late_keep_fraction: float = 0.05
    trigger_interval_s: float = 0.0
    row_cap: int | None = None
    min_shed_batches: int = 2
    dead_band: float = 0.1

    def __post_init__(self) -> None:
        bound = self.latency_bound_s
        _require(math.isfinite(bound) and bound > 0, "`latency_bound_s` must be positive", bound, "give seconds")
        hint = "0.8 leaves 20 % for noise"
        _require(0 < self.headroom <= 1, "`headroom` must lie in (0, 1]", self.headroom, hint)
        for name in ("min_keep_fraction", "late_keep_fraction"):
            value = getattr(self, name)
            hint = "pass the share kept, not the share dropped"
            _require(0 <= value <= 1, f"`{name}` must lie in [0, 1]", value, hint)
        interval = self.trigger_interval_s
        _require(
            0 <= interval < bound,
            "`trigger_interval_s` must be shorter than the latency bound",
            interval,
            "rows wait up to one interval before their batch even starts",
        )
        cap, shortest = self.row_cap, self.min_shed_batches
        _require(cap is None or cap > 0, "`row_cap` must be positive", cap, "None for no cap")
        _require(shortest >= 0, "`min_shed_batches` must not be negative", shortest, "2 is usual")
        _require(0 <= self.dead_band < 1, "`dead_band` must lie in [0, 1)", self.dead_band, "0.1 is 10 %")


def row_cap(peak_rows_per_s: float, latency_bound_s: float) -> int:
    """Rows per batch that let rates up to `peak_rows_per_s` be shed while anything beyond waits in the source.

    As many as arrive at that rate within half the bound, the longest a batch may last. A smaller cap would delay
    rows that could have been dropped; a larger one lets a backlog at the start make the first batch too long. Give it to
    the source (`maxOffsetsPerTrigger`) and, so that it knows why batches end where they do, to the controller
    (`Shedder(..., control={"row_cap": cap})`).

    >>> row_cap(100_000, 3.0)
    150000
    """
    return max(1, math.ceil(peak_rows_per_s * latency_bound_s / 2))


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The batch that will run under the budget being made."""

    wait_s: float
    fresh: float
    late: float

    @property
    def rows(self) -> float:
        return self.fresh + self.late


class Controller:
    """Keep every row while the latency bound allows it, else the largest steady share that holds the bound.

    Call `initial` when the query starts, `step` after every micro-batch, `planned` when a budget has become a plan,
    and `idle` when nothing arrives. The keep fraction always lies between `min_keep_fraction` and 1; when the
    arrival rate falls below capacity, the budget is 1 again within three batches, or one more where plans act late.

    Examples
    --------
    >>> controller = Controller(ControlSettings(latency_bound_s=3.0))
    >>> controller.initial().keep_fraction
    1.0
    >>> from jettison.stats import PointStats
    >>> for n in range(4):
    ...     budget = controller.step(Stats(n, 2.0 * n, 1.9, {"rides": PointStats(600_000, 600_000)}))
    >>> budget.keep_fraction < 1, controller.shedding
    (True, True)
    """

    def __init__(self, settings: ControlSettings) -> None:
        self.settings = settings
        self._model = LoadModel()
        self._arrivals = Arrivals(settings.row_cap)
        self._plans = PlanHistory()
        self._budget = self._with_cause(1.0, settings.late_keep_fraction, "start: no batch has been measured yet")
        self._shedding = False
        self._batches_shed = 0
        self._last_batch = -1
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
        """Arrival rate as last estimated; `None` before the second batch, unless arrivals are observed."""
        return self._arrivals.rows_per_s

    @property
    def actuation_lag(self) -> int:
        """Batches from the one whose statistics made a plan to the first that runs under it."""
        return self._plans.lag

    @property
    def predicted_latency_s(self) -> float | None:
        """Latency foreseen for the oldest row of the batch that will run under the last budget."""
        return self._predicted_latency_s

    def initial(self) -> Budget:
        """Budget for the first batch of a query: all fresh rows, but few of those that are late already.

        The first batch may start on a backlog of any size. Its late rows miss the bound whatever happens, so thinning
        them costs no timely answer; it does keep the first batch short. After a restart the last keep fraction holds.
        """
        self._model.expect_warm_up()
        keep = self._budget.keep_fraction
        late = min(keep, self.settings.late_keep_fraction)
        cause = "start: no batch has been measured yet"
        if late < keep:
            cause = "start: rows that are already late are thinned until a batch has been measured"
        self._budget = self._with_cause(keep, late, cause)
        return self._budget

    def forecast(self, now_s: float) -> Budget:
        """Budget for the next batch, `now_s` being the present time."""
        return self._budget

    def planned(self, version: int, from_s: float = 0.0) -> None:
        """Note that plan `version` carries the last budget; calling it again for a known version changes nothing."""
        self._plans.add(version, self._last_batch)

    def idle(self, now_s: float) -> Budget:
        """Budget while nothing arrives: keep everything."""
        self._arrivals.idle(now_s)
        self._end_shedding()
        self._predicted_latency_s = None
        self._budget = self._with_cause(1.0, 1.0, "no rows arrive: keep all")
        return self._budget

    def step(self, stats: Stats) -> Budget:
        """Budget for the batches to come, from the batch that has just committed."""
        self._plans.observe(stats)
        self._model.observe(stats.seen, stats.kept, stats.duration_s)
        self._arrivals.observe(stats)
        self._last_batch = stats.batch_id
        if self._model.ready and self._arrivals.rows_per_s is not None:
            self._budget = self._decide(self._look_ahead(stats), self._arrivals.rows_per_s)
        if stats.plan_version is None and self._shedding:
            cause = f"{self._budget.cause}; the last batch could not read its plan and kept everything"
            self._budget = replace(self._budget, cause=cause)
        return self._budget

    def to_dict(self) -> dict[str, Any]:
        """All state, fit for JSON; `from_dict` restores a controller that answers alike."""
        budget = self._budget
        return {
            "model": self._model.to_dict(),
            "arrivals": self._arrivals.to_dict(),
            "plans": self._plans.to_dict(),
            "budget": [budget.keep_fraction, budget.late_keep_fraction, budget.cause],
            "shedding": self._shedding,
            "batches_shed": self._batches_shed,
            "last_batch": self._last_batch,
            "predicted_latency_s": self._predicted_latency_s,
        }

    @classmethod
    def from_dict(cls, settings: ControlSettings, document: Mapping[str, Any]) -> Controller:
        """Restore what `to_dict` gave, under settings that may have changed meanwhile."""
        controller = cls(settings)
        try:
            controller._model = LoadModel.from_dict(document["model"])
            controller._arrivals = Arrivals.from_dict(document["arrivals"], settings.row_cap)
            controller._plans = PlanHistory.from_dict(document["plans"])
            keep, late, cause = document["budget"]
            keep = min(max(float(keep), settings.min_keep_fraction), 1.0)
            controller._budget = controller._with_cause(keep, float(late), str(cause))
            controller._shedding = bool(document["shedding"])
            controller._batches_shed = int(document["batches_shed"])
            controller._last_batch = int(document["last_batch"])
            controller._predicted_latency_s = document["predicted_latency_s"]
        except (KeyError, TypeError, ValueError) as error:
            hint = "start with a new Controller; it learns the load again within a few batches"
            raise InvalidSetting(explain("state of a controller", f"{error!r}", hint=hint)) from error
        return controller

    def _look_ahead(self, stats: Stats) -> _Ahead:
        """Foresee the batch that the next plan reaches; those before it run under the present one.

        Where the lag has varied lately, the plan must do for whichever of the batches it may reach waits longest.
        """
        interval_s = self.settings.trigger_interval_s
        start_s = max(stats.committed_s, stats.started_s + interval_s)
        ahead, served_s = self._batch_at(start_s, self._arrivals.served_until_s)
        reachable = [ahead]
        for _ in range(self._plans.lag - 1):
            start_s += max(self._duration(ahead, self._budget.keep_fraction), interval_s)
            ahead, served_s = self._batch_at(start_s, served_s)
            reachable.append(ahead)
        return max(reachable[self._plans.shortest_lag - 1 :], key=lambda ahead: ahead.wait_s)

    def _batch_at(self, start_s: float, served_s: float) -> tuple[_Ahead, float]:
        """The batch triggered at `start_s`, and the arrival time up to which it takes rows."""
        rate = self._arrivals.rows_per_s or 0.0
        wait_s = max(start_s - served_s, 0.0)
        rows = min(rate * wait_s, self._arrivals.cap_for_next())
        late = min(rate * max(wait_s - self.settings.latency_bound_s, 0.0), rows)
        return _Ahead(wait_s, rows - late, late), served_s + (rows / rate if rate > 0 else wait_s)

    def _duration(self, ahead: _Ahead, keep_fraction: float) -> float:
        late_keep = min(keep_fraction, self.settings.late_keep_fraction) if keep_fraction < 1 else 1.0
        return self._model.predict(ahead.rows, keep_fraction * ahead.fresh + late_keep * ahead.late)

    def _decide(self, ahead: _Ahead, rate: float) -> Budget:
        target_s = self._target_duration_s(rate)
        sustainable = self._sustainable(rate, target_s)
        if self._shedding:
            self._batches_shed += 1
            if sustainable >= _LEAVE_AT and self._fits(ahead) and self._batches_shed >= self.settings.min_shed_batches:
                self._end_shedding()
        elif not self._fits(ahead) or not self._can_wait(ahead, rate, sustainable):
            self._shedding = True
        if not self._shedding:
            return self._keep_all(ahead, rate, target_s)
        return self._shed(ahead, rate, target_s)

    def _target_duration_s(self, rate: float) -> float:
        """Batch length to aim at: a row waits for one batch at worst and is then processed in the next."""
        goal_s, interval_s = self._goal_s(), self.settings.trigger_interval_s
        target_s = goal_s - max(goal_s / 2, interval_s)
        if math.isfinite(cap := self._arrivals.cap_for_next()) and rate > 0:
            # Batches that the cap keeps small must be shorter, or the source falls behind.
            target_s = min(target_s, 0.9 * max(cap / rate, interval_s))
        return target_s

    def _goal_s(self) -> float:
        """Latency to aim at.

        Where even the least share cannot hold the bound, a quarter more than that share would reach: dropping
        nearly everything to miss the bound by a little less is a bad bargain.
        """
        least_s = self._least_latency_s()
        if self.settings.latency_bound_s < least_s < math.inf:
            return 1.25 * least_s
        # What a row waits before the source offers it is no longer there to be used, but never more than half is given up.
        bound_s = self.settings.latency_bound_s
        return self.settings.headroom * max(bound_s - self._arrivals.delivery_s, bound_s / 2)

    def _bound_s(self) -> float:
        """The bound, or where that cannot be held, what takes its place."""
        return self._goal_s() / self.settings.headroom

    def _least_latency_s(self) -> float:
        """Latency that the least share allowed settles at; infinite when merely seeing the rows takes too long."""
        model, interval_s = self._model, self.settings.trigger_interval_s
        per_row_s = model.per_seen_row_s + self.settings.min_keep_fraction * model.per_kept_row_s
        load = per_row_s * (self._arrivals.rows_per_s or 0.0)
        duration_s = model.fixed_s + load * interval_s
        if duration_s > interval_s:
            duration_s = model.fixed_s / (1 - load) if load < 1 else math.inf
        return duration_s + max(duration_s, interval_s)

    def _sustainable(self, rate: float, target_s: float) -> float:
        """Share that batches of the target length can keep at this rate; above 1 when there is capacity to spare."""
        rows = rate * max(target_s, self.settings.trigger_interval_s)
        return self._model.kept_within(target_s, rows) / rows if rows > 0 else math.inf

    def _fits(self, ahead: _Ahead) -> bool:
        """Whether the batch can keep everything and still be in time."""
        return ahead.wait_s + self._duration(ahead, 1.0) <= self._goal_s()

    def _can_wait(self, ahead: _Ahead, rate: float, sustainable: float) -> bool:
        """Whether rows may be delayed now: the next batch can still be saved by keeping half the sustainable share."""
        if sustainable >= 1:
            return True
        wait_s = max(self._duration(ahead, 1.0), self.settings.trigger_interval_s)
        after = _Ahead(wait_s, rate * wait_s, 0.0)
        return wait_s + self._duration(after, max(sustainable / 2, 0.0)) <= self._goal_s()

    def _keep_all(self, ahead: _Ahead, rate: float, target_s: float) -> Budget:
        self._predicted_latency_s = ahead.wait_s + self._duration(ahead, 1.0)
        capacity = self._model.capacity_rows_per_s(target_s)
        cause = f"{rate:,.0f} rows/s arrive, about {capacity:,.0f} rows/s can be processed: keep all"
        return self._with_cause(1.0, 1.0, cause)

    def _shed(self, ahead: _Ahead, rate: float, target_s: float) -> Budget:
        keep = self._steadied(self._keep_fraction_for(ahead, target_s, self._sustainable(rate, target_s)), ahead)
        late_keep = min(keep, self.settings.late_keep_fraction)
        kept = keep * ahead.fresh + late_keep * ahead.late
        self._predicted_latency_s = ahead.wait_s + self._model.predict(ahead.rows, kept)
        return self._with_cause(keep, late_keep, self._cause(ahead, rate, target_s, keep))

    def _keep_fraction_for(self, ahead: _Ahead, target_s: float, sustainable: float) -> float:
        period_s = max(target_s, self.settings.trigger_interval_s)
        limit_s = target_s + _DECAY * (ahead.wait_s - period_s)
        # A batch that waited too long is shortened once; past half the target its oldest rows are lost anyway.
        limit_s = min(limit_s, self._bound_s() - ahead.wait_s)
        limit_s = max(limit_s, _SHORTEST * target_s)
        kept = self._model.kept_within(limit_s, ahead.rows) - self.settings.late_keep_fraction * ahead.late
        keep = kept / ahead.fresh if ahead.fresh > 0 else 1.0
        # One odd batch must not throw the share far from what can be sustained: with a lag that rings for long.
        keep = min(max(keep, sustainable * _LOWEST), sustainable * _HIGHEST)
        return min(max(keep, self.settings.min_keep_fraction), 1.0)

    def _steadied(self, keep: float, ahead: _Ahead) -> float:
        """The present keep fraction where the wanted one is near it and the bound is not at stake, or shedding is new."""
        present = self._budget.keep_fraction
        if keep >= 1.0 and self._batches_shed < self.settings.min_shed_batches:
            return present
        if present >= 1.0 or abs(keep - present) > self.settings.dead_band * present:
            return keep
        in_time = ahead.wait_s + self._duration(ahead, present) <= _AT_STAKE * self._bound_s()
        return present if in_time or keep >= present else keep

    def _cause(self, ahead: _Ahead, rate: float, target_s: float, keep: float) -> str:
        bound_s = self.settings.latency_bound_s
        capacity = self._model.capacity_rows_per_s(target_s)
        cause = f"{rate:,.0f} rows/s arrive, {capacity:,.0f} rows/s can be processed within {bound_s:.1f} s"
        cause += f": keep {keep:.2f}"
        if ahead.late > 0:
            cause += f"; {ahead.late:,.0f} rows of a backlog are late already and are thinned harder"
        if bound_s < (least_s := self._least_latency_s()) < math.inf:
            cause += (
                f"; the bound cannot be held: even keeping {self.settings.min_keep_fraction:.2f} takes {least_s:.1f} s"
            )
        elif keep <= self.settings.min_keep_fraction and self._sustainable(rate, target_s) < keep:
            cause += "; the bound may not be held: the least share allowed is too much"
        return cause

    def _end_shedding(self) -> None:
        self._shedding, self._batches_shed = False, 0

    def _with_cause(self, keep: float, late_keep: float, cause: str) -> Budget:
        return Budget(keep, late_keep, self.settings.latency_bound_s, cause)


def _require(holds: bool, expected: str, got: object, hint: str) -> None:
    if not holds:
        raise InvalidSetting(explain(expected, repr(got), hint=hint))
