"""Every batch on record once, and no row of it unaccounted for."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from jettison.core.storage import Folder
from jettison.costs.accounts import FunctionAccounts
from jettison.costs.cost_hashing import SharedHashes
from jettison.costs.task_report import BATCHES_HELD, NAMED_DROPS, TaskReport
from jettison.runtime.ledger import Ledger, Totals

HASHES = SharedHashes(1, 8, seed=1)


def task(batch_id: int, seen: int, kept: int, **facts: object) -> TaskReport:
    one = TaskReport.empty(HASHES)
    one.tasks, one.seen, one.kept = 1, seen, kept
    for name, value in facts.items():
        setattr(one, name, value)
    return one.of_batch(batch_id)


def total_of(*tasks: TaskReport) -> TaskReport:
    total = TaskReport.empty(HASHES)
    for one in tasks:
        total = TaskReport.empty(HASHES).add(total).add(one)
    return total


@pytest.fixture
def ledger(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "ledger")


def test_a_batch_is_recorded_when_the_next_one_has_begun_or_the_query_ended(ledger: Folder) -> None:
    accounts = FunctionAccounts(ledger, "score", bound_s=2.0)
    tasks = [task(0, 10, 10), task(0, 20, 5), task(1, 7, 7)]
    accounts.record(total_of(*tasks[:2]), 1, at_s=1.0)
    assert ledger.names() == []
    accounts.record(total_of(*tasks), 2, at_s=2.0)
    accounts.record(total_of(*tasks), 2, at_s=3.0)
    assert [one["batch_id"] for one in Ledger(ledger).records()] == [0]
    accounts.record(total_of(*tasks), 2, at_s=4.0, ended=True)
    assert Ledger(ledger).totals("function") == Totals(batches=2, seen=37, kept=22)
    assert Ledger(ledger).totals() == Totals(0, 0, 0)  # the guards' account is another one
    for record in Ledger(ledger).records("function"):
        counts = record["points"]["score"]
        assert counts["seen"] == counts["kept"] + counts["dropped"]


def test_a_record_says_what_was_dropped_and_why(ledger: Folder) -> None:
    accounts = FunctionAccounts(ledger, "score", bound_s=2.0)
    many = {f"key {number}": (2.0, float(number)) for number in range(3 * NAMED_DROPS)}
    shed = task(4, 100, 40, late=5, spared_s=435.0, busy_s=1.5, wait_s=20.0, dropped_keys=many)
    accounts.record(total_of(shed, task(5, 10, 10)), 7, at_s=1.0, ended=True)
    first, second = Ledger(ledger).records("function")
    assert first["costs_version"] == 7
    assert list(first["dropped_keys"]) == [f"key {number}" for number in range(29, 19, -1)]
    assert set(first["dropped_keys"].values()) == {2}
    assert first["mean_wait_s"] == 0.5
    assert "60 of 100 rows were dropped" in first["cause"]
    assert "5 of them over it when they came" in first["cause"]
    assert second["cause"] == "every row could start in time"


def test_a_batch_that_a_restarted_query_repeats_is_recorded_once(ledger: Folder) -> None:
    FunctionAccounts(ledger, "score", 2.0).record(total_of(task(0, 10, 4)), 1, at_s=1.0, ended=True)
    later = FunctionAccounts(ledger, "score", 2.0)
    later.record(total_of(task(0, 10, 9), task(1, 10, 9)), 2, at_s=2.0, ended=True)
    assert Ledger(ledger).totals("function") == Totals(2, 20, 13)


def test_a_batch_that_was_cut_off_is_recorded_when_it_has_been_repeated(ledger: Folder, tmp_path: Path) -> None:
    commits = Folder(tmp_path / "commits")
    commits.replace("0", b"v1")
    stopped = FunctionAccounts(ledger, "score", 2.0, commits)
    stopped.record(total_of(task(0, 10, 4), task(1, 3, 3)), 1, at_s=1.0, ended=True)  # one task of batch 1 came through
    assert Ledger(ledger).totals("function") == Totals(1, 10, 4)
    commits.replace("1", b"v1")
    later = FunctionAccounts(ledger, "score", 2.0, commits)
    later.record(total_of(task(1, 10, 9)), 2, at_s=2.0, ended=True)
    assert Ledger(ledger).totals("function") == Totals(2, 20, 13)


def test_the_guards_records_and_those_of_two_functions_do_not_meet(ledger: Folder) -> None:
    Ledger.open(ledger).start(1.0)
    for name in ("score", "parse"):
        FunctionAccounts(ledger, name, 2.0).record(total_of(task(0, 10, 4)), 1, at_s=1.0, ended=True)
    assert sum(name.endswith(".jsonl") for name in ledger.names()) == 3
    assert Ledger(ledger).totals("function") == Totals(2, 20, 8)
    assert Ledger.open(ledger).totals() == Totals(0, 0, 0)


def test_a_running_total_holds_the_last_batches_in_whatever_order_tasks_end() -> None:
    tasks = [task(number, 3, 2) for number in range(2 * BATCHES_HELD)]
    for order in (tasks, tasks[::-1]):
        total = total_of(*order)
        assert sorted(total.batches) == list(range(BATCHES_HELD, 2 * BATCHES_HELD))
        assert total.seen == 3 * len(tasks)
    assert all(one.dropped == 1 for one in itertools.islice(total.batches.values(), 5))
