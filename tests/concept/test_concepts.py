"""Concepts of scalars, groups and joins, and the accuracy that follows from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.concept.concepts import Accuracy, GroupConcept, JoinConcept, ScalarConcept
from jettison.concept.distance import set_change, shift
from jettison.errors import InvalidSetting


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_keep_fraction_of_a_scalar_meets_its_accuracy(confidence):
    random = np.random.default_rng(3)
    values = random.gamma(2.0, 250.0, size=46_000)
    share = ScalarConcept.of(values).keep_fraction(Accuracy(0.03, confidence))
    trials = 600
    means = np.array([values[random.random(len(values)) < share].mean() for _ in range(trials)])
    within = (np.abs(means / values.mean() - 1.0) <= 0.03).mean()
    assert within == pytest.approx(confidence, abs=4 * np.sqrt(confidence * (1 - confidence) / trials))


def test_the_keep_fraction_of_a_sum_meets_its_accuracy_and_needs_more_rows():
    random = np.random.default_rng(4)
    values = random.gamma(4.0, 100.0, size=20_000)
    concept, accuracy = ScalarConcept.of(values), Accuracy(0.05, 0.9)
    share = concept.keep_fraction_of_sum(accuracy)
    sums = np.array([values[random.random(len(values)) < share].sum() / share for _ in range(600)])
    assert (np.abs(sums / values.sum() - 1.0) <= 0.05).mean() == pytest.approx(0.9, abs=0.05)
    assert share > concept.keep_fraction(accuracy)


@pytest.mark.parametrize("values", [[], [5.0], [-1.0, 1.0]])
def test_where_the_concept_is_unknown_everything_is_kept(values):
    assert ScalarConcept.of(values, rows=1000).keep_fraction(Accuracy(0.05)) == 1.0


def test_bad_accuracies_are_refused():
    with pytest.raises(InvalidSetting, match="`error` must be positive"):
        Accuracy(0.0)
    with pytest.raises(InvalidSetting, match="`confidence`"):
        Accuracy(0.1, 1.0)


keys = st.lists(st.integers(0, 30), max_size=80)


@given(keys)
def test_group_concepts_count_rows(rows):
    concept = GroupConcept.of(rows)
    assert concept.rows_of(range(-1, 32)).tolist() == [rows.count(key) for key in range(-1, 32)]


@given(keys, keys)
def test_join_concepts_know_every_match(left, right):
    concept = JoinConcept(GroupConcept.of(left), GroupConcept.of(right))
    assert concept.matches.sum() == sum(a == b for a in left for b in right)


@given(keys, keys)
def test_shifts_are_shares_and_the_same_concept_has_not_moved(before, after):
    first, second = GroupConcept.of(before), GroupConcept.of(after)
    moved = shift(first, second)
    assert all(-1e-9 <= share <= 1 + 1e-9 for share in (moved.distance, moved.overlap, moved.top_change))
    assert shift(first, first).distance == 0.0
    assert shift(first, first).overlap == 1.0
    assert moved.distance == pytest.approx(shift(second, first).distance)
    assert moved.appeared == len(set(after) - set(before))
    assert moved.vanished == len(set(before) - set(after))


def test_windows_without_a_common_group_lie_as_far_apart_as_can_be():
    moved = shift(GroupConcept.of([1, 1, 2]), GroupConcept.of([3, 4]))
    assert (moved.distance, moved.overlap, moved.top_change) == (1.0, 0.0, 1.0)


def test_half_of_the_top_ten_changing_is_a_change_of_one_half():
    assert set_change(np.arange(10), np.arange(5, 15)) == 0.5
