"""Do no harm, on the simulated engine: cases in which a controller is tempted to drop rows, and what it makes of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jettison.control.controller import Controller, ControlSettings
from jettison.lab.bars import Bar
from jettison.lab.sim.plant import Batch, Plant, PlantSettings, row_latency_s
from jettison.lab.sim.scenarios import FRESH_SEEDS

MINUTE_S = 60.0

# Fitted to recorded cold starts of a JSON query on two cores: from files (with costly rows too), and from Kafka.
COLD_FILES = PlantSettings(fixed_s=0.35, overhead_s=0.12, first_batch_s=4.5, cold_factor=2.6, cold_s=14.0)
COLD_KAFKA = PlantSettings(fixed_s=0.35, overhead_s=0.15, first_batch_s=10.0, cold_factor=3.6, cold_s=6.0)
# Set by hand, after no record: rows are one hot loop, compiled in the first batch, and dropping some costs a compilation.
COLD_LOOP = PlantSettings(
    fixed_s=0.65,
    overhead_s=0.15,
    per_seen_row_s=5e-6,
    per_kept_row_s=86e-6,
    noise=0.08,
    first_batch_s=5.0,
    cold_factor=0.3,
    cold_s=10.0,
    lump_s=0.2,
    cost_factor=lambda now_s: 1.0 if now_s < 32.0 else 1.0 + 0.4 * math.exp((32.0 - now_s) / 8.0),
)
WARM = PlantSettings()
COSTLY_ROWS: dict[str, Any] = {"fixed_s": 0.5, "overhead_s": 0.15, "per_seen_row_s": 1e-5, "per_kept_row_s": 0.9e-3}
COSTLY, COLD_COSTLY = replace(WARM, **COSTLY_ROWS), replace(COLD_FILES, **COSTLY_ROWS)
# Three outputs behind a shared parse: three stages a batch and as many plans to compile. Assumed: none is on record.
COLD_NETWORK = PlantSettings(
    fixed_s=1.2, overhead_s=0.3, per_kept_row_s=14e-6, first_batch_s=9.0, cold_factor=2.6, cold_s=14.0
)
SLOW_SINK = PlantSettings(fixed_s=1.25, overhead_s=0.2, per_seen_row_s=1e-5, per_kept_row_s=1e-4, first_batch_s=4.5)


@dataclass(frozen=True)
class Case:
    """A load on a plant, and the figures that are taken of it.

    Parameters
    ----------
    name
        For the table.
    plant
        The engine; the seed is set by each run.
    load
        Arrival rate as a multiple of capacity, at a time.
    bound_s
        The latency bound.
    figures
        Name, unit and bar of each figure, and how it is taken from a run; the worst seed counts.
    rate
        Arrival rate in rows per second, instead of `load`.
    until_s, restart_s
        End of the simulation; when the process dies and comes back five seconds later, if it does.
    known
        Further settings of the controller, from the capacity in rows per second.
    """

    name: str
    plant: PlantSettings
    load: Callable[[float], float]
    bound_s: float
    figures: Sequence[Figure]
    rate: float | None = None
    until_s: float = 150.0
    restart_s: float | None = None
    known: Callable[[float], dict[str, Any]] = field(default=lambda _: {})

    @property
    def capacity_rows_per_s(self) -> float:
        """What batches of the length that the controller aims at process with everything kept."""
        return self.plant.capacity_rows_per_s(0.4 * self.bound_s)

    def run(self, seed: int) -> list[Batch]:
        """One simulation under the controller."""
        rate = self.rate
        base = self.capacity_rows_per_s if rate is None else rate
        settings = ControlSettings(self.bound_s, **self.known(base))
        plant = Plant(replace(self.plant, seed=seed), lambda now_s: base * self.load(now_s))
        controller = Controller(settings)
        if self.restart_s is None:
            return plant.run(controller, self.until_s)
        first = plant.run(controller, self.restart_s)
        plant.crash(first[-1], downtime_s=5.0)
        return first[:-1] + plant.run(Controller.from_dict(settings, controller.to_dict()), self.until_s)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a run, and the bar that the worst run must meet."""

    name: str
    unit: str
    of: Callable[[Case, Sequence[Batch]], float]
    bar: Bar

    def worst(self, case: Case, runs: Iterable[Sequence[Batch]]) -> float:
        """The lowest value of all runs where the bar is a lower one, otherwise the highest."""
        values = [self.of(case, run) for run in runs]
        return min(values) if self.bar.at_least is not None else max(values)


