"""Batches back to back under too much work: the wait for a batch settles below the bound, however many tasks it has."""

from __future__ import annotations

import pytest

from jettison.costs.pace import AGE_AIM, LEAST_WORK, STARVATION, Pace

BOUND_S = 2.0


def lengths(tasks: int, fixed_s: float, batches: int = 60) -> list[float]:
    """Of batches in which every task does all the work that it may."""
    pace, length_s, seen = Pace(), 0.0, []
    for batch_id in range(batches):
        oldest_s, length_s = length_s, fixed_s
        for _ in range(tasks):
            work_s = pace.begin(batch_id, oldest_s, BOUND_S)
            pace.end(work_s)
            length_s += work_s
        seen.append(length_s)
    return seen


@pytest.mark.parametrize("tasks", [1, 2, 8])
@pytest.mark.parametrize("fixed_s", [0.1, 0.8])
def test_the_wait_for_a_batch_settles_just_below_its_aim(tasks: int, fixed_s: float) -> None:
    settled = lengths(tasks, fixed_s)[20:]
    assert max(settled) <= BOUND_S
    assert sum(settled) / len(settled) >= 0.85 * AGE_AIM * BOUND_S


def test_where_rows_come_late_for_other_reasons_some_work_is_done_all_the_same() -> None:
    settled = lengths(4, fixed_s=5.0)[20:]
    assert settled == pytest.approx([5.0 + LEAST_WORK * BOUND_S] * len(settled))


def test_a_task_too_many_is_not_starved_and_one_too_few_leaves_its_share_unused() -> None:
    pace = Pace()
    for _ in range(2):
        pace.begin(0, 0.5, BOUND_S)
        pace.end(0.1)
    shares = []
    for _ in range(3):
        shares.append(pace.begin(1, 0.5, BOUND_S))
        pace.end(shares[-1])
    assert shares[0] == pytest.approx(shares[1])
    assert shares[2] == STARVATION * BOUND_S
    assert pace.begin(2, 0.5, BOUND_S) == pytest.approx(pace.work_s / 3)


def test_without_batches_each_task_is_one() -> None:
    pace = Pace()
    first = pace.begin(None, 0.5, BOUND_S)
    pace.end(first)
    assert pace.begin(None, 0.5, BOUND_S) > first
