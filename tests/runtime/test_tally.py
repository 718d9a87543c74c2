"""Totals add up, and shares are learned from exact counts of enough rows only."""

from __future__ import annotations

import pytest

from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.core.stats import PointStats, Stats
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime.tally import Tally


def report(number: int = 0, input_rows: int = 10_000) -> BatchReport:
    return BatchReport("run", number, 1e9, 1.0, input_rows, plan_version=1)


def stats(number: int = 0, **points: PointStats) -> Stats:
    return Stats(number, 1e9, 1.0, points, plan_version=1)


def plan(keep_fraction: float, *names: str) -> DropPlan:
    return DropPlan(1, {name: RandomDrop(keep_fraction) for name in names})


def test_totals_are_sums_over_batches_and_drop_points():
    tally = Tally()
    tally.exact(report(0), stats(0, a=PointStats(100, 40), b=PointStats(50, 50)), None)
    tally.exact(report(1), stats(1, a=PointStats(7, 0)), None)
    assert (tally.batches, tally.seen, tally.kept) == (2, 157, 90)


def test_rows_count_once_where_drop_points_follow_one_another():
    tally = Tally(entrance=frozenset("a"))
    tally.exact(report(0), stats(0, a=PointStats(100, 40), b=PointStats(40, 10)), None)
    tally.exact(report(1), stats(1, a=PointStats(7, 0), b=PointStats(0, 0, exact=False)), None)
    assert (tally.batches, tally.seen, tally.kept, tally.estimated) == (2, 107, 40, 1)
    assert tally.by_point == {"a": (107, 40), "b": (40, 10)}


def test_before_any_count_rows_are_split_evenly_and_none_is_protected():
    assert Tally().input_share("a", 4) == 0.25
    assert Tally(frozenset("a")).protected_share("a") == 0.0


def test_the_input_share_of_a_point_is_learned_and_smoothed():
    tally = Tally()
    tally.exact(report(0), stats(0, a=PointStats(8000, 8000)), None)
    assert tally.input_share("a", 2) == pytest.approx(0.8)
    tally.exact(report(1), stats(1, a=PointStats(4000, 4000)), None)
    assert tally.input_share("a", 2) == pytest.approx(0.6)
    assert tally.input_share("b", 2) == 0.5, "points not counted yet keep the even split"


@pytest.mark.parametrize(
    "point", [PointStats(999, 999), PointStats(8000, 8000, exact=False)], ids=["too few rows", "only expected"]
)
def test_counts_that_tell_too_little_teach_nothing_but_are_summed(point):
    tally = Tally(frozenset("a"))
    tally.exact(report(), stats(a=point), plan(0.5, "a"))
    assert tally.input_share("a", 2) == 0.5
    assert tally.protected_share("a") == 0.0
    assert tally.seen == point.seen


def test_a_batch_whose_input_rows_are_unknown_is_summed_all_the_same():
    tally = Tally()
    tally.exact(report(input_rows=0), stats(a=PointStats(5000, 5000)), None)
    assert tally.seen == 5000
    assert tally.input_share("a", 2) == 0.5


@pytest.mark.parametrize("keep_fraction", [0.0, 0.2, 0.9])
def test_the_protected_share_follows_from_rows_kept_beyond_the_plan(keep_fraction):
    tally = Tally(frozenset("a"))
    kept = round(10_000 * (0.3 + 0.7 * keep_fraction))
    tally.exact(report(), stats(a=PointStats(10_000, kept)), plan(keep_fraction, "a"))
    assert tally.protected_share("a") == pytest.approx(0.3, abs=1e-3)


def test_fewer_rows_kept_than_planned_is_no_negative_share():
    tally = Tally(frozenset("a"))
    tally.exact(report(), stats(a=PointStats(10_000, 4_000)), plan(0.5, "a"))
    assert tally.protected_share("a") == 0.0


@pytest.mark.parametrize(
    ("protected", "in_force"),
    [
        (frozenset(), plan(0.5, "a")),
        (frozenset("b"), plan(0.5, "a")),
        (frozenset("a"), None),
        (frozenset("a"), plan(0.5, "b")),
        (frozenset("a"), plan(0.96, "a")),
    ],
    ids=["nothing protected", "another point", "no plan", "plan without the point", "hardly anything dropped"],
)
def test_no_protected_share_is_learned_where_nothing_can_be_told(protected, in_force):
    tally = Tally(protected)
    tally.exact(report(), stats(a=PointStats(10_000, 9_900)), in_force)
    assert tally.protected_share("a") == 0.0
