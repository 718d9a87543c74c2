from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.sketch import CostSketch
from jettison.errors import InvalidSetting

rows = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10**6)), min_size=1, max_size=120)
shapes = st.tuples(st.integers(1, 5), st.integers(1, 60), st.integers(0, 2**32))


def sketch_of(data: list[tuple[int, int]], shape: tuple[int, int, int]) -> CostSketch:
    sketch = CostSketch(SharedHashes(*shape))
    if data:
        keys, costs = zip(*data, strict=True)
        sketch.learn(fingerprints(np.array(keys)), np.array(costs, dtype=float))
    return sketch


@settings(deadline=None)
@given(rows, shapes)
def test_counts_never_fall_short_and_every_row_of_the_matrix_holds_all(data, shape) -> None:
    sketch = sketch_of(data, shape)
    keys = np.array([key for key, _ in data])
    cells = sketch.hashes.cells(fingerprints(keys))
    true = np.array([(keys == key).sum() for key in keys])
    assert (sketch.counts[cells].min(axis=0) >= true).all()
    assert sketch.counts.reshape(shape[0], shape[1]).sum(axis=1).tolist() == [len(data)] * shape[0]
    assert sketch.rows_learned == len(data)


@settings(deadline=None)
@given(rows, shapes)
def test_estimates_lie_between_the_smallest_and_the_largest_cost(data, shape) -> None:
    sketch = sketch_of(data, shape)
    costs = [cost for _, cost in data]
    estimates = sketch.estimate(fingerprints(np.arange(60)))
    assert estimates.cost.min() >= min(costs) * (1 - 1e-12)
    assert estimates.cost.max() <= max(costs) * (1 + 1e-12)
    assert estimates.known[[key for key, _ in data]].all()


@settings(deadline=None)
@given(rows, shapes, st.lists(st.integers(0, 4), min_size=120, max_size=120))
def test_merged_sketches_of_many_executors_equal_one_over_all_rows(data, shape, executor_of) -> None:
    parts = [
        sketch_of([row for row, owner in zip(data, executor_of, strict=False) if owner == executor], shape)
        for executor in range(5)
    ]
    merged = CostSketch(SharedHashes(*shape))
    for part in reversed(parts):
        merged.merge(part)
    whole = sketch_of(data, shape)
    # Costs are whole numbers here, so that sums in any order are equal to the last bit.
    assert (merged.counts == whole.counts).all()
    assert (merged.costs == whole.costs).all()


def test_without_collisions_the_estimate_is_the_mean_cost_of_the_key() -> None:
    sketch = sketch_of([(1, 10), (1, 30), (2, 7)], (3, 5000, 1))
    assert sketch.estimate(fingerprints([1, 2])).cost.tolist() == [20.0, 7.0]


def test_a_key_never_seen_costs_the_mean_and_is_called_unknown() -> None:
    sketch = sketch_of([(1, 10), (1, 30), (2, 8)], (3, 5000, 1))
    estimate = sketch.estimate(fingerprints([99]))
    assert (estimate.cost.tolist(), estimate.known.tolist()) == ([16.0], [False])
    assert sketch_of([], (3, 50, 1)).estimate(fingerprints([99])).cost.tolist() == [0.0]


def test_the_cell_with_fewest_rows_decides() -> None:
    # One column in row 0 would mix all keys; with more rows the estimate can only come from a less crowded cell.
    data = [(key, 1 + 1000 * (key == 7)) for key in range(30)]
    narrow, deep = sketch_of(data, (1, 4, 5)), sketch_of(data, (5, 40, 5))
    key = fingerprints([7])
    assert deep.estimate(key).cost[0] > narrow.estimate(key).cost[0]


@settings(deadline=None)
@given(rows, shapes)
def test_forgetting_keeps_ratios_until_a_key_is_forgotten(data, shape) -> None:
    sketch = sketch_of(data, shape)
    keys = fingerprints([key for key, _ in data])
    before = sketch.estimate(keys).cost
    sketch.forget(0.5)
    assert np.allclose(sketch.estimate(keys).cost, before)
    for _ in range(12):
        sketch.forget(0.5)
    assert not sketch.estimate(keys).known.any()


def test_sketches_of_other_hashes_are_not_merged() -> None:
    with pytest.raises(InvalidSetting, match="share shape and seed"):
        CostSketch(SharedHashes(2, 5, seed=1)).merge(CostSketch(SharedHashes(2, 5, seed=2)))


def test_a_copy_learns_alone() -> None:
    sketch = sketch_of([(1, 10)], (2, 20, 0))
    deepcopy(sketch).learn(fingerprints([1]), [90.0])
    assert sketch.estimate(fingerprints([1])).cost.tolist() == [10.0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_frequency_error_is_within_epsilon_for_most_keys(seed: int) -> None:
    """The Count-Min bound: an error of epsilon * (m - f) or more has probability at most delta."""
    random = np.random.default_rng(seed)
    keys = np.minimum(random.zipf(1.3, 2000), 500)
    sketch = CostSketch(SharedHashes(rows=4, columns=55, seed=seed))  # ceil(log2(1 / delta)), ceil(e / epsilon)
    sketch.learn(fingerprints(keys), np.ones(len(keys)))
    distinct, true = np.unique(keys, return_counts=True)
    estimate = sketch.counts[sketch.hashes.cells(fingerprints(distinct))].min(axis=0)
    too_far = estimate - true >= 0.05 * (len(keys) - true)
    assert too_far.mean() <= 0.1


def test_what_travels_is_the_whole_sketch_and_no_larger_than_what_was_learned() -> None:
    sketch = CostSketch(SharedHashes(2, 2048, seed=1))
    sketch.learn(fingerprints(np.arange(100)), np.linspace(0.1, 9.9, 100))
    packed = pickle.dumps(sketch)
    arrived = pickle.loads(packed)
    assert arrived.hashes == sketch.hashes
    assert (arrived.counts == sketch.counts).all()
    assert (arrived.costs == sketch.costs).all()
    assert len(packed) < (sketch.counts.nbytes + sketch.costs.nbytes) / 8
