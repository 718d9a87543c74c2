from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.policies.window import horizon
from jettison.policies.window.query_fan import Branch, Fan
from jettison.policies.window.window_choice import Runs
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_marks import WindowMarks
from jettison.policies.window.window_needs import Pipeline

FAN = Fan((Branch("a", Pipeline((Grid(10, 5),)), 3),))


def test_marks_begin_behind_the_watermark_and_units_that_have_begun_are_kept() -> None:
    marks = horizon.begin(FAN, watermark=100)
    assert FAN.branches[0].pipeline.final.end(marks.first[0]) <= 100
    marks = horizon.extend(FAN, marks, Runs(3), begun=25, until=30, drop_share=1.0)
    assert marks.first[0] + len(marks.marks[0]) == 30 == marks.next_unit
    assert [n for n in range(16, 30) if marks.dropped(0, n)] == [25, 26, 27, 29]


def test_rows_open_again_where_the_next_kept_window_starts() -> None:
    marks = horizon.extend(FAN, horizon.begin(FAN, 100), Runs(3), begun=25, until=30, drop_share=1.0)
    # 25 to 27 are dropped, 24 and 28 kept: [120, 130) and [140, 150) are needed.
    assert [marks.needs(FAN, t) for t in (129, 130, 139, 140)] == [True, False, False, True]
    # 29 is dropped, but 30 is not decided yet and counts as kept: all of [145, 150) is needed by 28 anyway.
    assert marks.needs(FAN, 150)


def test_without_marks_every_row_is_needed() -> None:
    assert WindowMarks().needs(FAN, 5)


def test_extending_in_steps_is_extending_at_once() -> None:
    start = horizon.begin(FAN, 100)
    at_once = horizon.extend(FAN, start, Runs(3), begun=25, until=60, drop_share=0.6)
    in_steps = start
    for until in range(20, 61):
        in_steps = horizon.extend(FAN, in_steps, Runs(3), begun=25, until=until, drop_share=0.6)
    assert in_steps == at_once


@given(st.integers(100, 400), st.integers(100, 400))
@settings(max_examples=200)
def test_trimming_changes_no_decision_about_rows_that_are_still_accepted(watermark: int, time: int) -> None:
    marks = horizon.extend(FAN, horizon.begin(FAN, 100), Runs(3), begun=25, until=80, drop_share=0.7)
    trimmed = horizon.trim(FAN, marks, watermark)
    if time >= watermark:
        assert trimmed.needs(FAN, time) == marks.needs(FAN, time)
    for n in range(20, 85):
        if FAN.branches[0].pipeline.final.end(n) > watermark:
            assert trimmed.dropped(0, n) == marks.dropped(0, n)
    assert trimmed.next_unit == marks.next_unit


def test_drops_are_open_until_the_watermark_has_passed_them_by_far() -> None:
    marks = horizon.extend(FAN, horizon.begin(FAN, 100), Runs(3), begun=25, until=26, drop_share=1.0)
    assert horizon.drops_open_at(FAN, marks, 135)
    assert not horizon.drops_open_at(FAN, marks, 200)


def test_void_windows_are_neither_kept_nor_dropped() -> None:
    fan = Fan((Branch("a", Pipeline((Grid(10, 10), Grid(4, 4))), 2),))
    marks = horizon.extend(fan, horizon.begin(fan, 100), Runs(2), begun=30, until=60, drop_share=1.0)
    letters = marks.marks[0][30 - marks.first[0] :]
    assert "v" in letters
    assert "ddd" not in marks.marks[0].replace("v", "")
    for place, letter in enumerate(letters, start=30):
        assert (letter == "v") == fan.branches[0].pipeline.void(place)
