from __future__ import annotations

import numpy as np
import pytest

from jettison.costs.granularity import LARGEST, OVERHEAD_SHARE, Granularity


def settled(call_s: float, row_s: float, spread: float = 0.0, slices: int = 3000, bias: float = 1.0) -> Granularity:
    random, granularity = np.random.default_rng(3), Granularity()
    for _ in range(slices):
        rows = granularity.next_rows()
        costs = row_s * np.exp(random.normal(0.0, spread, rows))
        noise = np.exp(random.normal(0.0, 0.05))
        granularity.learn(rows, noise * (call_s + costs.sum()), estimated_s=bias * float(costs.sum()))
    return granularity


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize(
    ("call_s", "row_s"), [(1e-6, 1e-3), (2e-5, 1e-3), (1e-4, 1e-3), (1e-3, 1e-4), (1e-3, 1e-5), (5e-6, 1e-6)]
)
def test_calls_stay_a_small_share_of_the_work(call_s: float, row_s: float, spread: float) -> None:
    rows = settled(call_s, row_s, spread).rows
    mean_row_s = row_s * np.exp(spread**2 / 2)
    assert call_s / (rows * mean_row_s) <= 0.02 or rows == LARGEST
    # And no coarser than that needs, by more than two doublings.
    assert rows == 1 or call_s / (rows * mean_row_s) >= OVERHEAD_SHARE / 6 or call_s < 0.02 * row_s


def test_estimates_that_are_wrong_by_a_factor_do_not_matter() -> None:
    assert settled(1e-4, 1e-3, bias=3.0).rows == settled(1e-4, 1e-3, bias=1.0).rows


def test_slices_that_say_nothing_are_ignored() -> None:
    granularity = Granularity(rows=8)
    for rows, time_s, estimated_s in ((0, 1.0, 1.0), (5, 0.0, 1.0), (5, 1.0, 0.0)):
        granularity.learn(rows, time_s, estimated_s)
    assert [granularity.next_rows() for _ in range(15)] == [8] * 15
    assert granularity.call_s == 0.0
