from __future__ import annotations

import itertools

import numpy as np
import pytest

from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.sketch import CostSketch

COSTS = [1.0 + i % 64 for i in range(4096)]
"""The paper's numeric application: 4,096 keys with the costs 1 to 64, 64 keys each."""


def expected_cell_ratio(costs: list[float], item: int, columns: int) -> float:
    """Expected `W/F` of the cell of `item` when all keys are equally frequent: theorem 4.2.

    The proof needs fully independent hash values, not the pairwise independence of the family that is used.
    """
    n, total, own = len(costs), sum(costs), costs[item]
    if n == 1:
        return own
    alone = 1.0 - (1.0 - 1.0 / columns) ** n
    return (total - own) / (n - 1) - columns * (total - n * own) / (n * (n - 1)) * alone


def chance_all_rows_reach(bound: float, mean_ratio: float, rows: int) -> float:
    """Largest probability that every row's ratio is at least `bound`: Markov's inequality to the power of the rows."""
    return min(1.0, mean_ratio / bound) ** rows


def ratios_of(sketch: CostSketch) -> np.ndarray:
    return np.divide(sketch.costs, sketch.counts, out=np.zeros_like(sketch.costs), where=sketch.counts > 0)


def test_numeric_application_of_theorem_4_2() -> None:
    expected = [expected_cell_ratio(COSTS, item, 55) for item in range(64)]
    assert round(min(expected), 2) == 32.08
    assert round(max(expected), 2) == 32.92
    assert (min(expected), max(expected)) == (expected[0], expected[63])


def test_markov_over_ten_rows() -> None:
    assert chance_all_rows_reach(48.0, 33.0, rows=10) == pytest.approx((11 / 16) ** 10)
    assert chance_all_rows_reach(48.0, 33.0, rows=10) <= 0.024
    assert chance_all_rows_reach(10.0, 33.0, rows=3) == 1.0


@pytest.mark.parametrize("columns", [1, 2, 3, 7])
@pytest.mark.parametrize("costs", [[5.0], [1.0, 4.0], [1.0, 2.0, 9.0, 9.0]])
def test_theorem_4_2_equals_the_mean_over_all_hash_functions(columns: int, costs: list[float]) -> None:
    """Fully independent hashes, by enumeration: every assignment of keys to cells is equally likely."""
    for item in range(len(costs)):
        ratios = []
        for cells in itertools.product(range(columns), repeat=len(costs)):
            together = [cost for cost, cell in zip(costs, cells, strict=True) if cell == cells[item]]
            ratios.append(sum(together) / len(together))
        assert expected_cell_ratio(costs, item, columns) == pytest.approx(np.mean(ratios))


def test_the_sketch_meets_theorem_4_2_on_average_over_its_seeds() -> None:
    """Our hashes are pairwise independent only; for the cells of this application the difference is not visible."""
    keys = fingerprints(np.arange(4096))
    costs = np.array(COSTS)
    seeds = 600
    ratios = np.zeros((seeds, 4096))
    for seed in range(seeds):
        sketch = CostSketch(SharedHashes(1, 55, seed))
        sketch.learn(keys, costs)
        ratios[seed] = ratios_of(sketch)[sketch.hashes.cells(keys)[0]]
        assert 1.0 <= ratios[seed].min() <= ratios[seed].max() <= 64.0
    per_cost = ratios.mean(axis=0).reshape(64, 64).mean(axis=0)  # item i costs 1 + i % 64
    expected = np.array([expected_cell_ratio(COSTS, item, 55) for item in range(64)])
    # 600 seeds leave a standard error of about 0.05 on each mean.
    assert np.abs(per_cost - expected).max() < 0.2
    assert per_cost[63] > per_cost[0] + 0.5


def test_the_smallest_of_ten_rows_stays_below_the_markov_bound() -> None:
    keys, above = fingerprints(np.arange(4096)), 0
    for seed in range(20):
        sketch = CostSketch(SharedHashes(10, 55, seed))
        sketch.learn(keys, np.array(COSTS))
        above += int((ratios_of(sketch)[sketch.hashes.cells(keys)].min(axis=0) >= 48).sum())
    assert above / (20 * 4096) <= chance_all_rows_reach(48.0, 33.0, rows=10)
