"""Uniform dropping spends the budget, no more and no less, and never on protected rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.stats import Budget, PointStats, Stats
from jettison.policies import Policy, UniformDrop
from jettison.policies.uniform.random_setting import RandomDrop

shares = st.floats(min_value=0.0, max_value=1.0)


def plan(budget: Budget, **protected: float):
    points = {name: PointStats(1000, 1000, share) for name, share in protected.items()}
    return UniformDrop().plan(Stats(0, 1e9, 1.0, points), budget)


def budget(keep: float, late: float | None = None, cause: str = "too many rows") -> Budget:
    return Budget(keep, keep if late is None else late, 3.0, cause)


def test_it_is_a_policy():
    assert isinstance(UniformDrop(), Policy)


def test_without_protected_rows_every_point_gets_the_budget_itself():
    made = plan(budget(0.4, 0.1), rides=0.0, fares=0.0)
    assert dict(made.points) == dict.fromkeys(("rides", "fares"), RandomDrop(0.4, 0.1, 3.0))


def test_version_is_left_to_the_publisher_and_the_cause_is_the_budgets():
    made = plan(budget(0.4), rides=0.0)
    assert (made.version, made.cause) == (0, "too many rows")


@given(keep=shares, late=shares, protected=shares)
def test_protected_and_sampled_rows_together_spend_the_budget_exactly(keep, late, protected):
    setting = plan(budget(keep, late), rides=protected).points["rides"]
    assert protected + (1 - protected) * setting.keep_fraction == pytest.approx(max(keep, protected), abs=1e-9)
    late_share = 1.0 if setting.late_keep_fraction is None else setting.late_keep_fraction
    assert protected + (1 - protected) * late_share == pytest.approx(max(late, protected), abs=1e-9)


def test_protected_rows_are_paid_for_by_the_others():
    assert plan(budget(0.4), rides=0.25).points["rides"].keep_fraction == pytest.approx(0.2)


def test_when_protected_rows_alone_exceed_the_budget_the_others_go_and_the_cause_names_the_points():
    made = plan(budget(0.2), zeta=0.5, alpha=0.3, fine=0.1)
    assert made.points["zeta"].keep_fraction == made.points["alpha"].keep_fraction == 0.0
    assert made.points["fine"].keep_fraction > 0.0
    assert made.cause == "too many rows; protected rows alone exceed the budget at alpha, zeta"


@pytest.mark.parametrize("protected", [0.0, 0.5, 1.0])
def test_a_full_budget_keeps_everything_late_or_not(protected):
    assert plan(budget(1.0), rides=protected).points["rides"] == RandomDrop()


def test_late_rows_can_be_thinned_while_all_fresh_ones_are_kept():
    setting = plan(budget(1.0, 0.05), rides=0.0).points["rides"]
    assert setting == RandomDrop(1.0, 0.05, 3.0)
    assert not setting.keeps_everything


def test_a_budget_above_one_is_one():
    assert plan(budget(1.5, 0.5), rides=0.0).points["rides"].keep_fraction == 1.0


@pytest.mark.parametrize("keep", [0.0, 0.3, 1.0])
def test_a_point_that_has_seen_nothing_is_planned_for_like_any_other(keep):
    made = UniformDrop().plan(Stats(0, 1e9, 1.0, {"rides": PointStats(0, 0)}), budget(keep))
    assert made.points["rides"].keep_fraction == keep
