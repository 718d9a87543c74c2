"""Windows are read as Spark reads them, and what could be read in two ways is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jettison.errors import InvalidSetting
from jettison.policies.window.window_grid import Grid, grid_of, grids_of

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("window", "grid"),
    [
        ("10 seconds", Grid(10 * SECOND, 10 * SECOND)),
        (("10 seconds", "5 seconds"), Grid(10 * SECOND, 5 * SECOND)),
        (("10 seconds", "5 seconds", "2 seconds"), Grid(10 * SECOND, 5 * SECOND, 2 * SECOND)),
        (("10 seconds", "5 seconds", "-15 ms"), Grid(10 * SECOND, 5 * SECOND, -15_000)),
        ((10, 5, 0), Grid(10 * SECOND, 5 * SECOND)),
        ((timedelta(seconds=10), 5.0, timedelta(seconds=-1)), Grid(10 * SECOND, 5 * SECOND, -SECOND)),
    ],
)
def test_a_window_is_a_size_a_slide_and_an_offset(window, grid: Grid) -> None:
    assert grid_of(window) == grid


def test_levels_come_from_the_input_to_the_answers() -> None:
    minute = 60 * SECOND
    assert grids_of([("5 minutes", "1 minute"), "1 hour"], query="q") == (
        Grid(5 * minute, minute),
        Grid(60 * minute, 60 * minute),
    )


@pytest.mark.parametrize("levels", ["10 seconds", ("5 minutes", "1 minute"), [], 10, {"a": 1}])
def test_one_window_is_not_taken_for_the_levels_of_a_query(levels) -> None:
    with pytest.raises(InvalidSetting, match=r"must be a list.* for query 'q'.*\[\(size, slide\)\]"):
        grids_of(levels, query="q")
