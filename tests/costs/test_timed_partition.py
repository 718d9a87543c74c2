"""The executor's part, under a clock that the user's function moves: no test waits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.function_status import CostStatus
from jettison.costs.pace import STARVATION
from jettison.costs.partition_settings import PartitionSettings, Utility
from jettison.costs.sketch import CostSketch
from jettison.costs.task_report import TaskReport
from jettison.costs.timed_partition import RESERVE, PartitionShedder, WorkerMemory
from jettison.errors import InvalidInput
from jettison.policies.network.qos import ValueUtility

HASHES = SharedHashes(2, 2048, seed=1)
COST_S = {"cheap": 0.001, "dear": 0.025, None: 0.025}


class World:
    """A clock, a function that costs time by key, and one worker."""

    def __init__(self, bound_s: float = 1.0, arrival: str | None = "at", value: Utility | None = None) -> None:
        self.now_s = 1000.0
        self.settings = PartitionSettings("key", bound_s, arrival, value)
        self.costs, self.memory, self.total = CostSketch(HASHES), WorkerMemory(), TaskReport.empty(HASHES)
        self.seen: list[str] = []
        self.factor = 1.0
        self.pause_s = 0.0

    def function(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for key in batch["key"].to_pylist():
                self.now_s += self.factor * COST_S[key]
                self.seen.append(key)
            yield batch

    def run(self, batches: list[pa.RecordBatch]) -> tuple[pa.Table, TaskReport]:
        report = TaskReport.empty(HASHES)
        shedder = PartitionShedder(self.settings, self.costs, self.memory, report, lambda: self.now_s)
        results = []
        for result in shedder.run(self.function, iter(batches)):
            results.append(result)
            self.now_s += self.pause_s
        self.total.add(report)
        return pa.Table.from_batches(results, batches[0].schema), report

    def batch(self, keys: list[str], ages_s: list[float] | float = 0.0) -> pa.RecordBatch:
        ages = np.broadcast_to(ages_s, len(keys))
        micros = [round((self.now_s - age) * 1e6) for age in ages]
        at = pa.array(micros, pa.timestamp("us", "UTC"))
        return pa.record_batch({"key": keys, "at": at, "row": list(range(len(keys)))})

    def teach(self) -> None:
        self.costs.learn(fingerprints(["cheap", "dear"]), [COST_S["cheap"], COST_S["dear"]])


def mixed(rows: int, dear_every: int = 10) -> list[str]:
    return ["dear" if number % dear_every == 0 else "cheap" for number in range(rows)]


def test_with_time_to_spare_every_row_passes_in_its_order() -> None:
    world = World()
    result, report = world.run([world.batch(mixed(60)), world.batch(mixed(20))])
    assert result["row"].to_pylist() == [*range(60), *range(20)]
    assert (report.seen, report.kept, report.over, report.tasks) == (80, 80, 0, 1)


def test_costs_are_learned_per_key() -> None:
    world = World(bound_s=100.0)
    for _ in range(5):
        world.run([world.batch(mixed(200))])
    estimates = world.costs.estimate(fingerprints(["cheap", "dear"]))
    assert estimates.cost.tolist() == pytest.approx([0.001, 0.025], rel=0.1)
    dearest = sorted(world.total.top.items(), key=lambda item: -item[1][1])[0]
    assert dearest[0] == "dear"
    assert dearest[1] == pytest.approx((100, 2.5), rel=0.1)


def test_of_many_rows_a_sample_is_learned_and_named_for_all() -> None:
    world = World(bound_s=1000.0)
    world.teach()
    _, report = world.run([world.batch(mixed(5000, dear_every=7))])
    assert report.kept == 5000
    assert report.costs.rows_learned == 1000  # every fifth
    assert report.top["dear"][0] == pytest.approx(5000 / 7, rel=0.05)
    assert sum(rows for rows, _ in report.top.values()) == 5000
    assert sum(cost for _, cost in report.top.values()) == pytest.approx(report.busy_s, rel=0.05)


def test_pauses_downstream_are_not_counted_as_cost() -> None:
    world = World(bound_s=100.0)
    world.pause_s = 0.5
    _, report = world.run([world.batch(mixed(50))])
    assert report.busy_s == pytest.approx(5 * 0.025 + 45 * 0.001)


def test_dear_rows_are_dropped_and_the_bound_holds() -> None:
    world = World(bound_s=1.0)
    world.teach()
    world.memory.pace.work_s = 1.0
    result, report = world.run([world.batch(mixed(1000), ages_s=0.5)])  # 3.4 s of work for half a second
    kept = result["key"].to_pylist()
    assert kept.count("cheap") == pytest.approx(1000 * (0.5 - RESERVE), abs=2)
    assert kept.count("dear") <= 1
    assert report.over == 0
    assert report.longest_wait_s <= 1.0
    # Every row is accounted for, those dropped by key and with what they would have cost.
    dropped = {key: rows for key, (rows, _) in report.dropped_keys.items()}
    assert dropped == {key: mixed(1000).count(key) - kept.count(key) for key in ("dear", "cheap")}
    assert sum(dropped.values()) == report.seen - report.kept
    assert report.spared_s == pytest.approx(sum(COST_S[key] * rows for key, rows in dropped.items()), rel=0.05)


def test_a_cold_start_on_a_backlog_holds_the_bound_after_few_rows() -> None:
    world = World(bound_s=1.0)
    _, report = world.run([world.batch(mixed(5000))])
    assert report.kept < 1000
    assert report.over == 0


def test_costs_that_double_unseen_are_noticed_within_the_task() -> None:
    world = World(bound_s=1.0)
    world.teach()
    world.memory.pace.work_s = 1.0
    world.factor = 2.0
    _, report = world.run([world.batch(["cheap"] * 2000)])
    assert report.longest_wait_s <= 1.0
    # Nearly all of the second is used: 475 rows of 2 ms would fit into it.
    assert report.kept >= 430


def test_work_is_trimmed_until_the_oldest_rows_come_early_enough() -> None:
    """Micro-batches back to back: what arrives during one, and the time around it, is the next one's age."""
    world = World(bound_s=1.0)
    world.teach()
    overhead_s, rate = 0.3, 1000.0
    ended_s = world.now_s
    reports = []
    for _ in range(40):
        began_s, world.now_s = ended_s, world.now_s + overhead_s
        rows = int((world.now_s - began_s) * rate)
        ages = world.now_s - np.linspace(began_s, world.now_s, rows)
        ended_s = world.now_s
        reports.append(world.run([world.batch(mixed(rows), ages.tolist())])[1])
    late = sum(one.late for one in reports[10:]) / sum(one.seen for one in reports[10:])
    over = sum(one.over for one in reports[10:]) / sum(one.kept for one in reports[10:])
    assert late < 0.05
    assert over < 0.05
    # The operator's time is used: the overhead takes 0.3 s of every second.
    busy_s, span_s = sum(one.busy_s for one in reports), world.now_s - 1000.0
    assert busy_s / span_s > 0.5


