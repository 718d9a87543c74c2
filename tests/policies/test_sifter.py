"""The sifter spends the budget by regions, keeps a sample everywhere, and fits into a plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jettison as jt
from jettison.core.plan import PLAN_BYTES, DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.errors import InvalidSetting
from jettison.policies.base import Lesson
from jettison.policies.regions.region_setting import PLAN_MOST_CELLS, RegionDrop, fingerprint
from jettison.policies.regions.sifter import Sifter
from jettison.runtime import plan_file
from jettison.runtime.schedule import Schedule
from jettison.source import SifterFilter
from jettison.source.space import CELLS, Attribute, Space
from sifter_cases import drop_of

ORDERS = Space([Attribute.number("price", 0, 100), Attribute.category("sector", ["tech", "food", "steel"])])


def rows(count, seed=0):
    random = np.random.default_rng(seed)
    return np.column_stack([random.normal(50, 15, count).clip(0, 100), random.integers(0, 3, count)])


def sifter(**settings):
    queries = jt.RangeQueries(ORDERS, [f"price between {p} and {p + 5} and sector != 'food'" for p in range(0, 95, 3)])
    return Sifter(queries, rows(2000), **settings)


def setting(policy, keep, late=None, protected=0.0):
    stats = Stats(0, 1e9, 1.0, {"orders": PointStats(1000, 1000, protected)})
    return policy.plan(stats, Budget(keep, keep if late is None else late, 3.0, "too many rows")).points["orders"]


def kept_share(one: RegionDrop, points, late=False):
    """Shares by the raster alone, as a backend reads it."""
    codes = ORDERS.codes(points)
    places = [np.searchsorted(cuts, codes[:, axis], side="right") for axis, cuts in enumerate(one.cuts)]
    cell = np.ravel_multi_index(places, [len(cuts) + 1 for cuts in one.cuts])
    missing = np.isnan(points) @ (1 << np.arange(points.shape[1]))
    region = np.where(missing > 0, np.array(one.missing)[missing], np.array(one.cells)[cell])
    return np.array(one.late_keep if late else one.keep)[region]


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("partitioning", ["auto", "grid", "data", "query", "qdpart"])
def test_the_raster_in_the_plan_is_the_filter_for_sources(keep, partitioning):
    policy = sifter(partitioning=partitioning)
    points = np.concatenate([rows(500, seed=1), [[-1.0, 0.0], [np.nan, 1.0], [50.0, np.nan], [100.0, 2.0]]])
    drop = drop_of(policy.filter(keep), points)
    np.testing.assert_allclose(kept_share(setting(policy, keep), points), 1.0 - drop)


def test_late_rows_have_shares_of_their_own_in_the_same_regions():
    one = setting(sifter(), 0.6, late=0.1)
    points = rows(20_000, seed=2)
    assert kept_share(one, points).mean() == pytest.approx(0.6, abs=0.02)
    assert kept_share(one, points, late=True).mean() == pytest.approx(0.1, abs=0.02)
    assert (one.keep_fraction, one.late_keep_fraction) == pytest.approx((0.6, 0.1), abs=1e-3)


def test_protected_rows_are_paid_for_by_the_others():
    assert setting(sifter(), 0.4, protected=0.25).keep_fraction == pytest.approx(0.2, abs=1e-3)


def test_a_sample_is_kept_in_every_region_and_paid_for():
    one = setting(sifter(sample_every=20, fairness=1.0), 0.2)
    assert min(one.keep) == pytest.approx(0.05)
    assert one.keep_fraction == pytest.approx(0.2, abs=1e-3)
    # Below the sampled share nothing but the sample is kept.
    assert set(setting(sifter(sample_every=20), 0.01).keep[:-1]) == {0.05}


def test_a_new_sample_makes_new_regions():
    policy = sifter(partitioning="data", regions=4)
    before = setting(policy, 0.5)
    policy.rebuild({"price": np.linspace(80, 100, 100), "sector": ["tech", "steel"] * 50})
    after = setting(policy, 0.5)
    assert min(cut for cut in after.cuts[0] if cut > 1) > 0.8 * CELLS > min(cut for cut in before.cuts[0] if cut > 1)


def decided(one: RegionDrop, points, random):
    """Rows kept of a micro-batch, by chance as hashes decide."""
    return int((random.random(len(points)) < kept_share(one, points)).sum())


def stats_of(points, kept, **changes):
    return Stats(0, 1e9, 1.0, {"orders": PointStats(len(points), kept)}, **changes)


@pytest.mark.parametrize("keep", [0.1, 0.3, 0.7])
def test_feedback_brings_the_pass_rate_within_one_percent_of_the_budget(keep):
    random = np.random.default_rng(5)
    policy = sifter(regions=36)
    policy.rebuild((rows(100, seed=3) + np.array([8.0, 0.0])).clip(0, 100))  # few rows, and dearer ones than will come
    rates = []
    for number in range(12):
        one = setting(policy, keep)
        batch = rows(100_000, seed=100 + number)
        kept = decided(one, batch, random)
        rates.append(kept_share(one, batch).mean())
        policy.learn(Lesson(0, DropPlan(number, {"orders": one}), counted=stats_of(batch, kept)))
    assert abs(rates[0] - keep) > 0.02 * keep, rates
    assert np.mean(rates[4:]) == pytest.approx(keep, rel=0.01)
    assert setting(policy, keep).keep_fraction == pytest.approx(keep, rel=0.01)


def test_what_says_nothing_about_the_pass_rate_corrects_nothing():
    policy = sifter()
    one, batch = setting(policy, 0.5, late=0.1), rows(10_000)
    plan, foreign = DropPlan(1, {"orders": one}), DropPlan(1, {"orders": RegionDrop(), "other": one})
    protected = Stats(0, 1e9, 1.0, {"orders": PointStats(10_000, 9_000, protected_share=0.5)})
    policy.learn(Lesson(0, plan, counted=stats_of(batch, 9_000, oldest_arrival_s=1e9 - 60)))  # late rows among them
    policy.learn(Lesson(0, foreign, counted=stats_of(batch, 9_000)))
    policy.learn(Lesson(0, plan, counted=protected))
    assert setting(policy, 0.5, late=0.1) == one
    policy.learn(Lesson(0, plan, counted=stats_of(batch, 9_000, oldest_arrival_s=1e9 - 1)))
    assert setting(policy, 0.5, late=0.1) != one


def test_regions_are_rebuilt_from_the_newest_sample_when_the_throttler_drifts_and_not_before():
    policy = sifter(partitioning="data", regions=4, sample_every=50, sample_size=1000)
    before = setting(policy, 0.5)
    dear = np.column_stack([np.linspace(80, 100, 2000), np.tile([0.0, 2.0], 1000)])
    policy.learn(Lesson(3, observed={"orders": dear[::2]}))
    assert setting(policy, 0.5).cuts != before.cuts  # the first budget that is told of: built for it now
    built = setting(policy, 0.5)
    policy.learn(Lesson(4, observed={"orders": dear[1::2]}))
    policy.learn(Lesson(4, observed={"orders": rows(5000)}))  # the same batch again
    assert setting(policy, 0.54).cuts == built.cuts
    assert setting(policy, 0.3).cuts != built.cuts
    assert min(cut for cut in setting(policy, 0.3).cuts[0] if cut > 1) > 0.8 * CELLS


def test_a_steady_throttler_keeps_its_regions_while_the_stream_stays_and_not_when_it_moves():
    policy = sifter(partitioning="data", regions=16, sample_every=50, sample_size=2000)
    policy.learn(Lesson(0, observed={"orders": rows(2000, seed=1)}))
    built = setting(policy, 0.5)
    for number in range(1, 6):
        policy.learn(Lesson(number, observed={"orders": rows(2000, seed=10 + number)}))
        assert setting(policy, 0.5).cuts == built.cuts
    policy.learn(Lesson(6, observed={"orders": rows(2000, seed=20) * np.array([0.8, 1.0])}))  # everything gets cheaper
    assert setting(policy, 0.5).cuts != built.cuts


def test_without_new_rows_a_drifting_throttler_changes_thresholds_alone():
    policy = sifter(sample_every=50, partitioning="data")
    assert setting(policy, 0.5).cuts == setting(policy, 0.1).cuts
    assert setting(policy, 0.5).keep != setting(policy, 0.1).keep


def test_a_budget_that_no_thresholds_meet_is_called_so():
    seen = Stats(0, 1e9, 1.0, {"orders": PointStats(1000, 1000)})
    policy = sifter(sample_every=20)
    assert policy.plan(seen, Budget(0.01, 0.01, 3.0, "load")).cause == "load; no thresholds meet it, these come nearest"
    assert policy.plan(seen, Budget(0.3, 0.01, 3.0, "load")).cause == "load"
    assert policy.plan(seen, Budget(1.0, 1.0, 3.0, "idle")).cause == "idle"


def test_bytes_for_sources_hold_the_same_filter():
    policy = sifter(sample_every=50)
    assert SifterFilter.from_bytes(policy.to_bytes(0.5)).filter == policy.filter(0.5)


@pytest.mark.parametrize(("regions", "drop_points"), [(100, 1), (400, 1), (400, 5)])
def test_regions_fit_the_plan_file(regions, drop_points):
    points = {f"orders{i}": PointStats(1, 1) for i in range(drop_points)}
    plan = sifter(regions=regions).plan(Stats(0, 1e9, 1.0, points), Budget(0.5, 0.1, 3.0, "load"))
    plan_file.encode(Schedule.of(plan), valid_until_us=0, size=PLAN_BYTES)  # raises where they do not


def test_with_many_attributes_fewer_regions_go_into_the_plan_than_to_sources():
    space = Space([Attribute.number(f"x{i}", 0, 1) for i in range(8)])
    random = np.random.default_rng(3)
    centres = random.random((200, 8)) * 0.7
    policy = Sifter(jt.RangeQueries.from_boxes(space, centres, centres + 0.3), random.random((500, 8)), regions=64)
    made = setting(policy, 0.5)
    assert policy.filter(0.5).partition.regions > 16
    assert len(made.cells) <= PLAN_MOST_CELLS
    assert made.keep_fraction == pytest.approx(0.5, abs=1e-3)


def test_spaces_are_told_apart():
    other = Space([Attribute.number("price", 0, 101), *ORDERS.attributes[1:]])
    assert setting(sifter(), 0.5).space == fingerprint(ORDERS) != fingerprint(other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"fairness": 2.0},
        {"reserve": 0.0},
        {"reserve": float("nan")},
        {"regions": 2**16},
        {"sample_every": 1},
        {"sample_every": -3},
        {"regions": 0},
        {"drift": 0.0},
        {"sample_size": 0},
        {"partitioning": "hex"},
        {"outside": "x"},
    ],
)
def test_settings_that_make_no_sense_are_refused_with_a_hint(wrong):
    with pytest.raises(InvalidSetting, match="Hint: "):
        sifter(**wrong)


def test_a_sifter_without_queries_or_without_a_sample_is_refused_at_once():
    space = [Attribute.number("price", 0, 100)]
    with pytest.raises(InvalidSetting, match="`expressions` must hold a query, got none"):
        jt.RangeQueries(space, [])
    with pytest.raises(InvalidSetting, match="`sample` must hold rows, got none"):
        Sifter(jt.RangeQueries(space, ["price > 75"]), {"price": []})


def test_a_plan_keeps_to_the_bytes_that_there_are():
    policy, stats = sifter(regions=400), Stats(0, 1e9, 1.0, {"orders": PointStats(1000, 1000)})
    budget = Budget(0.5, 0.5, 3.0, "too many rows")
    whole, half = (
        len(policy.plan(replace(stats, plan_bytes=room), budget).to_json()) for room in (policy.plan_bytes, 4096)
    )
    assert half <= 4096 < whole


@pytest.mark.parametrize(
    "wrong",
    [
        {"keep": (1.5,)},
        {"keep": (-0.1,)},
        {"keep": (float("nan"),)},
        {"keep": (1e300,)},
        {"keep": ()},
        {"keep_fraction": float("nan")},
        {"cells": (0, 0)},
        {"cells": (0, 0, 1)},
        {"cells": (0, 0, 0.5)},
        {"cells": (0, 0, -1)},
        {"cuts": ((1,),), "cells": (0, 0)},
        {"cuts": ((1, 1, CELLS + 1),), "cells": (0,) * 4},
        {"cuts": ((1, float("nan"), CELLS + 1),), "cells": (0,) * 4},
        {"cuts": ((2, CELLS + 1),)},
        {"cuts": ((1, CELLS + 2),)},
        {"cuts": ((),), "cells": (0,)},
        {"missing": ()},
        {"missing": (0,)},
        {"missing": (0, 1)},
        {"late_keep": (0.5,)},
        {"late_keep": (0.5, 0.5), "late_keep_fraction": 0.5, "late_after_s": 3.0},
        {"late_keep": (float("nan"),), "late_keep_fraction": 0.5, "late_after_s": 3.0},
        {"late_keep": (0.5,), "late_keep_fraction": 0.5, "late_after_s": -1.0},
        {"late_keep": (0.5,), "late_keep_fraction": 0.5, "late_after_s": 1e300},
    ],
)
def test_rasters_that_make_no_sense_are_refused(wrong):
    sound = {"keep": (0.5,), "cuts": ((1, CELLS + 1),), "cells": (0, 0, 0), "missing": (0, 0)}
    RegionDrop(**sound)
    with pytest.raises(InvalidSetting):
        RegionDrop(**sound | wrong)


def test_a_cut_that_spark_could_not_hold_is_refused_as_the_number_that_it_is():
    with pytest.raises(
        InvalidSetting, match=r"`cuts` must be a whole number of 32 bits.*, got \d+ at \[0\]\[1\].*a code"
    ):
        RegionDrop(cuts=((1, 2**31),))


def test_a_drift_without_a_sample_that_runs_along_is_refused():
    with pytest.raises(InvalidSetting, match="`drift` needs `sample_every`"):
        sifter(drift=0.1)
    sifter(drift=0.1, sample_every=100)
