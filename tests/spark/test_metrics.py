"""Row counts from the driver's REST interface, against a stand-in that answers as Spark does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from jettison.errors import Unsupported
from jettison.spark.metrics import FilterCounts

MARKS = ["SPARK_PARTITION_ID() >= -11", "SPARK_PARTITION_ID() < -22"]


class Interface:
    """Serves `/sql` by position and `/sql/<id>` by id, as the driver does."""

    def __init__(self) -> None:
        self.executions: list[dict[str, Any]] = []
        self.listed = 0
        interface = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(interface.answer(url.path, parse_qs(url.query))).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str, query: dict[str, list[str]]) -> Any:
        last = path.rsplit("/", 1)[1]
        if last == "sql":
            offset, length = int(query["offset"][0]), int(query["length"][0])
            page = [{k: v for k, v in e.items() if k != "nodes"} for e in self.executions][offset : offset + length]
            self.listed += len(page)
            return page
        return next(execution for execution in self.executions if str(execution["id"]) == last)

    def ran(self, id: int, batch: int, seen: int, kept: int, *, run: str = "r", status: str = "COMPLETED") -> None:
        self.executions.append(
            {
                "id": id,
                "status": status,
                "description": f"\nid = q\nrunId = {run}\nbatch = {batch}",
                "nodes": [node(f"Filter ({MARKS[0]})", f"{seen:,}"), node(f"Filter (x OR ({MARKS[1]}))", f"{kept:,}")],
            }
        )


def node(description: str, rows: str) -> dict[str, Any]:
    metrics = [{"name": "spill size", "value": "0.0 B"}, {"name": "number of output rows", "value": rows}]
    return {"nodeName": "Filter", "desc": description, "metrics": metrics}


@pytest.fixture
def interface() -> Iterator[Interface]:
    subject = Interface()
    yield subject
    subject.server.shutdown()
    subject.server.server_close()


def counts(interface: Interface, run: str = "r") -> FilterCounts:
    return FilterCounts(interface.url, "app", run, MARKS)


def test_counts_are_those_of_the_batch_and_run_asked_for(interface: Interface) -> None:
    interface.ran(0, batch=1, seen=10, kept=1)
    interface.ran(1, batch=11, seen=20, kept=2)
    interface.ran(2, batch=1, seen=30, kept=3, run="other")
    interface.ran(3, batch=1, seen=1_234_567, kept=999, run="r2")
    assert counts(interface, "r2").of_batch(1) == {MARKS[0]: 1_234_567, MARKS[1]: 999}
    assert counts(interface).of_batch(1) == {MARKS[0]: 10, MARKS[1]: 1}


def test_forgotten_and_foreign_executions_do_not_hide_a_batch(interface: Interface) -> None:
    for id in range(5_000, 5_300):  # the first 5,000 have been forgotten, so ids are far beyond positions
        interface.ran(id, batch=id, seen=0, kept=0, run="foreign")
    interface.ran(5_300, batch=7, seen=50, kept=5)
    subject = counts(interface)
    assert subject.of_batch(7, patience_s=0) == {MARKS[0]: 50, MARKS[1]: 5}
    interface.ran(5_301, batch=8, seen=60, kept=6)
    assert subject.of_batch(8, patience_s=0) == {MARKS[0]: 60, MARKS[1]: 6}
    del interface.executions[:250]  # everything moves up
    interface.ran(5_302, batch=9, seen=70, kept=7)
    assert subject.of_batch(9, patience_s=0) == {MARKS[0]: 70, MARKS[1]: 7}
    del interface.executions[:]  # and now our place is gone altogether
    interface.ran(5_303, batch=10, seen=80, kept=8)
    assert subject.of_batch(10, patience_s=0) == {MARKS[0]: 80, MARKS[1]: 8}


def test_a_first_look_finds_batches_that_ended_long_ago(interface: Interface) -> None:
    for id in range(100):
        interface.ran(id, batch=id, seen=0, kept=0, run="foreign")
    for batch in range(40):
        interface.ran(100 + batch, batch=batch, seen=batch + 1, kept=1)
    subject = counts(interface)
    assert [subject.of_batch(batch, patience_s=0)[MARKS[0]] for batch in range(40)] == list(range(1, 41))


def test_what_was_read_is_not_asked_for_again(interface: Interface) -> None:
    for id in range(500):
        interface.ran(id, batch=id, seen=0, kept=0, run="foreign")
    interface.ran(500, batch=0, seen=0, kept=0)
    subject = counts(interface)
    subject.of_batch(0)
    before = interface.listed
    for batch in range(1, 21):
        interface.ran(500 + batch, batch=batch, seen=batch, kept=batch)
        subject.of_batch(batch)
    assert interface.listed - before <= 2 * 20


def test_an_execution_that_runs_on_holds_back_no_other(interface: Interface) -> None:
    interface.ran(0, batch=0, seen=1, kept=1, run="slow", status="RUNNING")
    subject = counts(interface)
    for batch in range(40):
        interface.ran(1 + batch, batch=batch, seen=batch, kept=batch)
        assert subject.of_batch(batch, patience_s=0)[MARKS[0]] == batch
    interface.executions[0]["status"] = "COMPLETED"
    interface.ran(41, batch=40, seen=40, kept=40)
    assert subject.of_batch(40, patience_s=0)[MARKS[0]] == 40


def test_a_batch_that_the_interface_does_not_show_yet_is_waited_for(interface: Interface) -> None:
    threading.Timer(0.3, lambda: interface.ran(0, batch=0, seen=5, kept=5)).start()
    assert counts(interface).of_batch(0)[MARKS[0]] == 5


def test_counts_that_never_come_are_an_error_with_a_way_out(interface: Interface) -> None:
    interface.ran(0, batch=0, seen=5, kept=5, status="RUNNING")
    with pytest.raises(Unsupported, match=r"row counts of batch 0.*got 0 of 2.*Hint: pass accounting='observe'"):
        counts(interface).of_batch(0, patience_s=0.1)
    with pytest.raises(Unsupported, match="Hint: pass accounting='observe'"):
        FilterCounts("http://127.0.0.1:9", "app", "r", MARKS).of_batch(0)
