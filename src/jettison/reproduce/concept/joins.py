"""Joins: heavy keys thinned by row and light ones whole, against either way alone, at equal rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.concept.concepts import GroupConcept, JoinConcept
from jettison.concept.joins import JoinRates, estimate_join, join_rates

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]

KEYS = 20_000
ROWS = 100_000


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
