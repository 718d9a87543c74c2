"""Borrowed estimates: better on average, flagged, and covered by their bounds."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.answers.borrow import _fit, borrow
from jettison.errors import InvalidSetting


def situation(seed, groups=800, drift=0.5):
    """Groups whose truth is lognormal, their earlier value a little off, few rows kept of most of them."""
    random = np.random.default_rng(seed)
    truth = random.lognormal(2.5, 0.4, groups)
    history = truth + random.normal(0, drift, groups)
    kept = random.integers(0, 6, groups)
    kept[: groups // 10] = 60
    samples = [random.normal(t, 0.3 * t, k) for t, k in zip(truth, kept, strict=True)]
    mean = np.array([s.mean() if len(s) else np.nan for s in samples])
    variance = np.array([s.var(ddof=1) if len(s) > 1 else np.nan for s in samples])
    return truth, history, kept, mean, variance


@pytest.mark.parametrize("drift", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("with_history", [True, False])
def test_bounds_cover_on_average_over_windows(with_history, drift):
    # Within one window all groups share one estimate of how far groups deviate: coverage is a mean over windows.
    covered = []
    for seed in range(12):
        truth, history, kept, mean, variance = situation(seed, drift=drift)
        made = borrow(mean, variance, kept, history=np.maximum(history, 0.5) if with_history else None)
        covered.append(((made.lower <= truth) & (truth <= made.upper)).mean())
    assert np.mean(covered) >= 0.93
    assert min(covered) >= 0.85


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("with_history", [True, False])
def test_the_error_is_smaller_than_that_of_the_direct_estimate(seed, with_history):
    truth, history, kept, mean, variance = situation(seed)
    made = borrow(mean, variance, kept, history=history if with_history else None)
    few = (kept > 0) & (kept < 6)
    assert np.abs(made.value - truth)[few].mean() < np.abs(mean - truth)[few].mean()
    assert np.isfinite(made.value).all()


def test_every_group_without_rows_is_flagged_and_no_group_with_many_is():
    _, _, kept, mean, variance = situation(1)
    made = borrow(mean, variance, kept)
    assert made.borrowed[kept == 0].all()
    assert (made.own[kept == 0] == 0).all()
    assert not made.borrowed[kept == 60].any()


def test_history_that_is_worthless_is_not_used():
    truth, _, kept, mean, variance = situation(2)
    made = borrow(mean, variance, kept, history=np.random.default_rng(0).permutation(truth) * 5)
    assert not made.from_history.any()


def test_a_group_without_history_borrows_from_its_neighbourhood():
    random = np.random.default_rng(5)
    places = np.repeat([0, 1], 50)
    mean = np.where(places == 0, 10.0, 40.0) + random.normal(0, 0.5, 100)
    kept = np.full(100, 30)
    mean[[0, 99]], kept[[0, 99]] = np.nan, 0
    made = borrow(mean, np.full(100, 4.0), kept, history=np.full(100, np.nan), neighbourhood=places)
    assert made.value[0] == pytest.approx(10, abs=0.5)
    assert made.value[99] == pytest.approx(40, abs=0.5)


def test_a_group_known_whole_keeps_its_own_value_exactly():
    made = borrow([3.0, 9.0, 5.0], [1.0, 1.0, 1.0], [2, 8, 9], effective_rows=[np.inf, 8, 9])
    assert (made.value[0], made.lower[0], made.upper[0], bool(made.borrowed[0])) == (3.0, 3.0, 3.0, False)


def test_where_nothing_is_known_nothing_is_invented():
    made = borrow([np.nan, np.nan], [np.nan, np.nan], [0, 0])
    assert np.isnan(made.value).all()
    assert made.borrowed.all()


def test_a_confidence_outside_zero_and_one_is_refused():
    with pytest.raises(InvalidSetting, match="confidence"):
        borrow([1.0], [1.0], [1], confidence=95)


def test_groups_that_are_known_whole_and_do_not_deviate_give_no_nonsense() -> None:
    """Where every group is exact and as before, nothing is left to weigh by."""
    alike = np.full(8, 3.0)
    with np.errstate(all="raise"):
        fit = _fit(alike, np.zeros(8), np.ones(8, dtype=bool), alike, 1.96)
    assert np.isfinite(fit.deviation)
