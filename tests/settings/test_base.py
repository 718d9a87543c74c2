"""Settings of late rows: all or none, each sound, and one message for all kinds of settings that have them."""

from __future__ import annotations

import pytest

from jettison.errors import InvalidSetting
from jettison.settings import GroupDrop, RandomDrop
from jettison.settings.base import check_late
from jettison.settings.region_drop import RegionDrop


def test_all_or_none_pass():
    check_late(None, late_keep_fraction=None, late_keep=None)
    check_late(3.0, late_keep_fraction=0.5, late_keep=(0.2, 1.0))


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
    ("after_s", "shares", "named"),
    [(0.0, {"late_factor": 0.5}, "late_after_s"), (3.0, {"late_factor": 1.5}, "late_factor"),
     (3.0, {"late_keep_fraction": 0.5, "late_keep": (0.5, -0.1)}, "late_keep")],
)  # fmt: skip
def test_each_of_them_is_checked_by_its_own_name(after_s, shares, named):
    with pytest.raises(InvalidSetting, match=f"`{named}` must"):
        check_late(after_s, **shares)
