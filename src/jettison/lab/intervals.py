"""Means with 95 % confidence intervals: over seeds, and over pairs of runs that stood side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Samples = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate and the bounds between which it lies with 95 % confidence."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.lower:.2f} to {self.upper:.2f})"


def mean(samples: Sequence[float] | Samples, level: float = 0.05) -> Interval:
    """The mean of independent samples, by Student's t, between bounds that miss it with a chance of `level`.

    One sample says nothing of its spread: its bounds are infinite.

    >>> str(mean([1.0, 2.0, 3.0, 4.0])), str(mean([1.0]))
    ('2.50 (0.45 to 4.55)', '1.00 (-inf to inf)')
    """
    values = np.asarray(samples, dtype=float)
    centre = float(values.mean())
    if len(values) < 2:
        return Interval(centre, -math.inf, math.inf)
    half = float(stats.t.ppf(1.0 - level / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return Interval(centre, centre - half, centre + half)


def mean_ratio(samples: Sequence[float], baseline: Sequence[float]) -> Interval:
    """The geometric mean of the ratios of pairs, so that which side is the baseline does not matter.

    >>> str(mean_ratio([2.0, 4.0, 8.0], [1.0, 2.0, 4.0])), str(mean_ratio([3.0], [2.0]))
    ('2.00 (2.00 to 2.00)', '1.50 (0.00 to inf)')
    """
    with np.errstate(over="ignore", divide="ignore"):
        return Interval(*(float(np.exp(each)) for each in mean(np.log(samples) - np.log(baseline))))
