"""Percentiles with bounds, from the ranks of kept rows: for every engine that has exact percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from jettison.answers.estimate import (
    FEW_ROWS,
    Answer,
    Estimate,
    Estimator,
    Moments,
    Ops,
    Value,
    Weights,
    collapsed,
    effective_rows,
    over,
    typical_weight,
)

_RATIO, _STEPS = 1.05, 128  # of the distances at which bounds can lie, on either side
_FEW_BEYOND = 5.0  # effective rows on the smaller side of a percentile below which its bounds are flagged


def percentile_ranks(percentage: float) -> tuple[float, ...]:
    """Shares of the rows at which the bounds of a percentile can lie, ascending, with itself in the middle.

    Engines take percentiles at fixed shares only. These grow apart by 5 % of their distance to the percentile, so bounds
    are 2.5 % too wide on average; the nearest ones lie at 1/515 of the distance to the end.
    """
    steps = [_RATIO**-step for step in range(_STEPS + 1)]
    below, above = ([reach * step for step in steps] for reach in (percentage, 1.0 - percentage))
    return (*(percentage - gap for gap in below), percentage, *(percentage + gap for gap in reversed(above)))


def plain_percentile(ops: Ops, moments: Moments) -> Value:
    """The percentile of the kept rows, each counted once: the answer while nothing was dropped."""
    return ops.at(moments.plain_percentiles, _STEPS + 1)


def percentile_estimate(percentage: float) -> Estimator:
    """A percentile, with bounds at two ranks of the kept rows (Woodruff's interval).

    At the true percentile q the sum D of w ([x <= q] - p) has mean 0, whatever the values are. Its variance is the sum of
    u ([x <= q] - p) squared, and its skewness widens one side and narrows the other. Ranks at which D / W is further from
    0 than z margins are no candidates for q. Where weights depend on the values, the variance is split between the rows
    below and above q by their mean weights.
    """
    p = percentage

    def estimate(ops: Ops, weights: Weights, moments: Moments, z: float, answer: Answer = collapsed, /) -> Value:
        def of_value(value: Value) -> Value:
            return ops.once((_kept_share(ops, weights, moments.plain_percentiles, value, p),), partial(of_kept, value))

        def of_kept(value: Value, kept: Value) -> Value:
            share, rows = _risk_share(ops, weights, p, kept), effective_rows(ops, weights)
            return ops.once(
                (share,), lambda share: ops.once((_square(weights, p, share), rows), partial(gaps, value, share))
            )

        def gaps(value: Value, share: Value, square: Value, rows: Value) -> Value:
            of_sides = (_gap(ops, weights, p, share, square, z, side) for side in (-1.0, 1.0))
            return ops.once((*of_sides, rows * min(p, 1.0 - p)), partial(bounds, value, rows))

        def bounds(value: Value, rows: Value, below: Value, above: Value, beyond: Value) -> Value:
            low = _bound(ops, moments.percentiles, below, p, beyond, lambda step: step)
            high = _bound(ops, moments.percentiles, above, 1.0 - p, beyond, lambda step: 2 * (_STEPS + 1) - step)
            return ops.once((low, high), partial(bounded, value, (rows >= FEW_ROWS) & (beyond >= _FEW_BEYOND)))

        def bounded(value: Value, enough: Value, low: Value, high: Value) -> Value:
            known = ops.present(low + high, math.inf) < math.inf
            plain = plain_percentile(ops, moments)
            return answer(ops, Estimate(value, low, high, plain, weights.certain, enough & known))

        return ops.once((ops.at(moments.percentiles, _STEPS + 1),), of_value)

    return estimate


def _square(weights: Weights, p: float, share: Value) -> Value:
    """Variance of the sum D if that share of the risk lies below the percentile."""
    return weights.risk * (p * p + (1.0 - 2.0 * p) * share)


def _gap(ops: Ops, weights: Weights, p: float, share: Value, square: Value, z: float, side: float) -> Value:
    """How far the rank of a bound lies from p, below it if `side` is -1; `share` of the risk lies below the percentile."""
    cube = weights.risk * (typical_weight(ops, weights) - 2.0) * ((1.0 - p) ** 3 * share - p**3 * (1.0 - share))
    skewness = ops.present(ops.divide(cube, square * ops.sqrt(square)), 0.0)
    row = (0.5 - p) * side  # so far the rank of a percentile lies from its share, by definition
    return over(ops, ops.sqrt(square) * (z + skewness * (side * (z * z - 1.0) / 6.0)) + row, weights.total)


def _bound(
    ops: Ops, percentiles: Value, gap: Value, reach: float, beyond: Value, place: Callable[[Value], Value]
) -> Value:
    """The percentile at the next rank beyond a gap; missing where that lies beyond all kept rows, or hardly any is."""
    smallest = reach * _RATIO**-_STEPS
    step = ops.floor(ops.log(ops.divide(reach, ops.larger(gap, smallest))) / math.log(_RATIO))
    return ops.at(percentiles, ops.where((gap <= reach) & (beyond >= 1.0), place(step), -1))


def _kept_share(ops: Ops, weights: Weights, plain: Value, value: Value, p: float) -> Value:
    """Share of the kept rows below a percentile's value: as near to p as it can be, give or take a row."""
    below, up_to = ops.places(plain, value)
    row = ops.present(ops.divide(1.0, weights.kept), 0.0)
    least, most = (ops.once((place,), lambda at: _rank(ops, p, at)) for place in (below - 1, up_to))
    return ops.smaller(ops.larger(p, least - row), most + row)


def _rank(ops: Ops, p: float, place: Value) -> Value:
    """What `percentile_ranks` has at a place; 0 before them and 1 after."""
    middle, step = _STEPS + 1, math.log(_RATIO)
    before = ops.larger(p - p * ops.exp(place * -step), 0.0)
    after = ops.smaller(p + (1.0 - p) * ops.exp((place - 2 * middle) * step), 1.0)
    return ops.where(place < middle, before, ops.where(place > middle, after, p))


def _risk_share(ops: Ops, weights: Weights, p: float, kept: Value) -> Value:
    """Share of the sum of u below a percentile, from the mean weights of the kept rows below and above it."""

    def risk(share: float, of_kept: Value) -> Value:
        mean = ops.present(ops.divide(weights.total * share, weights.kept * of_kept), 1.0)
        return ops.larger(mean - 1.0, 0.0) * share

    below, above = risk(p, kept), risk(1.0 - p, 1.0 - kept)
    return ops.present(ops.divide(below, below + above), p)
