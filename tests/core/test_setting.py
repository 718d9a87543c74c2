"""Settings of late rows: all or none, each sound, and one message for all kinds of settings that have them."""

from __future__ import annotations

from dataclasses import fields

import msgspec
import numpy as np
import pytest

from jettison.core.setting import SETTING_BY_KIND, check_together
from jettison.errors import InvalidSetting
from jettison.policies.groups.group_setting import GroupDrop
from jettison.policies.regions.region_setting import RegionDrop
from jettison.policies.uniform.random_setting import RandomDrop


def test_all_or_none_pass():
    check_together(late_after_s=None, late_keep_fraction=None, late_keep=None)
    check_together(late_after_s=3.0, late_keep_fraction=0.5, late_keep=(0.2, 1.0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: RandomDrop(late_keep_fraction=0.1),
            "`late_keep_fraction` and `late_after_s` go together, got `late_keep_fraction` alone. Hint: give all of "
            "them, or none where late rows are treated like all others.",
        ),
        (
            lambda: GroupDrop(late_after_s=3.0),
            "`late_factor` and `late_after_s` go together, got `late_after_s` alone. Hint: give all of them, or none "
            "where late rows are treated like all others.",
        ),
        (
            lambda: RegionDrop(late_keep=(), late_after_s=3.0),
            "`late_keep_fraction`, `late_keep` and `late_after_s` go together, got `late_keep` and `late_after_s` "
            "alone. Hint: give all of them, or none where late rows are treated like all others.",
        ),
    ],
)
def test_half_of_them_is_refused_and_says_which(wrong, message):
    with pytest.raises(InvalidSetting) as caught:
        wrong()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (lambda: GroupDrop(late_factor=0.5, late_after_s=0.0), "late_after_s"),
        (lambda: GroupDrop(late_factor=1.5, late_after_s=3.0), "late_factor"),
        (lambda: RegionDrop(late_keep_fraction=0.5, late_keep=(0.5, -0.1), late_after_s=3.0), "late_keep"),
    ],
)
def test_each_of_them_is_checked_by_its_own_name(wrong, named):
    with pytest.raises(InvalidSetting, match=f"`{named}` must"):
        wrong()


@pytest.mark.parametrize("kind", SETTING_BY_KIND)
def test_every_kind_has_a_schema_that_names_its_fields(kind):
    setting = SETTING_BY_KIND[kind]
    (described,) = msgspec.json.schema_components([setting])[1].values()
    assert described["properties"].keys() == {field.name for field in fields(setting)}


def test_lists_and_numbers_of_numpy_become_what_the_types_say():
    drop = GroupDrop(np.float64(0.5), 10, [0], np.ones(1), [[np.int64(7)]], [[np.float32(0.5)]])
    assert drop == GroupDrop(0.5, 10, (0,), (1.0,), ((7,),), ((0.5,),))
    assert type(drop.keep_fraction) is float
    assert type(drop.groups[0][0]) is int


def test_what_is_wrong_deep_inside_is_shown_with_its_place():
    with pytest.raises(InvalidSetting, match=r"`keeps` must lie in \[0, 1\], got 3.0 at \[0\]\[1\]\. Hint"):
        GroupDrop(1.0, 10, (0,), (1.0,), ((1, 2),), ((0.5, 3.0),))
    with pytest.raises(InvalidSetting, match=r"`starts_us` must have another type, got 'x' at \[0\] \(Expected `int`"):
        GroupDrop(starts_us=("x",))
