"""Executors and driver together: costs that change everywhere are known again within three windows of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from jettison.costs.cost_book import FORGET_EVERY, CostBook
from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.partition_settings import PartitionSettings
from jettison.costs.task_report import TaskReport
from jettison.costs.timed_partition import PartitionShedder, WorkerMemory

HASHES = SharedHashes(2, 2048, seed=1)
BATCH = 256
SETTINGS = PartitionSettings("key", bound_s=1e6)


class Cluster:
    """Workers that take turns, each with a memory of its own; what they learn goes to the driver and back as a file."""

    def __init__(self, workers: int) -> None:
        self.random = np.random.default_rng(1)
        self.cost_s = self.random.uniform(0.001, 0.006, 500)
        self.weights = 1 / np.arange(1, 501)
        self.memories = [WorkerMemory() for _ in range(workers)]
        self.book, self.total = CostBook.empty(HASHES), TaskReport.empty(HASHES)
        self.now_s, self.factor = 0.0, 1.0

    def function(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.now_s += self.factor * float(self.cost_s[batch["key"].to_numpy()].sum())
            yield batch

    def run(self, rows: int) -> float:
        """Run so many rows; returns what they were estimated at when they came, over what they cost."""
        estimated_s, cost_s = 0.0, 0.0
        for number in range(rows // BATCH):
            memory = self.memories[number % len(self.memories)]
            keys = self.random.choice(500, BATCH, p=self.weights / self.weights.sum())
            costs = CostBook.decode(self.book.encode()).costs
            found = costs.estimate(fingerprints(keys))
            factors = [memory.residuals.factor(known=bool(known)) for known in found.known]
            estimated_s += float((found.cost * factors).sum())
            cost_s += self.factor * float(self.cost_s[keys].sum())
            report = TaskReport.empty(HASHES)
            shedder = PartitionShedder(SETTINGS, costs, memory, report, lambda: self.now_s)
            assert (
                sum(one.num_rows for one in shedder.run(self.function, iter([pa.record_batch({"key": keys})]))) == BATCH
            )
            self.total = TaskReport.empty(HASHES).add(self.total).add(report)
            self.book.tell(self.total)
        return estimated_s / cost_s


@pytest.mark.parametrize(("workers", "factor", "within"), [(1, 2.0, 0.05), (2, 2.0, 0.05), (2, 0.5, 0.1)])
def test_costs_that_change_everywhere_are_relearned_within_three_windows(
    workers: int, factor: float, within: float
) -> None:
    cluster = Cluster(workers)
    cluster.run(8 * FORGET_EVERY)
    assert cluster.run(FORGET_EVERY) == pytest.approx(1.0, abs=0.05)
    cluster.factor = factor
    assert cluster.run(BATCH) == pytest.approx(1.0 / factor, rel=0.1)
    cluster.run(3 * FORGET_EVERY - BATCH)
    assert cluster.run(FORGET_EVERY) == pytest.approx(1.0, abs=within)