def dropped(batches: Sequence[Batch]) -> float:
    """Share of the rows seen that were dropped."""
    seen = sum(batch.stats.seen for batch in batches)
    return 1 - sum(batch.stats.kept for batch in batches) / seen if seen else 0.0


def between(run: Sequence[Batch], from_s: float, to_s: float = float("inf")) -> list[Batch]:
    """Batches that started in a stretch of time."""
    return [batch for batch in run if from_s <= batch.stats.started_s < to_s]


def holds_from_s(run: Sequence[Batch], bound_s: float) -> float:
    """The first start of a batch from which on 95 % of the rows kept are in time."""
    for number, batch in enumerate(run):
        if row_latency_s(run[number:], 0.95) <= bound_s:
            return batch.stats.started_s
    return float("inf")


def _dropped_in(name: str, at_most: float, from_s: float, to_s: float = float("inf")) -> Figure:
    return Figure(name, "", lambda _, run: dropped(between(run, from_s, to_s)), Bar(at_most=at_most))


FIRST_MINUTE = _dropped_in("dropped in the first minute", 0.02, 0.0, MINUTE_S)
AFTERWARDS = _dropped_in("dropped after the first minute", 0.0, MINUTE_S)
NOTHING = (FIRST_MINUTE, AFTERWARDS)


def _held(from_s: float, load: float) -> tuple[Figure, ...]:
    """The bound, from when on it holds, and the share kept from then on, beside the best that could be kept."""

    def kept(case: Case, run: Sequence[Batch]) -> float:
        # Of the rows that the bound is judged by: those that arrive from then on.
        begin_s, rate = max(from_s, holds_from_s(run, case.bound_s)), load * case.capacity_rows_per_s
        arrived = rate * max(run[-1].stats.started_s - begin_s, 0.0)
        rows = sum(rows for batch in run for arrival_s, rows in batch.ages if arrival_s >= begin_s)
        return rows / arrived / case.plant.best_share(rate, 0.4 * case.bound_s) if arrived else 0.0

    def after_the_second(case: Case, run: Sequence[Batch]) -> float:
        # The second batch has started by the time the first is reported: the third is the first that a plan can change.
        return max(holds_from_s(run, case.bound_s) - run[1].stats.committed_s, 0.0)

    return (
        Figure("bound holds from, after the start", "s", lambda case, run: holds_from_s(run, case.bound_s), Bar(20.0)),
        Figure("bound holds from, after the second batch", "s", after_the_second, Bar(20.0)),
        Figure("kept from then on, of the ideal", "", kept, Bar(at_least=0.8)),
    )


def _recovered(end_s: float, within_s: float) -> tuple[Figure, ...]:
    return (
        _dropped_in("dropped before", 0.02, 0.0, end_s - 5.0),
        Figure(
            "bound holds again after",
            "s",
            lambda case, run: max(holds_from_s(between(run, end_s), case.bound_s) - end_s, 0.0),
            Bar(within_s),
        ),
        _dropped_in("dropped later", 0.0, end_s + within_s + 15.0),
    )


def _near_the_bound(settles: float, noise: float, at_most: float | None) -> Case:
    """A load whose batches, all kept, settle at this part of the bound by themselves; a large part of each is fixed."""
    bound_s, plant = 5.0, PlantSettings(fixed_s=1.5, noise=noise, warm_up_factor=1.0)
    rate = (1 - 2 * plant.fixed_s / (settles * bound_s)) / (plant.per_seen_row_s + plant.per_kept_row_s)

    def latency_s(case: Case, run: Sequence[Batch]) -> float:
        return row_latency_s(between(run, MINUTE_S), 0.95)

    figures = (
        Figure("dropped after the first minute", "", lambda _, run: dropped(between(run, MINUTE_S)), Bar(at_most)),
        Figure("95 % of the rows then", "s", latency_s, Bar(bound_s)),
    )
    name = f"keeping all settles at {settles} of the bound, {noise:.0%} noise"
    return Case(name, plant, _steady(1.0), bound_s, figures, rate=rate, until_s=240.0)


