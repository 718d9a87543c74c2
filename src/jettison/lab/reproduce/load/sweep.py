"""A figure of the paper: what varies, which algorithms run, what is claimed; measured, judged and drawn by one driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from jettison.costs.sketch import FloatArray
from jettison.lab.reproduce.claims import Claim
from jettison.lab.reproduce.load.plots import Line, wait_and_drop_plot
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.sim.load.algorithms import Algorithm
from jettison.lab.sim.load.workload import Stream, StreamSettings, orders

Result = TypeVar("Result")
Where = Callable[[float], bool]


@dataclass(frozen=True, slots=True)
class Runs:
    """How many streams each value is measured on: associations of costs with keys, orders of the rows for each."""

    associations: int
    orders: int
    seed: int

    @property
    def config(self) -> dict[str, int]:
        return {"associations": self.associations, "orders": self.orders, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Point:
    """One value of what varies: the streams, the bound and the algorithms that it stands for.

    `least_orders` asks for more orders of the rows than a quick look takes, where a figure is near its bar; `utility` is
    what rows are worth, where it is asked how much of it is lost.
    """

    x: float
    bound_ms: float
    algorithms: Mapping[str, Algorithm]
    stream: StreamSettings = field(default_factory=StreamSettings)
    least_orders: int = 1
    utility: Callable[[Stream, int], FloatArray] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """One algorithm at one value; `waits_ms`, `drops` and `lost` hold one figure a run, the last of utility."""

    x: float
    algorithm: str
    bound_ms: float
    waits_ms: FloatArray
    drops: FloatArray
    lost: FloatArray

    @property
    def over_bound(self) -> float:
        """Mean waiting time over the bound, mean of all runs."""
        return float(self.waits_ms.mean() / self.bound_ms)

    @property
    def drop_share(self) -> float:
        """Share of rows dropped, mean of all runs."""
        return float(self.drops.mean())


@dataclass(frozen=True)
class Sweep:
    """All that was measured for one figure, found by value and algorithm."""

    measured: Sequence[Measured]
    runs: Runs

    def at(self, x: float, algorithm: str) -> Measured:
        """One algorithm at one value."""
        return next(one for one in self.measured if (one.x, one.algorithm) == (x, algorithm))

    def of(self, algorithm: str, where: Where = lambda _: True) -> list[Measured]:
        """One algorithm at all values, or those that fit."""
        return [one for one in self.measured if one.algorithm == algorithm and where(one.x)]

    def over_bounds(self, algorithm: str, where: Where = lambda _: True) -> list[float]:
        """Mean waiting times over the bound of one algorithm, at all values or those that fit."""
        return [one.over_bound for one in self.of(algorithm, where)]

    def drop_ratios(self, algorithm: str, other: str, where: Where = lambda _: True) -> list[float]:
        """Share that one algorithm drops over that of another, value by value."""
        return [one.drop_share / self.at(one.x, other).drop_share for one in self.of(algorithm, where)]

    def table(self, label: str) -> str:
        """Waiting time and drops by value and algorithm."""
        header = [label, "algorithm", "bound ms", "mean wait ms", "min", "max", "mean / bound", "dropped"]
        has_utility = any(np.isfinite(one.lost).any() for one in self.measured)
        rows = [
            [one.x, one.algorithm, one.bound_ms, *(float(f(one.waits_ms)) for f in (np.mean, np.min, np.max)),
             one.over_bound, one.drop_share, *([float(one.lost.mean())] if has_utility else [])]
            for one in self.measured
        ]  # fmt: skip
        return table([*header, "utility lost"] if has_utility else header, rows)

    def lines(self) -> Iterator[Line]:
        """What a plot shows of each algorithm: the mean of all runs, and the span between best and worst."""
        for name in dict.fromkeys(one.algorithm for one in self.measured):
            of = self.of(name)
            waits = [[float(f(one.waits_ms)) for one in of] for f in (np.mean, np.min, np.max)]
            yield Line(name, [one.x for one in of], waits[0], [one.drop_share for one in of], (waits[1], waits[2]))


@dataclass(frozen=True, slots=True)
class Judge:
    """A claim about a figure: its sentence, and how its number comes from what was measured."""

    id: str
    claim: str
    paper: str
    number: Callable[[Any], float]
    at_most: float | None = None
    at_least: float | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, measured: object, config: Mapping[str, Any]) -> Claim:
        number = float(self.number(measured))
        return Claim(self.id, self.claim, self.paper, number, self.at_most, self.at_least, {**config, **self.config})


@dataclass(frozen=True, slots=True)
class Figure:
    """One parameter varied over the paper's streams. Call it with how to run it.

    At full size each value is measured on 100 associations of so many `orders`, quickly on `quick` associations of one.
    """

    title: str
    label: str
    points: Sequence[Point]
    judges: Sequence[Judge]
    logarithmic: bool = False
    orders: int = 50
    quick: int = 100
    note: Callable[[Sweep], str] = lambda _: ""

    def __call__(self, settings: RunSettings) -> Judged:
        runs = Runs(self.quick, 1, settings.seed) if settings.quick else Runs(100, self.orders, settings.seed)
        return self.judged(Sweep([one for point in self.points for one in measured(point, runs)], runs))

    def judged(self, sweep: Sweep) -> Judged:
        """The section and the claims."""
        plot = None
        if len(self.points) > 1:
            bounds = [(point.x, point.bound_ms) for point in self.points]
            plot = wait_and_drop_plot(sweep.lines(), bounds, self.label, logarithmic=self.logarithmic)
        section = Section(self.title, sweep.table(self.label) + self.note(sweep), plot)
        return [section], [judge(sweep, sweep.runs.config) for judge in self.judges]


def measured(point: Point, runs: Runs) -> Iterator[Measured]:
    """All algorithms of a point, on the same streams."""
    several = max(runs.orders, point.least_orders)

    def of_stream(stream: Stream, seed: int) -> Iterator[tuple[float, float, float]]:
        utility = None if point.utility is None else point.utility(stream, seed)
        for algorithm in point.algorithms.values():
            outcome = algorithm(stream, seed)
            lost = float("nan") if utility is None else float(utility[~outcome.kept].sum() / utility.sum())
            yield outcome.mean_wait_ms, outcome.drop_share, lost

    def of_association(association: int) -> list[tuple[tuple[float, float, float], ...]]:
        made = orders(point.stream, association, several, runs.seed)
        return [tuple(of_stream(stream, hash_seed)) for hash_seed, stream in made]

    by_run = [figures for several in side_by_side(of_association, range(runs.associations)) for figures in several]
    for name, figures in zip(point.algorithms, zip(*by_run, strict=True), strict=True):
        yield Measured(point.x, name, point.bound_ms, *np.array(figures).T)


def side_by_side(function: Callable[[int], Result], numbers: Iterable[int]) -> list[Result]:
    """Results in the order of the numbers, computed on all cores that there are: compiled loops let other threads run."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(max_workers=cores) as threads:
        return list(threads.map(function, numbers))
