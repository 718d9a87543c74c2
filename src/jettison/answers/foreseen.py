"""What the bounds of an answer would be if the rows were shed that a dry run only decides on.

In a dry run all rows are there, and one that would weigh w if it were kept is marked: it weighs 1 + s (w - 1), with a
tiny step s. The answer is that over all rows. Bounds are made of sums over kept rows, and a row is kept with probability
1 / w: what is expected of a sum of w (w - 1) f(x) over kept rows is the sum of (w - 1) f(x) over all rows. That is what the
same sum over marked rows comes to, once it is divided by s. So a dry run needs no sum that the query does not have
already, and the query can be switched on with the state that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from jettison.answers.estimate import Answer, Estimator, Moments, Ops, Value, Weights, collapsed, over

STEP = 2.0**-24
"""Small enough for sums of weights to be those of rows that weigh 1, and large enough for its square not to be lost."""

_LARGEST_DOMINANCE = 0.9
_SPREAD = 1e-3  # of weights, beside their square, below which they count as one
_RISKS = ("risk_square", "about_risk", "about_risked")
_KEPT = ("at_risk", "risky_sum", "risky_square")


def marked(weight: Value) -> Value:
    """The weight in a dry run of a row that would have this one.

    >>> marked(1.0), marked(3.0) - 1.0 == 2.0 * STEP
    (1.0, True)
    """
    return 1.0 + STEP * (weight - 1.0)


def foresee(
    ops: Ops,
    estimator: Estimator,
    weights: Weights,
    moments: Moments,
    z: float,
    answer: Answer = collapsed,
) -> Value:
    """The estimate that is expected if the rows are shed whose marked weights and values are described.

    It is the estimate of expected sums. How many rows are kept, the sum of 1 / w, follows from the first three moments of w
    as if there were two weights; for one or two it is exact.
    """
    rows = ops.smaller(weights.uncertain * 1.0, weights.kept * 1.0)

    def named(risk: Value, square: Value, cube: Value, rows: Value) -> Value:
        return ops.once((_share_kept(ops, rows, risk, square, cube),), partial(made, risk, square, cube, rows))

    def made(risk: Value, square: Value, cube: Value, rows: Value, share: Value) -> Value:
        expected = replace(
            weights, kept=weights.kept - rows * (1.0 - share), risk=risk, risk_squared=cube + square, risk_excess=square
        )
        factors = dict.fromkeys(_RISKS, 1.0 / STEP) | dict.fromkeys(_KEPT, share)
        present = {name: part for name in factors if (part := getattr(moments, name)) is not None}
        of_kept = replace(moments, **{name: part * factors[name] for name, part in present.items()})
        return _of_sample(ops, moments, of_kept, lambda shape: estimator(ops, expected, shape, z, answer))

    # Sums of w - 1, of its square and of its cube.
    cube = (weights.risk_squared - weights.risk_excess) / STEP**3
    parts = (weights.risk / STEP, weights.risk_excess / STEP**2, cube, rows)
    return ops.once(tuple(ops.present(part, 0.0) for part in parts), named)


def _share_kept(ops: Ops, rows: Value, risk: Value, square: Value, cube: Value) -> Value:
    """Mean of 1 / w over the rows at risk, by Gauss quadrature from the moments of w - 1; of one weight its inverse."""

    def mean(first: Value, second: Value, third: Value) -> Value:
        spread, skew = second - first * first, first * second - third
        two = over(ops, spread * (1.0 - first) - skew, spread * (1.0 - second) - skew * (1.0 + first))
        one = 1.0 / (1.0 + first)
        return ops.where(spread > _SPREAD * second, ops.smaller(ops.larger(two, one), 1.0), one)

    return ops.once(tuple(over(ops, part, rows) for part in (risk, square, cube)), mean)


def _of_sample(ops: Ops, whole: Moments, kept: Moments, body: Callable[[Moments], Value]) -> Value:
    """Apply `body` to the moments with the skewness and kurtosis that a sample of so many rows is expected to have."""
    if whole.skewness is None and whole.kurtosis is None:
        return body(kept)
    skewness, kurtosis = (
        ops.present(part, 0.0) if part is not None else 0.0 for part in (whole.skewness, whole.kurtosis)
    )
    sizes = tuple(ops.sqrt(ops.larger(each.at_risk * 1.0, 1.0)) for each in (whole, kept))

    def made(skewness: Value, kurtosis: Value, root: Value, *sizes: Value) -> Value:
        root = _shrunk(ops, root, *sizes)
        shape = {
            "skewness": _shrunk(ops, skewness, *sizes),
            "kurtosis": ops.where(kurtosis > 0.0, root * root, kurtosis),
        }
        return body(replace(kept, **{name: part for name, part in shape.items() if getattr(whole, name) is not None}))

    return ops.once((skewness, kurtosis, ops.sqrt(ops.larger(kurtosis, 0.0)), *sizes), made)


def _shrunk(ops: Ops, skewness: Value, rows: Value, kept: Value) -> Value:
    """Skewness of a sample, from that of all rows; the sizes are the roots of their numbers of rows.

    A sample understates skewness, by the square of 1 - d with dominance d, the skewness over the root of the number of rows.
    So all rows do, seen as a sample themselves. The root of kurtosis behaves alike.
    """
    size = ops.larger(skewness, -skewness)
    far = over(ops, size, kept) * (1.0 - ops.smaller(size / rows, _LARGEST_DOMINANCE)) ** -2.0
    dominance = 2.0 * far / (2.0 * far + 1.0 + ops.sqrt(4.0 * far + 1.0))  # of the sample: d with d / (1 - d)^2 = far
    return skewness * over(ops, dominance * kept, size)
