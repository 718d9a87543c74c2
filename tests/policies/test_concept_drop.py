"""Dropping by concept: within the budget, sparing what is small or new, and saying what gave way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.plan import HUGE_PLAN_BYTES, MOST_PLAN_BYTES, DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.errors import InvalidSetting
from jettison.policies import ConceptDrop, Policy
from jettison.policies.groups.group_setting import GroupDrop, bytes_of_groups, groups_within, keep_shares
from jettison.policies.groups.window_tally import WindowTally
from told_groups import told

PANE = 600_000_000


def policy(**more) -> ConceptDrop:
    return ConceptDrop(**({"group": "route", "time": "at", "window": "10 minutes"} | more))


def tally(seen, progress=0.5, start=0, kept=0.0) -> WindowTally:
    return WindowTally(start).add(np.arange(len(seen)), seen, progress=progress, kept=kept)


def plan(made_by: ConceptDrop, *windows: WindowTally, keep=0.1, late=None, protected=0.0, room=10_000):
    points = {"rides": PointStats(1000, 1000, protected)}
    stats = Stats(0, 0.0, 1.0, points, plan_bytes=bytes_of_groups(room))
    return told(made_by, "rides", windows).plan(
        stats, Budget(keep, keep if late is None else late, 3.0, "too many rows")
    )


def test_it_is_a_policy():
    assert isinstance(policy(), Policy)


@given(
    seen=st.lists(st.integers(1, 5000), min_size=1, max_size=40),
    progress=st.floats(0.01, 1.0),
    keep=st.floats(0.0, 1.0),
    room=st.integers(1, 50),
    strict=st.booleans(),
)
def test_the_share_of_a_known_window_meets_the_budget_and_the_plan_survives_json(seen, progress, keep, room, strict):
    made = plan(policy(strict=strict), tally(seen, progress), keep=keep, room=room)
    setting = made.points["rides"]
    expected = (keep_shares(setting, np.zeros(len(seen)), np.arange(len(seen))) * seen).sum()
    assert expected <= keep * sum(seen) * (1 + 1e-9) + 1e-6
    assert setting.keep_fraction <= keep + 1e-9 or strict
    assert setting.named_groups <= room
    assert DropPlan.from_json(made.to_json()) == made


def test_small_and_unseen_groups_of_a_known_window_are_kept_whole():
    setting = plan(policy(), tally([50_000, 40_000, 5, 3])).points["rides"]
    assert keep_shares(setting, [0, 0, 0], [2, 3, 99]).tolist() == [1.0, 1.0, 1.0]
    assert (keep_shares(setting, [0, 0], [0, 1]) < 0.15).all()


def test_a_window_of_which_nothing_is_known_gets_the_budget_or_everything_if_strict():
    assert plan(policy()).points["rides"] == GroupDrop(0.1, new_keep_fraction=0.1)
    assert plan(policy(strict=True)).points["rides"].new_keep_fraction == 1.0


def test_each_pane_has_shares_of_its_own_and_the_room_goes_first_to_the_one_with_most_rows_to_come():
    made = plan(policy(), tally([9000] * 3 + [5], 0.9), tally([9000] * 3 + [5], 0.1, PANE), room=4)
    setting = made.points["rides"]
    assert setting.starts_us == (0, PANE)
    assert [len(groups) for groups in setting.groups] == [1, 3]
    assert setting.keep_fraction <= 0.1 + 1e-9


def test_drop_points_share_the_room_of_a_plan():
    point, known = PointStats(1000, 1000), [tally([9000] * 30)]
    made = told(told(policy(), "a", known), "b", known).plan(
        Stats(0, 0.0, 1.0, {"a": point, "b": point}, plan_bytes=bytes_of_groups(10)), Budget(0.1, 0.1, 3.0, "")
    )
    assert [setting.named_groups for setting in made.points.values()] == [5, 5]


def test_what_was_overspent_is_asked_for_less_and_still_expected_to_be_the_budget():
    known = tally([50_000, 50_000])
    usual, less = (plan(policy(), replace(known, overspent=over)).points["rides"] for over in (1.0, 1.25))
    assert less.keeps[0][0] == pytest.approx(usual.keeps[0][0] / 1.25, rel=1e-3)
    assert less.keep_fraction == pytest.approx(usual.keep_fraction)


@given(seen=st.lists(st.integers(1, 100_000), min_size=1, max_size=40), keep=st.floats(0.01, 1.0))
def test_no_row_weighs_more_than_ten_times_what_it_would_under_a_uniform_drop(seen, keep):
    setting = plan(policy(), tally(seen), keep=keep).points["rides"]
    assert (keep_shares(setting, np.zeros(len(seen)), np.arange(len(seen))) >= 0.0999 * keep).all()


def test_late_rows_are_kept_at_a_factor():
    setting = plan(policy(), keep=0.4, late=0.1).points["rides"]
    assert (setting.late_factor, setting.late_after_s) == (0.25, 3.0)
    assert plan(policy(), keep=1.0, late=0.05).points["rides"].late_factor == 0.05


def test_more_groups_than_rows_is_told_in_the_cause():
    assert "more groups than rows to keep at rides" in plan(policy(), tally([3] * 5000), keep=0.05).cause
    assert "more groups" not in plan(policy(), tally([30_000] * 5), keep=0.05).cause


def test_a_row_budget_binds_when_it_is_the_smaller_and_counts_what_was_kept():
    made = plan(policy(rows=1000), tally([50_000, 50_000], kept=400), keep=0.5)
    assert "the row budget of 1,000 a window binds at rides" in made.cause
    setting = made.points["rides"]
    assert (keep_shares(setting, [0, 0], [0, 1]) * 50_000).sum() == pytest.approx(600, rel=1e-3)


def test_an_accuracy_drops_what_it_does_not_need_even_when_there_is_time():
    setting = plan(policy(error=0.1), tally([50_000, 50_000]), keep=1.0).points["rides"]
    assert keep_shares(setting, [0], [0])[0] * 100_000 == pytest.approx(384.1, rel=1e-3)  # of the whole pane's rows


def test_an_accuracy_that_rests_on_a_variation_nobody_measures_is_said_to():
    assumed = "the error assumes a variation of 1, unmeasured without `value`"
    assert assumed in plan(policy(error=0.1), tally([50_000, 50_000]), keep=1.0).cause
    assert assumed not in plan(policy(error=0.1, value="fare"), tally([50_000, 50_000]), keep=1.0).cause


def test_an_accuracy_that_cannot_be_met_names_the_error_instead():
    made = plan(policy(error=0.01), tally([50_000, 50_000]), keep=0.01)
    assert "an error of 0.062 instead of 0.01 is to be expected at rides" in made.cause  # 1 % of a group are 1,000 rows


@pytest.mark.parametrize(
    ("keep", "rows", "error", "kept", "said"),
    [
        (0.01, 100_000, 0.01, 1000, ["an error of 0.062"]),  # latency is the tightest
        (1.0, 1000, 0.01, 1000, ["row budget of 1,000", "an error of 0.062"]),  # the row budget is
        (1.0, 50_000, 0.1, 384, []),  # the accuracy asks for less than either allows
        (0.5, 400_000, 0.0001, 50_000, ["an error of"]),  # and for more than there is
    ],
    ids=["latency", "rows", "accuracy", "accuracy out of reach"],
)
def test_of_latency_rows_and_accuracy_the_tightest_holds_and_what_gave_way_is_said(keep, rows, error, kept, said):
    # One group, half a pane with 50,000 rows gone by, of which the budgets have paid their part.
    half = tally([50_000], kept=kept / 2)
    made = plan(policy(rows=rows, error=error), half, keep=keep)
    assert keep_shares(made.points["rides"], [0], [0])[0] * 100_000 == pytest.approx(kept, rel=2e-3)
    assert made.cause.count(";") == len(said) + 1  # and that nobody measures the variation
    assert all(part in made.cause for part in said)


def test_a_row_budget_that_new_groups_have_spent_leaves_every_row_a_chance_and_goes_on_at_a_tenth_of_its_pace():
    random = np.random.default_rng(3)
    # A slow first half, then ten times as many rows, and all of new groups: their first batch is kept whole.
    sizes = [200] * 30 + [2000] * 30
    known, kept, weights = WindowTally(0), 0, 0.0
    for number, size in enumerate(sizes):
        groups = random.integers(0, 50, size) + 1000 * (number >= 30)
        setting = plan(policy(rows=3000), *[known] * (number > 0), keep=1.0).points["rides"]
        share = keep_shares(setting, np.zeros(size), groups)
        assert (share > 0).all()
        keep = random.random(size) < share
        kept, weights = kept + keep.sum(), weights + (1 / share[keep]).sum()
        known = known.add(groups, progress=(number + 1) / len(sizes), kept=float(keep.sum()))
    assert 3000 < kept < 3000 * 1.1 + 2000
    assert weights == pytest.approx(sum(sizes), rel=0.25)


def test_protected_rows_are_paid_for_by_the_others():
    assert plan(policy(), keep=0.4, protected=0.25).points["rides"].new_keep_fraction == pytest.approx(0.2)
    assert "protected rows alone exceed" in plan(policy(), keep=0.1, protected=0.25).cause


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"group": ""}, "`group`"),
        ({"window": ("10 minutes", "3 minutes")}, "multiple of its slide"),
        ({"window": ("10 minutes", "20 minutes")}, "slide must be at most its size"),
        ({"group": []}, "`group`"),
        ({"time": ""}, "`time`"),
        ({"rows": 0}, "`rows`"),
        ({"error": -1.0}, "`error`"),
        ({"variation": 0.0}, "`variation`"),
        ({"error": 0.1, "confidence": 2.0}, "`confidence`"),
        ({"rows": "x"}, "`rows` must be a positive number, got 'x'"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, complaint):
    with pytest.raises(InvalidSetting, match=complaint):
        policy(**wrong)


def test_columns_and_panes():
    made = policy(group=["from", "to"], window=("30 minutes", "10 minutes"))
    assert made.spec.columns == ("from", "to")
    assert (made.grid.size, made.pane_us) == (3 * PANE, PANE)


def play(made_by: ConceptDrop, groups, *, keep: float, batches: int = 60, seed: int = 1, before=(), room=10_000):
    """A pane under the policy's own plans, batch by batch, after those `before`; rows kept, and every plan's cause."""
    random, known, kept = np.random.default_rng(seed), WindowTally(0), np.zeros(len(groups), bool)
    causes = []
    for number, piece in enumerate(np.array_split(np.arange(len(groups)), batches)):
        made = plan(made_by, *before, *[known] * (number > 0), keep=keep, room=room)
        causes.append(made.cause)
        share = keep_shares(made.points["rides"], np.zeros(len(piece)), groups[piece])
        kept[piece] = random.random(len(piece)) < share
        known = known.add(groups[piece], progress=(number + 1) / batches, kept=float(kept[piece].sum()))
    assert known.rows == len(groups)  # every row is counted, kept or not
    return kept, causes


def heavy_tail(seed: int, rows=60_000, groups=500):
    share = 1.0 / np.arange(1, groups + 1) ** 1.5
    names = np.random.default_rng(seed + 100).integers(-(2**31), 2**31 - 1, groups)
    return names[np.random.default_rng(seed).choice(groups, rows, p=share / share.sum())]


@pytest.mark.parametrize("seed", range(3))
def test_a_strict_policy_loses_no_group_of_a_window_that_is_all_new(seed):
    groups = heavy_tail(seed)
    kept, _ = play(policy(strict=True), groups, keep=0.15, seed=seed)
    assert set(groups[kept]) == set(groups)
    assert kept.mean() <= 0.15 + 1 / 60 + 0.01


def test_by_default_every_batch_keeps_to_the_budget_and_hardly_a_group_is_lost():
    groups = heavy_tail(4)
    kept, _ = play(policy(), groups, keep=0.15)
    per_batch = [part.mean() for part in np.array_split(kept, 60)]
    assert max(per_batch) <= 0.15 + 5 * np.sqrt(0.15 * 0.85 / 1000)
    lost = len(set(groups) - set(groups[kept]))
    assert lost <= 0.03 * len(set(groups))


@pytest.mark.parametrize("row_budget", [False, True], ids=["latency", "rows"])
def test_with_more_groups_than_rows_the_budget_holds_and_the_cause_says_so(row_budget):
    groups = np.random.default_rng(5).integers(0, 2**31, 100_000)
    before = tally([100_000], progress=1.0, start=-PANE, kept=2000.0)
    budget = {"rows": 2000, "keep": 1.0} if row_budget else {"rows": None, "keep": 0.02}
    made_by = policy(rows=budget["rows"])
    kept, causes = play(made_by, groups, keep=budget["keep"], batches=20, before=[before] * row_budget, room=200)
    assert 0.8 * 2000 < kept.sum() <= 1.1 * 2000
    assert "more groups than rows" in causes[-1]
    assert ("the row budget of 2,000 a window binds" in causes[-1]) == row_budget


def test_the_rate_of_a_scalar_follows_from_the_mean_and_variance_that_were_seen():
    scalar = policy(group="'all'", error=0.05, value="bytes")
    shares = {}
    for variation in (None, 0.5, 2.0):
        point = PointStats(1000, 1000)
        made = told(scalar, "packets", [tally([46_000])], variation).plan(
            Stats(0, 0.0, 1.0, {"packets": point}), Budget(1.0, 1.0, 3.0, "there is time")
        )
        shares[variation] = made.points["packets"].keeps[0][0]
    assert shares[None] == pytest.approx(1537 / 92_000, rel=0.01)  # variation 1, half of the rows seen
    assert shares[0.5] == pytest.approx(shares[None] / 4, rel=0.01)
    assert shares[2.0] == pytest.approx(shares[None] * 4, rel=0.01)


def test_a_scalar_meets_its_accuracy_with_about_the_rows_that_it_needs():
    random, errors, kept_rows = np.random.default_rng(8), [], []
    scalar, batches, needed = policy(group="'all'", error=0.05), 60, 1537
    for _ in range(60):
        values = random.exponential(10.0, 60_000)  # a coefficient of variation of 1, as assumed unless told
        keep, weight = np.zeros(len(values), bool), np.ones(len(values))
        for number, piece in enumerate(np.array_split(np.arange(len(values)), batches)):
            known = WindowTally(0).add([5], [number * 1000], progress=number / batches, kept=keep.sum())
            made = plan(scalar, *[known] * (number > 0), keep=1.0).points["rides"]
            share = keep_shares(made, [0], [5])[0]
            keep[piece], weight[piece] = random.random(len(piece)) < share, 1.0 / share
        errors.append(abs(np.average(values[keep], weights=weight[keep]) / values.mean() - 1.0))
        kept_rows.append(keep.sum())
    assert (np.array(errors) <= 0.05).mean() >= 0.95 - 3 * (0.05 * 0.95 / 60) ** 0.5
    assert np.mean(kept_rows) < 1000 + 1.1 * needed  # the first batch, of which nothing is known, comes on top


def test_a_large_error_is_good_enough_for_windows_of_many_panes_too():
    made = plan(policy(window=("90 minutes", "10 minutes"), error=0.4), tally([9000, 30]), keep=1.0)
    assert 0.0 < made.points["rides"].keeps[0][0] < 0.01


@pytest.mark.parametrize("plan_bytes", [16 * 1024, 64 * 1024, 256 * 1024])
def test_as_many_groups_are_named_as_fit_into_the_bytes_of_the_plan(plan_bytes):
    keys = np.unique(np.random.default_rng(1).integers(-(2**31), 2**31, 20_000))
    known = WindowTally(1_700_000_000_000_000).add(keys, np.full(len(keys), 9000), progress=0.5)
    stats = Stats(0, 0.0, 1.0, {"rides": PointStats(1000, 1000)}, plan_bytes=plan_bytes)
    made = told(policy(), "rides", [known]).plan(stats, Budget(0.0123456789, 0.01, 3.0, "too many rows"))
    assert 0.6 * plan_bytes - 8 * 1024 < len(made.to_json()) <= plan_bytes
    room = made.points["rides"].named_groups
    assert f"the plan has room for {room:,} groups a drop point" in made.cause


def test_it_asks_for_the_room_that_its_groups_need():
    little, much = (told(policy(), "rides", [tally([9] * count)]).plan_bytes for count in (100, 20_000))
    assert little == policy().plan_bytes == HUGE_PLAN_BYTES < much
    assert groups_within(much) >= 20_000


def test_each_drop_point_gets_the_room_that_its_groups_need():
    """One that has shown no groups needs none."""
    made_by = told(told(policy(), "a", [tally([9000] * 15_000)]), "b", [tally([9000] * 10)])
    stats = Stats(0, 0.0, 1.0, dict.fromkeys("abc", PointStats(1000, 1000)), plan_bytes=made_by.plan_bytes)
    made = made_by.plan(stats, Budget(0.01, 0.01, 3.0, "too many rows"))
    assert [setting.named_groups for setting in made.points.values()] == [15_000, 10, 0]
    assert len(made.to_json()) <= made_by.plan_bytes <= MOST_PLAN_BYTES
    assert made.cause == "too many rows", "nothing is short"
