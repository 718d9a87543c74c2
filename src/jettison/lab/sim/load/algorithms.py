"""The algorithms of the paper's evaluation and ours: each is called with a stream and a seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jettison.costs.sketch import FloatArray
from jettison.lab.sim.load import kernels
from jettison.lab.sim.load.workload import Stream, cells_of_keys

LAS, OURS, STRAW_MAN, FULL_KNOWLEDGE, BASE_LINE = "LAS", "ours", "Straw-Man", "Full Knowledge", "Base Line"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether each row of a stream reached the operator, and how long it waited in its queue; 0 for dropped rows."""

    kept: NDArray[np.bool_]
    waits_ms: FloatArray

    @property
    def mean_wait_ms(self) -> float:
        """Mean waiting time of the rows kept; 0 when none was."""
        return float(self.waits_ms.sum() / max(1, int(self.kept.sum())))

    @property
    def drop_share(self) -> float:
        return 1.0 - float(self.kept.mean())


class Algorithm(Protocol):
    """A stream and the seed of the hashes, or of the coin, in; what happened to each row out."""

    def __call__(self, stream: Stream, seed: int) -> Outcome: ...


def sketch_shape(epsilon: float, delta: float) -> tuple[int, int]:
    """The paper's sizes: `ceil(log2(1 / delta))` rows and `ceil(e / epsilon)` columns.

    >>> sketch_shape(epsilon=0.05, delta=0.1)
    (4, 55)
    """
    return max(1, math.ceil(math.log2(1 / delta))), math.ceil(math.e / epsilon)


class Paper(NamedTuple):
    """LAS as corrected, Straw-Man and Full Knowledge; every literal form is one switch."""

    bound_ms: float = 6.4  # on the mean waiting time, tau
    costs: int = kernels.SKETCH  # for LAS; CONSTANT, one cost for all rows, for Straw-Man; EXACT for Full Knowledge
    mean_cost_ms: float | None = None  # the constant; the stream's mean unless given
    epsilon: float = 0.05  # with delta, the size of the sketch
    delta: float = 0.1
    margin: float | None = None  # by how much costs are raised; None for epsilon, as in the paper
    look_every: int = 1024  # rows between two looks at the learned costs, N
    tolerance: float = 0.05  # largest relative change that counts as settled, mu
    as_listed: bool = False  # the check of the listing, which deadlocks
    sync: int = kernels.IN_TURN  # or IMMEDIATE, or LITERAL
    clamp_to_now: bool = True  # False for an estimate of the clock that falls behind while the operator idles
    warm_up: bool = True  # False for the paper's NOP start, in which the first rows are all kept

    def __call__(self, stream: Stream, seed: int) -> Outcome:
        # Only LAS looks at cells; the others get one row of them.
        learns = self.costs == kernels.SKETCH
        shape = sketch_shape(self.epsilon, self.delta) if learns else (1, 1)
        past = slice(None) if self.warm_up and learns else slice(0)
        numbers = self._replace(
            mean_cost_ms=stream.mean_cost_ms if self.mean_cost_ms is None else self.mean_cost_ms,
            margin=self.epsilon if self.margin is None else self.margin,
        )
        cells, before = (
            cells_of_keys(stream.distinct, *shape, seed),
            (stream.past_keys[past], stream.past_costs_ms[past]),
        )
        return Outcome(*kernels.paper_kernel(numbers, stream.keys, stream.costs_ms, stream.arrivals_ms, cells, *before))


class Ours(NamedTuple):
    """Shedding by imposed load, with one set of values for every workload of the reproduction."""

    bound_ms: float = 6.4  # on the mean waiting time
    rows: int = 2  # with the columns, the shape of the sketch: 64 KiB for both matrices in double precision
    columns: int = 2048
    costs_every: int = 1024  # rows executed between two hand-overs of the sketch
    sync_every: int = 8  # rows executed between two reports of the operator's clock and real waiting times
    forget: float = 0.2  # share of the weight of old rows that each hand-over takes away
    memory_rows: float = 100.0  # over which the margin is learned
    exact: bool = False  # whether the costs are given, for comparison
    # Of each row of a stream; a row's cost is then divided by it, relative to the mean.
    utility: Callable[[Stream, int], FloatArray] | None = None
    aim: float = 0.95  # share of the bound that the queue is steered to
    # How far the price falls when the queue is longer than its aim by one bound, as a share of the largest cost.
    slope: float = 0.25
    patience: float = 0.0025  # the same for each row that finds it so, and lasting: much smaller
    opening_rows: int = 100  # that must have finished before the price refuses any
    # Share of the bound under which a wait is fine even while the mean is above the bound: such a row brings the mean
    # down, and refusing it would only stop the operator.
    short_wait: float = 0.5

    def __call__(self, stream: Stream, seed: int) -> Outcome:
        values = np.ones(len(stream.keys))
        if self.utility is not None:
            values = self.utility(stream, seed)
            values = values / values.mean()
        cells, numbers = cells_of_keys(stream.distinct, self.rows, self.columns, seed), self._replace(utility=None)
        return Outcome(
            *kernels.imposed_kernel(numbers, stream.keys, stream.costs_ms, stream.arrivals_ms, cells, values)
        )


@dataclass(frozen=True, slots=True)
class BaseLine:
    """Drop the share by which the operator is too slow, at random."""

    share: float

    def __call__(self, stream: Stream, seed: int) -> Outcome:
        kept = np.random.default_rng([seed, 1]).random(len(stream.keys)) >= self.share
        rest = replace(
            stream, keys=stream.keys[kept], costs_ms=stream.costs_ms[kept], arrivals_ms=stream.arrivals_ms[kept]
        )
        waits_ms = np.zeros(len(kept))
        waits_ms[kept] = Paper(math.inf, kernels.EXACT)(rest, seed).waits_ms  # nothing is above such a bound
        return Outcome(kept, waits_ms)


def compared(bound_ms: float, mean_cost_ms: float | None = None) -> dict[str, Algorithm]:
    """The paper's own three that hold a bound, and ours, by name."""
    return {
        LAS: Paper(bound_ms),
        OURS: Ours(bound_ms),
        STRAW_MAN: Paper(bound_ms, kernels.CONSTANT, mean_cost_ms),
        FULL_KNOWLEDGE: Paper(bound_ms, kernels.EXACT),
    }
