from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jettison.answers import estimate
from jettison.answers.ranks import percentile_estimate
from jettison.errors import InvalidSetting
from jettison.lab import sampled
from jettison.lab.coverage import KEEP_FRACTIONS, PERCENTILES, Coverage, measure_coverage

OPS = sampled.NUMPY
QUICK = (0.05,), (0.3, 0.5, 0.9), (0.9, 0.1)
FRACTIONS = [pytest.param(one, marks=[pytest.mark.long] * (one not in QUICK), id=str(one)) for one in KEEP_FRACTIONS]
Z = estimate.quantile(0.95)


def answers(x, w):
    weights, moments = sampled.describe(x, w)
    return {
        "count": estimate.count_estimate(OPS, weights, moments, Z),
        "sum": estimate.sum_estimate(OPS, weights, moments, Z),
        "avg": estimate.mean_estimate(OPS, weights, moments, Z),
        "variance": estimate.variance_estimate(OPS, weights, moments, Z),
        "stddev": estimate.stddev_estimate(OPS, weights, moments, Z),
    }


def by_name(case) -> dict[str, Coverage]:
    return {one.estimator: one for one in case}


@pytest.mark.parametrize("distribution", ["taxi_fares", "lognormal"])
@pytest.mark.parametrize("fractions", FRACTIONS)
def test_bounds_of_count_sum_and_mean_cover_from_30_rows(distribution, fractions):
    case = by_name(measure_coverage(distribution, fractions, (30, 60), windows=2200, seed=20))
    for name in ("count", "sum", "avg"):
        assert case[name].windows == 2200
        assert case[name].flagged == 0.0
        assert 0.93 <= case[name].covered <= 0.97, case[name]


@pytest.mark.parametrize("fractions", FRACTIONS)
@pytest.mark.parametrize(("name", "rows"), [("median", (30, 60)), ("p90", (52, 100))])
def test_bounds_of_percentiles_cover_from_5_rows_beyond_them(fractions, name, rows):
    only = {name: PERCENTILES[name]}
    one = by_name(measure_coverage("taxi_fares", fractions, rows, windows=1000, seed=20, percentiles=only))[name]
    assert one.flagged == 0.0
    assert 0.925 <= one.covered <= 0.98, one  # of 1,000: the sampling error is 0.007


