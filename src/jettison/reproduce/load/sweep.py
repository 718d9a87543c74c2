"""Run algorithms over the paper's streams, for every value of one parameter."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from jettison.costs.sketch import FloatArray
from jettison.reproduce.report import table
from jettison.sim.load.algorithms import (
    Algorithm,
    OursSettings,
    PaperSettings,
    base_line,
    full_knowledge,
    las,
    ours,
    straw_man,
)
from jettison.sim.load.replay import Outcome
from jettison.sim.load.workload import StreamSettings, orders

Result = TypeVar("Result")
LAS, OURS, STRAW_MAN, FULL_KNOWLEDGE, BASE_LINE = "LAS", "ours", "Straw-Man", "Full Knowledge", "Base Line"


@dataclass(frozen=True, slots=True)
class Runs:
    """How many streams each value is measured on: associations of costs with keys, orders of the rows for each."""

    associations: int
    orders: int
    seed: int

    @property
    def config(self) -> dict[str, int]:
        """For a claim."""
        return {"associations": self.associations, "orders": self.orders, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Point:
    """One value of the parameter: the streams, the bound and the algorithms that it stands for.

    `least_orders` asks for more orders of the rows than a quick look takes, where a figure is near its bar.
    """

    x: float
    stream: StreamSettings
    bound_ms: float
    algorithms: Mapping[str, Algorithm]
    least_orders: int = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """One algorithm at one value; `waits_ms` and `drops` hold one figure a run."""

    x: float
    algorithm: str
    bound_ms: float
    waits_ms: FloatArray
    drops: FloatArray

    @property
    def over_bound(self) -> float:
        """Mean waiting time over the bound, mean of all runs."""
        return float(self.waits_ms.mean() / self.bound_ms)

    @property
    def worst_over_bound(self) -> float:
        """The same of the worst run."""
        return float(self.waits_ms.max() / self.bound_ms)

    @property
    def drop_share(self) -> float:
        """Share of rows dropped, mean of all runs."""
        return float(self.drops.mean())

    @property
    def span_ms(self) -> float:
        """Between the best and the worst run."""
        return float(np.ptp(self.waits_ms))


class Sweep:
    """All figures of one experiment, found by value and algorithm."""

    def __init__(self, measured: Sequence[Measured]) -> None:
        self.measured = measured
        self._at = {(one.x, one.algorithm): one for one in measured}

    def at(self, x: float, algorithm: str) -> Measured:
        """The figures of one algorithm at one value."""
        return self._at[x, algorithm]

    def of(self, algorithm: str, where: Callable[[float], bool] = lambda _: True) -> list[Measured]:
        """The figures of one algorithm at all values, or those that fit."""
        return [one for one in self.measured if one.algorithm == algorithm and where(one.x)]

    def worst(self, algorithm: str, where: Callable[[float], bool] = lambda _: True) -> float:
        """Largest mean waiting time over the bound among the values."""
        return max(one.over_bound for one in self.of(algorithm, where))

    def best(self, algorithm: str, where: Callable[[float], bool] = lambda _: True) -> float:
        """Smallest mean waiting time over the bound among the values."""
        return min(one.over_bound for one in self.of(algorithm, where))

    def table(self, label: str) -> str:
        """Waiting time and drops by value and algorithm."""
        header = [label, "algorithm", "bound ms", "mean wait ms", "min", "max", "mean / bound", "dropped"]
        rows = [
            [
                one.x,
                one.algorithm,
                one.bound_ms,
                float(one.waits_ms.mean()),
                float(one.waits_ms.min()),
                float(one.waits_ms.max()),
                one.over_bound,
                one.drop_share,
            ]
            for one in self.measured
        ]
        return table(header, rows)


def run_sweep(points: Sequence[Point], runs: Runs) -> Sweep:
    """Every algorithm on the same streams, at every value."""
    return Sweep([measured for point in points for measured in _measure(point, runs)])


def _measure(point: Point, runs: Runs) -> Iterator[Measured]:
    """The same streams for all algorithms."""
    several = max(runs.orders, point.least_orders)

    def of_association(association: int) -> list[tuple[tuple[float, float], ...]]:
        return [
            tuple(_figures(algorithm(stream, hash_seed)) for algorithm in point.algorithms.values())
            for hash_seed, stream in orders(point.stream, association, several, runs.seed)
        ]

    by_run = [figures for several in side_by_side(of_association, range(runs.associations)) for figures in several]
    for name, figures in zip(point.algorithms, zip(*by_run, strict=True), strict=True):
        waits, drops = np.array(figures).T
        yield Measured(point.x, name, point.bound_ms, waits, drops)


def side_by_side(function: Callable[[int], Result], numbers: Iterable[int]) -> list[Result]:
    """Results in the order of the numbers, computed on all cores that there are: compiled loops let other threads run."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(max_workers=cores) as threads:
        return list(threads.map(function, numbers))


def _figures(outcome: Outcome) -> tuple[float, float]:
    return outcome.mean_wait_ms, outcome.drop_share


def all_algorithms(bound_ms: float, under_provisioning: float) -> dict[str, Algorithm]:
    """The paper's four, and ours."""
    paper = PaperSettings(bound_ms=bound_ms)
    return {
        LAS: las(paper),
        OURS: ours(OursSettings(bound_ms=bound_ms)),
        STRAW_MAN: straw_man(paper),
        FULL_KNOWLEDGE: full_knowledge(paper),
        BASE_LINE: base_line(max(0.0, under_provisioning)),
    }
