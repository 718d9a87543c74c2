from __future__ import annotations

import pytest

from jettison.commands.option_values import hours
from jettison.errors import InvalidSetting


@pytest.mark.parametrize(("typed", "read"), [("22-6", (22, 6)), ("0-24", (0, 24)), ("08-09", (8, 9))])
def test_two_hours_of_the_day_are_read(typed: str, read: tuple[int, int]) -> None:
    assert hours(typed) == read


@pytest.mark.parametrize("typed", ["²-6", "6-²", "①-6", "٣-6", "6", "-6", "6-", "6-6", "6-25", "-1-6", "6-7-8", "a-b"])
def test_what_are_not_two_hours_is_refused(typed: str) -> None:
    with pytest.raises(InvalidSetting, match="--hours must be two different hours of the day") as refused:
        hours(typed)
    assert repr(typed) in str(refused.value)
