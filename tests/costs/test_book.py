from __future__ import annotations

import numpy as np
import pytest

from jettison.costs.book import FORGET, FORGET_EVERY, CostBook
from jettison.costs.hashing import SharedHashes, fingerprints
from jettison.costs.report import TOP_KEYS, TaskReport, largest
from jettison.costs.status import CostStatus
from jettison.errors import DamagedPlan
from jettison.plan import DropPlan

HASHES = SharedHashes(2, 512, seed=1)


def report(keys: list[str], costs: list[float]) -> TaskReport:
    one = TaskReport.empty(HASHES)
    one.costs.learn(fingerprints(keys), costs)
    one.tasks, one.rows_seen, one.rows_kept, one.busy_s = 1, len(keys) + 1, len(keys), sum(costs)
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
    book.tell(report(["a", "b"], [0.5, 3.25]))
    restored = CostBook.decode(book.encode("op", bound_s=2.0), "op")
    assert restored.version == 1
    assert np.allclose(restored.costs.costs, book.costs.costs)
    # What is told after a restart is added to what was known before it.
    restored.tell(report(["a"], [1.5]))
    assert (restored.version, restored.costs.rows_learned) == (2, 3)


@pytest.mark.parametrize("damage", [b"", b"0000000000 {}", b"nonsense"])
def test_damaged_files_are_told_apart(damage: bytes) -> None:
    with pytest.raises(DamagedPlan):
        CostBook.decode(damage, "op")
    content = CostBook.empty(HASHES).encode("op", bound_s=2.0).rstrip()
    with pytest.raises(DamagedPlan):
        CostBook.decode(content[:-10], "op")
    with pytest.raises(DamagedPlan, match="other"):
        CostBook.decode(content, "other")


def test_the_book_is_a_drop_plan_like_any_other() -> None:
    book = CostBook.empty(HASHES)
    book.tell(report(["a", "b"], [0.5, 3.25]))
    plan = book.plan("op", bound_s=2.0, keep_fraction=0.75)
    assert DropPlan.from_json(plan.to_json()) == plan
    assert (plan.version, plan.points["op"].keep_fraction, plan.keeps_everything) == (1, 0.75, False)
    assert "2 rows" in plan.cause


def test_only_the_costliest_keys_are_held_by_name() -> None:
    many = [f"key {number}" for number in range(3 * TOP_KEYS)]
    one = report(many, [float(number) for number in range(len(many))])
    status = CostStatus.of(one, bound_s=1.0, sketch_bytes=100)
    assert len(status.costliest) == TOP_KEYS
    assert status.costliest[0].key == many[-1]
    assert status.rows_dropped == 1
    assert "costliest: key 149" in str(status)


def test_the_costliest_keys_of_the_run_before_are_shown_until_they_come_again() -> None:
    before = CostStatus.of(report(["a", "b"], [5.0, 1.0]), bound_s=1.0, sketch_bytes=100)
    restored = CostStatus.from_json(before.to_json())
    assert restored == before
    now = CostStatus.of(report(["b", "c"], [7.0, 0.5]), bound_s=1.0, sketch_bytes=100, before=restored.costliest)
    assert [(one.key, one.rows, one.mean_s) for one in now.costliest] == [("b", 2, 4.0), ("a", 1, 5.0), ("c", 1, 0.5)]
    assert now.rows_kept == 2  # names outlive a run; counts are the run's own


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"costliest": 3}'])
def test_a_status_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - what JSON itself says, or ours
        CostStatus.from_json(text)
