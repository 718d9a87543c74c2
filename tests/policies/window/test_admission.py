from __future__ import annotations

import pytest

from jettison.policies.window.query_fan import Branch, Fan, admit, least_keep
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_needs import Pipeline

TUMBLING = Pipeline((Grid(10, 10),))


def queries(*parts: tuple[str, int, float]) -> Fan:
    return Fan(tuple(Branch(name, TUMBLING, gap, cost) for name, gap, cost in parts))


def test_nothing_is_shut_while_the_gaps_allow_enough() -> None:
    admission = admit(queries(("a", 1, 5.0), ("b", 4, 1.0)), 0.5)
    assert admission.shut == ()
    assert admission.share == 0.5
    assert admission.enough


def test_the_costliest_of_those_that_stand_in_the_way_goes_first() -> None:
    fan = queries(("cheap", 1, 1.0), ("dear", 1, 5.0), ("patient", 9, 9.0))
    # One of two windows must be kept for cheap and dear; without dear, 10 / 15 of the work at half of it.
    assert admit(fan, 0.4).shut == ("dear",)
    assert admit(fan, 0.3).shut == ("dear", "cheap")
    assert admit(fan, 0.3).share == pytest.approx(0.3 * 15 / 9)


def test_the_last_query_stays_open_and_says_that_it_is_not_enough() -> None:
    admission = admit(queries(("a", 1, 1.0), ("b", 1, 2.0)), 0.01)
    assert admission.shut == ("b",)
    assert not admission.enough


def test_a_query_is_opened_again_only_with_room_to_spare() -> None:
    fan = queries(("a", 1, 1.0), ("b", 9, 1.0))
    assert admit(fan, 0.5).shut == ()
    assert admit(fan, 0.55, already_shut=("a",)).shut == ("a",)
    assert admit(fan, 0.65, already_shut=("a",)).shut == ()


def test_least_keep_is_one_in_gap_plus_one_and_more_where_windows_overlap() -> None:
    assert least_keep(queries(("a", 4, 1.0))) == pytest.approx(1 / 5)
    sliding = Fan((Branch("a", Pipeline((Grid(10, 5),)), 4),))
    # Four of five windows dropped: of 25 time units 15 are spared.
    assert least_keep(sliding) == pytest.approx(1 - 15 / 25)
    assert least_keep(Fan((Branch("a", Pipeline((Grid(10, 2),)), 4),))) == 1.0
