"""The estimators' formulas over numpy arrays of kept rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.answers.estimate import Moments, Ops, Value, Weights
from jettison.answers.ranks import percentile_ranks

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def _divide(x: Value, y: Value) -> Value:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(y, 0), np.nan, np.divide(x, y))


def _at(values: ArrayLike, place: Value) -> Value:
    known, places = np.asarray(values, float), np.nan_to_num(np.asarray(place, float), nan=-1.0).astype(int)
    inside = (places >= 0) & (places < known.shape[-1])
    chosen = np.where(inside, places, 0)
    if known.ndim > 1:
        chosen = np.broadcast_to(chosen, known.shape[:-1])
        return np.where(inside, np.take_along_axis(known, chosen[..., None], -1)[..., 0], np.nan)
    return np.where(inside, known[chosen], np.nan)


def _places(values: Floats, x: Value) -> tuple[Value, Value]:
    limit = np.asarray(x, float)[..., None]
    return np.sum(values < limit, axis=-1), np.sum(values <= limit, axis=-1)


def _quiet(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def apply(x: Value) -> Value:
        with np.errstate(divide="ignore", invalid="ignore"):
            return function(x)

    return apply


def _once(values: Value, *steps: Callable[..., Value]) -> Value:
    for step in steps:
        values = step(*values)
    return values


NUMPY = Ops(
    sqrt=np.sqrt,
    exp=np.exp,
    log=_quiet(np.log),
    floor=np.floor,
    divide=_divide,
    where=np.where,
    larger=np.fmax,
    smaller=np.fmin,
    present=lambda x, otherwise: np.where(np.isnan(x), otherwise, x),
    at=_at,
    places=_places,
    once=_once,
)
"""For floats and numpy arrays."""


def describe(values: ArrayLike, weights: ArrayLike, kept: ArrayLike | None = None) -> tuple[Weights, Moments]:
    """Collect the sums of kept rows from numpy arrays, along the last axis.

    A value that is NaN stands for no value and is passed over. A weight is the inverse of the probability that the row was
    kept, 1 or more. All rows were kept, unless `kept` says which.

    Examples
    --------
    >>> from jettison.answers.estimate import quantile, sum_estimate
    >>> weights, moments = describe([3.0, 5.0, 10.0], [2.0, 2.0, 2.0])
    >>> float(sum_estimate(NUMPY, weights, moments, quantile(0.95)).value)
    36.0
    """
    x, w = np.broadcast_arrays(np.asarray(values, float), np.asarray(weights, float))
    group = np.ones(x.shape, bool) if kept is None else np.asarray(kept, bool)
    row = group & ~np.isnan(x)
    x, certain = np.where(row, x, 0.0), ~np.any(group & (w > 1.0), axis=-1)
    w = np.where(row, w, 0.0)
    u, risky = np.where(row, w * (w - 1.0), 0.0), row & (w > 1.0)
    excess = np.where(row, w - 1.0, 0.0)
    kept_rows, *sums = (np.sum(part, axis=-1) for part in (row, excess, excess * excess))
    return Weights(kept_rows, certain, *sums), _moments(x, w, u, row, risky)


def _moments(x: Floats, w: Floats, u: Floats, row: Bools, risky: Bools) -> Moments:
    n, (mean, square, _) = row.sum(axis=-1), _central(x, row)
    _, risk_variance, fourth = _central(x, risky)
    centred = np.where(row, x - mean[..., None], 0.0)
    per = NUMPY.divide
    with np.errstate(invalid="ignore"):
        return Moments(
            weighted_sum=np.where(n > 0, (w * x).sum(axis=-1), np.nan),
            risk_sum=(u * x).sum(axis=-1),
            risk_square=(u * x * x).sum(axis=-1),
            risk_cube=(u * x * x * x).sum(axis=-1),
            plain_mean=mean,
            plain_variance=per(square * n, n - 1.0),
            about_weight=(w * centred).sum(axis=-1),
            about_weighted=(w * x * centred).sum(axis=-1),
            at_risk=risky.sum(axis=-1),
            kurtosis=per(fourth, risk_variance**2) - 3.0,
        )


def _central(x: Floats, row: Bools) -> tuple[Value, Value, Value]:
    """Mean, and second and fourth population moments about it."""
    divide, n = NUMPY.divide, row.sum(axis=-1)
    mean = divide(np.where(row, x, 0.0).sum(axis=-1), n)
    centred = np.where(row, x - mean[..., None], 0.0)
    square = centred * centred
    second, fourth = (divide(part.sum(axis=-1), n) for part in (square, square * square))
    return mean, second, fourth


def describe_ranks(values: ArrayLike, weights: ArrayLike, percentage: float) -> Moments:
    """Collect the percentiles of kept rows as Spark's `percentile` gives them; values as for `describe`."""
    x, w = np.broadcast_arrays(np.asarray(values, float), np.asarray(weights, float))
    ranks = np.asarray(percentile_ranks(percentage))
    order = np.argsort(x, axis=-1, kind="stable")  # NaN comes last
    ordered, parts = np.take_along_axis(x, order, -1), np.take_along_axis(np.round(100.0 * w), order, -1)
    rows = [
        (line[: np.isfinite(line).sum()], part[: np.isfinite(line).sum()])
        for line, part in zip(np.atleast_2d(ordered), np.atleast_2d(parts), strict=True)
    ]
    weighted, plain = (
        np.stack([_percentiles(line, often(part), ranks) for line, part in rows]).reshape(*x.shape[:-1], len(ranks))
        for often in (np.asarray, np.ones_like)
    )
    return Moments(percentiles=weighted, plain_percentiles=plain)


def _percentiles(ordered: Floats, often: Floats, ranks: Floats) -> Floats:
    """With each value as often as said, between neighbours in proportion."""
    if not len(ordered):
        return np.full(len(ranks), np.nan)
    until = np.cumsum(often)
    place = (until[-1] - 1.0) * ranks
    low, high = np.floor(place), np.ceil(place)
    one, other = (ordered[np.searchsorted(until, each + 1.0)] for each in (low, high))
    between = (high - place) * one + (place - low) * other
    return np.asarray(np.where((low == high) | (one == other), one, between), float)
