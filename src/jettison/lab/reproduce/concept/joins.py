"""Joins: heavy keys thinned by row and light ones whole, against either way alone, at equal rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.answers.estimate import quantile
from jettison.policies.groups.concepts import GroupConcept, JoinConcept
from jettison.policies.groups.join_rates import JoinRates, join_rates

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]

KEYS = 20_000
ROWS = 100_000


@dataclass(frozen=True, slots=True)
class JoinEstimate:
    """Count of a join with 95 % bounds."""

    value: float
    lower: float
    upper: float


def estimate_join(keys: ArrayLike, left_kept: ArrayLike, right_kept: ArrayLike, rates: JoinRates) -> JoinEstimate:
    """Count of the join from the rows kept of each key, on either side; each key once.

    Unbiased for any rates. The variance is unbiased too: for heavy keys Goodman's (1960) for a product of independent
    estimates, for light ones Horvitz and Thompson's over keys.
    """
    m, n = np.asarray(left_kept, float), np.asarray(right_kept, float)
    heavy, p, q = rates.shares(np.asarray(keys, np.int64))
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = m / p, n / q
        x_variance, y_variance = m * (1 - p) / p**2, n * (1 - q) / q**2
        heavy_variance = x * x * y_variance + y * y * x_variance - x_variance * y_variance
        whole = m * n
        value = np.where(heavy, x * y, whole / p)
        variance = np.where(heavy, heavy_variance, whole**2 * (1 - p) / p**2)
    held = (m > 0) & (n > 0)
    estimate = float(value[held].sum())
    margin = quantile(0.95) * float(np.sqrt(max(float(variance[held].sum()), 0.0)))
    return JoinEstimate(estimate, max(estimate - margin, float(whole[held].sum())), estimate + margin)


@dataclass(frozen=True, slots=True)
class JoinOutcome:
    """One way to shed a join, over many draws."""

    way: str
    share: float
    processed: float
    error: float
    coverage: float


def run_joins(shares: list[float], *, draws: int, seed: int) -> list[JoinOutcome]:
    """Root mean square error and coverage of the join's count, for each way and share of the rows."""
    random = np.random.default_rng([seed, 11])
    popularity = 1.0 / np.arange(1, KEYS + 1.0) ** 1.1
    popularity /= popularity.sum()
    left = random.multinomial(ROWS, popularity)
    # The other side likes the same keys, but not in the same order.
    right = random.multinomial(ROWS, popularity[np.argsort(np.arange(KEYS) * random.lognormal(0, 0.7, KEYS))])
    keys = np.arange(KEYS)
    concept = JoinConcept(GroupConcept(keys, left.astype(float)), GroupConcept(keys, right.astype(float)))
    outcomes = []
    for share in shares:
        ways = {
            "hybrid": join_rates(concept, share * 2 * ROWS),
            "consistent hash only": JoinRates(keys[:0], np.empty(0), np.empty(0), share),
            "independent only": JoinRates(keys, np.full(KEYS, share), np.full(KEYS, share), share),
        }
        outcomes += [_outcome(way, share, rates, left, right, draws, random) for way, rates in ways.items()]
    return outcomes


def _outcome(
    way: str, share: float, rates: JoinRates, left: Keys, right: Keys, draws: int, random: np.random.Generator
) -> JoinOutcome:
    keys = np.arange(len(left))
    heavy, p, q = rates.shares(keys)
    truth = float((left * right).sum())
    gaps, covered, processed = [], [], []
    for _ in range(draws):
        whole = random.random(len(keys)) < rates.light
        kept = [
            np.where(heavy, random.binomial(rows, np.clip(chance, 0, 1)), rows * whole)
            for rows, chance in ((left, p), (right, q))
        ]
        made = estimate_join(keys, kept[0], kept[1], rates)
        gaps.append(made.value / truth - 1.0)
        covered.append(made.lower <= truth <= made.upper)
        processed.append((kept[0].sum() + kept[1].sum()) / (left.sum() + right.sum()))
    error = float(np.sqrt(np.mean(np.square(gaps))))
    return JoinOutcome(way, share, float(np.mean(processed)), error, float(np.mean(covered)))
