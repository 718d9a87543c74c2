"""The paper's workload generator: hot spots, with skew between them (global) and within them (local)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from jettison.policies.regions.queries import RangeQueries
from jettison.source.space import Attribute, Floats

Spread = Literal["uniform", "skewed"]


@dataclass(frozen=True, slots=True)
class Workload:
    """Table I of the paper, with what it leaves open made explicit."""

    data: Spread = "skewed"  # within a hot spot: uniform, or a normal
    query: Spread = "uniform"
    global_skew: float = 4.0  # G: hot spots have sides of 1/G * [0.5, 1] of the space
    # L: normals have standard deviations of 1/(L G) * [0.5, 1]; they end at the edge of the space.
    local_skew: float = 4.0
    # Whether the normals of data and queries have the same means and deviations (proportional densities).
    aligned: bool = False
    # Range of the QoS slopes. The paper's [1, 2] makes a QoS negative; 1 is the steepest that does not.
    slopes: tuple[float, float] = (1.0, 1.0)
    sides: tuple[float, float] = (0.005, 0.01)  # range of the side lengths of a query
    dimensions: int = 2
    hot_spots: int = 5
    queries: int = 1000


@dataclass(frozen=True, slots=True)
class _Spots:
    """Hot spots, with a normal in each."""

    low: Floats
    high: Floats
    mean: Floats
    deviation: Floats


class Generated:
    """One draw of a workload: its queries, and as many rows as one likes."""

    def __init__(self, workload: Workload, seed: int) -> None:
        self._workload = workload
        self._random = np.random.default_rng(seed)
        spots = self._spots()
        self._data_spots = spots
        self._query_spots = spots if workload.aligned else replace(spots, **self._normals(spots.low, spots.high))
        self.queries = self._queries()

    def rows(self, count: int) -> Floats:
        """Independent rows of the stream, shape (count, dimensions)."""
        return self._drawn(self._workload.data, self._data_spots, count)

    def _spots(self) -> _Spots:
        shape = (self._workload.hot_spots, self._workload.dimensions)
        sides = self._random.uniform(0.5, 1.0, shape) / self._workload.global_skew
        centre = self._random.random(shape)
        low, high = np.maximum(centre - sides / 2, 0.0), np.minimum(centre + sides / 2, 1.0)
        return _Spots(low, high, **self._normals(low, high))

    def _normals(self, low: Floats, high: Floats) -> dict[str, Floats]:
        narrow = self._workload.local_skew * self._workload.global_skew
        return {
            "mean": self._random.uniform(low, high),
            "deviation": self._random.uniform(0.5, 1.0, low.shape) / narrow,
        }

    def _queries(self) -> RangeQueries:
        count, dimensions = self._workload.queries, self._workload.dimensions
        centre = self._drawn(self._workload.query, self._query_spots, count)
        half = self._random.uniform(*self._workload.sides, (count, dimensions)) / 2.0
        slopes = self._random.uniform(*self._workload.slopes, count)
        attributes = [Attribute.number(f"x{axis}", 0.0, 1.0) for axis in range(dimensions)]
        return RangeQueries.from_boxes(attributes, centre - half, centre + half, slopes=slopes)

    def _drawn(self, spread: Spread, spots: _Spots, count: int) -> Floats:
        spot = self._random.integers(0, self._workload.hot_spots, count)
        if spread == "uniform":
            return self._random.uniform(spots.low[spot], spots.high[spot])
        rows = self._random.normal(spots.mean[spot], spots.deviation[spot])
        while len(beyond := np.flatnonzero(((rows < 0.0) | (rows > 1.0)).any(axis=1))):
            rows[beyond] = self._random.normal(spots.mean[spot[beyond]], spots.deviation[spot[beyond]])
        return rows
