from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from jettison.pipeline import policy_file
from jettison.pipeline.policy_file import KINDS
from jettison.policies import ConceptDrop, UniformDrop, WindowDrop
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.priority.priority_drop import PriorityDrop
from jettison.policies.regions.queries import RangeQueries
from jettison.policies.regions.sifter import Sifter
from jettison.policy import Auto

# What a file says in another way, or not: nested windows, and the graph, which is the file itself.
ELSEWHERE: dict[str, set[str]] = {
    "window": {"queries"},
    "sifter": {"expressions"},
    "network": {"graph", "column"},
}
OWN: dict[str, set[str]] = {"network": {"value", "integral_values"}}
CLASSES: dict[str, list[Any]] = {
    "uniform": [UniformDrop],
    "auto": [Auto],
    "window": [WindowDrop],
    "concept": [ConceptDrop],
    "priority": [PriorityDrop],
    "sifter": [Sifter, RangeQueries],
    "network": [NetworkDrop],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_can_say_of_a_policy_what_python_can(kind: str) -> None:
    parameters = {name for one in CLASSES[kind] for name in inspect.signature(one).parameters}
    assert set(KINDS[kind].__struct_fields__) - OWN.get(kind, set()) == parameters - ELSEWHERE.get(kind, set())


def stored(folder: Path, kind: str, rows: int) -> str:
    """Rows in the order of their prices, as files often are."""
    table, path = pa.table({"price": np.arange(rows) / rows, "other": np.zeros(rows)}), str(folder / f"rows.{kind}")
    (parquet.write_table if kind == "parquet" else csv.write_csv)(table, path)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_sample_is_of_the_whole_file_and_the_same_each_time(kind: str, tmp_path: Path) -> None:
    path = stored(tmp_path, kind, 3 * policy_file.MOST_SAMPLED)
    prices = policy_file._sample(path, ["price"])["price"]
    assert len(np.unique(prices)) == len(prices) == policy_file.MOST_SAMPLED
    # Of a uniform sample, the largest distance to the file's own distribution stays below this but once in a thousand.
    distance = np.abs(np.sort(prices) - np.linspace(0.0, 1.0, len(prices))).max()
    assert distance < 1.95 / np.sqrt(len(prices))
    np.testing.assert_array_equal(policy_file._sample(path, ["price"])["price"], prices)


def test_a_file_of_few_rows_is_taken_as_it_is(tmp_path: Path) -> None:
    prices = policy_file._sample(stored(tmp_path, "parquet", 100), ["price"])["price"]
    np.testing.assert_array_equal(prices, np.arange(100) / 100)
