"""Answers with bounds from rows that were kept at random: the formulas, written once for every engine.

A kept row carries its weight w, the inverse of the probability that it was kept; rows are kept independently of each
other. Everything here is arithmetic on sums over kept rows. The functions take numpy arrays, floats or Spark columns:
ordinary operators do the work, and the few operations that the two worlds spell differently come in as `Ops`.

Write u = w (w - 1): the share of a row in the variance of a weighted sum. It is 0 for a row that could not be dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Protocol

from jettison.errors import refuse

Value = Any
"""A float, a numpy array or a Spark column; one call uses one kind throughout."""

Values = tuple[Value, ...]

FEW_ROWS = 30.0
"""Effective kept rows below which the bounds of count, sum and mean are flagged."""

FEW_ROWS_SPREAD = 100.0
"""The same for variance and standard deviation, whose errors hang on fourth moments."""

# Set by measurement on the cases of docs/bounds.md, all of them at once; none is fitted to a seed.
_LARGEST_DOMINANCE = 0.5  # dominance beyond which a sample says nothing more about its tail
_SPREAD_TAIL = 6.0  # how strongly the upper bound of a variance answers to kurtosis
_LARGEST_LOG_RATIO = 3.0  # the upper bound of a variance never exceeds exp(3) = 20 times its value
_TINY = 1e-300  # what 0 is replaced by where it would divide
_ROUNDING = 10.0 * 2.0**-53  # what a central second moment from raw sums may lose, a row and a unit of the raw one
_LARGEST_VARIANCE = 1e135  # of values whose fourth powers can be added up
_LARGEST = 1e300  # what is larger is taken for what overflowed
_SURE = 0.1  # as dominance: how far rounding may move a skewness that is still used


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
        Apply a function to values that it uses several times, and compute each of them once; of several functions each but
        the last returns the values of the next. An engine that keeps expressions as trees grows wider so, not deeper.
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
    once: Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Weights:
    """What the formulas know of the weights, over kept rows that have a value.

    Parameters
    ----------
    kept
        Number of rows.
    certain
        Whether no row of the group has w > 1, or was dropped and only counted; those without a value included.
    excess, excess_squared
        Sums of w - 1 and of its square: of them are `total` and `risk`, the sums of w and of u.
    """

    kept: Value
    certain: Value
    excess: Value
    excess_squared: Value

    @property
    def total(self) -> Value:
        return self.kept + self.excess

    @property
    def risk(self) -> Value:
        return self.excess + self.excess_squared


@dataclass(frozen=True, slots=True)
class Moments:
    """What the formulas know of the values, over kept rows. Each estimator reads only some of it.

    Parameters
    ----------
    weighted_sum
        Sum of w x; missing without a row.
    risk_sum, risk_square, risk_cube
        Sums of u x, u x squared and u x cubed.
    plain_mean, plain_variance
        As if nothing had been dropped: of the variance, the answer when nothing was.
    about_weight, about_weighted
        Sums of w and w x, each times x minus the plain mean: without cancellation.
    at_risk, kurtosis
        Number of rows with w > 1, and excess kurtosis of x over these.
    percentiles, plain_percentiles
        At the shares of `ranks.percentile_ranks`, each row counted as often as it weighs, and each counted once.
    """

    weighted_sum: Value = None
    risk_sum: Value = None
    risk_square: Value = None
    risk_cube: Value = None
    plain_mean: Value = None
    plain_variance: Value = None
    about_weight: Value = None
    about_weighted: Value = None
    at_risk: Value = None
    kurtosis: Value = None
    percentiles: Value = None
    plain_percentiles: Value = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """An answer and its bounds.

    `exact` holds where no row of the group could have been dropped; then the answer, and both its bounds, are `plain`.
    `enough` holds where enough rows were kept for the bounds to be trusted, `clear` where numbers did not overflow. A
    bound that is not finite is none.
    """

    value: Value
    lower: Value
    upper: Value
    plain: Value
    exact: Value
    enough: Value
    clear: Value = True

    def finite(self, ops: Ops) -> Estimate:
        """With the bounds that are finite, and clear only if both are."""
        # NaN is in no order, or larger than all numbers.
        low, high = ((side > -math.inf) & (side < math.inf) for side in (self.lower, self.upper))
        missing = ops.divide(0.0, 0.0)
        lower, upper = ops.where(low, self.lower, missing), ops.where(high, self.upper, missing)
        return replace(self, lower=lower, upper=upper, clear=low & high)


Answer = Callable[[Ops, Estimate], Value]
"""What an engine makes of an estimate; it is called where all that the estimate uses has a name (`Ops.once`)."""


def collapsed(ops: Ops, found: Estimate) -> Value:
    """The estimate itself, which is the plain answer where nothing was dropped."""
    found = found.finite(ops)
    value, lower, upper = (
        ops.where(found.exact, found.plain, part) for part in (found.value, found.lower, found.upper)
    )
    return replace(found, value=value, lower=lower, upper=upper)


class Estimator(Protocol):
    """Makes an estimate of sums, and an answer of the estimate; `z` comes from `quantile`."""

    def __call__(
        self, ops: Ops, weights: Weights, moments: Moments, z: float, answer: Answer = collapsed, /
    ) -> Value: ...


def quantile(confidence: float) -> float:
    """Standard normal quantile for two-sided bounds.

    >>> round(quantile(0.95), 3)
    1.96
    """
    if not 0.0 < confidence < 1.0:
        hint = "0.95 for bounds that hold in 95 of 100 windows"
        refuse("`confidence` must lie between 0 and 1", repr(confidence), hint=hint)
    return NormalDist().inv_cdf((1.0 + confidence) / 2.0)


def over(ops: Ops, x: Value, y: Value) -> Value:
    """Quotient of x by a number that is not negative; where that is 0, so is x. Shorter than `Ops.divide` for an engine."""
    return x / ops.larger(y, _TINY)


def effective_rows(ops: Ops, weights: Weights) -> Value:
    """Kept rows of equal weight that would know as much: (sum of w - 1) squared over the sum of (w - 1) squared.

    Equal to the rows kept under one keep fraction. When a few rows of large weight carry the answer, only they count.
    """
    return ops.present(over(ops, weights.excess * weights.excess, weights.excess_squared), 0.0)


def count_estimate(ops: Ops, weights: Weights, moments: Moments, z: float, answer: Answer = collapsed, /) -> Value:
    """Rows that there were, by Horvitz and Thompson: variance is the sum of u.

    No Student widening, as no spread is estimated from values. The lower bound is never below the rows kept.
    """

    def named(value: Value, margin: Value, unit: Value) -> Value:
        lower = ops.larger(value - margin * ops.larger(z - unit, 0.0), weights.kept * 1.0)
        upper, enough = value + margin * (z + unit), effective_rows(ops, weights) >= FEW_ROWS
        return answer(ops, Estimate(value, lower, upper, value, weights.certain, enough))

    parts = (weights.total, ops.sqrt(weights.risk), _unit(ops, weights, typical_weight(ops, weights), z))
    return ops.once(tuple(ops.present(part, 0.0) for part in parts), named)


def typical_weight(ops: Ops, weights: Weights) -> Value:
    """Their mean over rows at risk, each counted as often as its w - 1: the weight itself if there is only one."""
    return 1.0 + over(ops, weights.excess_squared, weights.excess)


def sum_estimate(ops: Ops, weights: Weights, moments: Moments, z: float, answer: Answer = collapsed, /) -> Value:
    """Their sum, by Horvitz and Thompson: variance is the sum of u x squared."""
    return _around(ops, weights, moments, z, moments.weighted_sum, 0.0, 1.0, answer)


def mean_estimate(ops: Ops, weights: Weights, moments: Moments, z: float, answer: Answer = collapsed, /) -> Value:
    """Their mean, by the ratio (Hajek) estimator: variance is the sum of u (x - mean) squared over (sum of w) squared."""

    def named(value: Value) -> Value:
        return _around(ops, weights, moments, z, value, value, weights.total, answer)

    return ops.once((over(ops, moments.weighted_sum, weights.total),), named)


def variance_estimate(ops: Ops, weights: Weights, moments: Moments, z: float, answer: Answer = collapsed, /) -> Value:
    """Their sample variance; margins are logarithms of ratios, from the kurtosis of the rows at risk.

    The sum of w (x - mean) squared is divided by W - (sum of w squared) / W, with W the sum of w: unbiased under one
    keep fraction, and n - 1 when nothing is dropped.
    """
    shift = over(ops, moments.about_weight, weights.total)
    about_plain = moments.about_weighted - moments.plain_mean * moments.about_weight
    squares = about_plain - shift * moments.about_weight
    squares = ops.where(squares < 0.0, 0.0, squares)  # not the larger of the two, which hides what overflowed
    freedom = weights.total - over(ops, weights.risk + weights.total, weights.total)
    n, kurtosis = ops.larger(moments.at_risk * 1.0, 4.0), ops.present(moments.kurtosis, 0.0)

    def named(value: Value, rows: Value, n: Value, kurtosis: Value) -> Values:
        # Kurtosis + 2 in its usual small-sample form, and 1 - dominance, as for skewness.
        tail = ops.larger(((n + 1.0) * kurtosis + 6.0) * (n - 1.0) / ((n - 2.0) * (n - 3.0)) + 2.0, 1.0)
        rest = 1.0 - ops.smaller(ops.sqrt(ops.larger(kurtosis, 0.0) / n), _LARGEST_DOMINANCE)
        return value, rows, n, tail, rest, _student(ops, rows, z)

    def bounds(value: Value, rows: Value, n: Value, tail: Value, rest: Value, t: Value) -> Value:
        low = over(ops, ops.sqrt(weights.risk * tail), weights.total)
        excess = over(ops, typical_weight(ops, weights) - 1.0, ops.sqrt(weights.risk))
        far = _SPREAD_TAIL * excess * rows * ops.sqrt(tail) / n / rest
        rise = ops.smaller(low / rest * (t + far), _LARGEST_LOG_RATIO)
        size = ops.where(value <= _LARGEST_VARIANCE, value, math.inf)
        lower, upper, plain = size * ops.exp(-low * t), size * ops.exp(rise), moments.plain_variance
        return answer(ops, Estimate(value, lower, upper, plain, weights.certain, rows >= FEW_ROWS_SPREAD))

    return ops.once((ops.divide(squares, freedom), effective_rows(ops, weights), n, kurtosis), named, bounds)


def stddev_estimate(ops: Ops, weights: Weights, moments: Moments, z: float, answer: Answer = collapsed, /) -> Value:
    """Their sample standard deviation: roots of the variance and of its bounds."""

    def roots(ops: Ops, square: Estimate) -> Value:
        value, lower, upper, plain = map(ops.sqrt, (square.value, square.lower, square.upper, square.plain))
        return answer(ops, replace(square, value=value, lower=lower, upper=upper, plain=plain))

    return variance_estimate(ops, weights, moments, z, roots)


def _around(
    ops: Ops,
    weights: Weights,
    moments: Moments,
    z: float,
    value: Value,
    centre: Value,
    size: Value,
    answer: Answer,
) -> Value:
    """Bounds of a value whose variance is the sum of u (x - centre) squared over `size` squared, from raw sums.

    What rounding can have taken from the spread of x is added to it, so that bounds are never too short for it. Where the
    skewness of x is lost in rounding, or its third moment has overflowed, both bounds move away by the largest that so
    many rows can have. All is computed in units of `scale`, so that no other power overflows.
    """

    def of_sums(mean: Value, square: Value, cube: Value, *rest: Value) -> Values:
        largest = ops.larger(ops.larger(mean, -mean), ops.larger(centre, -centre))  # squares of tiny values are 0
        return mean, square, cube, ops.larger(ops.sqrt(square), largest), *rest

    def scaled(mean: Value, square: Value, cube: Value, scale: Value, *rest: Value) -> Values:
        def in_units(x: Value, power: int) -> Value:
            return in_units(over(ops, x, scale), power - 1) if power else x

        known = [in_units(x, power) for x, power in ((mean, 1), (square, 2), (cube, 3), (centre, 1))]
        return *known, scale, *rest

    def of_scaled(mean: Value, square: Value, cube: Value, centre: Value, *rest: Value) -> Values:
        lost, plain = _ROUNDING * (weights.kept + 5.0) * square, square - mean * mean
        spread = ops.larger(plain, lost) + lost  # below what is lost, digits say nothing
        third, shift = cube - mean * (3.0 * square - 2.0 * mean * mean), mean - centre
        return shift, spread, third, lost * ops.sqrt(square), *rest

    def of_spread(shift: Value, spread: Value, third: Value, lost: Value, scale: Value, *rest: Value) -> Values:
        most, weight = rest
        cubed, is_known = spread * ops.sqrt(spread), (third > -_LARGEST) & (third < _LARGEST)
        skewness = ops.smaller(ops.larger(over(ops, ops.where(is_known, third, 0.0), cubed), -most), most)
        noise = ops.where(is_known, over(ops, 3.0 * lost, cubed), _LARGEST)
        return shift, cubed, spread + shift * shift, skewness, noise, scale, most, weight

    def of_skewness(shift: Value, cubed: Value, square: Value, *rest: Value) -> Values:
        skewness, noise, scale, most, weight = rest
        near, far, noise = _skewness(ops, skewness, noise, most, weight)
        bend = shift * (3.0 * square - 2.0 * shift * shift)  # of the third moment about the centre: without skewness
        margin = over(ops, ops.sqrt(square * weights.risk), size) * scale
        per = over(ops, 1.0, square * ops.sqrt(square))
        thirds = (bend + cubed * near, bend + cubed * far, cubed * noise)
        rows = effective_rows(ops, weights)
        return *thirds, per, margin, _unit(ops, weights, weight, z), rows

    def bounds(near: Value, far: Value, noise: Value, per: Value, margin: Value, unit: Value, rows: Value) -> Value:
        # Right for both signs of the skewness: far is the larger of the two if it is positive, the smaller if negative.
        # Of very few rows it can exceed t, which would draw a bound past the value.
        t = _student(ops, rows, z)
        lower = value - margin * ops.larger(t + unit * (per * (noise - ops.smaller(near, far))), 0.0)
        upper = value + margin * ops.larger(t + unit * (per * (noise + ops.larger(near, far))), 0.0)
        return answer(ops, Estimate(value, lower, upper, value, weights.certain, rows >= FEW_ROWS))

    means = (over(ops, part, weights.risk) for part in (moments.risk_sum, moments.risk_square, moments.risk_cube))
    most = ops.sqrt(ops.larger(effective_rows(ops, weights), 1.0))
    steps = (of_sums, scaled, of_scaled, of_spread, of_skewness, bounds)
    return ops.once((*means, most, typical_weight(ops, weights)), *steps)


def _skewness(ops: Ops, sampled: Value, noise: Value, most: Value, weight: Value) -> tuple[Value, Value, Value]:
    """Skewness for the bound that it draws nearer, for the bound that it pushes away, and what to add to both.

    Skewness and error are sampled together, the more so the fewer rows are kept: of the skewness that would narrow the
    interval, half is taken when few rows are kept and all of it when nearly all are. The skewness g of n numbers cannot
    exceed sqrt(n), so samples of a long tail understate it, and those that miss the tail understate the error too: with
    dominance d = |g| / sqrt(n), the far bound uses g / (1 - d)^4. The power 2 would restore the mean of g. Where g may be
    off by `noise`, the far one is by at most 4 / (1 - d)^5 times as much.
    """
    rest = 1.0 - ops.smaller(ops.larger(sampled, -sampled) / most, _LARGEST_DOMINANCE)
    sure = noise <= _SURE * most
    known = ops.where(sure, sampled, 0.0)
    return (
        known * (0.5 + 0.5 * weight**-2.0),
        known * rest**-4.0,
        ops.where(sure, 4.0 * noise * rest**-5.0, most),
    )


def _unit(ops: Ops, weights: Weights, weight: Value, z: float) -> Value:
    """First Edgeworth term of the studentised error, for a row share of skewness 1, at the typical weight.

    The third cumulant of the error is the sum of u (w - 2) x cubed, its covariance with its own variance estimate the
    sum of u (w - 1) x cubed. `Hall, The bootstrap and Edgeworth expansion, 1992, section 2.6`, for sums under Poisson
    sampling.
    """
    share = (z * z - 1.0) / 6.0
    return over(ops, (0.5 + 2.0 * share) * (weight - 1.0) + share, ops.sqrt(weights.risk))


def _student(ops: Ops, rows: Value, z: float) -> Value:
    """Student's quantile for rows - 1 degrees of freedom, by its expansion about the normal one."""
    freedom = ops.larger(rows - 1.0, 1.0)
    first, second = (z**3 + z) / 4.0, (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    return z + (first + second / freedom) / freedom
