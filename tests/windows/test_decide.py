"""Deciders under thousands of courses: the gap is never exceeded, the share is met."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.windows.decide import CoinPerBatch, Decider, Runs, highest_share

shares = st.floats(0.001, 1.0)


def decisions(decider: Decider, course: list[float], first: int = 0) -> list[bool]:
    state, dropped = decider.start(), []
    for window, share in enumerate(course, start=first):
        drop, state = decider.decide(state, window, share)
        dropped.append(drop)
    return dropped


def longest_gap(dropped: list[bool]) -> int:
    return max((len(list(run)) for drop, run in itertools.groupby(dropped) if drop), default=0)


@st.composite
def deciders(draw: st.DrawFn) -> Decider:
    max_gap = draw(st.integers(1, 20))
    if draw(st.booleans()):
        return CoinPerBatch(max_gap, seed=draw(st.integers(0, 10**6)))
    return Runs(max_gap, run=draw(st.none() | st.integers(1, max_gap)))


@given(deciders(), st.lists(st.floats(0.0, 1.0), max_size=300), st.integers(-1000, 1000))
@settings(max_examples=1000)
def test_never_more_than_the_largest_gap_is_missing(decider: Decider, course: list[float], first: int) -> None:
    assert longest_gap(decisions(decider, course, first)) <= decider.max_gap


@given(st.integers(1, 40), st.data(), st.lists(shares, min_size=1, max_size=400))
@settings(max_examples=1000)
def test_runs_stay_within_one_run_of_the_share_at_every_moment(max_gap: int, data: st.DataObject, course: list[float]):
    run = data.draw(st.integers(1, max_gap))
    wanted, missing = 0.0, 0
    for share, drop in zip(course, decisions(Runs(max_gap, run), course), strict=True):
        wanted += min(share, highest_share(max_gap))
        missing += drop
        assert -1.0 - 1e-6 <= missing - wanted <= run + 1e-6


@given(shares, st.integers(1, 10), st.integers(0, 10**6))
@settings(max_examples=300)
def test_over_a_thousand_windows_runs_meet_the_share_to_one_in_a_hundred(share: float, max_gap: int, first: int):
    dropped = decisions(Runs(max_gap), [share] * 1000, first)
    assert abs(sum(dropped) / 1000 - min(share, highest_share(max_gap))) <= 0.01


@pytest.mark.parametrize("max_gap", [1, 2, 5, 10])
@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_the_coin_meets_the_share_in_the_long_run(max_gap: int, load: float) -> None:
    share = load * highest_share(max_gap)
    dropped = decisions(CoinPerBatch(max_gap, seed=3), [share] * 50_000)
    # Coins are independent: the share's standard deviation is sqrt(p (1 - p) B / n), 0.007 at worst.
    assert abs(sum(dropped) / 50_000 - share) <= 0.028


def test_a_share_beyond_what_the_gap_allows_drops_all_but_one_window_in_each_gap() -> None:
    for decider in (Runs(3), CoinPerBatch(3)):
        assert sum(decisions(decider, [1.0] * 4000)) == 3000


def test_the_coins_debt_is_capped_so_that_an_overload_is_forgotten() -> None:
    decider = CoinPerBatch(2, seed=1, most_owed=10)
    state = decider.start()
    for window in range(10_000):
        _, state = decider.decide(state, window, 1.0)
    assert state.owed == 10
    dropped = 0
    for window in range(10_000, 10_060):
        drop, state = decider.decide(state, window, 1e-9)
        dropped += drop
    assert dropped == 10


def test_the_coin_is_tossed_once_a_batch_and_is_the_same_after_a_restart() -> None:
    decider = CoinPerBatch(5, seed=9)
    whole = decisions(decider, [0.4] * 500)
    state, again = decider.start(), []
    for window in range(500):
        drop, state = CoinPerBatch(5, seed=9).decide(state, window, 0.4)
        again.append(drop)
    assert whole == again
    other = decisions(CoinPerBatch(5, seed=10), [0.4] * 500)
    assert whole != other


def test_shedding_starts_with_the_first_window_and_not_after_a_long_wait() -> None:
    assert decisions(Runs(10), [0.05] * 11) == [True] * 10 + [False]


def test_full_runs_are_as_long_as_the_gap_allows_and_short_ones_are_spread() -> None:
    assert longest_gap(decisions(Runs(10), [0.5] * 100)) == 10
    assert longest_gap(decisions(Runs(10, run=1), [0.5] * 100)[2:]) == 1


@pytest.mark.parametrize("make", [Runs, CoinPerBatch])
def test_a_gap_that_becomes_smaller_ends_a_run_that_is_longer_already(make) -> None:
    state = make(9).start()
    for window in range(7):
        _, state = make(9).decide(state, window, 1.0)
    assert state.run == 7
    drop, state = make(3).decide(state, 7, 1.0)
    assert not drop
    assert state.run == 0


def test_nothing_is_dropped_while_nothing_is_to_be_shed() -> None:
    for decider in (Runs(4), CoinPerBatch(4)):
        assert not any(decisions(decider, [0.0] * 100))
        assert not any(decisions(decider, [0.9] * 7 + [0.0] * 100)[7:])


@pytest.mark.parametrize(
    "make", [lambda: Runs(0), lambda: CoinPerBatch(0), lambda: Runs(3, run=4), lambda: Runs(3, run=0)]
)
def test_impossible_gaps_and_runs_are_refused(make) -> None:
    with pytest.raises(InvalidSetting):
        make()