@pytest.mark.parametrize("fractions", [(0.1, 1.0), (1.0, 0.1), (0.5, 0.1)], ids=str)
@pytest.mark.parametrize("percentage", [0.2, 0.5, 0.75])
def test_bounds_of_percentiles_cover_where_weights_depend_on_values(fractions, percentage):
    """The smaller half of the rows is kept with one share, the larger half with another."""
    random, windows, size = np.random.default_rng(9), 600, 600
    x = np.sort(random.lognormal(size=(windows, size)), axis=1)
    share = np.repeat(fractions, size // 2)
    kept = random.random(x.shape) < share
    values, truth = np.where(kept, x, np.nan), np.quantile(x, percentage, axis=1)
    weights, _ = sampled.describe(values, 1.0 / share)
    ranks = sampled.describe_ranks(values, 1.0 / share, percentage)
    found = percentile_estimate(percentage)(OPS, weights, ranks, Z)
    covered = np.mean((found.lower <= truth) & (truth <= found.upper))
    assert covered >= 0.93, "they may be wider than needed"


@pytest.mark.parametrize("distribution", ["taxi_fares", "lognormal"])
@pytest.mark.parametrize("fractions", [(0.1,), (0.9,), (0.3, 0.5, 0.9)], ids=str)
def test_all_bounds_cover_from_100_rows(distribution, fractions):
    for one in measure_coverage(distribution, fractions, (100, 200), windows=2200, seed=21):
        assert one.flagged == 0.0
        assert 0.93 <= one.covered <= 0.97, one


def test_fewer_rows_are_flagged():
    case = measure_coverage("lognormal", (0.3,), (5, 30), windows=2000, seed=22)
    assert all(one.flagged == 1.0 for one in case)
    case = by_name(measure_coverage("lognormal", (0.3,), (30, 60), windows=2000, seed=22))
    assert case["variance"].flagged == case["stddev"].flagged == 1.0


def test_thirty_rows_of_which_two_carry_the_answer_are_flagged():
    """Twenty-eight rows kept with certainty or nearly so cannot vouch for two that stand for twenty each."""
    found = answers(np.arange(30.0), np.r_[np.full(28, 1.1), 20.0, 20.0])
    assert not any(one.enough for one in found.values())


@pytest.mark.parametrize(("copies", "covered_apart"), [(2, 0.87), (8, 0.60)])
def test_bounds_over_copies_of_a_row_are_too_short_and_over_their_sums_are_right(copies, covered_apart):
    """Copies of a row (`explode`, a join) share its decision; added up first, they are one row again."""
    random, windows, rows = np.random.default_rng(8), 3000, 300
    x = random.lognormal(0.9, 0.5, (windows, rows, 1)) * random.uniform(0.9, 1.1, (windows, rows, copies))
    kept, weight = random.random((windows, rows)) < 0.3, 1.0 / 0.3

    def covered(values, which):
        weights, moments = sampled.describe(values, weight, which)
        found, truth = estimate.sum_estimate(OPS, weights, moments, Z), x.sum(axis=(1, 2))
        return np.mean((found.lower <= truth) & (truth <= found.upper))

    assert covered(x.reshape(windows, -1), np.repeat(kept, copies, axis=1)) < covered_apart
    assert 0.93 <= covered(x.sum(axis=2), kept) <= 0.97


def test_plain_normal_bounds_would_not_cover():
    """The correction is needed: without it the same windows are covered in about nine cases of ten."""
    random, missed, windows = np.random.default_rng(3), 0, 2000
    for _ in range(windows):
        x = random.lognormal(size=600)
        kept = random.random(600) < 0.05
        if kept.sum() < 2:
            continue
        weights, moments = sampled.describe(x[kept], np.full(kept.sum(), 20.0))
        mean = moments.plain_mean
        margin = Z * np.sqrt(0.95 * moments.plain_variance / weights.kept)
        missed += not (mean - margin <= x.mean() <= mean + margin)
    assert missed / windows > 0.08


def test_estimators_are_unbiased():
    """Over all samples of one window, not over windows of one sample size, which are a selection."""
    random = np.random.default_rng(4)
    x = random.lognormal(0.9, 0.5, 400)
    fraction = np.where(np.arange(400) < 200, 0.2, 0.6)
    kept = random.random((10_000, 400)) < fraction
    weights, moments = sampled.describe(np.broadcast_to(x, kept.shape), 1.0 / fraction, kept)
    for found, truth, tolerance in (
        (estimate.count_estimate(OPS, weights, moments, Z), 400, 2e-3),
        (estimate.sum_estimate(OPS, weights, moments, Z), x.sum(), 2e-3),
        (estimate.mean_estimate(OPS, weights, moments, Z), x.mean(), 2e-3),
        (estimate.variance_estimate(OPS, weights, moments, Z), x.var(ddof=1), 8e-3),
    ):
        assert np.mean(found.value) == pytest.approx(truth, rel=tolerance)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_bounds_collapse_when_nothing_was_dropped(values):
    x = np.array(values)
    truths = {"count": len(x), "sum": x.sum(), "avg": x.mean(), "variance": x.var(ddof=1), "stddev": x.std(ddof=1)}
    for name, found in answers(x, np.ones(len(x))).items():
        assert found.exact
        assert found.lower == found.value == found.upper
        assert found.value == pytest.approx(truths[name], rel=1e-12, abs=1e-9)


@example([(1.0, 1.00390625)])
@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(1.0, 50.0)), min_size=1, max_size=40))
def test_mirrored_values_have_mirrored_bounds(rows):
    x, w = np.array(rows).T
    for name in ("sum", "avg"):
        here, there = answers(x, w)[name], answers(-x, w)[name]
        scale = 1e-6 * (1.0 + np.abs(x).max() * w.sum())
        assert here.lower == pytest.approx(-there.upper, abs=scale, nan_ok=True)
        assert here.upper == pytest.approx(-there.lower, abs=scale, nan_ok=True)
        assert not here.lower > here.value + scale
        assert not here.upper < here.value - scale


def test_protected_rows_add_no_uncertainty():
    x, w = np.arange(40.0), np.full(40, 4.0)
    alone = answers(x, w)["sum"]
    with_protected = answers(np.r_[x, 1e6], np.r_[w, 1.0])["sum"]
    assert with_protected.value == alone.value + 1e6
    assert with_protected.upper - with_protected.lower == pytest.approx(alone.upper - alone.lower, rel=1e-9)


@pytest.mark.parametrize(("name", "offset"), [("variance", 1e9), ("avg", 300.0)])
def test_large_offset_does_not_drown_the_spread(name, offset):
    random = np.random.default_rng(6)
    x, w = random.normal(size=500), random.choice([2.0, 5.0], 500)
    near, far = answers(x, w)[name], answers(x + offset, w)[name]
    assert far.upper - far.lower == pytest.approx(near.upper - near.lower, rel=1e-4)


def exact_width(x, w) -> float:
    """Of 95 % bounds of a mean from normal quantiles, in exact arithmetic; the square root alone is rounded."""
    rows = [(Fraction(x), Fraction(w)) for x, w in zip(x.tolist(), w.tolist(), strict=True)]
    total = sum(w for _, w in rows)
    mean = sum(w * x for x, w in rows) / total
    return 2.0 * Z * math.sqrt(sum(w * (w - 1) * (x - mean) ** 2 for x, w in rows) / total**2)


