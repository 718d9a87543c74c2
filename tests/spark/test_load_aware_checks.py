"""What is refused needs no session to be told."""

from __future__ import annotations

import pyarrow as pa
import pytest

from jettison.costs.partition import PartitionSettings
from jettison.errors import InvalidInput, InvalidSetting, MissingColumn
from jettison.network.qos import ValueUtility
from jettison.spark.load_aware_checks import arguments, arrived

GRAPH = ValueUtility([(0, 1, 1.0)], column="fare")


def check(**changed: object) -> None:
    usual = {"fn": print, "rule": "fewest", "value": None, "lookahead_rows": 1, "sketch": (2, 2048)}
    arguments(**(usual | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"fn": 3}, "must be a function"),
        ({"rule": "best"}, "'fewest' or 'in turn', got 'best'"),
        ({"rule": "in turn", "value": "fare"}, "leave `rule` out"),
        ({"lookahead_rows": 0}, "`lookahead_rows` must be positive"),
        ({"sketch": 2048}, "two whole numbers, rows and columns, got 2048"),
        ({"sketch": (2, 2048, 1)}, "two whole numbers"),
        ({"sketch": (2, 1.5)}, "two whole numbers"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_a_way_out(changed: dict[str, object], match: str) -> None:
    check()
    check(value=GRAPH, sketch=[4, 55])
    with pytest.raises((InvalidInput, InvalidSetting), match=match) as refused:
        check(**changed)
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
    batch = pa.record_batch({"key": ["a"], "at": [1]})
    with pytest.raises(MissingColumn, match=rf"a column of the stream \(key, at\), got '{name}'"):
        list(arrived(iter([batch]), settings))
    there = batch.append_column(name, pa.array([1]))
    assert list(arrived(iter([there]), settings)) == [there]


def test_frames_of_another_kind_are_sent_to_the_right_door() -> None:
    with pytest.raises(
        InvalidInput, match=r"Arrow record batches, got dict .* pass the wrapped function to `mapInArrow`"
    ):
        list(arrived(iter([{"key": ["a"]}]), PartitionSettings("key", 1.0)))  # type: ignore[list-item]
