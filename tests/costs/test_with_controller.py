"""The operator's shedder inside a query that the controller guards: each does its own part, and they do not fight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from jettison.control.controller import Controller, ControlSettings
from jettison.core.stats import PointStats, Stats
from jettison.costs.cost_hashing import SharedHashes
from jettison.costs.partition_settings import PartitionSettings
from jettison.costs.sketch import CostSketch
from jettison.costs.task_report import TaskReport
from jettison.costs.timed_partition import PartitionShedder, WorkerMemory

HASHES = SharedHashes(2, 512, seed=1)
FIXED_S = 0.2
DEAR_S, CHEAP_S, DEAR_SHARE = 0.030, 0.0015, 0.1
RATE = 500.0  # 2.2 s of work arrive a second


@dataclass
class Query:
    """Micro-batches back to back: a guard that keeps a share, then a function whose cost depends on the key."""

    bound_s: float
    operator_bound_s: float
    rate: float = RATE
    per_seen_row_s: float = 0.0
    guarded: bool = True
    now_s: float = 1e6
    shares: list[float] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    reports: list[TaskReport] = field(default_factory=list)

    def run(self, batches: int) -> None:
        controller = Controller(ControlSettings(latency_bound_s=self.bound_s))
        budget = controller.initial()
        controller.planned(0)
        costs, memory, random = CostSketch(HASHES), WorkerMemory(), np.random.default_rng(0)
        settings = PartitionSettings("key", self.operator_bound_s, arrival="at")
        taken_s = self.now_s - 0.5
        for number in range(batches):
            trigger_s, oldest_s = self.now_s, taken_s
            arrivals = np.arange(taken_s, trigger_s, 1.0 / self.rate)
            taken_s = trigger_s
            share = budget.share if self.guarded else 1.0
            kept = arrivals[random.random(len(arrivals)) < share]
            self.now_s += FIXED_S / 2 + self.per_seen_row_s * len(arrivals)
            report = TaskReport.empty(HASHES)
            shedder = PartitionShedder(settings, costs, memory, report, lambda: self.now_s)
            keys = np.where(random.random(len(kept)) < DEAR_SHARE, "dear", "cheap")
            at = pa.array(np.round(kept * 1e6).astype(np.int64), pa.timestamp("us", "UTC"))
            for _ in shedder.run(self._function, iter([pa.record_batch({"key": pa.array(keys), "at": at})])):
                pass
            self.now_s += FIXED_S / 2
            stats = Stats(
                number,
                trigger_s,
                self.now_s - trigger_s,
                {"rows": PointStats(len(arrivals), len(kept))},
                plan_version=number,
                oldest_arrival_s=oldest_s,
                newest_arrival_s=trigger_s,
            )
            budget = controller.step(stats)
            controller.planned(number + 1)
            self.shares.append(share)
            self.latencies_s.append(self.now_s - oldest_s)
            self.reports.append(report)

    def _function(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            dear = int((batch["key"].to_numpy(zero_copy_only=False) == "dear").sum())
            self.now_s += DEAR_S * dear + CHEAP_S * (batch.num_rows - dear)
            yield batch

    def operator_share(self, first: int) -> float:
        late = self.reports[first:]
        return sum(one.kept for one in late) / sum(one.seen for one in late)

    def over(self, first: int) -> float:
        late = self.reports[first:]
        return sum(one.over for one in late) / sum(one.kept for one in late)


def test_an_operator_that_holds_its_bound_leaves_the_guard_nothing_to_do() -> None:
    query = Query(bound_s=4.0, operator_bound_s=1.6)
    query.run(40)
    assert min(query.shares) == 1.0
    assert query.operator_share(15) < 0.95
    assert query.over(15) < 0.05
    assert max(query.latencies_s[3:]) <= 4.0
    # The guard alone, blind to costs, could keep no more than the share of the work that fits into the time.
    fits = 1.0 / (RATE * (DEAR_SHARE * DEAR_S + (1 - DEAR_SHARE) * CHEAP_S))
    assert query.operator_share(15) > 1.5 * fits


def test_both_bounds_hold_when_work_before_the_operator_is_heavy_too() -> None:
    query = Query(bound_s=4.0, operator_bound_s=1.6, per_seen_row_s=0.0008)
    query.run(40)
    assert max(query.latencies_s[10:]) <= 4.0
    assert query.over(10) < 0.05
    # No see-saw: the share of the guard does not jump from batch to batch.
    assert np.abs(np.diff(query.shares[10:])).max() <= 0.1


def test_three_times_more_rows_are_the_operators_to_shed_too() -> None:
    query = Query(bound_s=4.0, operator_bound_s=1.6, rate=3 * RATE)
    query.run(40)
    assert max(query.latencies_s[10:]) <= 4.0
    assert query.over(10) < 0.05
    assert min(query.shares[10:]) == 1.0


def test_a_query_bound_of_twice_the_functions_still_leaves_the_guard_nothing_to_do() -> None:
    """`load_aware` asks for two and a half times, which leaves some room."""
    for ratio in (2.0, 2.5):
        query = Query(bound_s=1.6 * ratio, operator_bound_s=1.6)
        query.run(40)
        assert min(query.shares[15:]) == 1.0
        assert max(query.latencies_s[15:]) <= 1.6 * ratio