def _steady(load: float) -> Callable[[float], float]:
    return lambda _: load


def _after(step_s: float, before: float, then: float) -> Callable[[float], float]:
    return lambda now_s: before if now_s < step_s else then


def _ramp(now_s: float) -> float:
    return 3 * min(1.0, 0.2 + now_s / 30)


def _waves(low: float, high: float) -> Callable[[float], float]:
    """Ten seconds of each in turn."""
    return lambda now_s: high if int(now_s / 10.0) % 2 else low


def _behind(behind_s: float) -> PlantSettings:
    return replace(WARM, stamp=lambda arrival_s: arrival_s - behind_s)


def _jumping(_: float) -> float:
    return _draw.uniform(-2e9, 2e9)


_draw = random.Random(11)


def _given(capacity: float) -> dict[str, Any]:
    return {"capacity_rows_per_s": capacity}


CASES: Sequence[Case] = (
    Case("cold start from files, 0.7x", COLD_FILES, _steady(0.7), 5.0, NOTHING),
    Case("cold start from Kafka, 0.7x", COLD_KAFKA, _steady(0.7), 5.0, NOTHING),
    Case("cold start, rows of 0.9 ms, 0.7x", COLD_COSTLY, _steady(0.7), 6.0, NOTHING),
    Case("cold start from files, 0.1x, then 0.6x", COLD_FILES, _after(10.0, 0.1, 0.6), 5.0, NOTHING),
    Case("cold start from files, next to nothing, then 0.6x", COLD_FILES, _after(8.0, 0.01, 0.6), 5.0, NOTHING),
    Case("cold start from Kafka, next to nothing, then 0.6x", COLD_KAFKA, _after(15.0, 0.01, 0.6), 5.0, NOTHING),
    Case("cold start from files, waves of 0.14x and 0.7x", COLD_FILES, _waves(0.14, 0.7), 5.0, NOTHING),
    Case("cold start of a network, 0.7x", COLD_NETWORK, _steady(0.7), 8.0, NOTHING),
    Case("cold start, a hot loop, 0.7x", COLD_LOOP, _steady(0.7), 5.0, NOTHING),
    Case("start of a warm process, 0.7x", WARM, _steady(0.7), 3.0, NOTHING),
    Case("start of a warm process, 3x", WARM, _steady(3.0), 3.0, _held(20.0, 3.0)),
    Case("start of a warm process, 10x", replace(WARM, per_seen_row_s=0.2e-6), _steady(10.0), 3.0, _held(20.0, 10.0)),
    Case("cold start from files, 3x", COLD_FILES, _steady(3.0), 5.0, _held(20.0, 3.0)),
    Case(
        "cold start from files, 10x",
        replace(COLD_FILES, per_seen_row_s=0.2e-6),
        _steady(10.0),
        5.0,
        _held(20.0, 10.0),
        until_s=300.0,
    ),
    Case("cold start from Kafka, 3x", COLD_KAFKA, _steady(3.0), 5.0, _held(20.0, 3.0)),
    Case(
        "cold start from Kafka, 10x",
        replace(COLD_KAFKA, per_seen_row_s=0.2e-6),
        _steady(10.0),
        5.0,
        _held(20.0, 10.0),
        until_s=300.0,
    ),
    Case("cold start, rows of 0.9 ms, 3x", COLD_COSTLY, _steady(3.0), 6.0, _held(20.0, 3.0)),
    Case("cold start of a network, 3x", COLD_NETWORK, _steady(3.0), 8.0, _held(20.0, 3.0)),
    Case("cold start, a hot loop, 3x", COLD_LOOP, _steady(3.0), 5.0, _held(20.0, 3.0)),
    Case("rows of 0.9 ms, warm process, ramp to 3x", COSTLY, _ramp, 6.0, _held(60.0, 3.0)),
    Case("cold start, rows of 0.9 ms, ramp to 3x", COLD_COSTLY, _ramp, 6.0, _held(60.0, 3.0)),
    Case("a sink of 1.2 s, 100 rows/s", SLOW_SINK, _steady(1.0), 3.0, NOTHING, rate=100.0),
    _near_the_bound(0.93, 0.0, at_most=0.0),
    _near_the_bound(0.93, 0.05, at_most=0.02),
    _near_the_bound(0.97, 0.0, at_most=None),
    _near_the_bound(0.97, 0.05, at_most=None),
    _near_the_bound(0.97, 0.12, at_most=None),
    Case("arrivals 1 s behind, 0.5x", _behind(1.0), _steady(0.5), 3.0, NOTHING),
    Case("arrivals 2 s behind, 0.5x", _behind(2.0), _steady(0.5), 3.0, NOTHING),
    Case("arrivals an hour behind, 0.5x", _behind(3600.0), _steady(0.5), 3.0, NOTHING),
    Case("arrivals an hour ahead, 0.5x", _behind(-3600.0), _steady(0.5), 3.0, NOTHING),
    Case("one row in 30,000 from 1970, 0.5x", replace(WARM, wild_share=1 / 30_000), _steady(0.5), 3.0, NOTHING),
    Case("arrivals at random, 0.5x", replace(WARM, stamp=_jumping), _steady(0.5), 3.0, NOTHING),
    Case("files every 5 s, 0.3x", replace(WARM, lump_s=5.0), _steady(0.3), 4.0, NOTHING),
    Case("a source that pauses", WARM, lambda t: 0.6 if t % 10 < 6 else 0.0, 3.0, NOTHING),
    Case(
        "3 % of batches three times slower, 0.5x",
        replace(WARM, outlier_chance=0.03),
        _steady(0.5),
        4.5,
        (_dropped_in("dropped", 0.05, 0.0),),  # two slow ones in a row do break the bound
    ),
    Case(
        "flash crowd of 30x for 5 s",
        replace(WARM, per_seen_row_s=0.2e-6),
        lambda t: 30.0 if 60 <= t < 65 else 0.5,
        3.0,
        _recovered(65.0, 25.0),
    ),
    Case(
        "a restart that repeats a batch, 0.5x",
        replace(WARM, first_batch_s=4.0),
        _steady(0.5),
        7.0,
        (_dropped_in("dropped", 0.0, 0.0, 60.0), _dropped_in("dropped after the restart", 0.02, 60.0)),
        restart_s=60.0,
    ),
    Case("cold start from files, 0.7x, capacity given", COLD_FILES, _steady(0.7), 5.0, NOTHING, known=_given),
)
_BY_NAME = {case.name: case for case in CASES}


