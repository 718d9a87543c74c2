"""Rates of a window: the budget holds, small and unknown groups are kept, and no answer is biased."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.lab.reproduce.concept.methods import opening_share
from jettison.policies.groups.allocation import allowed_rows
from jettison.policies.groups.window_rates import window_rates
from jettison.policies.groups.window_tally import WindowTally


def tally_of(seen, progress=0.5, overflow=0.0):
    return WindowTally(0).add(np.arange(len(seen)), seen, progress=progress, overflow_rows=overflow)


counts = st.lists(st.integers(1, 3000), min_size=1, max_size=50)


@given(
    seen=counts,
    progress=st.floats(0.02, 0.98),
    share=st.floats(0.0, 1.0),
    overflow=st.integers(0, 5000),
    max_named=st.integers(0, 60),
    equal=st.booleans(),
)
def test_the_rows_expected_never_exceed_what_is_allowed(seen, progress, share, overflow, max_named, equal):
    tally = tally_of(seen, progress, overflow)
    allowed = share * tally.rows
    rates = window_rates(tally, allowed, max_named=max_named, shares=None if equal else tally.seen)
    scale = (1 - progress) / progress
    spent = (rates.shares(tally.keys) * tally.seen).sum() * scale
    spent += rates.other * (tally.seen_once * np.log1p(scale) + overflow * scale)
    assert spent == pytest.approx(rates.expected_rows, rel=1e-6, abs=1e-6)
    assert spent <= allowed * (1 + 1e-9) + 1e-6 or rates.expected_rows >= rates.rows_left - 1e-6 <= allowed
    assert len(rates.keys) <= max_named
    assert ((rates.keep >= 0) & (rates.keep <= 1)).all()
    assert 0.0 <= rates.other <= 1.0


@given(seen=counts, progress=st.floats(0.05, 0.95), extra=st.floats(0.0, 1000.0))
def test_while_there_are_min_rows_for_every_group_nothing_unknown_or_small_is_dropped(seen, progress, extra):
    tally = tally_of(seen, progress)
    scale = (1 - progress) / progress
    unknown = tally.seen_once * np.log1p(scale)
    rates = window_rates(tally, unknown + np.minimum(tally.seen * scale, 10).sum() + extra + 1e-6)
    assert not rates.crowded
    assert rates.shares([10**9]).tolist() == [1.0]
    small = tally.seen * scale <= 10
    assert (rates.shares(tally.keys)[small] == 1.0).all()
    assert (rates.shares(tally.keys) * tally.seen * scale >= np.minimum(tally.seen * scale, 10) - 1e-6).all()


def test_when_groups_outnumber_the_budget_it_is_said_and_the_budget_holds():
    rates = window_rates(tally_of([3.0] * 1000), allowed=500)
    assert rates.crowded
    assert rates.expected_rows <= 500
    assert rates.shares(np.arange(1000)) == pytest.approx(np.full(1000, 500 / 3000))


def test_groups_beyond_the_room_of_the_plan_are_kept_whole_if_the_named_ones_can_pay():
    rates = window_rates(tally_of([1000.0] + [40.0] * 20), allowed=900, max_named=1)
    assert rates.keys.tolist() == [0]
    assert rates.other == 1.0
    assert rates.expected_rows == pytest.approx(900)


def test_groups_beyond_the_room_of_the_plan_cannot_break_the_budget():
    rates = window_rates(tally_of([1000.0] * 20), allowed=900, max_named=3)
    assert len(rates.keys) == 3
    assert rates.expected_rows <= 900 * (1 + 1e-9)


def test_an_overflow_of_untracked_groups_cannot_break_the_budget():
    rates = window_rates(tally_of([1000.0], overflow=50_000), allowed=2000)
    assert rates.expected_rows <= 2000 * (1 + 1e-9)
    assert 0 < rates.other < 0.05


def test_an_accuracy_that_is_met_leaves_rows_unspent():
    rates = window_rates(tally_of([1000.0, 1000.0, 5.0]), allowed=1500, enough_rows=50)
    assert rates.expected_rows == pytest.approx(105)


@given(seen=counts, allowed=st.floats(1, 20_000), enough=st.floats(1, 200), max_named=st.integers(0, 10))
def test_an_accuracy_never_makes_a_plan_break_the_budget(seen, allowed, enough, max_named):
    rates = window_rates(tally_of(seen), allowed, enough_rows=enough, max_named=max_named)
    assert rates.expected_rows <= max(allowed, 0) * (1 + 1e-9) + 1e-6
    assert len(rates.keys) <= max_named


def test_tallies_add_up_and_keep_the_largest_groups():
    tally = WindowTally(0).add([1, 1, 2], progress=0.1).add([2, 2, 3, 3, 3], progress=0.2, max_keys=2)
    assert tally.keys.tolist() == [2, 3]
    assert tally.seen.tolist() == [3.0, 3.0]
    assert (tally.overflow_rows, tally.rows, tally.progress) == (2.0, 8.0, 0.2)


@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=8), st.integers(1, 50))
def test_no_row_is_lost_by_a_bounded_tally(batches, max_keys):
    tally = WindowTally(0)
    for batch in batches:
        tally = tally.add(batch, progress=0.5, max_keys=max_keys)
        assert len(tally.keys) <= max_keys
    assert tally.rows == sum(map(len, batches))


def run_window(groups, batches, budget, random, values=None):
    """One window by these rates; rows kept, and their weights."""
    tally, keep, weight = WindowTally(0), np.zeros(len(groups), bool), np.zeros(len(groups))
    pieces = np.array_split(np.arange(len(groups)), batches)
    for number, piece in enumerate(pieces):
        if number:
            rates = window_rates(tally, budget - tally.kept, left=1 - number / batches)
            share = rates.shares(groups[piece])
        else:
            share = np.ones(len(piece))
        keep[piece] = random.random(len(piece)) < share
        weight[piece] = 1 / np.maximum(share, 1e-300)
        tally = tally.add(groups[piece], progress=(number + 1) / batches, kept=float(share.sum()))
    return keep, weight


def heavy_tail(random, rows=20_000, groups=400):
    share = 1 / np.arange(1, groups + 1) ** 1.2
    return random.choice(groups, rows, p=share / share.sum())


@pytest.mark.parametrize("seed", range(5))
def test_no_group_is_missing_and_the_budget_is_met_on_a_heavy_tail(seed):
    random = np.random.default_rng(seed)
    groups = heavy_tail(random)
    keep, _ = run_window(groups, 60, budget=4000, random=random)
    assert set(groups[keep]) == set(groups)
    assert keep.sum() == pytest.approx(4000, rel=0.1)


def test_a_group_that_turns_heavy_half_way_is_neither_lost_nor_does_it_break_the_budget():
    random = np.random.default_rng(9)
    groups = heavy_tail(random)
    groups[10_000:] = np.where(random.random(10_000) < 0.5, 9999, groups[10_000:])
    keep, _ = run_window(groups, 60, budget=4000, random=random)
    assert set(groups[keep]) == set(groups)
    assert keep.sum() <= 4000 * 1.1


def test_weighted_sums_of_every_group_are_unbiased_although_the_concept_changes_within_the_window():
    random = np.random.default_rng(11)
    groups = np.concatenate([random.integers(0, 5, 3000), random.integers(3, 9, 3000)])
    values = groups + np.linspace(1, 5, 6000)  # drifts within the window too
    truth = np.bincount(groups, values, 9)
    sums = []
    for _ in range(400):
        keep, weight = run_window(groups, 20, budget=900, random=random)
        sums.append(np.bincount(groups[keep], (weight * values)[keep], 9))
    error = np.mean(sums, axis=0) - truth
    assert (np.abs(error) <= 4.5 * np.std(sums, axis=0) / np.sqrt(len(sums)) + 1e-9).all()


def test_a_window_is_opened_whole_only_if_the_rest_can_be_served():
    assert opening_share(1000, 2200, 60_000, groups=300) == 1.0
    assert opening_share(1000, 2199, 60_000, groups=300) == pytest.approx(2199 / 60_000)
    assert opening_share(1000, 4000, 60_000, groups=300, rows_each=10) == 1.0
    assert opening_share(0, 0, 0, groups=0) == 1.0


def test_when_rows_are_short_groups_without_a_kept_row_come_first():
    kept_of = np.repeat([0.0, 5.0], 100)
    tally = WindowTally(0).add(np.arange(200), np.full(200, 60.0), progress=0.5, kept_of=kept_of)
    rates = window_rates(tally, allowed=200, next_share=1 / 60)
    assert rates.crowded
    assert rates.shares(np.arange(100)).tolist() == [1.0] * 100
    assert rates.shares(np.arange(100, 200)) == pytest.approx(1 / 60)
    assert rates.expected_rows <= 200


def test_groups_that_have_a_row_are_never_given_up_for_those_that_have_none():
    kept_of = np.repeat([0.0, 5.0], [1000, 10])
    tally = WindowTally(0).add(np.arange(1010), np.full(1010, 60.0), progress=0.5, kept_of=kept_of)
    rates = window_rates(tally, allowed=100, next_share=1 / 60)
    assert 0.0 < rates.other < 1.0
    assert (rates.shares(np.arange(1000, 1010)) > 0).all()
    assert rates.expected_rows <= 100 * (1 + 1e-9)


def test_the_smaller_of_latency_and_row_budget_is_allowed():
    assert allowed_rows(0.1, 1000, row_budget_left=500) == (100.0, False)
    assert allowed_rows(0.9, 1000, row_budget_left=500) == (500.0, True)
    assert allowed_rows(0.9, 1000, row_budget_left=-5) == (0.0, True)
    assert allowed_rows(0.9, 1000) == (900.0, False)


def test_weighted_sums_stay_unbiased_when_rows_are_short_and_unserved_groups_come_first():
    random = np.random.default_rng(17)
    groups = random.integers(0, 40, 1200)
    values = 1.0 + groups + np.linspace(0, 3, 1200)
    truth, batches, totals = values.sum(), 20, []
    pieces = np.array_split(np.arange(1200), batches)
    for _ in range(400):
        tally, total = WindowTally(0), 0.0
        for number, piece in enumerate(pieces):
            share = np.full(len(piece), 0.1)
            if number:
                left = 1 - number / batches
                rates = window_rates(tally, 120 - tally.kept, left=left, next_share=1 / (batches - number))
                share = rates.shares(groups[piece])
            keep = random.random(len(piece)) < share
            total += (values[piece][keep] / share[keep]).sum()
            tally = tally.add(
                groups[piece], np.ones(len(piece)), progress=(number + 1) / batches, kept=share.sum(), kept_of=keep
            )
        totals.append(total)
    assert np.mean(totals) == pytest.approx(truth, abs=4 * np.std(totals) / np.sqrt(len(totals)))
