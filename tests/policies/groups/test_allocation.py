"""Rows are divided exactly, within the budget, and in proportion to the shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.policies.groups.allocation import allocate

sizes = st.lists(st.integers(min_value=0, max_value=10_000), min_size=1, max_size=60)
budgets = st.floats(min_value=0.0, max_value=50_000.0)


def shares_of(rule, rows, seed=0):
    """None for equal caps, or shares that follow the rows, their root, or nothing that the rows tell."""
    rows = np.array(rows, float)
    by_rule = {"proportional": rows, "root": np.sqrt(rows), "any": np.random.default_rng(seed).random(len(rows))}
    return by_rule.get(rule)


rules = st.sampled_from(["equal", "proportional", "root", "any"])


@given(rows=sizes, budget=budgets, rule=rules, seed=st.integers(0, 9))
def test_the_budget_is_never_exceeded_and_no_group_gets_more_than_it_has(rows, budget, rule, seed):
    kept = allocate(rows, budget, shares=shares_of(rule, rows, seed)).rows
    assert kept.sum() <= budget * (1 + 1e-9) + 1e-6
    assert (kept >= 0).all()
    assert (kept <= np.array(rows) + 1e-9).all()


@given(rows=sizes, budget=budgets)
def test_equal_caps_spend_all_of_the_budget_or_keep_everything(rows, budget):
    assert allocate(rows, budget).rows.sum() == pytest.approx(min(budget, sum(rows)), rel=1e-9, abs=1e-6)


@given(rows=sizes, budget=budgets, rule=rules)
def test_every_group_gets_its_floor_unless_floors_alone_exceed_the_budget(rows, budget, rule):
    made = allocate(rows, budget, shares=shares_of(rule, rows), min_rows=10)
    floor = np.minimum(rows, 10)
    if floor.sum() <= budget:
        assert (made.rows >= floor - 1e-9).all()


@given(rows=sizes, budget=budgets)
def test_under_equal_caps_no_group_gets_more_than_a_larger_one_nor_is_anyone_cut_below_the_cap(rows, budget):
    made = allocate(rows, budget)
    assert made.rows == pytest.approx(np.minimum(rows, made.level), rel=1e-9, abs=1e-6)


def test_worked_examples():
    rows = [900.0, 90.0, 10.0]
    assert allocate(rows, 100, shares=rows, min_rows=0).rows.tolist() == [90.0, 9.0, 1.0]
    assert allocate(rows, 110, shares=rows, min_rows=10).rows.tolist() == [90.0, 10.0, 10.0]
    assert allocate(rows, 70).rows.tolist() == [30.0, 30.0, 10.0]
    # Neyman: 900 * 1 to 90 * 10 is one to one.
    neyman = allocate([900.0, 90.0], 100, shares=[900.0 * 1.0, 90.0 * 10.0], min_rows=0)
    assert neyman.rows.tolist() == [50.0, 50.0]
    assert allocate([400.0, 100.0], 30, shares=[20.0, 10.0], min_rows=0).rows.tolist() == [20.0, 10.0]


def test_a_crowded_budget_is_divided_by_equal_caps_below_the_floor():
    made = allocate([100.0] * 50, 200, shares=np.arange(50))
    assert made.rows.tolist() == [4.0] * 50


def test_a_million_groups_are_divided_exactly():
    rows = np.random.default_rng(1).zipf(1.5, 1_000_000).clip(max=10**6).astype(float)
    made = allocate(rows, 3e6, min_rows=1)
    assert made.rows.sum() == pytest.approx(min(3e6, rows.sum()))
    assert made.rows.min() >= min(1.0, made.level)
