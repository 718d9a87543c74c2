"""The algorithms by the names of the paper, each with its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from jettison.costs.imposed import ImposedLoadSettings
from jettison.costs.operator import StabilitySettings
from jettison.costs.sketch import CostSketch, FloatArray
from jettison.sim.load import kernels
from jettison.sim.load.replay import Outcome
from jettison.sim.load.workload import Stream, cells_of_keys

Algorithm = Callable[[Stream, int], Outcome]
"""A stream and the seed of the hashes, or of the coin, in; what happened to each row out."""

_NO_KEYS, _NO_COSTS = np.zeros(0, dtype=np.int64), np.zeros(0)


@dataclass(frozen=True, slots=True)
class PaperSettings:
    """LAS as corrected; every literal form is one switch.

    Parameters
    ----------
    bound_ms
        The bound on the waiting time, tau.
    epsilon, delta
        Size of the sketch.
    margin
        By how much costs are raised; `None` for `epsilon`, as in the paper.
    stability
        When the operator sends its costs.
    check
        `AVERAGE`, `PER_ROW`, `SLIDING` (over `window` rows) or `LISTING`, the one that deadlocks.
    sync
        `IN_TURN`, `IMMEDIATE` or `LITERAL`.
    clamp_to_now
        False for an estimate of the clock that falls behind while the operator idles.
    warm_up
        False for the paper's NOP start, in which the first rows are all kept.
    """

    bound_ms: float = 6.4
    epsilon: float = 0.05
    delta: float = 0.1
    margin: float | None = None
    stability: StabilitySettings = field(default_factory=StabilitySettings)
    check: int = kernels.AVERAGE
    window: int = 1024
    sync: int = kernels.IN_TURN
    clamp_to_now: bool = True
    warm_up: bool = True


def las(settings: PaperSettings) -> Algorithm:
    """The paper's algorithm."""
    return _paper(settings, kernels.SKETCH)


def straw_man(settings: PaperSettings, mean_cost_ms: float | None = None) -> Algorithm:
    """The same with one cost for all rows: the stream's mean, or the one given."""
    return _paper(settings, kernels.CONSTANT, mean_cost_ms)


def full_knowledge(settings: PaperSettings) -> Algorithm:
    """The same with every cost known beforehand."""
    return _paper(settings, kernels.EXACT)


def base_line(under_provisioning: float) -> Algorithm:
    """Drop the share by which the operator is too slow, at random."""

    def run(stream: Stream, seed: int) -> Outcome:
        keep = np.random.default_rng([seed, 1]).random(len(stream.keys)) >= under_provisioning
        return Outcome(*kernels.random_kernel(stream.costs_ms, stream.arrivals_ms, keep))

    return run


@dataclass(frozen=True, slots=True)
class OursSettings:
    """Shedding by imposed load.

    Parameters
    ----------
    bound_ms
        The bound on the waiting time.
    rows, columns
        Shape of the sketch: 64 KiB for both matrices in double precision.
    costs_every
        Rows executed between two hand-overs of the sketch.
    sync_every
        Rows executed between two reports of the operator's clock and real waiting times.
    forget
        Share of the weight of old rows that each hand-over takes away.
    memory_rows
        Rows over which the margin is learned.
    exact
        Whether the costs are given, for comparison.
    """

    bound_ms: float = 6.4
    rows: int = 2
    columns: int = 2048
    costs_every: int = 1024
    sync_every: int = 8
    forget: float = 0.2
    memory_rows: float = 100.0
    exact: bool = False

    @property
    def control(self) -> ImposedLoadSettings:
        """Bound and steering, in milliseconds throughout."""
        return ImposedLoadSettings(self.bound_ms)


def ours(settings: OursSettings, values: FloatArray | None = None) -> Algorithm:
    """Shedding by imposed load; with `values`, by cost per unit of utility."""

    def run(stream: Stream, seed: int) -> Outcome:
        cells = cells_of_keys(stream.distinct, settings.rows, settings.columns, seed)
        control = settings.control
        return Outcome(
            *kernels.imposed_kernel(
                stream.keys,
                stream.costs_ms,
                stream.arrivals_ms,
                np.ones(len(stream.keys)) if values is None else values,
                cells,
                settings.columns,
                settings.costs_every,
                settings.sync_every,
                settings.forget,
                settings.memory_rows,
                control.bound_s,
                control.aim,
                control.slope,
                control.patience,
                control.opening_rows,
                control.mercy,
                settings.exact,
            )
        )

    return run


def _paper(settings: PaperSettings, source: int, constant: float | None = None) -> Algorithm:
    shape = CostSketch.with_error(settings.epsilon, settings.delta).hashes

    def run(stream: Stream, seed: int) -> Outcome:
        # Only LAS looks at cells; the others get one row of them.
        rows, columns = (shape.rows, shape.columns) if source == kernels.SKETCH else (1, 1)
        warm = settings.warm_up and source == kernels.SKETCH
        return Outcome(
            *kernels.paper_kernel(
                stream.keys,
                stream.costs_ms,
                stream.arrivals_ms,
                cells_of_keys(stream.distinct, rows, columns, seed),
                columns,
                settings.stability.rows,
                settings.stability.tolerance,
                source,
                stream.mean_cost_ms if constant is None else constant,
                settings.epsilon if settings.margin is None else settings.margin,
                settings.check,
                settings.bound_ms,
                settings.window,
                settings.sync,
                settings.clamp_to_now,
                stream.rest_keys if warm else _NO_KEYS,
                stream.rest_costs_ms if warm else _NO_COSTS,
            )
        )

    return run
