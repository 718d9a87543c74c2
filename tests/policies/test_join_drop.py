"""Both sides of a join: one light share for both, heavy keys by row, and no more rows than allowed."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.core.plan import MOST_PLAN_BYTES
from jettison.core.stats import Budget, PointStats, Stats
from jettison.errors import InvalidSetting
from jettison.policies.groups.group_setting import keep_shares
from jettison.policies.groups.join_drop import JoinDrop
from jettison.policies.groups.window_tally import WindowTally
from told_groups import told

PANE = 60_000_000


def policy(**more) -> JoinDrop:
    return JoinDrop(**({"key": "ad", "time": "at", "pane": "1 minute"} | more))


def tally(rows: dict[int, int], progress=0.5, start=0) -> WindowTally:
    return WindowTally(start).add(np.array(list(rows)), np.array(list(rows.values())), progress=progress)


def plan(left, right, keep=0.1, **more):
    points = {"left": PointStats(100, 100), "right": PointStats(100, 100)}
    return told(told(policy(**more), "left", left), "right", right).plan(
        Stats(0, 0.0, 1.0, points), Budget(keep, keep, 3.0, "too many rows")
    )


def test_only_keys_that_are_heavy_on_both_sides_are_thinned_by_row():
    left, right = tally({1: 5000, 2: 1, 3: 5000}), tally({1: 4000, 2: 1, 4: 900})
    made = plan((left,), (right,)).points
    assert made["left"].groups == made["right"].groups == ((1,),)
    assert made["left"].others == made["right"].others
    assert made["left"].whole
    assert made["right"].whole
    assert 0.0 < made["left"].keeps[0][0] < 1.0


def test_a_key_of_which_a_sample_shows_one_row_is_not_taken_for_heavy():
    side = WindowTally(0).add([1, 2], [5000, 100], progress=0.5, looked=[50, 1])
    assert plan((side,), (side,)).points["left"].groups == ((1,),)


def test_the_rows_expected_stay_within_the_budget():
    random = np.random.default_rng(1)
    rows = [{int(key): int(n) for key, n in enumerate(random.zipf(1.5, 400).clip(max=5000))} for _ in range(2)]
    made = plan((tally(rows[0]),), (tally(rows[1]),), keep=0.05).points
    kept = sum(
        (keep_shares(made[side], np.zeros(len(of)), list(of)) * list(of.values())).sum()
        for side, of in zip(("left", "right"), rows, strict=True)
    )
    assert kept <= 0.05 * sum(sum(of.values()) for of in rows) * (1 + 1e-9)


def test_panes_that_one_side_has_not_reached_have_no_heavy_keys():
    made = plan((tally({1: 500}), tally({1: 500}, start=PANE)), (tally({1: 500}),)).points["left"]
    assert made.starts_us == (0, PANE)
    assert made.groups[1] == ()


BOTH = {1: 50_000, 2: 20_000} | {key: 3 for key in range(10, 60)}


def expected_rows(made, rows: dict[int, int]) -> float:
    """Of a pane of which half has passed: rows kept of both sides, were the shares in force from its start."""
    return sum(
        2 * (keep_shares(made[side], np.zeros(len(rows)), list(rows)) * list(rows.values())).sum() for side in made
    )


@pytest.mark.parametrize(
    ("keep", "rows", "error", "kept", "said"),
    [
        (0.01, 100_000, 0.001, 2806, ["an error of"]),  # latency is the tightest
        (1.0, 2000, 0.001, 2000, ["row budget of 2,000 a pane binds", "an error of"]),  # the row budget is
        (1.0, 100_000, 0.05, None, []),  # the accuracy asks for less than either allows
    ],
    ids=["latency", "rows", "accuracy"],
)
def test_of_latency_rows_and_accuracy_the_tightest_holds_and_what_gave_way_is_said(keep, rows, error, kept, said):
    half = tally(BOTH), tally(BOTH)
    made = plan((half[0],), (half[1],), keep, rows=rows, error=error)
    assert made.cause.count(";") == len(said)
    assert all(part in made.cause for part in said)
    found = expected_rows(made.points, BOTH)
    if kept is not None:
        assert found == pytest.approx(2 * kept if said[0].startswith("row") else kept, rel=0.01)
    else:
        assert 1000 < found < 0.2 * 4 * sum(BOTH.values())


def test_a_row_budget_that_is_spent_leaves_every_row_a_chance():
    spent = tally(BOTH).add([1], [0], progress=0.5, kept=9000.0)
    made = plan((spent,), (tally(BOTH),), 1.0, rows=5000).points["left"]
    assert (keep_shares(made, np.zeros(len(BOTH)), list(BOTH)) > 0).all()
    assert expected_rows({"left": made, "right": made}, BOTH) < 1100


@pytest.mark.parametrize("wrong", [{"key": ""}, {"sides": ("left", "left")}, {"rows": 0}, {"error": 0.0}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidSetting, match="Hint"):
        policy(**wrong)


@pytest.mark.parametrize("plan_bytes", [16 * 1024, 64 * 1024, 256 * 1024])
def test_as_many_keys_are_named_as_fit_into_the_bytes_of_the_plan(plan_bytes):
    keys = np.unique(np.random.default_rng(1).integers(-(2**31), 2**31, 20_000))
    side = WindowTally(1_700_000_000_000_000).add(keys, np.full(len(keys), 9000), progress=0.5)
    points = {"left": PointStats(100, 100), "right": PointStats(100, 100)}
    stats, budget = Stats(0, 0.0, 1.0, points, plan_bytes=plan_bytes), Budget(0.0123456789, 0.01, 3.0, "too many rows")
    made = told(told(policy(), "left", [side]), "right", [side]).plan(stats, budget)
    assert 0.6 * plan_bytes - 8 * 1024 < len(made.to_json()) <= plan_bytes
    assert f"the plan has room for {made.points['left'].named_groups:,} heavy keys of a pane" in made.cause


def test_each_pane_gets_the_room_that_the_one_with_most_keys_needs():
    """A key that one side alone has shown is none of them."""
    panes = [tally(dict.fromkeys(range(keys), 9000), start=pane * PANE) for pane, keys in enumerate((3000, 10, 10))]
    one_sided = tally(dict.fromkeys(range(5000), 9000), start=3 * PANE)
    made_by = told(told(policy(), "left", panes), "right", [*panes, one_sided])
    points = dict.fromkeys(("left", "right"), PointStats(100, 100))
    stats = Stats(0, 0.0, 1.0, points, plan_bytes=made_by.plan_bytes)
    made = made_by.plan(stats, Budget(0.01, 0.01, 3.0, "too many rows"))
    assert [len(groups) for groups in made.points["left"].groups] == [3000, 10, 10, 0]
    assert len(made.to_json()) <= made_by.plan_bytes <= MOST_PLAN_BYTES
    assert made.cause == "too many rows", "nothing is short"
