"""What a micro-batch costs and how fast rows arrive, both learned while the query runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jettison.stats import Stats

Vector = NDArray[np.float64]

# The state: log of the fixed cost, log of a kept row's whole cost, logit of the part of the latter that seeing it costs.
_USUAL = np.array([math.log(0.8), math.log(5e-6), math.log(0.1 / 0.9)])
_START_SPREAD = np.array([0.7, 2.0, 0.7])
_START_ROUNDS = 8  # far more than the few that the first fit needs to settle
_PULL = np.array([0.002, 0.0, 0.002])  # towards the usual, per batch: holds what the batches at hand say nothing about
_DRIFT = np.diag(2 * _PULL * _START_SPREAD**2 + np.array([0.0, 1e-4, 0.0]))
_LEVEL = np.array([1.0, 1.0, 0.0])  # the direction in which a slower or faster machine moves the state
_LEVEL_DRIFT = 0.03  # per batch, relative
_NOISE = 0.15  # relative scatter of a batch's duration that is taken for granted
_WARM_UP = 2.0  # a query's first batch is about this many times too slow, while the JVM compiles
_WARM_UP_NOISE = 0.7
_SURPRISE = 2.3  # standard deviations from which a duration is believed in full only when the next one confirms it


class LoadModel:
    """Duration of a micro-batch as `fixed + per_seen * seen + per_kept * kept`, fitted online; all costs are positive.

    A lasting change of all costs by a factor of two is followed within two batches; a single slow batch (a garbage
    collection) moves predictions by less than a quarter. Batches without rows are ignored, and the first batch of a
    query counts for little.

    Notes
    -----
    An extended Kalman filter on the logarithm of the duration, because noise multiplies. Its process noise says what
    changes in practice: mostly all costs together (the machine), a little each by itself (the data). So a slower
    machine does not bend the shape, and the model extrapolates from "all kept" to "a third kept". While everything is
    kept, the costs of seeing and of keeping a row cannot be told apart, and while batches are alike neither can the
    fixed cost; a weak pull towards usual values (0.8 s; seeing a row is a tenth of its cost) holds them until the
    batches differ. The first batch is weighed against usual values too (5 microseconds a row, give or take a factor of
    seven): a query's first batch is often a handful of rows and some seconds of compiling, and to believe that each row
    cost a millisecond would shed nearly everything, for long, since batches of few kept rows cannot refute it. Plain
    least squares over the three costs was tried first: under 20 % noise it sent one of them to zero and the keep
    fraction swung between its floor and 1.

    Examples
    --------
    >>> model = LoadModel()
    >>> for seen in (100_000, 200_000, 400_000, 300_000, 500_000, 150_000, 250_000, 450_000) * 4:
    ...     model.observe(seen, seen // 2, 0.3 + 1e-6 * seen + 4e-6 * (seen // 2))
    >>> round(model.predict(600_000, 300_000), 1)
    2.1
    """

    def __init__(self) -> None:
        self._state: Vector | None = None
        self._spread: Vector = np.diag(_START_SPREAD**2)
        self._surprise = 0.0
        self._warming = True
        self.fixed_s = 0.0
        """Seconds that a batch takes whatever it holds."""
        self.per_seen_row_s = 0.0
        """Seconds for a row that is read and may then be dropped."""
        self.per_kept_row_s = 0.0
        """Further seconds for a row that is kept."""

    @property
    def ready(self) -> bool:
        """Whether any batch with rows has been observed."""
        return self._state is not None

    def expect_warm_up(self) -> None:
        """Count the next batch for little: the query has just started."""
        self._warming = True

    def observe(self, seen: int, kept: int, duration_s: float) -> None:
        """Learn from one finished batch."""
        if seen <= 0 or not (math.isfinite(duration_s) and duration_s > 0):
            return
        if self._state is None:
            self._start(seen, kept, duration_s)
        else:
            self._update(self._state, seen, kept, duration_s)
        self._warming = False

    def predict(self, seen: float, kept: float) -> float:
        """Seconds that a batch with these rows is expected to take."""
        return self.fixed_s + self.per_seen_row_s * seen + self.per_kept_row_s * kept

    def kept_within(self, duration_s: float, seen: float) -> float:
        """Rows to keep of `seen` for a batch of `duration_s`; negative if merely seeing them takes longer."""
        return (duration_s - self.fixed_s - self.per_seen_row_s * seen) / max(self.per_kept_row_s, 1e-12)

    def capacity_rows_per_s(self, duration_s: float) -> float:
        """Highest arrival rate at which batches of `duration_s`, run back to back, keep every row."""
        return max(duration_s - self.fixed_s, 0.0) / max(self.per_seen_row_s + self.per_kept_row_s, 1e-12) / duration_s

    def to_dict(self) -> dict[str, Any]:
        """All state, fit for JSON."""
        return {
            "state": None if self._state is None else self._state.tolist(),
            "spread": self._spread.tolist(),
            "surprise": self._surprise,
            "warming": self._warming,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> LoadModel:
        """Restore what `to_dict` gave."""
        model = cls()
        if document["state"] is not None:
            model._move_to(np.array(document["state"], dtype=np.float64).reshape(3))
        model._spread = np.array(document["spread"], dtype=np.float64).reshape(3, 3)
        model._surprise = float(document["surprise"])
        model._warming = bool(document["warming"])
        return model

    def _start(self, seen: int, kept: int, duration_s: float) -> None:
        """Find the costs that agree best with usual ones and with the first batch (an iterated Kalman update)."""
        log_duration = math.log(duration_s / (_WARM_UP if self._warming else 1.0))
        noise = _WARM_UP_NOISE if self._warming else _NOISE
        spread = np.diag(_START_SPREAD**2)
        self._move_to(_USUAL)
        for _ in range(_START_ROUNDS):
            assert self._state is not None
            predicted_s = self.predict(seen, kept)
            slope = self._slope(seen, kept, predicted_s)
            gain = spread @ slope / (float(slope @ spread @ slope) + noise**2)
            deviation = log_duration - math.log(predicted_s) - float(slope @ (_USUAL - self._state))
            self._move_to(_USUAL + gain * deviation)
        self._spread = spread - np.outer(gain, spread @ slope)

    def _update(self, state: Vector, seen: int, kept: int, duration_s: float) -> None:
        predicted_s = self.predict(seen, kept)
        slope = self._slope(seen, kept, predicted_s)
        noise = _WARM_UP_NOISE if self._warming else _NOISE
        spread = self._spread * np.outer(1 - _PULL, 1 - _PULL) + _DRIFT
        unsure = math.sqrt(float(slope @ spread @ slope) + _LEVEL_DRIFT**2 + noise**2)
        deviation, level_drift = self._believed(math.log(duration_s / predicted_s), _SURPRISE * unsure)
        spread += level_drift**2 * np.outer(_LEVEL, _LEVEL)
        direction = spread @ slope
        gain = direction / (float(slope @ direction) + noise**2)
        self._spread = spread - np.outer(gain, direction)
        self._move_to(state + _PULL * (_USUAL - state) + gain * deviation)

    def _slope(self, seen: int, kept: int, predicted_s: float) -> Vector:
        """Change of the logarithm of the predicted duration with each part of the state."""
        per_row_s = self.per_seen_row_s + self.per_kept_row_s
        by_row = self.per_seen_row_s * seen + self.per_kept_row_s * kept
        by_share = (seen - kept) * self.per_seen_row_s * self.per_kept_row_s / per_row_s
        return np.array([self.fixed_s, by_row, by_share]) / predicted_s

    def _believed(self, deviation: float, limit: float) -> tuple[float, float]:
        """How much of a deviation to believe, and how far the level may have moved to cause it."""
        confirmed = abs(deviation) > limit / 2 and deviation * self._surprise > 0
        self._surprise = deviation if abs(deviation) > limit else 0.0
        if confirmed:
            return deviation, abs(deviation)
        return max(min(deviation, limit), -limit), _LEVEL_DRIFT

    def _move_to(self, state: Vector) -> None:
        # The limits are far outside anything real; they only keep the exponentials finite.
        self._state = np.clip(state, [-12.0, -35.0, -7.0], [6.0, 6.0, 2.0])
        self.fixed_s, per_row_s = math.exp(self._state[0]), math.exp(self._state[1])
        seen_share = 1 / (1 + math.exp(-self._state[2]))
        self.per_seen_row_s, self.per_kept_row_s = seen_share * per_row_s, (1 - seen_share) * per_row_s


_CHANGE = 0.3  # relative change of the arrival rate from which it is followed at once
_SMOOTHING_S = 2.0
_RECENT_S = 1.0
_STEP_SHOWN = 0.7  # of the rows that a step would add or spare within the last second, how many must show
_CLOCK_SLACK_S = 0.1  # the source's clock and ours may differ by this much
_DELIVERY_S = 0.25  # from a row's arrival until the source offers it, before anything is known; files fill up first
_DELIVERY_SMOOTHING = 0.1  # per batch: slower than the backlog of a source that is really capped grows
_BACKLOG_S = 0.5  # a first batch whose newest row is older than this began on a backlog


class Arrivals:
    """How many rows arrive per second, and from which arrival time on rows still wait in the source.

    A change of rate by more than 30 % is followed at once, a smaller one within some seconds. Rows are counted
    between triggers; where a cap left rows in the source, between the oldest and newest arrival of the batch. A step of
    the load in the middle of a batch shows in the rate of its last second, where that is observed: it is believed if
    the batch as a whole has the rows that such a step explains, so that bursts within batches are not taken for one.

    Examples
    --------
    >>> from jettison.stats import PointStats
    >>> arrivals = Arrivals()
    >>> for n in range(3):
    ...     arrivals.observe(Stats(n, started_s=2.0 * n, duration_s=1.0, points={"p": PointStats(500, 500)}))
    >>> arrivals.rows_per_s, arrivals.served_until_s
    (250.0, 4.0)
    """

    def __init__(self, row_cap: int | None = None) -> None:
        self._given_cap = row_cap
        self._started_s: float | None = None
        self._delivery_s: float | None = None
        self.rows_per_s: float | None = None
        self.served_until_s = 0.0
        self.row_cap: int | None = None
        """Rows of a full batch while a cap leaves rows behind in the source, else `None`."""

    @property
    def delivery_s(self) -> float:
        """Seconds from a row's arrival until the source offers it; 0 where arrivals are not observed."""
        return self._delivery_s or 0.0

    def observe(self, stats: Stats) -> None:
        """Learn from one finished batch."""
        capped = self._left_rows_behind(stats)
        first_s, last_s = self._started_s, stats.started_s
        if stats.oldest_arrival_s is not None and stats.newest_arrival_s is not None:
            first_s = stats.oldest_arrival_s if capped or first_s is None else first_s
            last_s = stats.newest_arrival_s if capped else last_s
        self.row_cap = stats.seen if capped else None
        self._started_s, self.served_until_s = stats.started_s, last_s
        if first_s is not None and last_s - first_s > 1e-3:
            before, span_s = self.rows_per_s, last_s - first_s
            self._follow(stats.seen / span_s, span_s)
            if before is not None and not capped and self._is_step(stats, before, span_s):
                self.rows_per_s = stats.recent_rows_per_s

    def idle(self, now_s: float) -> None:
        """Nothing arrives; what comes after `now_s` is counted afresh."""
        self.rows_per_s, self.row_cap = 0.0, None
        self._started_s = self.served_until_s = now_s

    def cap_for_next(self) -> float:
        """Rows that the next batch can hold at most."""
        caps = [cap for cap in (self._given_cap, self.row_cap) if cap is not None]
        return float(min(caps)) if caps else math.inf

    def _left_rows_behind(self, stats: Stats) -> bool:
        if self._given_cap is not None:
            return stats.seen >= 0.95 * self._given_cap
        if stats.oldest_arrival_s is None or stats.newest_arrival_s is None:
            return False
        behind_s = stats.started_s - stats.newest_arrival_s
        if self._started_s is None:
            return behind_s > _BACKLOG_S
        # A row that was waiting at the previous trigger and is only taken now proves that a cap is at work, unless it was
        # still on its way then. Taken for a cap, slow delivery would make batches ever shorter.
        passed_over_s = self._started_s - stats.oldest_arrival_s
        delivery_s = _DELIVERY_S if self._delivery_s is None else self._delivery_s
        if min(passed_over_s, behind_s) > 2 * delivery_s + _CLOCK_SLACK_S:
            return True
        self._delivery_s = delivery_s + _DELIVERY_SMOOTHING * (max(passed_over_s, 0.0) - delivery_s)
        return False

    def _is_step(self, stats: Stats, before: float, span_s: float) -> bool:
        """Whether the rate has stepped to that of the batch's last second."""
        recent = stats.recent_rows_per_s
        # A silent second is no step: a cap may have left its rows in the source. That nothing arrives, `idle` says.
        if not recent or abs(recent - before) <= _CHANGE * before:
            return False
        beyond, explained = stats.seen - before * span_s, (recent - before) * min(span_s, _RECENT_S)
        return beyond * explained > 0 and abs(beyond) >= _STEP_SHOWN * abs(explained)

    def _follow(self, sample: float, span_s: float) -> None:
        if self.rows_per_s is None or abs(sample - self.rows_per_s) > _CHANGE * self.rows_per_s:
            self.rows_per_s = sample
        else:
            self.rows_per_s += (1 - math.exp(-span_s / _SMOOTHING_S)) * (sample - self.rows_per_s)

    def to_dict(self) -> dict[str, Any]:
        """All state, fit for JSON."""
        return {
            "started_s": self._started_s,
            "rows_per_s": self.rows_per_s,
            "served_until_s": self.served_until_s,
            "row_cap": self.row_cap,
            "delivery_s": self._delivery_s,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], row_cap: int | None = None) -> Arrivals:
        """Restore what `to_dict` gave."""
        arrivals = cls(row_cap)
        arrivals._started_s = document["started_s"]
        arrivals.rows_per_s = document["rows_per_s"]
        arrivals.served_until_s = float(document["served_until_s"])
        arrivals.row_cap = document["row_cap"]
        arrivals._delivery_s = document["delivery_s"]
        return arrivals
