from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.residuals import Residuals
from jettison.costs.sketch import CostSketch


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=1, max_size=200))
def test_the_factor_lies_between_one_and_the_extremes_of_the_ratios(rows: list[tuple[float, float]]) -> None:
    residuals = Residuals()
    for estimate, cost in rows:
        residuals.learn(estimate, cost, known=True)
    ratios = [1.0, *(cost / estimate for estimate, cost in rows)]
    assert min(ratios) - 1e-9 <= residuals.factor(known=True) <= max(ratios) + 1e-9


def test_exact_estimates_get_no_margin_and_wrong_ones_the_one_they_need() -> None:
    residuals = Residuals()
    for _ in range(1000):
        residuals.learn(3.0, 3.0, known=True)
        residuals.learn(3.0, 4.5, known=False)
    assert residuals.factor(known=True) == pytest.approx(1.0)
    assert residuals.factor(known=False) == pytest.approx(1.5, rel=0.02)


def test_one_odd_row_does_not_set_the_factor() -> None:
    residuals = Residuals()
    residuals.learn(0.01, 5.0, known=True)
    assert residuals.factor(known=True) < 1.5
    residuals.learn(0.0, 5.0, known=True)
    assert residuals.factor(known=True) < 1.5


def test_costs_that_double_are_relearned_within_three_windows() -> None:
    """Estimates times factor, with the forgetting of the simulator, are within 5 % of doubled costs after 3 N rows."""
    window, random = 1024, np.random.default_rng(1)
    sketch, residuals, cost_of_key = CostSketch(SharedHashes(2, 2048, seed=5)), Residuals(), random.uniform(1, 6, 500)
    weights = 1 / np.arange(1, 501)
    handed_over = deepcopy(sketch)

    def run(rows: int, factor: float) -> float:
        nonlocal handed_over
        estimated, real = 0.0, 0.0
        for number, key in enumerate(random.choice(500, rows, p=weights / weights.sum())):
            print_of_key, cost = fingerprints([int(key)]), factor * cost_of_key[key]
            estimate = handed_over.estimate(print_of_key)
            known = bool(estimate.known[0])
            estimated += float(estimate.cost[0]) * residuals.factor(known=known)
            real += cost
            residuals.learn(float(estimate.cost[0]), cost, known=known)
            sketch.learn(print_of_key, [cost])
            if (number + 1) % window == 0:
                handed_over = deepcopy(sketch)
                sketch.forget(0.2)
        return estimated / real

    run(8 * window, 1.0)
    assert run(window, 1.0) == pytest.approx(1.0, abs=0.05)
    run(3 * window, 2.0)
    assert run(window, 2.0) == pytest.approx(1.0, abs=0.05)
