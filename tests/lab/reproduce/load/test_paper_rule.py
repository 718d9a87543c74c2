"""The paper's own rule as it runs on Spark, without Spark: it keeps the mean of its estimated waits at the bound."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.lab.reproduce.claims import Claim
from jettison.lab.reproduce.load.paper_rule import PaperPair, PaperRule, chosen, taught

KEYS, COSTS_S = np.arange(20), np.full(20, 0.010)
HASHES = SharedHashes(4, 55, seed=2)
CELLS = HASHES.cells(fingerprints(np.arange(40))).T


def keep(bound_s: float, rows: int, arrival_s: float) -> list[bool]:
    pair = taught(bound_s, KEYS, COSTS_S)
    cells = pair.hashes.cells(fingerprints(np.zeros(rows, np.int64))).T
    return chosen(pair, cells, np.full(rows, arrival_s), 100.0).tolist()


def handed_over(pair: PaperPair, rows: int, factor: float = 1.0) -> list[int]:
    return [number + 1 for number in range(rows) if pair.learn(CELLS[number % 40], factor * (1.0 + number % 40))]


def test_settled_costs_are_handed_over_at_the_second_look_and_again_two_looks_later():
    pair = PaperPair(1.0, HASHES, look_every=400)
    assert handed_over(pair, 1700) == [800, 1600]
    assert pair.known is not None
    # Listing III.1 looks before it learns, so row 800 belongs to the second sketch.
    assert pair.known.rows_learned == 800


def test_costs_that_keep_changing_are_not_handed_over_until_they_settle():
    pair = PaperPair(1.0, HASHES, look_every=400)
    assert handed_over(pair, 400) == []
    assert handed_over(pair, 400, factor=3.0) == []
    # The sketch still averages over both; its change between looks dies out as 1/n.
    assert handed_over(pair, 4000, factor=3.0) != []


def test_everything_is_kept_until_costs_are_known():
    pair = PaperPair(0.001, HASHES)
    assert all(pair.keeps(CELLS[9], 0.0) for _ in range(50))


def test_the_row_dropped_is_judged_by_the_queue_and_not_by_its_own_cost():
    """What theorem 4.1 overlooks: a cheap row is dropped where a costly one was kept before it."""
    pair = PaperPair(5.0, HASHES, look_every=400)
    handed_over(pair, 800)
    assert [pair.keeps(CELLS[key], 0.0) for key in (39, 0)] == [True, False]


def test_a_pair_has_settled_costs_from_the_start_however_short_the_past():
    assert taught(1.0, KEYS, COSTS_S).known is not None


def test_rows_that_arrive_at_once_are_kept_until_their_mean_wait_would_pass_the_bound():
    # Costs are raised by 5 %: the row after n others waits 10.5 n ms.
    assert keep(0.05, 100, 100.0) == [True] * 10 + [False] * 90


def test_rows_that_have_waited_for_their_batch_are_judged_from_their_arrival():
    assert not any(keep(0.05, 5, 99.0))
    assert all(keep(1.5, 5, 99.0))


def test_the_clock_is_put_right_when_the_row_that_asked_is_through():
    pair = taught(10.0, KEYS, COSTS_S)
    cells = pair.hashes.cells(fingerprints(np.zeros(3, np.int64))).T
    chosen(pair, cells, np.full(3, 100.0), 100.0)
    believed = pair.clock
    pair.executed(cells[0], 1.0, ended=101.0)  # the first row took a second instead of 10 ms
    assert pair.clock == pytest.approx(believed + 1.0 - 0.0105)


def test_around_a_function_only_kept_rows_are_executed_in_the_order_of_their_arrival():
    seen: list[int] = []

    def function(batches):
        for batch in batches:
            seen.extend(batch["row"].to_pylist())
            yield batch

    rule = PaperRule(function, 3600.0, tuple(KEYS.tolist()), tuple(COSTS_S.tolist()), "a run")
    at = pa.array([3_000_000, 1_000_000, 2_000_000], pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"row": pa.array([0, 1, 2]), "key": pa.array([5, 6, 7]), "at": at})
    assert list(rule(iter([batch]))) == []  # decades late
    rule = PaperRule(function, 1e12, tuple(KEYS.tolist()), tuple(COSTS_S.tolist()), "another")
    assert len(list(rule(iter([batch])))) == 3
    assert seen == [1, 2, 0]


def test_who_drops_everything_holds_no_bound():
    pytest.importorskip("pyspark")
    from jettison.lab.reproduce.load.on_spark import SparkOutcome

    outcome = SparkOutcome(np.array([False, False, True]), np.array([0.0, 0.0, 3.0]), None)
    assert outcome.mean_wait_s() == 3.0
    assert not Claim("las", "", "", outcome.mean_wait_s(slice(0, 2)), at_most=1.0).holds
