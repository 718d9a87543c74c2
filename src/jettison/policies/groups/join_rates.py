"""Shedding both sides of an equi-join.

Heavy keys are thinned row by row, independently on either side. Light keys are kept or dropped whole, by a hash of the
key that both sides share: thinning them row by row would leave few pairs. A key is heavy exactly where its own part
of the variance is smaller when it is thinned row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.answers.estimate import quantile
from jettison.policies.groups.concepts import Accuracy, JoinConcept
from jettison.policies.groups.group_keys import Keys, looked_up

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class JoinRates:
    """How both sides of a join are thinned.

    Parameters
    ----------
    keys
        Heavy keys, ascending.
    left, right
        Shares to keep of their rows on either side.
    light
        Share of the other keys that are kept, whole, on both sides. Keys known on one side only are among them,
        because their match may still come.
    """

    keys: Keys
    left: Floats
    right: Floats
    light: float

    def shares(self, keys: ArrayLike) -> tuple[Bools, Floats, Floats]:
        """Whether each key is heavy, and the shares of its rows kept on the left and on the right."""
        left, right = (looked_up(self.keys, side, keys, self.light) for side in (self.left, self.right))
        return np.isin(keys, self.keys), left, right


def join_rates(concept: JoinConcept, allowed: float, *, max_named: int = 1500, unknown: float = 0.0) -> JoinRates:
    """Divide `allowed` rows of both sides so that the variance of the join's count is smallest.

    With l and r rows of a key, j = l r results and shares p and q, the variance is about j^2 (1/(p l) + 1/(q r)) for a
    heavy key, whose best kept rows are hence proportional to j on both sides; and j^2 / share for a light one. One
    multiplier joins all of them; it is found by bisection, and the rows expected never exceed `allowed`.

    Parameters
    ----------
    concept
        Rows of each key on either side.
    allowed
        Rows that may be kept of both sides together.
    max_named
        Most heavy keys that the plan has room for.
    unknown
        Rows of keys that the concept does not name; they count as light ones.

    Examples
    --------
    >>> from jettison.policies.groups.concepts import GroupConcept
    >>> concept = JoinConcept(GroupConcept.of([1] * 100 + [2]), GroupConcept.of([1] * 100 + [3]))
    >>> rates = join_rates(concept, allowed=50)
    >>> rates.keys.tolist(), rates.left.round(2).tolist()
    ([1], [0.25])
    """
    keys, matches = concept.keys, concept.matches
    left, right = concept.left.rows_of(keys), concept.right.rows_of(keys)
    total = float(concept.left.rows.sum() + concept.right.rows.sum()) + unknown
    if total <= allowed or total <= 0:
        return JoinRates(keys[:0], np.empty(0), np.empty(0), 1.0)
    heavy = is_heavy(left, right, max(allowed, 0.0) / total)
    if heavy.sum() > max_named:
        chosen = np.argsort(-np.where(heavy, matches, 0.0), kind="stable")[:max_named]
        heavy = heavy & np.isin(np.arange(len(keys)), chosen)
    light_rows = total - float((left + right)[heavy].sum())
    light_square = float((matches[~heavy] ** 2).sum())
    size = np.concatenate([left[heavy], right[heavy]])
    weight = np.tile(matches[heavy], 2)

    def spend(multiplier: float) -> tuple[Floats, float]:
        # Never less than the even share: a concept that is wrong must not leave a key nearly without rows.
        kept = np.clip(multiplier * weight, 0.25 * size * allowed / total, size)
        best = multiplier * np.sqrt(light_square / light_rows) if light_rows > 0 else 0.0
        return kept, float(np.clip(best, 0.25 * allowed / total, 1.0))

    low, high = 0.0, 1.0
    while _rows(*spend(high), light_rows) <= allowed and high < 1e30:
        low, high = high, 2.0 * high
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _rows(*spend(middle), light_rows) <= allowed else (low, middle)
    kept, light = spend(low)
    share = np.divide(kept, size, out=np.ones_like(kept), where=size > 0)
    count = int(heavy.sum())
    return JoinRates(keys[heavy], share[:count], share[count:], light)


def is_heavy(left: ArrayLike, right: ArrayLike, share: float) -> Bools:
    """Whether thinning a key row by row at this share varies less than keeping or dropping it whole.

    By row the relative variance is a/l + a/r + a^2/(l r) with a = (1 - share) / share; whole it is a.

    >>> is_heavy([1, 2, 100], [1, 50, 100], 0.1).tolist()
    [False, True, True]
    """
    x, y = np.asarray(left, float), np.asarray(right, float)
    odds = (1.0 - share) / max(share, 1e-12)
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / x + 1.0 / y + odds / (x * y) < 1.0)


def count_error(concept: JoinConcept, rates: JoinRates, confidence: float = 0.95) -> float:
    """Relative error of the join's count to be expected under the rates, for rows as the concept has them.

    Infinite where the concept knows of no result.

    >>> from jettison.policies.groups.concepts import GroupConcept
    >>> concept = JoinConcept(GroupConcept.of([1] * 100), GroupConcept.of([1] * 100))
    >>> rates = JoinRates(np.array([1]), np.array([0.5]), np.array([1.0]), 1.0)
    >>> round(count_error(concept, rates), 3)
    0.196
    """
    matches = concept.matches
    if not matches.any():
        return float("inf")
    left, right = concept.left.rows_of(concept.keys), concept.right.rows_of(concept.keys)
    heavy, p, q = rates.shares(concept.keys)
    with np.errstate(divide="ignore"):
        by_left, by_right = (1.0 / p - 1.0) / left, (1.0 / q - 1.0) / right
        relative = np.where(heavy, by_left + by_right + by_left * by_right, 1.0 / p - 1.0)
    z = quantile(confidence)
    return float(z * np.sqrt((matches**2 * relative).sum()) / matches.sum())


def rows_for(
    concept: JoinConcept, accuracy: Accuracy, most: float, *, max_named: int = 1500, unknown: float = 0.0
) -> float:
    """Rows of both sides together that the accuracy of the join's count asks for, `most` where it asks for more.

    `max_named` and `unknown` as in `join_rates`.

    >>> from jettison.policies.groups.concepts import GroupConcept
    >>> concept = JoinConcept(GroupConcept.of([1] * 9000), GroupConcept.of([1] * 9000))
    >>> round(rows_for(concept, Accuracy(0.1), most=18_000)), rows_for(concept, Accuracy(0.1), most=500)
    (1417, 500)
    """

    def error(rows: float) -> float:
        rates = join_rates(concept, rows, max_named=max_named, unknown=unknown)
        return count_error(concept, rates, accuracy.confidence)

    low, high = 0.0, most
    if most <= 0.0 or error(most) > accuracy.error:
        return most
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if error(middle) <= accuracy.error else (middle, high)
    return high


def _rows(kept: Floats, light: float, light_rows: float) -> float:
    return float(kept.sum()) + light * light_rows
