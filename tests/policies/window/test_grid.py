from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.policies.window.window_grid import Grid, grid_of


@st.composite
def grids(draw: st.DrawFn, largest: int = 12) -> Grid:
    size = draw(st.integers(1, largest))
    return Grid(size, draw(st.integers(1, size)), draw(st.integers(-largest, largest)))


@given(grids(), st.integers(-100, 100))
def test_the_windows_that_hold_a_time_are_those_whose_edges_enclose_it(grid: Grid, time: int) -> None:
    enclosing = [n for n in range(-300, 301) if grid.start(n) <= time < grid.end(n)]
    assert list(grid.holding(time)) == enclosing
    assert enclosing


@given(grids(), st.integers(-100, 100))
def test_window_count_is_size_over_slide_rounded_either_way(grid: Grid, time: int) -> None:
    assert len(grid.holding(time)) in {grid.size // grid.slide, -(-grid.size // grid.slide)}


@given(grids(), st.integers(-100, 100))
def test_ends_are_found_on_the_right_side(grid: Grid, time: int) -> None:
    n = grid.first_ending_after(time)
    assert grid.end(n) > time >= grid.end(n - 1)
    assert grid.last_ending_by(time) == n - 1


def test_edges_in_microseconds_are_exact_far_from_the_epoch() -> None:
    hour = 3_600_000_000
    grid = Grid(hour, hour // 3, offset=7)
    time = grid.start(10**9)
    assert list(grid.holding(time)) == [10**9 - 2, 10**9 - 1, 10**9]
    assert list(grid.holding(time - 1)) == [10**9 - 3, 10**9 - 2, 10**9 - 1]


@pytest.mark.parametrize(("size", "slide"), [(5, 6), (0, 0), (5, 0), (5, -1), (2.5, 1)])
def test_windows_that_leave_time_uncovered_are_refused(size: int, slide: int) -> None:
    with pytest.raises(InvalidSetting, match="slide"):
        Grid(size, slide)


def test_what_is_wrong_with_a_window_is_said_in_durations() -> None:
    with pytest.raises(InvalidSetting, match=r"at most its size, got 1\.5 minutes every 1 hour\. Hint"):
        grid_of(("90 seconds", "1 hour"))
    assert str(grid_of(("10 minutes", "250 ms", "-15 seconds"))) == "10 minutes every 250 ms, offset -15 seconds"
