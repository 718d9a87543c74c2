"""The estimators' formulas over numpy arrays of kept rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.estimate import Moments, Value, Weights

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class NumpyOps:
    """`Ops` for floats and numpy arrays."""

    def sqrt(self, x: Value) -> Value:
        """Square root."""
        return np.sqrt(x)

    def exp(self, x: Value) -> Value:
        """Exponential."""
        return np.exp(x)

    def divide(self, x: Value, y: Value) -> Value:
        """Quotient; NaN where y is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.equal(y, 0), np.nan, np.divide(x, y))

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        """Choose by condition."""
        return np.where(condition, x, y)

    def larger(self, x: Value, y: Value) -> Value:
        """The larger; NaN is passed over."""
        return np.fmax(x, y)

    def smaller(self, x: Value, y: Value) -> Value:
        """The smaller; NaN is passed over."""
        return np.fmin(x, y)

    def present(self, x: Value, otherwise: float) -> Value:
        """Replace NaN."""
        return np.where(np.isnan(x), otherwise, x)


def describe(values: ArrayLike, weights: ArrayLike, kept: ArrayLike | None = None) -> tuple[Weights, Moments]:
    """Collect the sums of kept rows from numpy arrays, along the last axis.

    Parameters
    ----------
    values
        One number per row; NaN stands for no value and is passed over.
    weights
        Inverse of the probability that the row was kept, 1 or more.
    kept
        Which rows were kept; all, unless given.

    Examples
    --------
    >>> from jettison.estimate import quantile, sum_estimate
    >>> weights, moments = describe([3.0, 5.0, 10.0], [2.0, 2.0, 2.0])
    >>> float(sum_estimate(NumpyOps(), weights, moments, quantile(0.95)).value)
    36.0
    """
    x, w = np.broadcast_arrays(np.asarray(values, float), np.asarray(weights, float))
    group = np.ones(x.shape, bool) if kept is None else np.asarray(kept, bool)
    row = group & ~np.isnan(x)
    x, largest = np.where(row, x, 0.0), np.where(group, w, 0.0).max(axis=-1)
    w = np.where(row, w, 0.0)
    u, risky = np.where(row, w * (w - 1.0), 0.0), row & (w > 1.0)
    kept_rows, at_risk, *sums = (np.sum(part, axis=-1) for part in (row, risky, w, u, u * u, u * (w - 1.0)))
    return Weights(kept_rows, at_risk, sums[0], sums[1], sums[2], sums[3], largest), _moments(x, w, u, row, risky)


def _moments(x: Floats, w: Floats, u: Floats, row: Bools, risky: Bools) -> Moments:
    n, (mean, square, _, _) = row.sum(axis=-1), _central(x, row)
    risk_mean, risk_variance, third, fourth = _central(x, risky)
    centred = np.where(row, x - mean[..., None], 0.0)
    per = NumpyOps().divide
    with np.errstate(invalid="ignore"):
        return Moments(
            plain_sum=np.where(n > 0, x.sum(axis=-1), np.nan),
            plain_mean=mean,
            plain_variance=per(square * n, n - 1.0),
            weighted_sum=np.where(n > 0, (w * x).sum(axis=-1), np.nan),
            risk_square=(u * x * x).sum(axis=-1),
            cov_weight=per((w * centred).sum(axis=-1), n),
            cov_weighted=per((w * x * centred).sum(axis=-1), n),
            cov_risk=per((u * centred).sum(axis=-1), n),
            cov_risked=per((u * x * centred).sum(axis=-1), n),
            risk_mean=risk_mean,
            risk_variance=risk_variance,
            skewness=per(third, risk_variance**1.5),
            kurtosis=per(fourth, risk_variance**2) - 3.0,
        )


def _central(x: Floats, row: Bools) -> tuple[Value, Value, Value, Value]:
    """Mean and second to fourth population moments about it."""
    divide, n = NumpyOps().divide, row.sum(axis=-1)
    mean = divide(np.where(row, x, 0.0).sum(axis=-1), n)
    centred = np.where(row, x - mean[..., None], 0.0)
    square = centred * centred
    second, third, fourth = (divide(part.sum(axis=-1), n) for part in (square, square * centred, square * square))
    return mean, second, third, fourth
