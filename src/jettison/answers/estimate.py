"""Answers with bounds from rows that were kept at random: the formulas, written once for every engine.

A kept row carries its weight w, the inverse of the probability that it was kept; rows are kept independently of each
other. Everything here is arithmetic on sums over kept rows. The functions take numpy arrays, floats or Spark columns:
ordinary operators do the work, and the few operations that the two worlds spell differently come in as `Ops`.

Write u = w (w - 1): the share of a row in the variance of a weighted sum. It is 0 for a row that could not be dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from jettison.errors import refuse

Value = Any
"""A float, a numpy array or a Spark column; one call uses one kind throughout."""

FEW_ROWS = 30.0
"""Effective kept rows below which the bounds of count, sum and mean are flagged."""

FEW_ROWS_SPREAD = 100.0
"""The same for variance and standard deviation, whose errors hang on fourth moments."""

# Set by measurement on the cases of docs/bounds.md, all of them at once; none is fitted to a seed.
_LARGEST_DOMINANCE = 0.5  # dominance beyond which a sample says nothing more about its tail
_SPREAD_TAIL = 6.0  # how strongly the upper bound of a variance answers to kurtosis
_LARGEST_LOG_RATIO = 3.0  # the upper bound of a variance never exceeds exp(3) = 20 times its value


@dataclass(frozen=True, slots=True)
class Ops:
    """What the formulas need beyond operators. A missing number is NaN in numpy and null in Spark.

    Parameters
    ----------
    sqrt, exp, log, floor
        As everywhere.
    divide
        Quotient; missing where the divisor is 0.
    where
        By condition the first or, where it does not hold or is missing, the second.
    larger, smaller
        Of two; a missing one is passed over.
    present
        The first or, where it is missing, the second.
    at
        Element of a list at a position, counted from 0; missing where there is none.
    places
        How many elements of an ascending list are less than a number, and how many do not exceed it.
    once
        Apply a function to a value that it uses several times, and compute the value once.
    """

    sqrt: Callable[[Value], Value]
    exp: Callable[[Value], Value]
    log: Callable[[Value], Value]
    floor: Callable[[Value], Value]
    divide: Callable[[Value, Value], Value]
    where: Callable[[Value, Value, Value], Value]
    larger: Callable[[Value, Value], Value]
    smaller: Callable[[Value, Value], Value]
    present: Callable[[Value, float], Value]
    at: Callable[[Value, Value], Value]
    places: Callable[[Value, Value], tuple[Value, Value]]
    once: Callable[[Value, Callable[[Value], Value]], Value]


@dataclass(frozen=True, slots=True)
class Weights:
    """What the formulas know of the weights, over kept rows that have a value.

    Parameters
    ----------
    kept
        Number of rows.
    at_risk
        Number of rows with w > 1.
    total, risk, risk_squared, risk_excess
        Sums of w, u, u squared and u (w - 1).
    largest
        Largest w among all kept rows of the group, those without a value included.
    """

    kept: Value
    at_risk: Value
    total: Value
    risk: Value
    risk_squared: Value
    risk_excess: Value
    largest: Value


@dataclass(frozen=True, slots=True)
class Moments:
    """What the formulas know of the values, over kept rows. Each estimator reads only some of it.

    Parameters
    ----------
    plain_sum, plain_mean, plain_variance
        As if nothing had been dropped: the answers when nothing was.
    weighted_sum, risk_square
        Sums of w x and of u x squared.
    cov_weight, cov_weighted, cov_risk, cov_risked
        Population covariances of x with w, w x, u and u x: sums about the mean without cancellation.
    risk_mean, risk_variance, skewness, kurtosis
        Mean, population variance, skewness and excess kurtosis of x over rows with w > 1.
    percentiles, plain_percentiles
        At the shares of `ranks.percentile_ranks`, each row counted as often as it weighs, and each counted once.
    """

    plain_sum: Value = None
    plain_mean: Value = None
    plain_variance: Value = None
    weighted_sum: Value = None
    risk_square: Value = None
    cov_weight: Value = None
    cov_weighted: Value = None
    cov_risk: Value = None
    cov_risked: Value = None
    risk_mean: Value = None
    risk_variance: Value = None
    skewness: Value = None
    kurtosis: Value = None
    percentiles: Value = None
    plain_percentiles: Value = None


@dataclass(frozen=True, slots=True)
class Core:
    """The numbers that an estimator's value and bounds are made of; each occurs several times in them.

    Parameters
    ----------
    value, kept
        The answer, and the rows that it rests on.
    largest, rows
        Largest weight of the group, and effective rows.
    t
        Quantile: how many margins lie between value and bounds.
    low, high
        Margins towards the lower and the upper bound.
    near, far
        What skewness adds to t for the bound that it draws nearer and for the one that it pushes away.
    percentiles
        Where bounds are values at other ranks: as in `Moments`.
    """

    value: Value
    kept: Value
    largest: Value
    rows: Value
    t: Value
    low: Value
    high: Value
    near: Value
    far: Value
    percentiles: Value = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """An answer and its bounds.

    `exact` holds where no row of the group could have been dropped; then both bounds are the value. `enough` holds
    where enough rows were kept for the bounds to be trusted.
    """

    value: Value
    lower: Value
    upper: Value
    exact: Value
    enough: Value


@dataclass(frozen=True, slots=True)
class Estimator:
    """An estimator in two steps, so that an engine whose expressions are trees can name what stands between them."""

    core: Callable[[Ops, Weights, Moments, float], Core]
    bounds: Callable[[Ops, Core], Estimate]

    def __call__(self, ops: Ops, weights: Weights, moments: Moments, z: float) -> Estimate:
        """Both steps; `z` comes from `quantile`."""
        return self.bounds(ops, self.core(ops, weights, moments, z))


def quantile(confidence: float) -> float:
    """Standard normal quantile for two-sided bounds.

    >>> round(quantile(0.95), 3)
    1.96
    """
    if not 0.0 < confidence < 1.0:
        hint = "0.95 for bounds that hold in 95 of 100 windows"
        refuse("`confidence` must lie between 0 and 1", repr(confidence), hint=hint)
    return NormalDist().inv_cdf((1.0 + confidence) / 2.0)


def effective_rows(ops: Ops, weights: Weights) -> Value:
    """Kept rows of equal weight that would know as much: (sum of u) squared over the sum of u squared.

    Equal to the rows kept under one keep fraction. When a few rows of large weight carry the answer, only they count.
    """
    return ops.present(ops.divide(weights.risk * weights.risk, weights.risk_squared), 0.0)


def _count(ops: Ops, weights: Weights, moments: Moments, z: float) -> Core:
    """Horvitz-Thompson: variance is the sum of u. No Student widening, as no spread is estimated from values."""
    margin = ops.sqrt(ops.present(weights.risk, 0.0))
    unit = _unit(ops, weights, z)
    rows = effective_rows(ops, weights)
    return Core(ops.present(weights.total, 0.0), weights.kept, weights.largest, rows, z, margin, margin, unit, unit)


def _sum(ops: Ops, weights: Weights, moments: Moments, z: float) -> Core:
    """Horvitz-Thompson: variance is the sum of u x squared."""
    value = ops.where(weights.largest > 1.0, moments.weighted_sum, moments.plain_sum)
    margin = ops.sqrt(ops.present(moments.risk_square, 0.0))
    mean, variance = ops.present(moments.risk_mean, 0.0), ops.present(moments.risk_variance, 0.0)
    square, unit, rows = mean * mean + variance, _unit(ops, weights, z), effective_rows(ops, weights)

    def about_zero(skewness: Value) -> Value:
        cube = mean * (mean * mean + 3.0 * variance) + skewness * variance * ops.sqrt(variance)
        return ops.present(ops.divide(cube, square * ops.sqrt(square)), 0.0)

    near, far = (about_zero(skewness) * unit for skewness in _skewness(ops, weights, moments))
    return Core(value, weights.kept, weights.largest, rows, _student(ops, rows, z), margin, margin, near, far)


def _mean(ops: Ops, weights: Weights, moments: Moments, z: float) -> Core:
    """Ratio (Hajek) estimator: variance is the sum of u (x - mean) squared over (sum of w) squared."""
    shift, unit, rows = _mean_shift(ops, weights, moments), _unit(ops, weights, z), effective_rows(ops, weights)
    value = ops.where(weights.largest > 1.0, moments.plain_mean + shift, moments.plain_mean)
    about_plain = weights.kept * (moments.cov_risked - moments.plain_mean * moments.cov_risk)
    about_value = about_plain - shift * (2.0 * weights.kept * moments.cov_risk - shift * weights.risk)
    margin = ops.divide(ops.sqrt(ops.larger(about_value, 0.0)), weights.total)
    near, far = (skewness * unit for skewness in _skewness(ops, weights, moments))
    return Core(value, weights.kept, weights.largest, rows, _student(ops, rows, z), margin, margin, near, far)


def _variance(ops: Ops, weights: Weights, moments: Moments, z: float) -> Core:
    """Sample variance of all rows; margins are logarithms of ratios, from the kurtosis of the rows at risk.

    The sum of w (x - mean) squared is divided by W - (sum of w squared) / W, with W the sum of w: unbiased under one
    keep fraction, and n - 1 when nothing is dropped.
    """
    shift, rows = _mean_shift(ops, weights, moments), effective_rows(ops, weights)
    about_plain = weights.kept * (moments.cov_weighted - moments.plain_mean * moments.cov_weight)
    squares = ops.larger(about_plain - shift * shift * weights.total, 0.0)
    freedom = weights.total - ops.divide(weights.risk + weights.total, weights.total)
    value = ops.where(weights.largest > 1.0, ops.divide(squares, freedom), moments.plain_variance)
    n = ops.larger(weights.at_risk * 1.0, 4.0)
    tail, rest = _tail(ops, n, moments)
    low = ops.present(ops.divide(ops.sqrt(weights.risk), weights.total), 0.0) * ops.sqrt(tail)
    excess = ops.present(ops.divide(weights.risk_excess, weights.risk * ops.sqrt(weights.risk)), 0.0)
    far = _SPREAD_TAIL * excess * ops.sqrt(rows * tail / n) / rest
    return Core(value, weights.kept, weights.largest, rows, _student(ops, rows, z), low, low / rest, 0.0, far)


def _around(ops: Ops, core: Core) -> Estimate:
    """Bounds at a distance from the value, on either side of it."""
    # Right for both signs of the skewness: far is the larger of the two if it is positive, the smaller if negative. Of
    # very few rows it can exceed t, which would draw a bound past the value.
    lower = core.value - core.low * ops.larger(core.t - ops.smaller(core.near, core.far), 0.0)
    upper = core.value + core.high * ops.larger(core.t + ops.larger(core.near, core.far), 0.0)
    return collapse(ops, core, lower, upper, FEW_ROWS)


def _around_count(ops: Ops, core: Core) -> Estimate:
    """Bounds at a distance from the value, the lower one never below the rows kept."""
    around = _around(ops, core)
    return replace(around, lower=ops.larger(around.lower, core.kept * 1.0))


def _by_ratio(ops: Ops, core: Core) -> Estimate:
    """Bounds at a ratio to the value."""
    rise = ops.smaller(core.high * (core.t + core.far), _LARGEST_LOG_RATIO)
    return collapse(ops, core, core.value * ops.exp(-core.low * core.t), core.value * ops.exp(rise), FEW_ROWS_SPREAD)


def _root_by_ratio(ops: Ops, core: Core) -> Estimate:
    square = _by_ratio(ops, core)
    value, lower, upper = (ops.sqrt(part) for part in (square.value, square.lower, square.upper))
    return replace(square, value=value, lower=lower, upper=upper)


count_estimate = Estimator(_count, _around_count)
"""Rows that there were."""
sum_estimate = Estimator(_sum, _around)
"""Their sum."""
mean_estimate = Estimator(_mean, _around)
"""Their mean."""
variance_estimate = Estimator(_variance, _by_ratio)
"""Their sample variance."""
stddev_estimate = Estimator(_variance, _root_by_ratio)
"""Their sample standard deviation."""


def _mean_shift(ops: Ops, weights: Weights, moments: Moments) -> Value:
    """Weighted mean minus plain mean; exactly 0 when all weights are equal."""
    return ops.divide(weights.kept * moments.cov_weight, weights.total)


def _skewness(ops: Ops, weights: Weights, moments: Moments) -> tuple[Value, Value]:
    """Skewness for the bound that it draws nearer, and for the bound that it pushes away.

    Skewness and error are sampled together, the more so the fewer rows are kept: of the skewness that would narrow the
    interval, half is taken when few rows are kept and all of it when nearly all are. The skewness g of n numbers cannot
    exceed sqrt(n), so samples of a long tail understate it, and those that miss the tail understate the error too: with
    dominance d = |g| / sqrt(n), the far bound uses g / (1 - d)^4. The power 2 would restore the mean of g.
    """
    sampled = ops.present(moments.skewness, 0.0)
    size = ops.sqrt(ops.larger(weights.at_risk * 1.0, 1.0))
    rest = 1.0 - ops.smaller(ops.larger(sampled, -sampled) / size, _LARGEST_DOMINANCE)
    dropped = ops.divide(weights.risk_excess * weights.risk_excess, weights.risk * weights.risk_squared)
    kept = 1.0 - ops.present(dropped, 1.0)  # the keep fraction, if there is only one
    return sampled * (0.5 + 0.5 * kept * kept), sampled / (rest * rest * rest * rest)


def _unit(ops: Ops, weights: Weights, z: float) -> Value:
    """First Edgeworth term of the studentised error, for a row share of skewness 1.

    The third cumulant of the error is the sum of u (w - 2) x cubed, its covariance with its own variance estimate the
    sum of u (w - 1) x cubed. `Hall, The bootstrap and Edgeworth expansion, 1992, section 2.6`, for sums under Poisson
    sampling.
    """
    cubed = weights.risk * ops.sqrt(weights.risk)
    share = (z * z - 1.0) / 6.0
    return ops.present(ops.divide((0.5 + 2.0 * share) * weights.risk_excess + share * weights.risk, cubed), 0.0)


def _tail(ops: Ops, n: Value, moments: Moments) -> tuple[Value, Value]:
    """Kurtosis + 2 in its usual small-sample form, at least 1; and 1 - dominance, as for skewness."""
    sampled = ops.present(moments.kurtosis, 0.0)
    tail = ops.larger(((n + 1.0) * sampled + 6.0) * (n - 1.0) / ((n - 2.0) * (n - 3.0)) + 2.0, 1.0)
    return tail, 1.0 - ops.smaller(ops.sqrt(ops.larger(sampled, 0.0) / n), _LARGEST_DOMINANCE)


def _student(ops: Ops, rows: Value, z: float) -> Value:
    """Student's quantile for rows - 1 degrees of freedom, by its expansion about the normal one."""
    freedom = ops.larger(rows - 1.0, 1.0)
    first, second = (z**3 + z) / 4.0, (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    return z + (first + second / freedom) / freedom


def collapse(ops: Ops, core: Core, lower: Value, upper: Value, few: float) -> Estimate:
    """Bounds that are the value where nothing was dropped, and the two flags."""
    shed = core.largest > 1.0
    low, high = ops.where(shed, lower, core.value), ops.where(shed, upper, core.value)
    return Estimate(core.value, low, high, ops.where(shed, False, True), core.rows >= few)
