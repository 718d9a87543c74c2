from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from jettison.core.storage import Folder
from jettison.costs.cost_book import FILE, FORGET, FORGET_EVERY, CostBook
from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.function_status import CostStatus, KeyCost
from jettison.costs.sketch import CostSketch
from jettison.costs.task_report import TOP_KEYS, TaskReport, largest
from jettison.errors import DamagedPlan

HASHES = SharedHashes(2, 512, seed=1)


def report(keys: list[str], costs: list[float]) -> TaskReport:
    one = TaskReport.empty(HASHES)
    one.costs.learn(fingerprints(keys), costs)
    one.tasks, one.seen, one.kept, one.busy_s = 1, len(keys) + 1, len(keys), sum(costs)
    one.top = largest({}, {key: (1.0, cost) for key, cost in zip(keys, costs, strict=True)}, TOP_KEYS)
    return one


def test_a_running_total_is_taken_in_once() -> None:
    book, total = CostBook.empty(HASHES), TaskReport.empty(HASHES)
    assert not book.tell(total)
    for keys, costs in ((["a", "b"], [1.0, 3.0]), (["a"], [2.0])):
        total = TaskReport.empty(HASHES).add(total).add(report(keys, costs))
        assert book.tell(total)
        assert not book.tell(total)
    assert book.version == 2
    assert book.costs.rows_learned == 3
    assert book.costs.estimate(fingerprints(["a", "b"])).cost.tolist() == [1.5, 3.0]


def test_old_rows_fade_when_enough_new_ones_came() -> None:
    book = CostBook.empty(HASHES)
    first = report(["a"] * FORGET_EVERY, [1.0] * FORGET_EVERY)
    book.tell(first)
    second = TaskReport.empty(HASHES).add(first).add(report(["a"] * FORGET_EVERY, [2.0] * FORGET_EVERY))
    book.tell(second)
    assert book.costs.estimate(fingerprints(["a"])).cost[0] == pytest.approx((1 - FORGET + 2) / (2 - FORGET))


def test_a_book_survives_its_file() -> None:
    book = CostBook.empty(HASHES)
    book.tell(report(["a", "b"], [0.5, 3.3]))
    costliest = (KeyCost("b", 1.0, 3.3),)
    restored = CostBook.decode(book.encode(costliest))
    assert (restored.version, restored.costliest, restored.costs.hashes) == (1, costliest, HASHES)
    assert (restored.costs.counts == book.costs.counts).all()
    assert np.allclose(restored.costs.costs, book.costs.costs, rtol=1e-6)
    # What is told after a restart is added to what was known before it.
    restored.tell(report(["a"], [1.5]))
    assert (restored.version, restored.costs.rows_learned) == (2, 3)


WRITTEN = json.loads(CostBook(CostSketch(SharedHashes(1, 2)), version=3).encode())
ONE_NUMBER, NOT_A_NUMBER = "AACAPw==", "AADAfwAAwH8="


@pytest.mark.parametrize(
    "change",
    [
        {"columns": 4},
        {"rows": 0},
        {"counts": ONE_NUMBER},
        {"costs": "!"},
        {"counts": None},
        {"counts": NOT_A_NUMBER, "checksum": zlib.crc32(base64.b64decode(NOT_A_NUMBER) + bytes(8))},
        {"checksum": 1},
        {"format": 2},
        {"costliest": [{"key": "a"}]},
    ],
    ids=str,
)
def test_a_file_that_was_changed_is_refused(change: dict[str, object]) -> None:
    assert CostBook.decode(json.dumps(WRITTEN).encode()).version == 3
    with pytest.raises(DamagedPlan, match="costs are learned again"):
        CostBook.decode(json.dumps(WRITTEN | change).encode())


@pytest.mark.parametrize("damage", [b"", b"0000000000 {}", b"nonsense", json.dumps(WRITTEN).encode()[:-10]])
def test_damaged_files_are_told_apart_and_cost_no_more_than_what_was_learned(damage: bytes, tmp_path: Path) -> None:
    with pytest.raises(DamagedPlan):
        CostBook.decode(damage)
    Folder(tmp_path).replace(FILE, damage)
    assert CostBook.load(Folder(tmp_path), HASHES).version == 0


def test_costs_that_were_learned_under_other_hashes_are_not_taken(tmp_path: Path) -> None:
    CostBook(CostSketch(HASHES), version=3).save(Folder(tmp_path))
    assert CostBook.load(Folder(tmp_path), HASHES).version == 3
    assert CostBook.load(Folder(tmp_path), SharedHashes(2, 512, seed=2)).version == 0
    assert CostBook.load(Folder(tmp_path) / "nowhere", HASHES).version == 0


def test_only_the_costliest_keys_are_held_by_name() -> None:
    many = [f"key {number}" for number in range(3 * TOP_KEYS)]
    one = report(many, [float(number) for number in range(len(many))])
    status = CostStatus.of(one, max_wait_s=1.0)
    assert len(status.costliest) == TOP_KEYS
    assert status.costliest[0].key == many[-1]
    assert status.rows_dropped == 1
    assert "costliest: key 149" in str(status)


def test_the_costliest_keys_of_the_run_before_are_shown_until_they_come_again() -> None:
    before = CostStatus.of(report(["a", "b"], [5.0, 1.0]), max_wait_s=1.0)
    now = CostStatus.of(report(["b", "c"], [7.0, 0.5]), max_wait_s=1.0, before=before.costliest)
    assert [(one.key, one.rows, one.mean_s) for one in now.costliest] == [("b", 2, 4.0), ("a", 1, 5.0), ("c", 1, 0.5)]
    assert now.rows_kept == 2  # names outlive a run; counts are the run's own
