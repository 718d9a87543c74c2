from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.costs.check import AverageCheck, Check, RowCheck, SlidingAverageCheck

waits = st.lists(st.floats(0, 20), max_size=60)


def kept_by(check: Check, offered: list[float]) -> list[float]:
    kept = []
    for wait in offered:
        if not check.exceeds(wait):
            check.keep(wait)
            kept.append(wait)
    return kept


@settings(deadline=None)
@given(waits)
def test_the_mean_of_the_rows_kept_never_passes_the_bound(offered: list[float]) -> None:
    kept = kept_by(AverageCheck(5.0), offered)
    for rows in range(1, len(kept) + 1):
        assert sum(kept[:rows]) / rows <= 5.0 + 1e-9


@settings(deadline=None)
@given(waits)
def test_no_row_kept_waits_longer_than_the_bound(offered: list[float]) -> None:
    assert kept_by(RowCheck(5.0), offered) == [wait for wait in offered if wait <= 5.0]


@settings(deadline=None)
@given(waits, st.integers(1, 8))
def test_the_mean_of_the_last_rows_never_passes_the_bound(offered: list[float], window: int) -> None:
    kept = kept_by(SlidingAverageCheck(5.0, rows=window), offered)
    for end in range(1, len(kept) + 1):
        last = kept[max(0, end - window) : end]
        assert sum(last) / len(last) <= 5.0 + 1e-9


def test_the_sliding_mean_gives_no_credit_for_the_past() -> None:
    quiet = [0.0] * 100
    assert kept_by(AverageCheck(5.0), [*quiet, 100.0])[-1] == 100.0
    assert kept_by(SlidingAverageCheck(5.0, rows=10), [*quiet, 100.0])[-1] == 0.0


@pytest.mark.parametrize("literal", [True, False])
def test_the_listings_check_never_recovers(literal: bool) -> None:
    check = AverageCheck(5.0, literal=literal)
    check.keep(6.0)
    assert check.exceeds(0.0) is literal
