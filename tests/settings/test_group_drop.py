"""A setting by group: what it says about rows, what it refuses, and how much room it takes in a plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison import plan_file
from jettison.concept.obey import keep_shares
from jettison.errors import InvalidSetting
from jettison.plan import DropPlan
from jettison.policies import ConceptDrop
from jettison.settings import GroupDrop
from jettison.settings.group_drop import rounded_down

PANE = 600_000_000


def test_it_comes_back_from_json_as_it_was():
    setting = GroupDrop(0.3, PANE, (0, PANE), (1.0, 0.5), ((-7, 9), ()), ((0.1, 0.2), ()), 0.3, 0.5, 3.0)
    assert DropPlan.from_json(DropPlan(1, {"p": setting}).to_json()).points["p"] == setting


def test_by_default_everything_is_kept():
    assert GroupDrop().keeps_everything
    assert keep_shares(GroupDrop(), [1, 2], [3, 4]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "less",
    [
        {"new_keep_fraction": 0.5},
        {"late_factor": 0.5, "late_after_s": 3.0},
        {"pane_us": 1, "starts_us": (0,), "others": (0.5,), "groups": ((),), "keeps": ((),)},
        {"pane_us": 1, "starts_us": (0,), "others": (1.0,), "groups": ((1,),), "keeps": ((0.5,),)},
    ],
)
def test_any_share_below_one_is_a_drop(less):
    assert not GroupDrop(**less).keeps_everything


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"keep_fraction": 1.4}, "keep_fraction"),
        ({"new_keep_fraction": -1.0}, "new_keep_fraction"),
        ({"starts_us": (0,)}, "each pane needs"),
        ({"starts_us": (0,), "others": (1.0,), "groups": ((),), "keeps": ((),)}, "pane_us"),
        ({"pane_us": 1, "starts_us": (0, 0), "others": (1, 1), "groups": ((), ()), "keeps": ((), ())}, "named once"),
        ({"pane_us": 1, "starts_us": (0,), "others": (1,), "groups": ((2, 1),), "keeps": ((1, 1),)}, "ascend"),
        ({"pane_us": 1, "starts_us": (0,), "others": (1,), "groups": ((1,),), "keeps": ((),)}, "needs a share"),
        ({"pane_us": 1, "starts_us": (0,), "others": (1,), "groups": ((2**63,),), "keeps": ((1,),)}, "64-bit"),
        ({"late_factor": 0.5}, "go together"),
        ({"late_factor": 0.5, "late_after_s": 0.0}, "positive"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, complaint):
    with pytest.raises(InvalidSetting, match=complaint):
        GroupDrop(**wrong)


@given(st.floats(0.0, 1.0))
def test_rounding_never_raises_a_share_and_hardly_lowers_it(share):
    rounded = rounded_down(share)
    assert rounded <= share
    assert rounded >= share * 0.999 or share < 1e-15


def test_a_plan_with_as_many_groups_as_the_policy_names_fits_the_plan_file():
    count = ConceptDrop("g", "t", "10 minutes").max_groups
    groups = tuple(np.sort(np.random.default_rng(1).integers(-(2**63), 2**63 - 1, count)).tolist())
    keeps = tuple(rounded_down(share) for share in np.random.default_rng(2).random(count) * 1e-3)
    setting = GroupDrop(0.1, PANE, (1_700_000_000_000_000,), (1.0,), (groups,), (keeps,), 0.1, 0.5, 3.0)
    plan = DropPlan(10**9, {"a drop point with a long name": setting}, cause="x" * 2000)
    assert len(plan_file.encode(plan, valid_until_us=10**15)) == plan_file.DEFAULT_SIZE
