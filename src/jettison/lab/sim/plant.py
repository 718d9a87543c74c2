"""A simulated micro-batch engine: what a controller acts on, without Spark and without waiting.

Rows arrive as a fluid in small lumps, wait in the source, and are taken by batches whose duration follows the cost of
seen and kept rows, with noise. A batch runs under the newest plan that counts from a time not after its start; plans are
made when a batch is reported, shortly after its commit, and on a clock. A fresh process is slow at first, as a JVM is.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from jettison.core.stats import Budget, PointStats, Stats
from jettison.lab.sim.regulation import RateLimit, Regulator, SimulatedChannel

_RECENT_S = 1.0
_Lump = tuple[float, float]  # arrival, rows


@dataclass(frozen=True, slots=True)
class PlantSettings:
    """The engine, the query and the source.

    Parameters
    ----------
    fixed_s, per_seen_row_s, per_kept_row_s
        True cost of a batch, once the process is warm.
    overhead_s
        The part of `fixed_s` that lies outside of the processing of rows, and is reported apart from it.
    reports_work
        Whether statistics tell `work_s`.
    noise
        Standard deviation of the logarithm of a batch's duration.
    outlier_chance, outlier_factor
        How often a batch is slow for no reason (garbage collection), and how slow.
    warm_up_factor, first_batch_s
        How much slower the first batch is; what it takes on top of that.
    cold_factor, cold_s
        After its first batch a process works at `1 / (1 + cold_factor * exp(-t / cold_s))` of its final speed.
    trigger_interval_s
        0 for batches back to back.
    row_cap
        Most rows that a batch takes; `None` for all that wait.
    reports_waiting
        Whether statistics tell what a batch left in the source.
    tells_produced
        Whether the source can be asked how many rows have come.
    report_delay_s, tick_s
        From a commit to its report; between two forecasts.
    gap_s
        From a commit to the start of the next batch.
    lump_s
        Time between arrivals of lumps of rows, such as files.
    delivery_s
        Time from a row's arrival until the source offers it, such as that in which a file fills up and lands.
    observes_arrivals
        Whether statistics tell when rows arrived.
    stamp
        What the arrival column says of a row that arrived at a time.
    wild_share
        Share of the rows whose stamp is 0, that is 1970.
    cost_factor
        By what all costs are multiplied at a time.
    protected_share
        Share of the rows that is never dropped.
    dry_run
        Whether plans are made, and every row is kept all the same.
    seed
        Of the noise.
    """

    fixed_s: float = 0.3
    per_seen_row_s: float = 0.5e-6
    per_kept_row_s: float = 9.5e-6
    overhead_s: float = 0.1
    reports_work: bool = True
    noise: float = 0.12
    outlier_chance: float = 0.0
    outlier_factor: float = 3.0
    warm_up_factor: float = 3.0
    first_batch_s: float = 0.0
    cold_factor: float = 0.0
    cold_s: float = 8.0
    trigger_interval_s: float = 0.0
    row_cap: int | None = None
    reports_waiting: bool = False
    tells_produced: bool = False
    report_delay_s: float = 0.05
    tick_s: float = 0.25
    gap_s: float = 0.005
    lump_s: float = 0.02
    delivery_s: float = 0.0
    observes_arrivals: bool = True
    stamp: Callable[[float], float] = field(default=lambda arrival_s: arrival_s)
    wild_share: float = 0.0
    cost_factor: Callable[[float], float] = field(default=lambda _now_s: 1.0)
    protected_share: float = 0.0
    dry_run: bool = False
    seed: int = 0

    def capacity_rows_per_s(self, duration_s: float) -> float:
        """Highest rate that batches of this length process with everything kept."""
        return (duration_s - self.fixed_s) / (self.per_seen_row_s + self.per_kept_row_s) / duration_s

    def warm_s(self, seen: float, kept: float) -> float:
        """What a batch of these rows takes once the process is warm."""
        return self.fixed_s + self.per_seen_row_s * seen + self.per_kept_row_s * kept

    def duration_s(self, seen: float, kept: float, age_s: float | None, factor: float = 1.0) -> float:
        """What a batch takes that starts `age_s` after the first one ended (`None`: it is that), at costs times `factor`."""
        warm_s, cold_s = factor * self.warm_s(seen, kept), self.cold_s
        if age_s is None:
            return self.first_batch_s + self.warm_up_factor * warm_s
        if self.cold_factor == 0 or age_s > 40 * cold_s or warm_s > 40 * cold_s:
            return warm_s
        # The process gets faster while it works.
        end = (math.exp(age_s / cold_s) + self.cold_factor) * math.exp(warm_s / cold_s) - self.cold_factor
        return cold_s * math.log(end) - age_s

    def best_share(self, rate: float, duration_s: float) -> float:
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
    kept_share: float
    ages: tuple[_Lump, ...]

    @property
    def worst_latency_s(self) -> float:
        """Latency of the row that arrived first among those kept."""
        return self.stats.committed_s - min((arrival for arrival, _ in self.ages), default=self.stats.started_s)


class Plant:
    """Runs batches of `rate(now)` rows per second under a regulator, deterministically under a seed.

    Running it again goes on where the run before ended, in a new process.

    Examples
    --------
    >>> from jettison.control.controller import Controller, ControlSettings
    >>> plant = Plant(PlantSettings(noise=0.0), rate=lambda now_s: 200_000.0)
    >>> trace = plant.run(Controller(ControlSettings(latency_bound_s=3.0)), until_s=60.0)
    >>> max(batch.worst_latency_s for batch in trace[6:]) < 3.0
    True
    """

    def __init__(self, settings: PlantSettings, rate: Callable[[float], float], backlog: float = 0.0) -> None:
        self.settings = settings
        self._rate = rate
        self._random = random.Random(settings.seed)
        self._next_lump_s = settings.lump_s
        self._waiting: deque[_Lump] = deque()
        self._produced: list[_Lump] = [(0.0, backlog)]
        self._batches = 0
        self._version = -1
        self._now_s = 0.0
        self._warm_from_s = math.inf
        self._replayed: list[_Lump] = []
        if backlog > 0:
            # A backlog of the last ten minutes, evenly spread.
            self._waiting.extend((-600.0 + 6.0 * n, backlog / 100) for n in range(100))

    def run(self, regulator: Regulator, until_s: float) -> list[Batch]:
        """Simulate until the clock passes `until_s`."""
        previous_s = self._now_s
        self._warm_from_s = math.inf
        channel = SimulatedChannel(self.settings, regulator, self._version + 1, self._now_s, self._produced_by)
        trace: list[Batch] = []
        while (start_s := self._next_start(self._now_s, until_s)) < until_s:
            channel.advance(start_s)
            batch = self._run_batch(start_s, previous_s, channel)
            trace.append(batch)
            channel.committed(batch.stats)
            self._warm_from_s = min(self._warm_from_s, batch.stats.committed_s)
            previous_s = start_s
            due_s = start_s + self.settings.trigger_interval_s
            self._now_s = max(batch.stats.committed_s + self.settings.gap_s, due_s)
            self._batches += 1
        channel.advance(self._now_s)
        self._version = channel.version
        return trace

    def crash(self, batch: Batch, downtime_s: float) -> None:
        """The process dies before it commits `batch`, the last one: the next run repeats it, with the same rows."""
        self._replayed = [(arrival_s, rows / batch.kept_share) for arrival_s, rows in batch.ages]
        self._batches -= 1
        self._now_s += downtime_s

    def _next_start(self, now_s: float, until_s: float) -> float:
        """The first trigger from `now_s` on that finds rows waiting."""
        self._arrive(now_s)
        while not (self._waiting or self._replayed) and now_s < until_s:
            now_s += max(self.settings.trigger_interval_s, self.settings.lump_s)
            self._arrive(now_s)
        return now_s

    def _arrive(self, now_s: float) -> None:
        lump_s = self.settings.lump_s
        while self._next_lump_s + self.settings.delivery_s <= now_s:
            if (rows := self._rate(self._next_lump_s) * lump_s) > 0:
                self._waiting.append((self._next_lump_s, rows))
                self._produced.append((self._next_lump_s + self.settings.delivery_s, self._produced[-1][1] + rows))
            self._next_lump_s += lump_s

    def _produced_by(self, now_s: float) -> float | None:
        """Rows that the source has offered by then, where it can be asked."""
        if not self.settings.tells_produced:
            return None
        self._arrive(now_s)
        return self._produced[bisect_right(self._produced, now_s, key=lambda lump: lump[0]) - 1][1]

    def _take(self) -> list[_Lump]:
        """The oldest waiting rows, as many as the cap allows; those of a batch that was not committed come back alone."""
        if self._replayed:
            taken, self._replayed = self._replayed, []
            return taken
        room = float(self.settings.row_cap or math.inf)
        taken = []
        while self._waiting and room > 0.5:
            arrival_s, rows = self._waiting.popleft()
            part = min(rows, room)
            taken.append((arrival_s, part))
            room -= part
            if rows - part > 0.5:
                self._waiting.appendleft((arrival_s, rows - part))
        return taken

    def _run_batch(self, start_s: float, previous_s: float, channel: SimulatedChannel) -> Batch:
        known, wait_s = self.settings, start_s - previous_s
        taken = self._take()
        version, setting = channel.in_force(start_s)
        stamped = [(known.stamp(arrival_s), rows * (1 - known.wild_share)) for arrival_s, rows in taken]
        shares = _shares(setting, stamped, start_s, wait_s)
        if known.wild_share > 0:
            wild = _shares(setting, [(0.0, 1.0)], start_s, wait_s)[0]
            shares = [share + known.wild_share * (wild - share) for share in shares]
            stamped.append((0.0, known.wild_share * sum(rows for _, rows in taken)))
        least = 1.0 if known.dry_run else known.protected_share
        shares = [max(share, least) for share in shares]
        ages = tuple((arrival, rows * share) for (arrival, rows), share in zip(taken, shares, strict=True))
        seen, kept = sum(rows for _, rows in taken), sum(rows for _, rows in ages)
        overhead_s, work_s = self._durations(start_s, seen, kept)
        oldest_s, newest_s = _quantiles(stamped, (0.01, 0.99)) if known.observes_arrivals else (None, None)
        stats = Stats(
            batch_id=self._batches,
            started_s=start_s,
            duration_s=overhead_s + work_s,
            points={"rows": PointStats(round(seen), round(kept), known.protected_share)},
            plan_version=version,
            oldest_arrival_s=oldest_s,
            newest_arrival_s=newest_s,
            recent_rows_per_s=_recent_rate(stamped, newest_s, start_s),
            work_s=work_s if known.reports_work else None,
            waiting_rows=round(sum(rows for _, rows in self._waiting)) if known.reports_waiting else None,
        )
        return Batch(stats, wait_s, kept / seen, ages)

    def _durations(self, start_s: float, seen: float, kept: float) -> tuple[float, float]:
        """Seconds outside of the processing of rows, and those inside."""
        known = self.settings
        factor = known.cost_factor(start_s) * math.exp(self._random.gauss(0.0, known.noise))
        if self._random.random() < known.outlier_chance:
            factor *= known.outlier_factor
        age_s = None if math.isinf(self._warm_from_s) else start_s - self._warm_from_s
        total_s = known.duration_s(seen, kept, age_s, factor)
        overhead_s = total_s * known.overhead_s / known.warm_s(seen, kept)
        return overhead_s, total_s - overhead_s


def _shares(setting: Budget | RateLimit, stamped: Iterable[_Lump], start_s: float, wait_s: float) -> list[float]:
    """The share kept of each lump."""
    if isinstance(setting, RateLimit):
        seen = sum(rows for _, rows in stamped)
        return [min(1.0, setting.rows_per_s * wait_s / seen) for _ in stamped]
    late_from_s = start_s - setting.late_after_s
    return [setting.late_share if arrival < late_from_s else setting.share for arrival, _ in stamped]


def _quantiles(lumps: Iterable[_Lump], shares: tuple[float, ...]) -> list[float]:
    """Quantiles of the arrivals, weighted by rows."""
    ordered = sorted(lumps)
    total, found, passed = sum(rows for _, rows in ordered), [], 0.0
    wanted = list(shares)
    for arrival_s, rows in ordered:
        passed += rows
        while wanted and passed >= wanted[0] * total * (1 - 1e-12):
            found.append(arrival_s)
            wanted.pop(0)
    return found + [ordered[-1][0]] * len(wanted)


def _recent_rate(stamped: Iterable[_Lump], newest_s: float | None, start_s: float) -> float | None:
    """Rate from the last second before the batch until its newest row, where that says anything."""
    if newest_s is None or (covered_s := newest_s - (start_s - _RECENT_S)) < _RECENT_S / 4:
        return None
    return sum(rows for arrival_s, rows in stamped if start_s - _RECENT_S < arrival_s <= newest_s) / covered_s


def row_latency_s(batches: Iterable[Batch], quantile: float) -> float:
    """Quantile of the latency of the rows kept in these batches."""
    latencies = sorted((batch.stats.committed_s - arrival, rows) for batch in batches for arrival, rows in batch.ages)
    rank = quantile * sum(rows for _, rows in latencies)
    for latency_s, rows in latencies:
        rank -= rows
        if rank <= 0:
            return latency_s
    return latencies[-1][0] if latencies else math.nan
