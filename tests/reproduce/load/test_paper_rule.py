"""The paper's own rule as it runs on Spark, without Spark: it keeps the mean of its estimated waits at the bound."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from jettison.costs.shedder import ShedderState
from jettison.reproduce.claims import Claim
from jettison.reproduce.load.paper_rule import Pair, PaperRule

KEYS, COSTS_S = np.arange(20), np.full(20, 0.010)


def taught(bound_s: float, now_s: float = 100.0) -> Pair:
    pair = Pair.taught(bound_s, KEYS, COSTS_S)
    pair.clock = lambda: now_s
    return pair


def test_a_pair_has_settled_costs_from_the_start_however_short_the_past():
    assert taught(1.0).shedder.state is not ShedderState.NOP


def test_rows_that_arrive_at_once_are_kept_until_their_mean_wait_would_pass_the_bound():
    keep = taught(0.05).choose(np.zeros(100, np.int64), np.full(100, 100.0))
    # Costs are raised by 5 %: the row after n others waits 10.5 n ms.
    assert keep.tolist() == [True] * 10 + [False] * 90


def test_rows_that_have_waited_for_their_batch_are_judged_from_their_arrival():
    assert not taught(0.05).choose(np.zeros(5, np.int64), np.full(5, 99.0)).any()
    assert taught(1.5).choose(np.zeros(5, np.int64), np.full(5, 99.0)).all()


def test_the_clock_is_put_right_when_the_row_that_asked_is_through():
    pair = taught(10.0)
    pair.choose(np.zeros(3, np.int64), np.full(3, 100.0))
    believed = pair.shedder.clock_s
    pair.clock = lambda: 101.0  # the first row took a second instead of 10 ms
    pair.executed(0, 1.0)
    assert pair.shedder.clock_s == pytest.approx(believed + 1.0 - 0.0105)


def test_around_a_function_only_kept_rows_are_executed_in_the_order_of_their_arrival():
    seen: list[int] = []

    def function(batches):
        for batch in batches:
            seen.extend(batch["row"].to_pylist())
            yield batch

    rule = PaperRule(function, 3600.0, "a run", tuple(KEYS.tolist()), tuple(COSTS_S.tolist()))
    at = pa.array([3_000_000, 1_000_000, 2_000_000], pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"row": pa.array([0, 1, 2]), "key": pa.array([5, 6, 7]), "at": at})
    assert list(rule(iter([batch]))) == []  # decades late
    rule = PaperRule(function, 1e12, "another", tuple(KEYS.tolist()), tuple(COSTS_S.tolist()))
    assert len(list(rule(iter([batch])))) == 3
    assert seen == [1, 2, 0]


def test_who_drops_everything_holds_no_bound():
    pytest.importorskip("pyspark")
    from jettison.reproduce.load.on_spark import SparkOutcome

    outcome = SparkOutcome(np.array([False, False, True]), np.array([0.0, 0.0, 3.0]), None)
    assert outcome.mean_wait_s() == 3.0
    assert not Claim("las", "", "", outcome.mean_wait_s(slice(0, 2)), at_most=1.0).holds