def _asked(name: str) -> Case:
    """A case whose source is asked what has come, and whose capacity is given: without it, nobody listens."""
    case = _BY_NAME[name]
    plant = replace(case.plant, tells_produced=True)
    return replace(case, name=f"{name}, source asked and capacity given", plant=plant, known=_given)


CASES = (
    *CASES,
    *(_asked(name) for name, case in _BY_NAME.items() if case.figures is NOTHING and case.known is not _given),
    _asked("a restart that repeats a batch, 0.5x"),
    _asked("flash crowd of 30x for 5 s"),
    _asked("cold start from files, 3x"),
    _asked("cold start from files, 10x"),
    _asked("cold start from Kafka, 3x"),
    _asked("cold start from Kafka, 10x"),
    _asked("cold start, rows of 0.9 ms, 3x"),
    _asked("cold start, rows of 0.9 ms, ramp to 3x"),
    _asked("cold start of a network, 3x"),
    _asked("cold start, a hot loop, 3x"),
)


def measure(case: Case, seeds: Iterable[int] = FRESH_SEEDS) -> list[tuple[Figure, float]]:
    """The figures of one case, each at its worst seed."""
    runs = [case.run(seed) for seed in seeds]
    return [(figure, figure.worst(case, runs)) for figure in case.figures]
