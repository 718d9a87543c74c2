from __future__ import annotations

import numpy as np
import pytest

from jettison.costs.granularity import FIRST_PROBE, LARGEST, PROBES, Granularity

OWN_S = 1e-5


def run(
    granularity: Granularity,
    call_s: float,
    row_s: float,
    *,
    spread: float = 0.0,
    noise: float = 0.0,
    slices: int = 1500,
    batch: int = 10_000,
    adapting: bool = False,
    seed: int = 3,
    longest_s: float = float("inf"),
) -> list[int]:
    """Sizes of the slices of Arrow batches, each estimated as a whole, whose rows differ by `spread` in what they cost.

    Estimates miss by `noise`. With `adapting` they are what the rows of the batch before took, calls included.
    """
    random, sizes, per_row = np.random.default_rng(seed), [], row_s
    while len(sizes) < slices:
        granularity.begin(longest_s)
        left, took_s = batch, 0.0
        while left:
            rows = granularity.next_rows(left)
            rows = rows if left >= 2 * rows else left
            costs = row_s * np.exp(random.normal(0.0, spread, rows))
            time_s = np.exp(random.normal(0.0, 0.03)) * (call_s + costs.sum())
            estimates = np.full(rows, per_row) if adapting else costs * np.exp(random.normal(0.0, noise, rows))
            granularity.learn(rows, time_s, float(estimates.sum()), OWN_S)
            sizes.append(rows)
            left, took_s = left - rows, took_s + time_s
        per_row = took_s / batch
    return sizes


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize(
    ("call_s", "row_s", "most"),
    [
        (1e-6, 1e-3, 0.02),
        (2e-5, 1e-3, 0.02),
        (1e-4, 1e-3, 0.03),  # a tenth of a row is within the noise: what is beyond doubt is less than the price
        (1e-3, 1e-4, 0.02),
        (1e-3, 1e-5, 0.02),
        (5e-6, 1e-6, 0.02),
    ],
)
def test_slices_add_little_to_the_work(call_s: float, row_s: float, most: float, spread: float) -> None:
    late = run(Granularity(), call_s, row_s, spread=spread)[1000:]
    added_s = (call_s + OWN_S) * len(late)
    assert added_s <= most * sum(late) * row_s * np.exp(spread**2 / 2)


@pytest.mark.parametrize(("call_s", "row_s"), [(1e-6, 5e-3), (2e-5, 5e-3), (2e-5, 2e-2)])
def test_estimates_that_miss_are_not_taken_for_the_price_of_a_call(call_s: float, row_s: float) -> None:
    usual = [
        np.median(run(Granularity(), call_s, row_s, spread=1.0, noise=1.0, slices=600, seed=seed)[300:])
        for seed in range(7)
    ]
    assert np.median(usual) <= 4  # wrong by a factor of e either way: now and then noise does look like a price


def test_a_price_that_is_learned_stays_learned_when_estimates_have_taken_it_in() -> None:
    """Whole batches of a function with dear calls: each row's estimate holds its share of the call, and ratios are all 1."""
    granularity = Granularity()
    sizes = run(granularity, 0.005, 5e-6, slices=600, adapting=True)
    assert sizes.index(10_000) < 50
    assert granularity.rows >= 8192
    whole = [rows for rows in sizes[50:] if rows == 10_000]
    assert len(whole) >= 0.95 * len(sizes[50:])


def test_a_cold_worker_finds_out_within_few_calls() -> None:
    first_large = next(number for number, rows in enumerate(run(Granularity(), 0.01, 1e-6)) if rows >= 1000)
    assert first_large <= FIRST_PROBE + PROBES + 4


def test_no_slice_works_for_longer_than_it_may() -> None:
    late = run(Granularity(), 1e-3, 1e-4, longest_s=0.01)[50:]
    assert max(late) <= 2 * 128  # 100 rows are a hundredth of a second; a remainder may double them


def test_slices_that_say_nothing_are_ignored() -> None:
    granularity = Granularity(rows=8)
    for rows, time_s, estimated_s in ((0, 1.0, 1.0), (5, 0.0, 1.0)):
        granularity.learn(rows, time_s, estimated_s)
    assert granularity.rows == 8
    assert granularity.call_s == 0.0
    assert 1 <= granularity.next_rows(3) <= 3 < LARGEST
