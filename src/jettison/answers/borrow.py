"""Estimates for groups with few kept rows or none, borrowed from their earlier windows and from their neighbours.

Offered beside the unbiased estimate, never in its place: a borrowed estimate is biased towards where it borrows from,
and says so. In return its error is smaller on average, and it exists for every group.

The model is that of small-area estimation (Fay and Herriot, 1979): a group's mean is its prior plus a deviation of
variance A, its direct estimate that mean plus a sampling error of known variance. A is estimated over all groups, one
for each kind of prior, and the prior with the smaller A serves. Within one window all groups share that estimate, so the
coverage of the bounds is a mean over windows: in a single one it can lie some points lower or higher.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.answers.estimate import quantile

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_STEADY_ROWS = 5.0  # kept rows from which a group's own variance takes part in the pooled one
_FEWEST_TO_CALIBRATE = 20


@dataclass(frozen=True, eq=False)
class Borrowed:
    """Estimates by group.

    Parameters
    ----------
    value, lower, upper
        The estimate and its bounds; NaN only where nothing at all is known of any group.
    own
        Share of the estimate that is the group's own rows, in [0, 1].
    borrowed
        The flag on the answer: whether less than nine tenths are the group's own.
    from_history
        Whether what was borrowed came from the group's earlier windows rather than from its neighbours.
    """

    value: Floats
    lower: Floats
    upper: Floats
    own: Floats
    borrowed: Bools
    from_history: Bools


def borrow(
    mean: ArrayLike,
    variance: ArrayLike,
    kept: ArrayLike,
    *,
    effective_rows: ArrayLike | None = None,
    group_rows: ArrayLike | None = None,
    history: ArrayLike | None = None,
    neighbourhood: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Borrowed:
    """Shrink direct estimates of group means towards earlier windows or neighbours.

    Parameters
    ----------
    mean, variance, kept
        Weighted mean, sample variance and number of the kept rows of each group. NaN where there are none.
    effective_rows
        Rows that the direct estimate is worth: (sum of w) squared over the sum of w (w - 1), for weights w. Infinite means
        that it is exact. The number kept, unless given.
    group_rows
        Rows that each group had, kept or dropped, as the exact counts say. The mean of few rows varies about what it
        would be of many, so a group without kept rows is the harder to guess the smaller it is.
    history
        Each group's estimate from its earlier windows; NaN where it has none.
    neighbourhood
        Number of the neighbourhood of each group; all are neighbours unless given.
    confidence
        Of the bounds.

    Examples
    --------
    >>> made = borrow([10.0, 22.0, np.nan], [4.0, 4.0, np.nan], [50, 50, 0], history=[10.1, 21.8, 30.0])
    >>> round(float(made.value[2]), 6), bool(made.borrowed[2]), bool(made.from_history[2])
    (30.0, True, True)
    """
    z = quantile(confidence)
    direct, rows = np.asarray(mean, float), np.asarray(kept, float)
    there = (rows > 0) & np.isfinite(direct)
    within = np.asarray(variance, float)
    effective = rows if effective_rows is None else np.asarray(effective_rows, float)
    had = np.full(len(direct), np.inf) if group_rows is None else np.asarray(group_rows, float)
    places = np.zeros(len(direct), int) if neighbourhood is None else np.asarray(neighbourhood, int)
    past = np.full(len(direct), np.nan) if history is None else np.asarray(history, float)
    if not ((direct[there] > 0).all() and (past[np.isfinite(past)] > 0).all()):
        return _shrink(direct, *_sampling_variance(within, rows, effective, had, there), there, past, places, z)
    # Positive values vary in proportion to their size, and groups differ by factors: logarithms make both even.
    size = np.where(there, direct, 1.0)
    error, lone = _sampling_variance(within / (size * size), rows, effective, had, there)
    level = np.log(size) + 0.5 * error  # the logarithm of a noisy mean is too small by this much
    made = _shrink(np.where(there, level, np.nan), error, lone, there, np.log(past), places, z)
    exact = there & (error == 0)
    value, lower, upper = (np.where(exact, direct, np.exp(x)) for x in (made.value, made.lower, made.upper))
    return Borrowed(value, lower, upper, made.own, made.borrowed, made.from_history)


def effective_by_counts(kept: Floats, rows: Floats) -> Floats:
    """Rows that the mean of `kept` rows out of `rows` is worth; infinite where none is missing."""
    return np.asarray(np.divide(kept * rows, rows - kept, out=np.full(len(kept), np.inf), where=rows > kept), float)


def _shrink(
    direct: Floats,
    error: Floats,
    lone: Floats,
    there: Bools,
    past: Floats,
    places: NDArray[np.int64],
    z: float,
) -> Borrowed:
    """One pass, with the sampling variances given."""
    prior = _neighbours(direct, error, there, places)
    fit = _fit(direct, error, there, prior, z)
    deviation, reach = np.full(len(direct), fit.deviation), np.full(len(direct), fit.reach)
    use_past = np.zeros(len(direct), bool)
    better = _fit(direct, error, there, past, z)
    if better.deviation <= fit.deviation:
        use_past = np.isfinite(past)
        prior = np.where(use_past, past, prior)
        deviation, reach = np.where(use_past, better.deviation, deviation), np.where(use_past, better.reach, reach)
    mixes = there & (error > 0) & np.isfinite(deviation)
    own = np.where(there, np.divide(deviation, deviation + error, out=np.ones_like(error), where=mixes), 0.0)
    value = np.where(own > 0, own * np.where(there, direct, 0.0), 0.0) + np.where(own < 1, (1 - own) * prior, 0.0)
    spread = np.sqrt(np.where(there, own * error, np.where(np.isfinite(deviation), deviation + lone, np.nan)))
    # What was borrowed is spread as the groups are, which a normal quantile may not cover; own rows are not.
    margin = spread * (own * z + (1.0 - own) * reach)
    return Borrowed(value, value - margin, value + margin, own, own < 0.9, use_past & (own < 1))


@dataclass(frozen=True, slots=True)
class _Fit:
    deviation: float
    reach: float


def _sampling_variance(
    variance: Floats, rows: Floats, effective: Floats, had: Floats, there: Bools
) -> tuple[Floats, Floats]:
    """Variance of each direct estimate, from the group's own variance mixed with that of all groups.

    And the variance of the mean of a group that has no kept rows, about what it would be if the group were large.
    """
    steady = there & (rows >= _STEADY_ROWS) & np.isfinite(variance)
    known = steady if steady.any() else there & (rows > 1) & np.isfinite(variance)
    if not known.any():
        return np.where(there & np.isfinite(effective), np.inf, 0.0), np.zeros(len(rows))
    pooled = float(np.average(variance[known], weights=rows[known] - 1.0))
    freedom = np.where(np.isfinite(variance), np.maximum(rows - 1.0, 0.0), 0.0)
    # The pooled variance counts as so many observations of the group's own.
    mixed = (freedom * np.nan_to_num(variance) + _STEADY_ROWS * pooled) / (freedom + _STEADY_ROWS)
    return np.where(there, mixed / np.where(there, effective, 1.0), 0.0), pooled / np.maximum(had, 1.0)


def _neighbours(direct: Floats, error: Floats, there: Bools, places: NDArray[np.int64]) -> Floats:
    """Mean of each neighbourhood over groups, and of all groups where the neighbourhood has no kept rows."""
    if not there.any():
        return np.full(len(direct), np.nan)
    # Not weighted by rows: a group is to be guessed, not a row. Poor estimates weigh less all the same.
    weight = np.where(there, 1.0 / (error + np.var(direct[there]) + 1e-300), 0.0)
    total = np.bincount(places, weight)
    sums = np.bincount(places, weight * np.where(there, direct, 0.0))
    overall = float(sums.sum() / total.sum())
    local = np.divide(sums, total, out=np.full_like(sums, overall), where=total > 0)
    return local[places]


def _fit(direct: Floats, error: Floats, there: Bools, prior: Floats, z: float) -> _Fit:
    """Variance of the deviations from a prior, and how many of its roots the bounds must reach."""
    use = there & np.isfinite(prior)
    if use.sum() < 2:
        return _Fit(float("inf") if not use.any() else float((direct[use] - prior[use]).var() + 1e-300), z)
    gap, noise = direct[use] - prior[use], error[use]
    deviation = max(float(np.mean(gap * gap)) - float(noise.mean()), 0.0)
    for _ in range(20):
        # Weighted moments: groups that are known well say more about how groups differ.
        spread = deviation + noise + 1e-300
        weight = (spread.min() / spread) ** 2
        improved = max(float(np.average(gap * gap - noise, weights=weight)), 0.0)
        if abs(improved - deviation) <= 1e-9 * (deviation + 1e-300):
            break
        deviation = improved
    # An estimate near 0 is often luck and would make a guess look exact: its upper bound at 95 % is used.
    spread = deviation + noise + 1e-300
    deviation += 1.645 * float(spread.min() * np.sqrt(2.0 / ((spread.min() / spread) ** 2).sum()))
    if use.sum() < _FEWEST_TO_CALIBRATE:
        return _Fit(deviation, z)
    standard = np.abs(gap) / np.sqrt(deviation + noise)
    return _Fit(deviation, max(z, float(np.quantile(standard, 2.0 * NormalDist().cdf(z) - 1.0))))
