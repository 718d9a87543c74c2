"""The document of orders: what is written is read back, and nothing else is taken for orders."""

from __future__ import annotations

import json
import zlib

import pytest

from jettison.control.controller import ControlSettings
from jettison.core.storage import Folder
from jettison.errors import InvalidSetting
from jettison.runtime import orders
from jettison.runtime.orders import DamagedOrders, LatencyOrder, Order, Orders, OrdersFile, Terms

BY = {"author": "ann", "reason": "audit", "at_s": 12.5}
ALL = Orders(latency=LatencyOrder(**BY, seconds=5.0), keep_everything=Order(**BY), dry_run=Order(**BY))


@pytest.fixture
def home(tmp_path):
    return Folder(tmp_path / "jettison")


def sealed(text):
    return json.dumps({"crc": zlib.crc32(text.encode()), "orders": text}).encode()


def test_what_is_written_is_read_back_under_a_mark_of_its_own(home):
    first, second = orders.write(home, ALL), orders.write(home, ALL)
    assert orders.standing(home) == second != first
    assert list(second.words()) == list(ALL.words())


def test_without_a_document_there_are_no_orders(home):
    assert orders.standing(home) == Orders()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"null",
        b'{"crc": 1, "orders": "{}"}',
        sealed('{"latency": {"author": "a", "at_s": 0, "seconds": 0}}'),
        sealed('{"latency": {"author": "a", "at_s": 0, "seconds": NaN}}'),
        sealed('{"latency": {"author": "a", "at_s": 0, "seconds": 1e300}}'),
        sealed('{"latency": 5}'),
        sealed('{"keep_everything": true}'),
        sealed('{"keep_everythin": {"author": "a", "at_s": 0}}'),
        sealed('{"dry_run": {"author": "a", "at_s": 0, "sql": "1"}}'),
        sealed(json.dumps({"dry_run": {"author": "a" * 201, "at_s": 0}})),
        sealed("[" * 100_000),
    ],
)
def test_damaged_or_forged_documents_are_refused_and_change_nothing(home, content):
    faults = []
    file = OrdersFile(home, lambda kind, detail: faults.append((kind, detail)))
    orders.write(home, ALL)
    assert file.look().words
    home.replace(orders.FILE, content)
    assert file.look() is None
    assert file.look() is None, "looked at again, it is the same fault"
    assert [kind for kind, _ in faults] == ["order"]
    assert "orders to a query, got b'" in faults[0][1]
    assert "what was in force stays" in faults[0][1]
    with pytest.raises(DamagedOrders, match="--clear all"):
        orders.standing(home)
    assert orders.write(home, Orders()) == file.look()


def test_a_bit_that_flipped_is_found(home):
    orders.write(home, ALL)
    content = home.read(orders.FILE)
    assert b"5.0" in content
    home.replace(orders.FILE, content.replace(b"5.0", b"7.0"))
    with pytest.raises(DamagedOrders, match="its checksum does not fit"):
        orders.standing(home)


def test_changes_are_told_in_words():
    assert ALL.changes(Orders()) == (
        "a latency bound of 5 s (set by ann: audit); keep everything (set by ann: audit); dry run (set by ann: audit)"
    )
    assert Orders().changes(Orders(dry_run=Order(author="ann", at_s=0.0))) == "no longer: dry run (set by ann)"
    assert ALL.changes(ALL) == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0.5, "a latency bound above 2 s, got 0.5 s"),
        (2.0, "a latency bound above 2 s, got 2 s"),
    ],
)
def test_a_bound_that_no_plan_can_hold_is_refused(given, said):
    terms = Terms(ControlSettings(latency_bound_s=3.0, trigger_interval_s=1.0), least_bound_s=2.0)
    with pytest.raises(InvalidSetting, match=said):
        terms.under(Orders(latency=LatencyOrder(**BY, seconds=given)))


def test_nothing_is_promised_for_a_companion():
    terms = Terms(ControlSettings(latency_bound_s=3.0), companion="score")
    with pytest.raises(InvalidSetting, match="'score' drops rows by rules of its own"):
        terms.under(Orders(keep_everything=Order(**BY)))
    assert terms.under(Orders(latency=LatencyOrder(**BY, seconds=5.0))).latency_bound_s == 5.0


def test_secrets_in_a_reason_are_not_recorded():
    order = Order(author="ann", reason="password=hunter2", at_s=0.0)
    assert "hunter2" not in json.dumps(orders.record_of(Orders(dry_run=order)))
