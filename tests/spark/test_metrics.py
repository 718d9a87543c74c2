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
            return [{k: v for k, v in e.items() if k != "nodes"} for e in self.executions][offset : offset + length]
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


def counts(interface: Interface) -> FilterCounts:
    return FilterCounts(interface.url, "app")


def test_counts_are_those_of_the_batch_and_run_asked_for(interface: Interface) -> None:
    interface.ran(0, batch=1, seen=10, kept=1)
    interface.ran(1, batch=11, seen=20, kept=2)
    interface.ran(2, batch=1, seen=30, kept=3, run="other")
    interface.ran(3, batch=1, seen=1_234_567, kept=999, run="r2")
    assert counts(interface).of_batch("r2", 1, MARKS) == {MARKS[0]: 1_234_567, MARKS[1]: 999}
    assert counts(interface).of_batch("r", 1, MARKS) == {MARKS[0]: 10, MARKS[1]: 1}


def test_forgotten_and_foreign_executions_do_not_hide_a_batch(interface: Interface) -> None:
    for id in range(5_000, 5_300):  # the first 5,000 have been forgotten, so ids are far beyond positions
        interface.ran(id, batch=id, seen=0, kept=0, run="foreign")
    interface.ran(5_300, batch=7, seen=50, kept=5)
    subject = counts(interface)
    assert subject.of_batch("r", 7, MARKS, patience_s=0) == {MARKS[0]: 50, MARKS[1]: 5}
    interface.ran(5_301, batch=8, seen=60, kept=6)
    assert subject.of_batch("r", 8, MARKS, patience_s=0) == {MARKS[0]: 60, MARKS[1]: 6}


def test_a_batch_that_the_interface_does_not_show_yet_is_waited_for(interface: Interface) -> None:
    threading.Timer(0.3, lambda: interface.ran(0, batch=0, seen=5, kept=5)).start()
    assert counts(interface).of_batch("r", 0, MARKS)[MARKS[0]] == 5


def test_counts_that_never_come_are_an_error_with_a_way_out(interface: Interface) -> None:
    interface.ran(0, batch=0, seen=5, kept=5, status="RUNNING")
    with pytest.raises(Unsupported, match=r"row counts of batch 0.*got 0 of 2.*Hint: pass accounting='observe'"):
        counts(interface).of_batch("r", 0, MARKS, patience_s=0.1)
    with pytest.raises(Unsupported, match="Hint: pass accounting='observe'"):
        FilterCounts("http://127.0.0.1:9", "app").of_batch("r", 0, MARKS)
