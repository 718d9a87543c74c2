from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.costs.drop_choice import drop_costliest_first

batches = st.lists(st.tuples(st.integers(0, 9), st.integers(-2, 12)), max_size=9)
"""Cost of a row, and by how much its latest start differs from the row's before."""


def in_time(costs: np.ndarray, starts: np.ndarray, kept: np.ndarray) -> bool:
    before = np.cumsum(np.where(kept, costs, 0.0)) - np.where(kept, costs, 0.0)
    return bool((before[kept] <= starts[kept] + 1e-9).all())


def most_by_trial(costs: np.ndarray, starts: np.ndarray) -> int:
    choices = itertools.product([True, False], repeat=len(costs))
    return max(sum(choice) for choice in choices if in_time(costs, starts, np.array(choice, dtype=bool)))


@settings(deadline=None, max_examples=300)
@given(batches)
def test_no_choice_keeps_more_rows_while_latest_starts_never_fall(batch: list[tuple[int, int]]) -> None:
    costs = np.array([cost for cost, _ in batch], dtype=float)
    starts = np.cumsum([max(0, step) if number else step for number, (_, step) in enumerate(batch)]).astype(float)
    kept = drop_costliest_first(costs, starts)
    assert in_time(costs, starts, kept)
    assert kept.sum() == most_by_trial(costs, starts)


@settings(deadline=None)
@given(batches, st.booleans())
def test_every_row_kept_starts_in_time_whatever_the_order_and_the_values(
    batch: list[tuple[int, int]], valued: bool
) -> None:
    costs, starts = (np.array([row[part] for row in batch], dtype=float) for part in (0, 1))
    values = np.array([float(number % 3) for number in range(len(batch))]) if valued else None
    assert in_time(costs, starts, drop_costliest_first(costs, starts, values))


def test_nothing_goes_while_there_is_time() -> None:
    assert drop_costliest_first(np.ones(5), np.array([0.0, 1.0, 2.0, 3.0, 4.0])).all()
    assert drop_costliest_first(np.zeros(0), np.zeros(0)).tolist() == []


def test_rows_that_are_already_too_late_take_no_others_with_them() -> None:
    assert drop_costliest_first(np.ones(3), np.array([5.0, -1.0, 5.0])).tolist() == [True, False, True]


def test_with_values_the_row_that_costs_most_per_value_goes() -> None:
    costs, starts = np.array([2.0, 4.0, 1.0]), np.array([0.0, 2.0, 4.5])
    assert drop_costliest_first(costs, starts).tolist() == [True, False, True]
    assert drop_costliest_first(costs, starts, np.array([0.1, 4.0, 1.0])).tolist() == [False, True, True]
