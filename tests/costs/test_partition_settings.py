"""What is refused before a task has begun, and when its rows come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from jettison.costs.cost_hashing import SharedHashes
from jettison.costs.partition_settings import PartitionSettings
from jettison.costs.sketch import CostSketch
from jettison.costs.task_report import TaskReport
from jettison.costs.timed_partition import PartitionShedder, WorkerMemory
from jettison.errors import InvalidInput, InvalidSetting, MissingColumn
from jettison.policies.network.qos import ValueUtility

GRAPH = ValueUtility([(0, 1, 1.0)], column="fare")
HASHES = SharedHashes(1, 8)


def run(settings: PartitionSettings, batches: Iterable[Any]) -> list[pa.RecordBatch]:
    task = PartitionShedder(settings, CostSketch(HASHES), WorkerMemory(), TaskReport.empty(HASHES), lambda: 0.0)
    return list(task.run(lambda rows: rows, iter(batches)))


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"rule": "best"}, "'costliest_first' or 'tail_drop', got 'best'"),
        ({"rule": "tail_drop", "value": "fare"}, "leave `rule` out"),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_a_way_out(changed: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidSetting, match=match) as refused:
        PartitionSettings("key", 1.0, **changed)
    assert " for load_aware. Hint: " in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (PartitionSettings("colour", 1.0), "colour"),
        (PartitionSettings("key", 1.0, "came"), "came"),
        (PartitionSettings("key", 1.0, "at", "worth"), "worth"),
        (PartitionSettings("key", 1.0, "at", GRAPH), "fare"),
    ],
)
def test_rows_without_a_column_that_is_needed_are_refused_by_its_name(settings: PartitionSettings, name: str) -> None:
    at = pa.array([1], pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"key": ["a"], "at": at})
    with pytest.raises(MissingColumn, match=rf"a column of the stream \(key, at\), got '{name}'"):
        run(settings, [batch])
    there = batch.append_column(name, at if name == "came" else pa.array([1]))
    assert run(settings, [there]) == [there]


def test_columns_that_were_made_for_deciding_do_not_reach_the_function() -> None:
    batch = pa.record_batch({"key": ["a", "b"], "jt_value": [1.0, 2.0]})
    assert run(PartitionSettings("key", 1.0, value="jt_value", hidden=("jt_value",)), [batch]) == [
        batch.select(["key"])
    ]


def test_frames_of_another_kind_are_sent_to_the_right_door() -> None:
    match = r"Arrow record batches, got dict .* pass the wrapped function to `mapInArrow`"
    with pytest.raises(InvalidInput, match=match):
        run(PartitionSettings("key", 1.0), [{"key": ["a"]}])
