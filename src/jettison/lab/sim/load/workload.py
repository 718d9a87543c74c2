"""Streams whose rows cost what their key costs, as in the paper's evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.sketch import FloatArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows in the order of their arrival, with keys in `range(distinct)`. Times are in milliseconds, as in the paper.

    Past rows are of the same kind, executed before the stream starts, for those who warm up.
    """

    keys: IntArray
    costs_ms: FloatArray
    arrivals_ms: FloatArray
    distinct: int
    past_keys: IntArray
    past_costs_ms: FloatArray

    @property
    def mean_cost_ms(self) -> float:
        return float(self.costs_ms.mean())


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The paper's defaults.

    Keys follow a Zipf distribution, uniform at skew 0. Costs lie at constant distance; each belongs to equally many keys,
    chosen at random. The operator is too slow by the share `under_provisioning`: rows arrive at
    `1 / ((1 - share) * mean cost)`.
    """

    rows: int = 32_768
    distinct: int = 4_096
    skew: float = 1.0
    cost_levels: int = 64
    smallest_cost_ms: float = 0.1
    largest_cost_ms: float = 6.4
    under_provisioning: float = 0.25

    @property
    def interval_factor(self) -> float:
        """Time between two arrivals over the mean cost."""
        return 1.0 - self.under_provisioning


def streams(settings: StreamSettings, associations: int, seeds: int, seed: int = 0) -> Iterator[tuple[int, Stream]]:
    """All streams of an experiment, each with a seed for its hash functions."""
    for association in range(associations):
        yield from orders(settings, association, seeds, seed)


def orders(settings: StreamSettings, association: int, seeds: int, seed: int) -> Iterator[tuple[int, Stream]]:
    """The streams of one association: it fixes which key costs what and which rows come; a seed shuffles them."""
    draw = np.random.default_rng([seed, association])
    cost_of_key = _costs_of_keys(settings, draw)
    keys = draw.choice(settings.distinct, size=settings.rows, p=_frequencies(settings))
    for order in range(seeds):
        shuffle = np.random.default_rng([seed, association, order])
        yield int(shuffle.integers(2**32)), _stream(settings, shuffle.permutation(keys), cost_of_key)


def cells_of_keys(distinct: int, rows: int, columns: int, seed: int) -> IntArray:
    """Column of every key in every row of a sketch, the same as the sketch itself uses."""
    flat = SharedHashes(rows, columns, seed).cells(fingerprints(np.arange(distinct)))
    return (flat - (np.arange(rows) * columns)[:, None]).astype(np.int64)


def _stream(settings: StreamSettings, keys: IntArray, cost_of_key: FloatArray) -> Stream:
    costs = cost_of_key[keys]
    interval = settings.interval_factor * float(costs.mean())
    # The same rows in another order serve as the past: reversed, they share no order with the stream.
    return Stream(
        keys, costs, np.arange(len(keys), dtype=np.float64) * interval, settings.distinct, keys[::-1], costs[::-1]
    )


def _costs_of_keys(settings: StreamSettings, draw: np.random.Generator) -> FloatArray:
    levels = np.linspace(settings.smallest_cost_ms, settings.largest_cost_ms, settings.cost_levels)
    copies = -(-settings.distinct // settings.cost_levels)
    return draw.permutation(np.repeat(levels, copies)[: settings.distinct])


def _frequencies(settings: StreamSettings) -> FloatArray:
    weights = 1.0 / np.arange(1, settings.distinct + 1) ** settings.skew
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a stream in which load, frequencies and costs do not change.

    `under_provisioning` is relative to the mean cost of the first phase. Where `swapped`, the most frequent key has changed
    places with one of the costliest.
    """

    name: str
    under_provisioning: float
    swapped: bool = False
    cost_factor: float = 1.0


SEVEN_PHASES = (
    Phase("A", 0.0),
    Phase("B", 0.5),
    Phase("C", 0.0),
    Phase("D", 0.0, swapped=True),
    Phase("E", -0.5, swapped=True),
    Phase("F", 0.0, swapped=True, cost_factor=2.0),
    Phase("G", 0.0),
)
"""Abrupt changes of rate, frequencies and costs, 20,000 rows each in the paper."""


def phased_stream(settings: StreamSettings, phases: tuple[Phase, ...], rows_per_phase: int, seed: int) -> Stream:
    """One stream that goes through the phases."""
    draw = np.random.default_rng([seed, 7])
    cost_of_key = _costs_of_keys(settings, draw)
    frequencies = _frequencies(settings)
    costliest = int(np.flatnonzero(cost_of_key == cost_of_key.max())[-1])
    mean_cost = float(frequencies @ cost_of_key)
    keys, costs, intervals = [], [], []
    for phase in phases:
        drawn = draw.choice(settings.distinct, size=rows_per_phase, p=frequencies)
        if phase.swapped:
            drawn = np.select([drawn == 0, drawn == costliest], [costliest, 0], drawn)
        keys.append(drawn)
        costs.append(cost_of_key[drawn] * phase.cost_factor)
        settings = replace(settings, under_provisioning=phase.under_provisioning)
        intervals.append(np.full(rows_per_phase, settings.interval_factor * mean_cost))
    rest = draw.choice(settings.distinct, size=rows_per_phase, p=frequencies)
    arrivals = np.concatenate([[0.0], np.cumsum(np.concatenate(intervals))[:-1]])
    return Stream(np.concatenate(keys), np.concatenate(costs), arrivals, settings.distinct, rest, cost_of_key[rest])
