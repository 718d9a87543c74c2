"""The analysis of the paper's section 3.6: what dropping windows saves, and how many must go for a given excess load.

Costs are CPU per tuple. A query is a chain: work before an aggregate, the aggregate, work after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.interpolate import make_interp_spline

from jettison.policies.window.window_choice import highest_share

Load = Callable[[float], float]
"""CPU per input tuple as a function of the share of windows dropped."""


@dataclass(frozen=True, slots=True)
class Query:
    """One aggregate between two subnetworks, over windows in tuples, one a unit of time; `gap` is the batch size B.

    Costs are CPU per tuple that reaches each part; `after` per answer.
    """

    before: float
    aggregate: float
    after: float
    size: int
    slide: int
    gap: int = 10


def kept_tuples(query: Query, drop_share: float) -> float:
    """The paper's `sel_w1`: share of tuples that remain, by its count of those that only a batch of drops holds.

    >>> kept_tuples(Query(1.0, 0.0, 1.0, size=100, slide=100), 0.3)
    0.7
    """
    if query.gap < query.size // query.slide:
        return 1.0
    alone = (query.gap + 1) * query.slide - query.size
    return 1.0 - drop_share * alone / ((query.gap - 1) * query.slide + query.size)


def required_share(load: Load, excess: float, *, most: float = 1.0) -> float:
    """Smallest share of answers to drop so that a rate of `1 + excess` times capacity can be processed.

    1 where even `most` is not enough: then nothing is delivered in time. `load` must not increase.

    >>> required_share(lambda p: 1.0 - p, 0.25)
    0.2
    """
    goal = load(0.0) / (1.0 + excess)
    if load(most) > goal + 1e-12:
        return 1.0
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if load(middle) <= goal else (middle, high)
    return round(high, 12)


def required_windows(query: Query, excess: float) -> float:
    """The same for windows dropped at the input, within what the batch size allows."""

    def load(drop_share: float) -> float:
        # A dropped window takes no work in the aggregate either, early drop or not; there are no fake tuples.
        left = 1.0 - drop_share
        return kept_tuples(query, drop_share) * query.before + left * (query.aggregate + query.after / query.slide)

    return required_share(load, excess, most=highest_share(query.gap))


def straight_line(points: dict[float, float]) -> Load:
    """Load between measured points, linear from one to the next and beyond the last."""
    if len(points) < 2 or not all(map(math.isfinite, points.values())):
        raise ValueError("a line needs two measured points or more")
    line = make_interp_spline(sorted(points), [points[share] for share in sorted(points)], k=1)
    return lambda drop_share: float(line(drop_share))
