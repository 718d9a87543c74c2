"""A simulated micro-batch engine: what a controller acts on, without Spark and without waiting.

Rows arrive as a fluid in small lumps, wait in the source, and are taken by batches whose duration follows the cost
of seen and kept rows, with noise. Plans take effect one or two batches late, as they do in Spark.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jettison.stats import Budget, PointStats, Stats

IDLE_AFTER_S = 5.0
"""Silence of the source after which the engine reports that it is idle."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Keep at most this many rows per second of waiting time, whatever arrives."""

    rows_per_s: float


class Regulator(Protocol):
    """What the plant asks for decisions; `jettison.control.Controller` is one."""

    def initial(self) -> Budget | RateLimit:
        """Setting for the first batch."""

    def step(self, stats: Stats) -> Budget | RateLimit:
        """Setting after a batch."""

    def planned(self, version: int) -> None:
        """The last setting is in force as plan `version`."""

    def idle(self, now_s: float) -> Budget | RateLimit:
        """Setting when nothing arrives."""


@dataclass(frozen=True, slots=True)
class PlantSettings:
    """The engine, the query and the source.

    Parameters
    ----------
    fixed_s, per_seen_row_s, per_kept_row_s
        True cost of a batch.
    noise
        Standard deviation of the logarithm of a batch's duration.
    outlier_chance, outlier_factor
        How often a batch is slow for no reason (garbage collection), and how slow.
    warm_up_factor
        How much slower the first batch is.
    trigger_interval_s
        0 for batches back to back.
    row_cap
        Most rows that a batch takes; `None` for all that wait.
    lag_batches
        Batches until a plan takes effect; one of them is drawn for each plan.
    lump_s
        Time between arrivals of lumps of rows, such as files.
    delivery_s
        Time from a row's arrival until the source offers it, such as that in which a file fills up and lands.
    observes_arrivals
        Whether statistics name the oldest and newest arrival.
    cost_factor
        By what all costs are multiplied at a time.
    seed
        Of the noise.
    """

    fixed_s: float = 0.3
    per_seen_row_s: float = 0.5e-6
    per_kept_row_s: float = 9.5e-6
    noise: float = 0.12
    outlier_chance: float = 0.0
    outlier_factor: float = 3.0
    warm_up_factor: float = 3.0
    trigger_interval_s: float = 0.0
    row_cap: int | None = None
    lag_batches: Sequence[int] = (1,)
    lump_s: float = 0.02
    delivery_s: float = 0.0
    observes_arrivals: bool = True
    cost_factor: Callable[[float], float] = field(default=lambda _now_s: 1.0)
    seed: int = 0

    def capacity_rows_per_s(self, duration_s: float) -> float:
        """Highest rate that batches of this length process with everything kept."""
        return (duration_s - self.fixed_s) / (self.per_seen_row_s + self.per_kept_row_s) / duration_s

    def best_keep_fraction(self, rate: float, duration_s: float) -> float:
        """Largest share that batches of this length, back to back, can keep at `rate`; seeing rows is paid for too."""
        rows = rate * duration_s
        return min(1.0, (duration_s - self.fixed_s - self.per_seen_row_s * rows) / (self.per_kept_row_s * rows))


@dataclass(frozen=True, slots=True)
class Batch:
    """One finished batch of the simulation.

    `ages` holds pairs of arrival time and rows kept, enough for the exact distribution of row latency.
    """

    stats: Stats
    wait_s: float
    keep_fraction: float
    ages: tuple[tuple[float, float], ...]

    @property
    def worst_latency_s(self) -> float:
        """Latency of the row that arrived first among those kept."""
        return self.stats.committed_s - min((arrival for arrival, _ in self.ages), default=self.stats.started_s)