WEIGHTS = st.one_of(st.floats(1.0, 50.0), st.sampled_from([1.0, 1.0 + 2.0**-52, 1.001, 4.0 / 3.0, 10.0, 1e6]))


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.one_of(st.floats(-1e3, 1e3), st.just(1.0)), WEIGHTS), min_size=1, max_size=60),
    st.sampled_from([0.0, 0.1, -7e3, 1e5 / 3.0, 1.7e9, -1e12, 1.7e15, 1e30]),
)
def test_rounding_never_makes_bounds_of_a_mean_too_short(rows, offset):
    x, w = np.array(rows).T
    found = answers(x + offset, w)["avg"]
    assert found.upper - found.lower >= exact_width(x + offset, w) * (1.0 - 1e-9) - 4e-16 * abs(found.value)


@pytest.mark.parametrize("size", [30, 20_000])
@pytest.mark.parametrize("offset", [1e3, 1e5, 1e7, 1.7e9])
@pytest.mark.parametrize("skewed", [False, True])
def test_bounds_of_a_mean_far_from_zero_are_wider_but_not_without_end(size, offset, skewed):
    """By three quarters where the skewness is lost, and by 4e-7 of the mean for what is lost of the spread."""
    random = np.random.default_rng(size)
    x = np.exp(random.normal(size=size) / 2.0) if skewed else random.normal(size=size)
    w = np.full(size, 10.0)
    near, far = answers(x, w)["avg"], answers(x + offset, w)["avg"]
    slack = 1e-6 * (near.upper - near.lower) + 1e-15 * offset
    assert far.value - far.lower >= near.value - near.lower - slack
    assert far.upper - far.value >= near.upper - near.value - slack
    assert far.upper - far.lower <= 1.75 * (near.upper - near.lower) + 4e-7 * offset


@pytest.mark.parametrize("power", [77, 103, 120, 150, 154, 200, 305])
def test_bounds_of_huge_values_are_those_of_small_ones_or_none(power):
    """Nothing overflows without a word: third moments do first, then second ones, then the sums."""
    random = np.random.default_rng(7)
    x, w = random.lognormal(size=400), random.choice([2.0, 5.0], 400)
    near = answers(x, w)
    with np.errstate(over="ignore", invalid="ignore"):
        far = answers(x * 10.0**power, w)
    for name in ("sum", "avg", "variance", "stddev"):
        found, times = far[name], 10.0 ** (min(2 * power, 308) if name == "variance" else power)
        if np.isnan(found.lower) or np.isnan(found.upper):
            assert not found.clear
            assert power >= (77 if name in ("variance", "stddev") else 150)
        else:
            assert found.clear
            assert found.lower <= near[name].lower * times * (1 + 1e-9)
            assert found.upper >= near[name].upper * times * (1 - 1e-9)
            assert found.upper - found.lower <= 2.0 * times * (near[name].upper - near[name].lower)


@pytest.mark.parametrize("value", [0.0, 8.0, 1.7e9])
def test_a_group_of_equal_values_has_bounds(value):
    assert all(one.clear for one in answers(np.full(200, value), np.full(200, 4.0)).values())


def test_missing_values_are_passed_over():
    full, holed = answers([1.0, 2.0, 5.0], [2.0] * 3), answers([1.0, np.nan, 2.0, 5.0], [2.0] * 4)
    for name, found in full.items():
        for part in ("value", "lower", "upper"):
            assert getattr(found, part) == pytest.approx(float(getattr(holed[name], part)))


def test_one_row_and_no_value_do_not_raise():
    one, none = answers([7.0], [3.0]), answers([np.nan], [3.0])
    assert (one["count"].value, one["sum"].value, one["avg"].value) == (3.0, 21.0, 7.0)
    assert np.isnan(one["variance"].value)
    assert none["count"].value == 0.0
    assert np.isnan(none["avg"].value)
    assert not none["avg"].exact
    assert not none["avg"].enough


def test_confidence_widens_bounds_and_is_checked():
    weights, moments = sampled.describe(np.arange(50.0), np.full(50, 3.0))
    widths = [
        float(found.upper - found.lower)
        for found in (estimate.mean_estimate(OPS, weights, moments, estimate.quantile(c)) for c in (0.8, 0.95, 0.99))
    ]
    assert widths == sorted(widths)
    with pytest.raises(InvalidSetting, match="between 0 and 1"):
        estimate.quantile(95)


def test_unknown_case_is_refused():
    with pytest.raises(InvalidSetting, match="one of"):
        measure_coverage("cauchy")
    with pytest.raises(InvalidSetting, match="between 0 and 1"):
        measure_coverage(keep_fractions=[1.0])
