"""Concepts of groups and joins, and the accuracy that follows from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.policies.groups.concepts import Accuracy, GroupConcept, JoinConcept, shift


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_as_many_rows_as_an_accuracy_asks_for_give_it(confidence):
    random = np.random.default_rng(3)
    values = random.gamma(2.0, 250.0, size=1_000_000)
    rows = round(Accuracy(0.03, confidence).rows(values.std() / values.mean()))
    trials = 600
    means = random.choice(values, (trials, rows)).mean(axis=1)
    within = (np.abs(means / values.mean() - 1.0) <= 0.03).mean()
    assert within == pytest.approx(confidence, abs=4 * np.sqrt(confidence * (1 - confidence) / trials))


def test_fewer_rows_than_an_accuracy_asks_for_give_a_larger_error():
    assert Accuracy(0.05).rows(1.0) == pytest.approx(1536.6, abs=0.1)
    assert Accuracy(0.05).expected(1536.6 / 4, 1.0) == pytest.approx(0.1, rel=1e-3)
    assert Accuracy(0.05).expected(0.0, 1.0) == float("inf")


def test_bad_accuracies_are_refused():
    for error in (0.0, 1.0, 5):
        with pytest.raises(InvalidSetting, match=r"`error` must lie in \(0, 1\)"):
            Accuracy(error)
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
    before, after = GroupConcept.of(np.arange(10)), GroupConcept.of(np.arange(5, 15))
    assert shift(before, after).top_change == 0.5
