"""The paper's coins: the gap is never exceeded, the share is met in the long run."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.lab.reproduce.window.decisions import CoinPerBatch
from jettison.policies.window.window_choice import highest_share


def decisions(decider: CoinPerBatch, course: list[float]) -> list[bool]:
    state, dropped = decider.start(), []
    for share in course:
        drop, state = decider.decide(state, share)
        dropped.append(drop)
    return dropped


@given(st.integers(1, 20), st.integers(0, 10**6), st.lists(st.floats(0.0, 1.0), max_size=300))
@settings(max_examples=300)
def test_never_more_than_the_largest_gap_is_missing(max_gap: int, seed: int, course: list[float]) -> None:
    runs = itertools.groupby(decisions(CoinPerBatch(max_gap, seed), course))
    assert max((len(list(run)) for drop, run in runs if drop), default=0) <= max_gap


@pytest.mark.parametrize("max_gap", [1, 2, 5, 10])
@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_the_coin_meets_the_share_in_the_long_run(max_gap: int, load: float) -> None:
    share = load * highest_share(max_gap)
    dropped = decisions(CoinPerBatch(max_gap, seed=3), [share] * 50_000)
    # Coins are independent: the share's standard deviation is sqrt(p (1 - p) B / n), 0.007 at worst.
    assert abs(sum(dropped) / 50_000 - share) <= 0.028


def test_a_share_beyond_what_the_gap_allows_drops_all_but_one_window_in_each_gap() -> None:
    assert sum(decisions(CoinPerBatch(3), [1.0] * 4000)) == 3000


def test_the_coins_debt_is_capped_so_that_an_overload_is_forgotten() -> None:
    decider = CoinPerBatch(2, seed=1, most_owed=10)
    state = decider.start()
    for _ in range(10_000):
        _, state = decider.decide(state, 1.0)
    assert state.owed == 10
    dropped = 0
    for _ in range(60):
        drop, state = decider.decide(state, 1e-9)
        dropped += drop
    assert dropped == 10


def test_the_coin_is_tossed_once_a_batch_and_is_the_same_after_a_restart() -> None:
    decider = CoinPerBatch(5, seed=9)
    whole = decisions(decider, [0.4] * 500)
    state, again = decider.start(), []
    for _ in range(500):
        drop, state = CoinPerBatch(5, seed=9).decide(state, 0.4)
        again.append(drop)
    assert whole == again
    other = decisions(CoinPerBatch(5, seed=10), [0.4] * 500)
    assert whole != other


def test_a_gap_that_becomes_smaller_ends_a_run_that_is_longer_already() -> None:
    state = CoinPerBatch(9).start()
    for _ in range(7):
        _, state = CoinPerBatch(9).decide(state, 1.0)
    drop, state = CoinPerBatch(3).decide(state, 1.0)
    assert (drop, state.run) == (False, 0)


def test_nothing_is_dropped_while_nothing_is_to_be_shed() -> None:
    assert not any(decisions(CoinPerBatch(4), [0.0] * 100))
    assert not any(decisions(CoinPerBatch(4), [0.9] * 7 + [0.0] * 100)[7:])


def test_an_impossible_gap_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        CoinPerBatch(0)
