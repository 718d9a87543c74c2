"""A setting by group: what it says about rows, what it refuses, and how much room it takes in a plan."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.plan import HUGE_PLAN_BYTES, MOST_PLAN_BYTES, DropPlan
from jettison.errors import InvalidSetting
from jettison.policies.groups.group_setting import GroupDrop, groups_within, keep_shares, rounded_down
from jettison.runtime import plan_file
from jettison.runtime.schedule import Schedule

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
        ({"pane_us": 1, "starts_us": (0,), "others": (1,), "groups": ((2**31,),), "keeps": ((1,),)}, "32-bit"),
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


@pytest.mark.parametrize("size", [HUGE_PLAN_BYTES, MOST_PLAN_BYTES])
def test_a_plan_with_as_many_groups_as_there_is_room_for_fits_the_plan_file(size):
    count = groups_within(size)
    groups = tuple(np.unique(np.random.default_rng(1).integers(-(2**31), 2**31 - 1, count)).tolist())
    count = len(groups)
    keeps = tuple(rounded_down(share) for share in np.random.default_rng(2).random(count) * 1e-3)
    setting = GroupDrop(0.1, PANE, (1_700_000_000_000_000,), (1.0,), (groups,), (keeps,), 0.1, 0.5, 3.0)
    plan = DropPlan(10**9, {"a drop point with a long name": setting}, cause="x" * 2000)
    plan_file.encode(Schedule.of(plan), valid_until_us=10**15, size=size)  # raises where it does not fit


def of_groups(count, keep=0.25):
    return GroupDrop(0.3, PANE, (0,), (1.0,), (tuple(range(count)),), ((keep,) * count,), 0.3)


def test_a_record_of_many_groups_is_short_and_still_a_plan():
    plan = DropPlan(7, {"long": of_groups(1500), "short": of_groups(3)}, cause="too many rows")
    record = plan.on_record()
    assert len(json.dumps(record)) < 1000
    restored = DropPlan.from_json(json.dumps(record))
    assert (restored.version, restored.cause) == (7, "too many rows")
    assert restored.points["short"] == plan.points["short"]
    assert (restored.points["long"].named_groups, restored.points["long"].new_keep_fraction) == (0, 0.3)
    assert record["abridged"]["long"]["named_groups"] == [1500]
    assert "short" not in record["abridged"]


def test_the_digest_on_record_tells_settings_apart_and_can_be_recomputed():
    digests = {of_groups(1500, keep).abridged[1]["sha256"] for keep in (0.25, 0.25, 0.26)}
    assert len(digests) == 2
    whole = json.loads(DropPlan(1, {"p": of_groups(1500)}).to_json())["points"]["p"]
    listed = [whole[name] for name in ("pane_us", "starts_us", "others", "groups", "keeps")]
    text = json.dumps(listed, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == of_groups(1500).abridged[1]["sha256"]
