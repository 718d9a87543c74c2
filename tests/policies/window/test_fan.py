from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.policies.window.query_fan import Branch, Fan
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_needs import Pipeline


@st.composite
def fans(draw: st.DrawFn, most: int = 3) -> Fan:
    def grid() -> Grid:
        size = draw(st.integers(1, 6))
        return Grid(size, draw(st.integers(1, size)), draw(st.integers(-5, 5)))

    return Fan(
        tuple(
            Branch(f"q{i}", Pipeline(tuple(grid() for _ in range(draw(st.integers(1, 2))))), draw(st.integers(1, 60)))
            for i in range(draw(st.integers(1, most)))
        )
    )


@given(fans(), st.integers(-5, 5))
def test_units_part_every_query_s_windows(fan: Fan, unit: int) -> None:
    for branch in fan.branches:
        for n in fan.windows(branch, unit):
            assert fan.unit(branch, n) == unit
        assert fan.windows(branch, unit).stop == fan.windows(branch, unit + 1).start


@given(fans(), st.integers(-40, 40))
def test_units_after_a_time_are_those_that_no_row_by_then_takes_part_in(fan: Fan, time: int) -> None:
    unit = fan.first_unit_after(time)
    for branch in fan.branches:
        for later in range(unit, unit + 3):
            for n in fan.windows(branch, later):
                assert not any(branch.pipeline.holds(n, earlier) for earlier in range(time - 60, time + 1))
    assert any(branch.pipeline.holds(n, time) for branch in fan.branches for n in fan.windows(branch, unit - 1))


@given(fans(), st.integers(-3, 3), st.integers(1, 5))
@settings(max_examples=200)
def test_spared_time_is_what_no_kept_unit_needs(fan: Fan, unit: int, run: int) -> None:
    kept = [u for u in range(unit - 20, unit + run + 21) if not unit < u <= unit + run]
    low, high = fan.base + (unit - 6) * fan.length, fan.base + (unit + run + 6) * fan.length
    windows = [(branch, n) for u in kept for branch in fan.branches for n in fan.windows(branch, u)]
    needs = [need for branch, n in windows if (need := branch.pipeline.need(n)) is not None]
    idle = sum(1 for t in range(low, high) if not any(a <= t < b for a, b in needs))
    assert idle == fan.spared(unit, run)


def test_gaps_count_in_common_slides() -> None:
    fan = Fan((Branch("a", Pipeline((Grid(3, 2),)), 9), Branch("b", Pipeline((Grid(3, 3),)), 4)))
    assert (fan.length, fan.max_gap) == (6, 2)
    assert fan.without({"b"}).max_gap == 3, "without b, but still in units of six"


def needed_by_unit(fan: Fan, unit: int) -> tuple[int, int]:
    """Times that some answer of the unit needs, from the first to the last."""
    needs = [branch.pipeline.need(n) for branch in fan.branches for n in fan.windows(branch, unit)]
    lows, highs = zip(*(need for need in needs if need is not None), strict=True)
    return min(lows), max(highs)


def test_the_papers_fan_out_and_composition_as_spark_evaluates_them() -> None:
    """Sizes 7 and 10 and a slide of 6, as in the paper; but below another aggregate the rows lie further back."""
    s = 1_000_000
    below, left, right = Grid(4 * s, s), Grid(3 * s, 2 * s), Grid(3 * s, 3 * s)
    fan_out = Fan((Branch("a", Pipeline((left,)), 9), Branch("b", Pipeline((right,)), 9)))
    composed = Fan((Branch("a", Pipeline((below, left)), 9), Branch("b", Pipeline((below, right)), 9)))
    for unit in (-2, 0, 5):
        start = 6 * s * unit
        assert needed_by_unit(fan_out, unit) == (start, start + 7 * s)
        assert needed_by_unit(composed, unit) == (start - 3 * s, start + 7 * s)


def test_names_are_told_apart() -> None:
    branch = Branch("a", Pipeline((Grid(3, 2),)), 9)
    with pytest.raises(InvalidSetting, match="name"):
        Fan((branch, branch))


@pytest.mark.parametrize(("gap", "cost"), [(0, 1.0), (1, 0.0), (1, float("nan"))])
def test_impossible_queries_are_refused(gap: int, cost: float) -> None:
    with pytest.raises(InvalidSetting):
        Branch("a", Pipeline((Grid(3, 2),)), gap, cost)
