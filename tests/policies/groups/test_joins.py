"""Joins: within the budget, unbiased for any rates, covered by their bounds, and better than either pure way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.lab.reproduce.concept.joins import estimate_join
from jettison.policies.groups.concepts import Accuracy, GroupConcept, JoinConcept
from jettison.policies.groups.join_rates import JoinRates, count_error, is_heavy, join_rates, rows_for

KEYS = 3000


def sides(random, rows=20_000, skew=1.1):
    share = 1 / np.arange(1, KEYS + 1) ** skew
    return (random.choice(KEYS, rows, p=share / share.sum()) for _ in range(2))


def thin(left, right, rates, random):
    """Kept rows of each key by the rates: heavy keys by row, light ones by one draw a key."""
    heavy, p, q = rates.shares(np.arange(KEYS))
    whole = random.random(KEYS) < rates.light
    return tuple(
        np.bincount(side[np.where(heavy[side], random.random(len(side)) < share[side], whole[side])], minlength=KEYS)
        for side, share in ((left, p), (right, q))
    )


def expected_rows(left, right, rates):
    _, p, q = rates.shares(np.arange(KEYS))
    return p[left].sum() + q[right].sum()


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_counts_are_unbiased_and_covered(share):
    random = np.random.default_rng(1)
    left, right = sides(random)
    concept = JoinConcept(GroupConcept.of(left), GroupConcept.of(right))
    rates = join_rates(concept, share * 40_000)
    assert expected_rows(left, right, rates) <= share * 40_000 * (1 + 1e-9)
    truth, trials = concept.matches.sum(), 300
    made = [estimate_join(np.arange(KEYS), *thin(left, right, rates, random), rates) for _ in range(trials)]
    values = np.array([one.value for one in made])
    assert values.mean() == pytest.approx(truth, abs=4 * values.std() / np.sqrt(trials))
    covered = np.mean([one.lower <= truth <= one.upper for one in made])
    assert 0.90 <= covered <= 0.99


@pytest.mark.parametrize("error", [0.03, 0.2])
def test_the_rows_for_an_accuracy_give_it(error):
    random = np.random.default_rng(6)
    left, right = sides(random)
    concept = JoinConcept(GroupConcept.of(left), GroupConcept.of(right))
    allowed = rows_for(concept, Accuracy(error, 0.9), 40_000)
    rates = join_rates(concept, allowed)
    assert allowed < 20_000
    assert count_error(concept, rates, 0.9) == pytest.approx(error, rel=0.01)
    truth, trials = concept.matches.sum(), 400
    made = [estimate_join(np.arange(KEYS), *thin(left, right, rates, random), rates).value for _ in range(trials)]
    within = (np.abs(np.array(made) / truth - 1.0) <= error).mean()
    assert within == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / trials))


def test_an_accuracy_out_of_reach_takes_what_there_is():
    concept = JoinConcept(GroupConcept.of([1] * 500), GroupConcept.of([1] * 500))
    assert rows_for(concept, Accuracy(0.001), 100) == 100
    unmatched = JoinConcept(GroupConcept.of([1]), GroupConcept.of([2]))
    assert rows_for(unmatched, Accuracy(0.1), 2) == 2


def test_counts_are_unbiased_although_the_concept_is_wrong():
    random = np.random.default_rng(2)
    left, right = sides(random)
    wrong = JoinConcept(GroupConcept.of((left * 7) % KEYS), GroupConcept.of((right * 7) % KEYS))
    rates = join_rates(wrong, 8000)
    truth = np.bincount(right, minlength=KEYS)[left].sum()
    values = [estimate_join(np.arange(KEYS), *thin(left, right, rates, random), rates).value for _ in range(400)]
    assert np.mean(values) == pytest.approx(truth, abs=4 * np.std(values) / np.sqrt(len(values)))


def test_the_hybrid_varies_less_than_hashing_alone_and_than_independent_thinning_alone():
    random = np.random.default_rng(3)
    left, right = sides(random)
    concept = JoinConcept(GroupConcept.of(left), GroupConcept.of(right))
    allowed = 0.05 * 40_000
    keys = np.arange(KEYS)
    ways = {
        "hybrid": join_rates(concept, allowed),
        "hash": JoinRates(keys[:0], np.empty(0), np.empty(0), 0.05),
        "independent": JoinRates(keys, np.full(KEYS, 0.05), np.full(KEYS, 0.05), 0.05),
    }
    spread = {
        name: np.std([estimate_join(keys, *thin(left, right, rates, random), rates).value for _ in range(150)])
        for name, rates in ways.items()
    }
    assert spread["hybrid"] < 0.7 * min(spread["hash"], spread["independent"])


def test_a_key_with_one_row_on_each_side_is_light_and_a_large_one_heavy():
    assert is_heavy([1, 1, 500], [1, 500, 500], 0.05).tolist() == [False, False, True]


def test_what_fits_the_budget_is_kept_whole_and_counted_exactly():
    concept = JoinConcept(GroupConcept.of([1, 1, 2]), GroupConcept.of([1, 2, 2]))
    rates = join_rates(concept, 6)
    made = estimate_join([1, 2], [2, 1], [1, 2], rates)
    assert (rates.light, made.value, made.lower, made.upper) == (1.0, 4.0, 4.0, 4.0)


def test_no_key_known_on_one_side_only_is_given_up():
    concept = JoinConcept(GroupConcept.of([1] * 500 + [5] * 500), GroupConcept.of([1] * 500))
    rates = join_rates(concept, 100)
    assert rates.keys.tolist() == [1]
    assert rates.light > 0


@given(
    left=st.lists(st.integers(0, 20), max_size=200),
    right=st.lists(st.integers(0, 20), max_size=200),
    share=st.floats(0.01, 1.2),
    max_named=st.integers(0, 5),
)
def test_the_budget_holds_for_any_histograms(left, right, share, max_named):
    concept = JoinConcept(GroupConcept.of(left), GroupConcept.of(right))
    allowed = share * (len(left) + len(right))
    rates = join_rates(concept, allowed, max_named=max_named)
    _, p, _ = rates.shares(left)
    _, _, q = rates.shares(right)
    assert p.sum() + q.sum() <= allowed * (1 + 1e-6) + 1e-6
    assert len(rates.keys) <= max_named
