"""Means over seeds with 95 % confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Samples = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the bounds between which it lies with 95 % confidence."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.lower:.2f} to {self.upper:.2f})"


def mean(samples: Sequence[float] | Samples) -> Interval:
    """The mean of independent samples, by Student's t.

    >>> str(mean([1.0, 2.0, 3.0, 4.0]))
    '2.50 (0.45 to 4.55)'
    """
    values = np.asarray(samples, dtype=float)
    centre = float(values.mean())
    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return Interval(centre, centre - half, centre + half)


def bootstrap(statistic: Callable[[NDArray[np.intp]], float], count: int, seed: int, draws: int = 1000) -> Interval:
    """Any figure computed from a choice of `count` seeds, by the percentile bootstrap over seeds."""
    random = np.random.default_rng([seed, 11])
    values = [statistic(random.integers(0, count, count)) for _ in range(draws)]
    lower, upper = np.percentile(values, [2.5, 97.5])
    return Interval(statistic(np.arange(count)), float(lower), float(upper))
