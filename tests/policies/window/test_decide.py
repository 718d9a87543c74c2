"""Deciders under thousands of courses: the gap is never exceeded, the share is met."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.policies.window.window_choice import Runs, highest_share

shares = st.floats(0.001, 1.0)


def decisions(decider: Runs, course: list[float]) -> list[bool]:
    state, dropped = decider.start(), []
    for share in course:
        drop, state = decider.decide(state, share)
        dropped.append(drop)
    return dropped


def longest_gap(dropped: list[bool]) -> int:
    return max((len(list(run)) for drop, run in itertools.groupby(dropped) if drop), default=0)


@st.composite
def deciders(draw: st.DrawFn) -> Runs:
    max_gap = draw(st.integers(1, 20))
    return Runs(max_gap, run=draw(st.none() | st.integers(1, max_gap)))


@given(deciders(), st.lists(st.floats(0.0, 1.0), max_size=300))
@settings(max_examples=1000)
def test_never_more_than_the_largest_gap_is_missing(decider: Runs, course: list[float]) -> None:
    assert longest_gap(decisions(decider, course)) <= decider.max_gap


@pytest.mark.long
@given(st.integers(1, 40), st.data(), st.lists(shares, min_size=1, max_size=400))
@settings(max_examples=1000)
def test_runs_stay_within_one_run_of_the_share_at_every_moment(max_gap: int, data: st.DataObject, course: list[float]):
    run = data.draw(st.integers(1, max_gap))
    wanted, missing = 0.0, 0
    for share, drop in zip(course, decisions(Runs(max_gap, run), course), strict=True):
        wanted += min(share, highest_share(max_gap))
        missing += drop
        assert -1.0 - 1e-6 <= missing - wanted <= run + 1e-6


@given(shares, st.integers(1, 10))
@settings(max_examples=300)
def test_over_a_thousand_windows_runs_meet_the_share_to_one_in_a_hundred(share: float, max_gap: int):
    dropped = decisions(Runs(max_gap), [share] * 1000)
    assert abs(sum(dropped) / 1000 - min(share, highest_share(max_gap))) <= 0.01


def test_a_share_beyond_what_the_gap_allows_drops_all_but_one_window_in_each_gap() -> None:
    assert sum(decisions(Runs(3), [1.0] * 4000)) == 3000


def test_shedding_starts_with_the_first_window_and_not_after_a_long_wait() -> None:
    assert decisions(Runs(10), [0.05] * 11) == [True] * 10 + [False]


def test_full_runs_are_as_long_as_the_gap_allows_and_short_ones_are_spread() -> None:
    assert longest_gap(decisions(Runs(10), [0.5] * 100)) == 10
    assert longest_gap(decisions(Runs(10, run=1), [0.5] * 100)[2:]) == 1


def test_a_gap_that_becomes_smaller_ends_a_run_that_is_longer_already() -> None:
    state = Runs(9).start()
    for _ in range(7):
        _, state = Runs(9).decide(state, 1.0)
    assert state.run == 7
    drop, state = Runs(3).decide(state, 1.0)
    assert not drop
    assert state.run == 0


def test_nothing_is_dropped_while_nothing_is_to_be_shed() -> None:
    assert not any(decisions(Runs(4), [0.0] * 100))
    assert not any(decisions(Runs(4), [0.9] * 7 + [0.0] * 100)[7:])


@pytest.mark.parametrize("make", [lambda: Runs(0), lambda: Runs(3, run=4), lambda: Runs(3, run=0)])
def test_impossible_gaps_and_runs_are_refused(make) -> None:
    with pytest.raises(InvalidSetting):
        make()
