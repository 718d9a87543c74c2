"""A figure of the paper: what varies, which algorithms run, what is claimed; measured, judged and drawn by one driver."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jettison.costs.sketch import FloatArray
from jettison.lab.reproduce.claims import Figure as Number
from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, plot, table
from jettison.lab.reproduce.workers import for_each_compiled
from jettison.lab.sim.load.algorithms import Algorithm
from jettison.lab.sim.load.workload import Stream, StreamSettings, orders

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Plot

_WAITS = "mean wait, ms"


@dataclass(frozen=True, slots=True)
class Runs:
    """How many streams each value is measured on: associations of costs with keys, orders of the rows for each."""

    associations: int
    orders: int
    seed: int


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
        return float(self.drops.mean())


@dataclass(frozen=True)
class Sweep:
    """All that was measured for one figure, found by value and algorithm."""

    measured: Sequence[Measured]
    runs: Runs

    def at(self, x: float, algorithm: str) -> Measured:
        return next(one for one in self.measured if (one.x, one.algorithm) == (x, algorithm))

    def of(self, algorithm: str, low: float = -math.inf, high: float = math.inf) -> list[Measured]:
        """One algorithm at all values, or those from `low` to `high`."""
        return [one for one in self.measured if one.algorithm == algorithm and low <= one.x <= high]

    def over_bounds(self, algorithm: str, low: float = -math.inf, high: float = math.inf) -> list[float]:
        """Mean waiting times over the bound of one algorithm, at the same values."""
        return [one.over_bound for one in self.of(algorithm, low, high)]

    def drop_ratios(self, algorithm: str, other: str, low: float = -math.inf) -> list[float]:
        """Share that one algorithm drops over that of another, value by value."""
        return [one.drop_share / self.at(one.x, other).drop_share for one in self.of(algorithm, low)]

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


@dataclass(frozen=True, slots=True)
class Figure:
    """One parameter varied over the paper's streams. Call it with how to run it; `claims` are judged by a number each.

    At full size each value is measured on 100 associations of so many `orders`, quickly on `quick` associations of one.
    """

    title: str
    label: str
    points: Sequence[Point]
    claims: Mapping[str, Callable[[Sweep], Number]]
    logarithmic: bool = False
    orders: int = 50
    quick: int = 100
    note: Callable[[Sweep], str] = lambda _: ""

    def __call__(self, settings: RunSettings) -> Judged:
        runs = Runs(self.quick, 1, settings.seed) if settings.quick else Runs(100, self.orders, settings.seed)
        return self.judged(Sweep([one for point in self.points for one in measured(point, runs)], runs))

    def judged(self, sweep: Sweep) -> Judged:
        lines = {
            name: {one.x: (_with_span(one.waits_ms), one.drop_share) for one in sweep.of(name)}
            for name in self.points[0].algorithms
        }
        bounds = {point.x: point.bound_ms for point in self.points}
        several = len(self.points) > 1
        drawn = wait_and_drop_plot(lines, bounds, self.label, log_x=self.logarithmic) if several else None
        section = Section(self.title, sweep.table(self.label) + self.note(sweep), drawn)
        return [section], judge("load", {name: of(sweep) for name, of in self.claims.items()}, asdict(sweep.runs))


def wait_and_drop_plot(
    lines: Mapping[str, Mapping[float, tuple[Any, float]]],
    bounds_ms: Mapping[float, float],
    x: str,
    *,
    log_x: bool = False,
    phases: Mapping[float, str] | None = None,
) -> Plot:
    """Waiting time and drops of each algorithm side by side, as in the paper's figures."""
    waits, drops = ({name: {at: one[k] for at, one in line.items()} for name, line in lines.items()} for k in (0, 1))
    panels: dict[str, dict[str, Any]] = {_WAITS: {**waits, "bound": bounds_ms}, "share of rows dropped": drops}
    return plot(panels, x, logarithmic=[_WAITS, *([x] if log_x else [])], marks=phases)


def _with_span(waits_ms: FloatArray) -> tuple[float, float, float]:
    """The mean of all runs, and the best and the worst."""
    return float(waits_ms.mean()), float(waits_ms.min()), float(waits_ms.max())


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

    by_run = [figures for several in for_each_compiled(range(runs.associations), of_association) for figures in several]
    for name, figures in zip(point.algorithms, zip(*by_run, strict=True), strict=True):
        yield Measured(point.x, name, point.bound_ms, *np.array(figures).T)
