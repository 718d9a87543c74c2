from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.policies.window.interpolate import Reading, interpolate
from jettison.policies.window.window_grid import Grid


@given(st.dictionaries(st.integers(0, 30).map(lambda n: 5 * n), st.floats(-1e6, 1e6), max_size=20))
def test_answers_pass_untouched_and_every_guess_is_marked_and_between_its_neighbours(answers: dict[int, float]) -> None:
    readings = interpolate(answers, Grid(10, 5))
    assert {r.start: r.value for r in readings if not r.estimated} == answers
    starts = [r.start for r in readings]
    assert starts == (list(range(min(answers), max(answers) + 1, 5)) if answers else [])
    for reading in readings:
        if reading.estimated:
            before = answers[max(s for s in answers if s < reading.start)]
            after = answers[min(s for s in answers if s > reading.start)]
            assert min(before, after) - 1e-6 <= reading.value <= max(before, after) + 1e-6


def test_a_straight_line_is_met_exactly() -> None:
    assert interpolate({3: 0.0, 12: 9.0}, Grid(3, 3)) == [
        Reading(3, 0.0, False),
        Reading(6, 3.0, True),
        Reading(9, 6.0, True),
        Reading(12, 9.0, False),
    ]


def test_answers_off_the_grid_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="start"):
        interpolate({4: 1.0}, Grid(3, 3))


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=45)), None])
def test_starts_as_spark_returns_them_come_back_in_their_time_zone(
    monkeypatch: pytest.MonkeyPatch, zone: timezone | None
) -> None:
    # Clocks there are set forward at 2:00 on 29 March 2026: the window after 1:30 starts at 3:00.
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        starts = [datetime.fromtimestamp(1_774_744_200 + 1800 * i, zone) for i in range(3)]
        readings = interpolate({starts[0]: 1.0, starts[2]: 2.0}, ("1 hour", "30 minutes"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [(r.start, r.value, r.estimated) for r in readings] == [
        (starts[0], 1.0, False),
        (starts[1], 1.5, True),
        (starts[2], 2.0, False),
    ]
    assert zone is not None or [start.hour for start in starts] == [1, 3, 3]
