"""Durations are read as people write them, and nothing else passes for one."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.durations import seconds, signed_microseconds
from jettison.errors import InvalidSetting

WRONG_TEXT = ["", "3", "seconds", "-3 s", "0 s", "3 fortnights", "1 2 s", "3 seconds later", "9" * 400 + " s"]
WRONG_NUMBERS = [0, -1, 0.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("3 seconds", 3.0),
        ("3 second", 3.0),
        ("3s", 3.0),
        ("1.5 sec", 1.5),
        ("2 secs", 2.0),
        ("250 ms", 0.25),
        ("250 milliseconds", 0.25),
        ("10 us", 1e-5),
        ("10 microseconds", 1e-5),
        ("2 m", 120.0),
        ("2 mins", 120.0),
        ("1 minute", 60.0),
        ("2 h", 7200.0),
        ("1 hour", 3600.0),
        ("1 day", 86400.0),
        ("2 d", 172800.0),
        ("  3  SECONDS ", 3.0),
        (7, 7.0),
        (0.25, 0.25),
        (timedelta(minutes=1, milliseconds=500), 60.5),
    ],
)
def test_usual_spellings_are_understood(written, expected):
    assert seconds(written) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "value",
    [*WRONG_TEXT, *WRONG_NUMBERS, timedelta(0), timedelta(seconds=-1), True, None, b"3 s", ["3 s"]],
    ids=lambda value: repr(value)[:24],
)
def test_anything_else_is_refused_by_name_with_a_hint(value):
    with pytest.raises(
        InvalidSetting, match=r"`plan_lease` must be a positive duration, got .*Hint: write '3 seconds'"
    ):
        seconds(value, name="plan_lease")


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_a_number_is_seconds(number):
    assert seconds(number) == number


@given(st.timedeltas(min_value=timedelta(microseconds=1)))
def test_a_timedelta_keeps_its_length(delta):
    assert seconds(delta) == delta.total_seconds()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("15 seconds", 15_000_000),
        ("-15 seconds", -15_000_000),
        (" -1.5 ms", -1500),
        ("0 s", 0),
        (0, 0),
        (-2.5, -2_500_000),
        (timedelta(0), 0),
        (timedelta(milliseconds=-3), -3000),
        (timedelta(hours=1), 3_600_000_000),
    ],
)
def test_offsets_may_also_be_zero_or_negative(written, expected):
    assert signed_microseconds(written) == expected


@pytest.mark.parametrize("value", ["", "-", "--3 s", "- ", "3", math.nan, -math.inf, False, None])
def test_what_is_no_offset_is_refused(value):
    with pytest.raises(InvalidSetting, match="`window offset` must be a duration, of any sign, got"):
        signed_microseconds(value, name="window offset")
