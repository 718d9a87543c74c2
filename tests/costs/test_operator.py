from __future__ import annotations

import numpy as np
import pytest

from jettison.costs.hashing import SharedHashes, fingerprints
from jettison.costs.operator import OperatorState, SettlingOperator, StabilitySettings, relative_change
from jettison.costs.sketch import CostSketch

HASHES = SharedHashes(4, 55, seed=2)
CELLS = HASHES.cells(fingerprints(np.arange(40)))


def run(operator: SettlingOperator, rows: int, factor: float = 1.0, first: int = 0) -> list[tuple[int, CostSketch]]:
    sent = []
    for number in range(rows):
        key = (first + number) % 40
        if (costs := operator.execute(CELLS[:, key], factor * (1.0 + key))) is not None:
            sent.append((number + 1, costs))
    return sent


def test_settled_costs_are_sent_at_the_second_look_and_again_two_looks_later() -> None:
    operator = SettlingOperator(HASHES, StabilitySettings(rows=400, tolerance=0.05))
    assert operator.state is OperatorState.START
    sent = run(operator, 1700)
    assert [number for number, _ in sent] == [800, 1600]
    assert operator.state is OperatorState.START


def test_what_is_sent_covers_the_rows_before_the_look_only() -> None:
    operator = SettlingOperator(HASHES, StabilitySettings(rows=400, tolerance=0.05))
    (first, second) = run(operator, 1700)
    # Listing III.1 looks before it learns, so row 800 belongs to the second sketch.
    assert (first[1].rows_learned, second[1].rows_learned) == (799, 800)


def test_costs_that_keep_changing_are_not_sent_until_they_settle() -> None:
    operator = SettlingOperator(HASHES, StabilitySettings(rows=400, tolerance=0.05))
    run(operator, 400)
    assert operator.state is OperatorState.STABILIZING
    assert run(operator, 400, factor=3.0) == []
    assert operator.state is OperatorState.STABILIZING
    # The sketch still averages over both; its change between looks dies out as 1/n.
    assert run(operator, 4000, factor=3.0) != []


def test_relative_change_is_equation_one() -> None:
    assert relative_change(np.array([2.0, 2.0, 0.0]), np.array([1.0, 2.0, 1.0])) == pytest.approx(0.5)
    assert relative_change(np.zeros(3), np.ones(3)) == float("inf")
