"""What weighs least goes first, the budget is spent, and no level vanishes while there is room."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.decision import Candidates
from jettison.core.stats import Budget, PointStats, Stats
from jettison.errors import InvalidInput, InvalidSetting
from jettison.policies.base import Lesson
from jettison.policies.priority.priority_drop import PriorityDrop
from jettison.policies.priority.priority_setting import LevelDrop, LevelSpec
from jettison.policies.uniform.random_setting import RandomDrop, RandomSpec

SEEN = Stats(0, 0.0, 1.0, {"rows": PointStats(1000, 1000)})


def keeps(rows, share, late=None, **options):
    policy = PriorityDrop({f"a = {n}": len(rows) - n for n in range(len(rows) - 1)}, **options)
    policy.learn(Lesson(0, observed={"rows": tuple(rows)}))
    return policy.plan(SEEN, Budget(share, share if late is None else late, 3.0, "")).points["rows"]


@given(
    rows=st.lists(st.integers(0, 10**9), min_size=2, max_size=9).filter(any),
    share=st.floats(0.0, 1.0),
    late=st.floats(0.0, 1.0),
    least=st.floats(0.0, 1.0),
)
def test_the_budget_is_spent_from_the_top(rows, share, late, least):
    setting = keeps(rows, share, late, least=least)
    for spent, budget in ((setting.keeps, share), (setting.late_keeps or setting.keeps, late)):
        assert sum(count * one for count, one in zip(rows, spent, strict=True)) / sum(rows) == pytest.approx(budget)
        assert list(spent) == sorted(spent, reverse=True)
        assert min(spent) >= min(least, budget) - 1e-12
        # Of two levels the lower has more than its least only where the higher loses nothing.
        for higher, lower in pairwise(spent):
            assert lower <= min(least, budget) + 1e-6 or higher >= 1.0 - 1e-6 or not all(rows)


@given(rows=st.lists(st.integers(1, 10**6), min_size=3, max_size=6), share=st.floats(0.0, 0.99), last=st.integers(0, 1))
def test_of_levels_that_are_spared_nothing_goes_and_the_rest_is_spent_below(rows, share, last):
    policy = PriorityDrop({f"a = {n}": len(rows) - n for n in range(len(rows) - 1)})
    policy.learn(Lesson(0, observed={"rows": tuple(rows)}))
    policy.spare([f"a = {last}"])
    setting = policy.plan(SEEN, Budget(share, share, 3.0, "")).points["rows"]
    spared = sum(rows[: last + 1]) / sum(rows)
    assert setting.keeps[: last + 1] == (1.0,) * (last + 1)
    kept = sum(count * one for count, one in zip(rows, setting.keeps, strict=True)) / sum(rows)
    assert kept == pytest.approx(max(share, spared)) == pytest.approx(setting.keep_fraction)
    before = policy.plan(SEEN, Budget(0.5, 0.5, 3.0, ""))
    with pytest.raises(InvalidSetting, match="predicates that `PriorityDrop` was given, got 'b'"):
        policy.spare(["b"])
    assert policy.plan(SEEN, Budget(0.5, 0.5, 3.0, "")) == before
    policy.spare([])
    assert policy.plan(SEEN, Budget(share, share, 3.0, "")).points["rows"] == keeps(rows, share)


def test_a_budget_that_protected_rows_exceed_is_named_in_the_cause():
    policy = PriorityDrop({"a": 1})
    policy.learn(Lesson(0, observed={"rows": (600.0, 400.0)}))
    assert policy.plan(SEEN, Budget(0.5, 0.5, 3.0, "too many")).cause == "too many"
    policy.spare(["a"])
    assert policy.plan(SEEN, Budget(0.7, 0.7, 3.0, "too many")).cause == "too many"
    plan = policy.plan(SEEN, Budget(0.5, 0.5, 3.0, "too many"))
    assert plan.cause == "too many; protected rows alone exceed the budget at rows"


def test_alike_weights_are_one_level_and_the_heaviest_comes_first():
    policy = PriorityDrop({"b": 1, "a": 5.0, "c": 1})
    assert policy.spec == LevelSpec(("(a)", "(b) or (c)"))
    assert policy.outline() == {"levels": ["(a)", "(b) or (c)"]}


def test_before_a_level_was_counted_all_are_treated_alike():
    (setting,) = PriorityDrop({"a": 1}).plan(SEEN, Budget(0.3, 0.1, 3.0, "")).points.values()
    assert (setting.keeps, setting.late_keeps) == ((0.3, 0.3), (0.1, 0.1))


def test_what_was_counted_of_other_levels_is_not_learned():
    policy = PriorityDrop({"a": 1})
    policy.learn(Lesson(0, observed={"rows": (1.0, 2.0, 3.0)}))
    policy.learn(Lesson(0, observed={"rows": (0.0, 0.0)}))
    assert policy.state() == {}
    with pytest.raises(ValueError, match="other levels"):
        policy.restore({"rows": [0.5, 0.25, 0.25]})


@pytest.mark.parametrize("wrong", [{}, ["a"], {1: 2}, "a"])
def test_priorities_that_are_none(wrong):
    with pytest.raises(InvalidInput, match="must give predicates their weights"):
        PriorityDrop(wrong)


@pytest.mark.parametrize("wrong", [{"a": 0}, {"a": -1}, {"a": float("nan")}, {"a": "much"}])
def test_weights_that_are_none(wrong):
    with pytest.raises(InvalidSetting, match=r"`priorities\['a'\]` must be a positive number"):
        PriorityDrop(wrong)


def test_levels_and_their_late_rows_must_fit_together():
    with pytest.raises(InvalidSetting, match="one share a level"):
        LevelDrop(0.5, (0.5, 0.5), 0.1, (0.1,), 3.0)
    with pytest.raises(InvalidSetting, match="go together"):
        LevelDrop(0.5, (0.5,), late_after_s=3.0)


def test_one_level_decides_as_a_random_drop_and_a_full_one_protects():
    rows = Candidates("rows", np.arange(5000), {"level": np.arange(5000) % 2}, np.arange(5000) % 3 == 0)
    plain = RandomDrop(0.3, 0.1, 60.0).decide(RandomSpec(), rows)
    levels = LevelDrop(0.6, (1.0, 0.3), 0.5, (1.0, 0.1), 60.0).decide(LevelSpec(("a",)), rows)
    lower = rows.columns["level"] == 1
    assert (levels.keep[lower] == plain.keep[lower]).all()
    assert (levels.weight[lower] == plain.weight[lower]).all()
    assert levels.keep[~lower].all()
    assert (levels.weight[~lower] == 1.0).all()