class Plant:
    """Runs batches of `rate(now)` rows per second under a regulator, deterministically under a seed.

    Examples
    --------
    >>> from jettison.control import Controller, ControlSettings
    >>> plant = Plant(PlantSettings(noise=0.0), rate=lambda now_s: 200_000.0)
    >>> trace = plant.run(Controller(ControlSettings(latency_bound_s=3.0)), until_s=60.0)
    >>> max(batch.worst_latency_s for batch in trace[5:]) < 3.0
    True
    """

    def __init__(self, settings: PlantSettings, rate: Callable[[float], float], backlog: float = 0.0) -> None:
        self.settings = settings
        self._rate = rate
        self._random = random.Random(settings.seed)
        self._next_lump_s = settings.lump_s
        self._waiting: deque[tuple[float, float]] = deque()
        if backlog > 0:
            # A backlog of the last ten minutes, evenly spread.
            self._waiting.extend((-600.0 + 6.0 * n, backlog / 100) for n in range(100))

    def run(self, regulator: Regulator, until_s: float) -> list[Batch]:
        """Simulate until the clock passes `until_s`."""
        channel = _Channel(regulator.initial())
        regulator.planned(0)
        trace: list[Batch] = []
        now_s, previous_s = 0.0, 0.0
        while (start_s := self._next_start(now_s, until_s)) < until_s:
            if start_s - now_s > IDLE_AFTER_S:
                channel.send(regulator, regulator.idle(start_s - 0.5), len(trace))
            batch = self._run_batch(len(trace), start_s, start_s - previous_s, channel)
            trace.append(batch)
            lag = self._random.choice(self.settings.lag_batches)
            channel.send(regulator, regulator.step(batch.stats), len(trace) - 1 + lag)
            previous_s = start_s
            now_s = max(batch.stats.committed_s, start_s + self.settings.trigger_interval_s)
        return trace

    def _next_start(self, now_s: float, until_s: float) -> float:
        """The first trigger from `now_s` on that finds rows waiting."""
        self._arrive(now_s)
        while not self._waiting and now_s < until_s:
            now_s += max(self.settings.trigger_interval_s, self.settings.lump_s)
            self._arrive(now_s)
        return now_s

    def _arrive(self, now_s: float) -> None:
        lump_s = self.settings.lump_s
        while self._next_lump_s + self.settings.delivery_s <= now_s:
            if (rows := self._rate(self._next_lump_s) * lump_s) > 0:
                self._waiting.append((self._next_lump_s, rows))
            self._next_lump_s += lump_s

    def _take(self) -> list[tuple[float, float]]:
        """The oldest waiting rows, as many as the cap allows."""
        room = float(self.settings.row_cap or math.inf)
        taken: list[tuple[float, float]] = []
        while self._waiting and room > 0.5:
            arrival_s, rows = self._waiting.popleft()
            part = min(rows, room)
            taken.append((arrival_s, part))
            room -= part
            if rows - part > 0.5:
                self._waiting.appendleft((arrival_s, rows - part))
        return taken

    def _run_batch(self, number: int, start_s: float, wait_s: float, channel: _Channel) -> Batch:
        taken = self._take()
        version, setting = channel.current(number)
        shares = _shares(setting, taken, start_s, wait_s)
        ages = tuple((arrival, rows * share) for (arrival, rows), share in zip(taken, shares, strict=True))
        seen, kept = sum(rows for _, rows in taken), sum(rows for _, rows in ages)
        stats = Stats(
            batch_id=number,
            started_s=start_s,
            duration_s=self._duration(number, start_s, seen, kept),
            points={"rows": PointStats(round(seen), round(kept))},
            plan_version=version,
            oldest_arrival_s=taken[0][0] if self.settings.observes_arrivals else None,
            newest_arrival_s=taken[-1][0] if self.settings.observes_arrivals else None,
            recent_rows_per_s=self._recent_rate(taken, start_s) if self.settings.observes_arrivals else None,
        )
        return Batch(stats, wait_s, kept / seen, ages)

    def _recent_rate(self, taken: list[tuple[float, float]], start_s: float) -> float | None:
        recent = [rows for arrival_s, rows in taken if arrival_s > start_s - 1.0]
        return sum(recent) / (len(recent) * self.settings.lump_s) if recent else None

    def _duration(self, number: int, start_s: float, seen: float, kept: float) -> float:
        known = self.settings
        duration_s = known.fixed_s + known.per_seen_row_s * seen + known.per_kept_row_s * kept
        duration_s *= known.cost_factor(start_s) * math.exp(self._random.gauss(0.0, known.noise))
        if self._random.random() < known.outlier_chance:
            duration_s *= known.outlier_factor
        return duration_s * (known.warm_up_factor if number == 0 else 1.0)


class _Channel:
    """Carries settings to batches: a new version only when the setting has changed, in force some batches later."""

    def __init__(self, setting: Budget | RateLimit) -> None:
        self._plans = [(0, 0, setting)]

    def send(self, regulator: Regulator, setting: Budget | RateLimit, from_batch: int) -> None:
        _, version, last = self._plans[-1]
        if _values(setting) != _values(last):
            version += 1
            # A plan never overtakes an earlier one.
            self._plans.append((max(from_batch, self._plans[-1][0]), version, setting))
        regulator.planned(version)

    def current(self, batch: int) -> tuple[int, Budget | RateLimit]:
        _, version, setting = next(plan for plan in reversed(self._plans) if plan[0] <= batch)
        return version, setting


def _values(setting: Budget | RateLimit) -> tuple[float, ...]:
    if isinstance(setting, RateLimit):
        return (setting.rows_per_s,)
    return (setting.keep_fraction, setting.late_keep_fraction, setting.late_after_s)


def _shares(
    setting: Budget | RateLimit, taken: Iterable[tuple[float, float]], start_s: float, wait_s: float
) -> list[float]:
    """The share kept of each lump."""
    if isinstance(setting, RateLimit):
        seen = sum(rows for _, rows in taken)
        return [min(1.0, setting.rows_per_s * wait_s / seen) for _ in taken]
    late_from_s = start_s - setting.late_after_s
    return [setting.late_keep_fraction if arrival < late_from_s else setting.keep_fraction for arrival, _ in taken]


def row_latency_s(batches: Iterable[Batch], quantile: float) -> float:
    """Quantile of the latency of the rows kept in these batches."""
    latencies = sorted((batch.stats.committed_s - arrival, rows) for batch in batches for arrival, rows in batch.ages)
    rank = quantile * sum(rows for _, rows in latencies)
    for latency_s, rows in latencies:
        rank -= rows
        if rank <= 0:
            return latency_s
    return latencies[-1][0] if latencies else math.nan