def test_a_function_with_dear_calls_gets_large_slices_within_one_task() -> None:
    world = World(bound_s=1e6)
    calls = []

    def columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            calls.append(batch.num_rows)
            world.now_s += 0.01 + 1e-6 * batch.num_rows
            yield batch

    world.function = columns  # type: ignore[method-assign]
    _, report = world.run([world.batch(["cheap"] * 40_000)])
    assert report.kept == 40_000
    assert len(calls) < 400
    assert max(calls) > 10_000


def test_a_little_work_starts_before_all_rows_are_read_and_no_more_than_that() -> None:
    world = World(bound_s=6.0)
    world.teach()
    read = []

    def source() -> Iterator[pa.RecordBatch]:
        for _ in range(5):
            read.append(len(world.seen))
            yield world.batch(mixed(20))  # estimated at 20 rows of 13 ms, and twice that to be safe

    report = TaskReport.empty(HASHES)
    shedder = PartitionShedder(world.settings, world.costs, world.memory, report, lambda: world.now_s)
    assert sum(result.num_rows for result in shedder.run(world.function, source())) == 100
    # Rows that the function had seen when each batch was read: the first one went ahead, then all others were gathered.
    assert read == [0, 20, 20, 20, 20]


def test_a_remainder_gets_no_call_of_its_own() -> None:
    world = World(bound_s=1000.0)
    world.teach()
    world.memory.granularity.rows = 64
    calls = []

    def function(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            calls.append(batch.num_rows)
            world.now_s += 0.001
            yield batch

    world.function = function  # type: ignore[method-assign]
    world.run([world.batch(mixed(100)), world.batch(mixed(300))])
    assert calls == [100, 64, 64, 64, 108]


def test_rows_are_taken_in_order_of_arrival() -> None:
    world = World(bound_s=10.0)
    result, _ = world.run([world.batch(["cheap"] * 4, ages_s=[1.0, 3.0, 0.0, 2.0])])
    assert result["row"].to_pylist() == [1, 3, 0, 2]


def test_the_papers_check_keeps_dear_rows_and_drops_what_comes_after() -> None:
    kept = {}
    for rule in ("tail_drop", "costliest_first"):
        world = World(bound_s=1.0)
        world.settings = PartitionSettings("key", 1.0, "at", rule=rule)
        world.teach()
        world.memory.pace.work_s = 1.0
        kept[rule] = world.run([world.batch(mixed(1000))])[1].kept
    assert kept["costliest_first"] > 2 * kept["tail_drop"]


def test_costs_that_are_given_stay_as_they_are() -> None:
    world = World(bound_s=1.0)
    world.settings = PartitionSettings("key", 1.0, "at", rule="tail_drop", learn=False)
    world.costs.learn(fingerprints(["mean"]), [0.001])
    _, report = world.run([world.batch(["dear"] * 500)])  # taken for cheap ones
    assert report.kept == 500
    assert world.costs.rows_learned == 1.0


def test_where_every_row_comes_too_late_some_work_is_still_done() -> None:
    world = World(bound_s=1.0)
    world.teach()
    _, report = world.run([world.batch(mixed(2000), ages_s=30.0)])
    assert report.late == 2000
    assert STARVATION * 0.5 <= report.busy_s <= STARVATION * 2


def test_rows_of_little_value_go_before_dear_ones() -> None:
    world = World(bound_s=1.0, value="worth")
    world.teach()
    world.memory.pace.work_s = 1.0
    batch = world.batch(mixed(400, dear_every=2), ages_s=0.4)
    worth = [100.0 if key == "dear" else 0.1 for key in batch["key"].to_pylist()]
    result, _ = world.run([batch.append_column("worth", pa.array(worth))])
    kept = result["key"].to_pylist()
    assert kept.count("dear") > 20


def test_a_value_graph_stands_in_for_a_column_of_utilities() -> None:
    kept = []
    for value in ("worth", ValueUtility([(0, 10, 0.1), (10, 20, 0.9)], column="fare")):
        world = World(bound_s=1.0, value=value)
        world.teach()
        world.memory.pace.work_s = 1.0
        fares = [15.0 if number % 3 == 0 else 5.0 for number in range(400)]
        batch = world.batch(mixed(400, dear_every=2), ages_s=0.4).append_column("fare", pa.array(fares))
        result, _ = world.run([batch.append_column("worth", pa.array([0.9 if fare > 10 else 0.1 for fare in fares]))])
        kept.append(result["row"].to_pylist())
    assert kept[0] == kept[1]
    assert 0 < len(kept[0]) < 400


def test_work_that_comes_after_the_rows_is_told() -> None:
    world = World(bound_s=1.0)

    def all_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in list(batches):
            world.now_s += 0.01 * batch.num_rows
            yield batch

    _, honest = world.run([world.batch(mixed(60))])
    assert honest.unlearned_s == 0.0
    world.function = all_first  # type: ignore[method-assign]
    world.pause_s = 5.0  # what happens downstream is not the function's
    _, report = world.run([world.batch(mixed(60))])
    assert report.unlearned_s == pytest.approx(0.6)
    assert "not protected: 0.6 s of work" in str(CostStatus.of(report, max_wait_s=1.0))
    assert "not protected" not in str(CostStatus.of(honest, max_wait_s=1.0))


def test_a_function_that_returns_none_is_named_as_the_cause() -> None:
    world = World()
    world.function = lambda batches: None  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(InvalidInput, match="iterator of record batches, got NoneType for load_aware"):
        world.run([world.batch(["cheap"])])


def test_without_arrivals_a_rows_wait_starts_with_its_task() -> None:
    world = World(bound_s=0.5, arrival=None)
    world.teach()
    world.run([world.batch(["cheap"])])
    _, report = world.run([world.batch(mixed(3000), ages_s=99.0)])
    assert report.late == 0
    assert 0.3 < report.longest_wait_s <= 0.55


def test_null_keys_and_arrivals_are_rows_like_others() -> None:
    world = World(bound_s=1.0)
    world.memory.pace.work_s = 1.0
    keys = pa.array([None if number % 10 == 0 else "cheap" for number in range(1000)])  # a null is as dear as "dear"
    batch = pa.record_batch({"key": keys, "at": pa.array([None] * 1000, pa.timestamp("us", "UTC")), "row": range(1000)})
    result, report = world.run([batch])
    assert (report.seen, report.over) == (1000, 0)
    assert world.costs.estimate(fingerprints([None, "cheap"])).cost.tolist() == pytest.approx([0.025, 0.001], rel=0.1)
    rows, total_s = report.top["null"]
    assert total_s / rows == pytest.approx(0.025, rel=0.1)
    # Learned like any key, and dropped like any dear one.
    assert report.dropped_keys["null"][0] > 50
    assert result["key"].to_pylist().count("cheap") > 400


def test_arrivals_without_a_time_zone_are_read_in_the_sessions() -> None:
    world = World(bound_s=10.0)
    world.now_s = datetime(2026, 7, 1, 10, 0, 0, tzinfo=UTC).timestamp()
    world.settings = PartitionSettings("key", 10.0, "at", time_zone="Europe/Berlin")
    at = pa.array([datetime(2026, 7, 1, 11, 59, 57)] * 5, pa.timestamp("us"))  # three seconds ago in Berlin
    _, report = world.run([pa.record_batch({"key": ["cheap"] * 5, "at": at, "row": range(5)})])
    assert report.mean_wait_s == pytest.approx(3.0, abs=0.1)


def test_arrivals_that_are_no_times_are_refused_by_name() -> None:
    world = World()
    batch = pa.record_batch({"key": ["cheap"], "at": ["yesterday"], "row": [0]})
    with pytest.raises(InvalidInput, match="`arrival` must be a timestamp, got 'at' of type string"):
        world.run([batch])


def test_empty_partitions_report_nothing_but_themselves() -> None:
    world = World()
    result, report = world.run([world.batch([])])
    assert (result.num_rows, report.seen, report.tasks) == (0, 0, 1)


def test_reports_add_up_in_any_order() -> None:
    world = World(bound_s=10.0)
    reports = [world.run([world.batch(mixed(rows))])[1] for rows in (30, 50, 20)]
    sums = []
    for order in ((0, 1, 2), (2, 0, 1)):
        total = TaskReport.empty(HASHES)
        for number in order:
            total.add(reports[number])
        sums.append(total)
    assert sums[0].kept == sums[1].kept == 100
    assert sums[0].costs.rows_learned == 100
    assert np.allclose(sums[0].costs.costs, sums[1].costs.costs)
    assert sums[0].mean_wait_s == pytest.approx(sums[1].mean_wait_s)


def test_a_bound_shorter_than_a_decision_takes_still_lets_rows_through() -> None:
    world = World(bound_s=0.001)
    looks = iter(range(10_000))  # one that decides for ever runs out of them

    def slow_clock() -> float:
        next(looks)
        world.now_s += 0.01
        return world.now_s

    report = TaskReport.empty(HASHES)
    shedder = PartitionShedder(world.settings, world.costs, world.memory, report, slow_clock)
    assert list(shedder.run(world.function, iter([world.batch(mixed(500))])))
    assert 0 < report.kept <= 500
