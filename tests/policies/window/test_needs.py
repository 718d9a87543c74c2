"""What an answer needs, against brute force: every row is carried through every level as Spark would."""

from __future__ import annotations

from math import lcm

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_needs import Pipeline


@st.composite
def pipelines(draw: st.DrawFn, most_levels: int = 3, largest: int = 7) -> Pipeline:
    sizes = draw(st.lists(st.integers(1, largest), min_size=1, max_size=most_levels))
    return Pipeline(
        tuple(Grid(size, draw(st.integers(1, size)), draw(st.integers(-largest, largest))) for size in sizes)
    )


def answers_by_brute_force(pipeline: Pipeline, time: int) -> set[int]:
    """Final windows that a row at `time` ends up in, each level stamped with its end minus one."""
    times = {time}
    for level in pipeline.levels[:-1]:
        times = {level.end(n) - 1 for t in times for n in level.holding(t)}
    return {n for t in times for n in pipeline.final.holding(t)}


@pytest.mark.long
@given(pipelines(), st.integers(-40, 40))
@settings(max_examples=2000)
def test_a_row_takes_part_in_exactly_the_answers_that_need_it(pipeline: Pipeline, time: int) -> None:
    true = answers_by_brute_force(pipeline, time)
    assert {n for n in range(min(true) - 9, max(true) + 10) if pipeline.holds(n, time)} == true
    assert (pipeline.first_holding(time), pipeline.last_holding(time)) == (min(true), max(true))


@pytest.mark.long
@given(pipelines(), st.integers(-20, 20))
@settings(max_examples=1000)
def test_between_first_and_last_only_void_windows_do_without_a_row(pipeline: Pipeline, time: int) -> None:
    for n in range(pipeline.first_holding(time), pipeline.last_holding(time) + 1):
        assert pipeline.holds(n, time) or pipeline.void(n)


@given(pipelines(), st.integers(-20, 20))
@settings(max_examples=1000)
def test_needs_never_move_back(pipeline: Pipeline, n: int) -> None:
    here, there = pipeline.need(n), pipeline.need(n + 1)
    assume(here is not None and there is not None)
    assert here[0] <= there[0]
    assert here[1] <= there[1]


@given(pipelines(), st.integers(-20, 20))
def test_reach_bounds_how_far_back_an_answer_looks(pipeline: Pipeline, n: int) -> None:
    need = pipeline.need(n)
    assume(need is not None)
    assert pipeline.final.start(n) - pipeline.reach <= need[0]
    assert need[1] <= pipeline.final.end(n)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=3), st.integers(-5, 5))
def test_aligned_grids_have_the_closed_form(shape: list[tuple[int, int]], n: int) -> None:
    # Each level's slide is a multiple of the one below, and sizes are multiples of slides.
    slide, levels = 1, []
    for factor, windows in shape:
        slide *= factor
        levels.append(Grid(slide * windows, slide))
    start = levels[-1].start(n)
    reach = sum(level.size - level.slide for level in levels[:-1])
    assert Pipeline(tuple(levels)).need(n) == (start - reach, levels[-1].end(n))


def test_aligned_tumbling_levels_add_nothing() -> None:
    assert Pipeline((Grid(10, 10), Grid(60, 60), Grid(3600, 3600))).need(5) == (5 * 3600, 6 * 3600)


def test_a_window_shorter_than_the_slide_below_can_be_void() -> None:
    pipeline = Pipeline((Grid(10, 10), Grid(4, 4)))
    # Children end at 10 and 20: only the windows (8, 12] and (16, 20] see one.
    assert [n for n in range(0, 5) if not pipeline.void(n)] == [2, 4]


@given(pipelines(most_levels=2))
def test_overlap_is_whether_some_row_takes_part_twice(pipeline: Pipeline) -> None:
    period = lcm(*(level.slide for level in pipeline.levels))
    shared = any(len(answers_by_brute_force(pipeline, time)) > 1 for time in range(period))
    if shared:
        assert pipeline.has_overlap
    if not pipeline.has_overlap:
        assert not shared


def test_a_pipeline_without_windows_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="one window or more"):
        Pipeline(())
