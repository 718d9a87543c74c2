"""Row counts from the driver's REST interface, against a stand-in that answers as Spark does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from jettison.core.batch_report import BatchReport, Counted
from jettison.errors import Unsupported
from jettison.spark.drop_point import DropPoint
from jettison.spark.executions import Executions
from jettison.spark.metrics import FilterCounts, MetricCounts

MARKS = ("SPARK_PARTITION_ID() >= -11", "SPARK_PARTITION_ID() < -22")


class Interface:
    """Serves `/sql` by position and `/sql/<id>` by id, as the driver does."""

    def __init__(self) -> None:
        self.executions: list[dict[str, Any]] = []
        self.listed = self.read = 0
        self.lost_tasks = 0
        self.status = 200
        self.not_found = 0  # answers that are 404 before the next one is not
        interface = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                self.send_response(404 if interface.not_found else interface.status)
                interface.not_found = max(interface.not_found - 1, 0)
                self.end_headers()
                self.wfile.write(json.dumps(interface.answer(url.path, parse_qs(url.query))).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str, query: dict[str, list[str]]) -> Any:
        last = path.rsplit("/", 1)[1]
        if last == "sql":
            offset, length = int(query["offset"][0]), int(query["length"][0])
            hidden = "nodes" if query["details"] == ["false"] else ""
            page = [{k: v for k, v in e.items() if k != hidden} for e in self.executions][offset : offset + length]
            self.listed += len(page)
            return page
        if "/jobs/" in path:
            return {"jobId": int(last), "numFailedTasks": self.lost_tasks, "numKilledTasks": 0}
        self.read += 1
        return next(execution for execution in self.executions if str(execution["id"]) == last)

    def ran(
        self, id: int, batch: int, seen: int, kept: int, *, run: str = "r", status: str = "COMPLETED", **changes: Any
    ) -> None:
        execution = {
            "id": id,
            "rootExecutionId": id,
            "status": status,
            "successJobIds": [id],
            "description": f"\nid = q\nrunId = {run}\nbatch = {batch}",
            "nodes": [
                node(1, f"Filter ({MARKS[0]})", f"{seen:,}"),
                node(2, f"Filter (x OR ({MARKS[1]}))", f"{kept:,}"),
            ],
            "edges": [{"fromId": 1, "toId": 2}],
        }
        self.executions.append(execution | changes)


def node(id: int, description: str, rows: str, name: str = "Filter") -> dict[str, Any]:
    metrics = [{"name": "spill size", "value": "0.0 B"}, {"name": "number of output rows", "value": rows}]
    return {"nodeId": id, "nodeName": name, "desc": description, "metrics": metrics}


@pytest.fixture
def interface() -> Iterator[Interface]:
    subject = Interface()
    yield subject
    subject.server.shutdown()
    subject.server.server_close()


def counts(interface: Interface, run: str = "r") -> FilterCounts:
    return FilterCounts(Executions(interface.url, "app", run), [MARKS])


def of(subject: FilterCounts, batch: int, *, any_runs: bool = False, patience_s: float = 0.0) -> tuple[int, int] | None:
    counted = subject.of_batch(batch, MARKS, any_runs=any_runs, patience_s=patience_s)
    return None if counted is None else counted[:2]


def test_counts_are_those_of_the_batch_and_run_asked_for(interface: Interface) -> None:
    interface.ran(0, batch=1, seen=10, kept=1)
    interface.ran(1, batch=11, seen=20, kept=2)
    interface.ran(2, batch=1, seen=30, kept=3, run="other")
    interface.ran(3, batch=1, seen=1_234_567, kept=999, run="r2")
    assert of(counts(interface, "r2"), 1) == (1_234_567, 999)
    assert of(counts(interface), 1) == (10, 1)


def test_forgotten_and_foreign_executions_do_not_hide_a_batch(interface: Interface) -> None:
    for id in range(5_000, 5_300):  # the first 5,000 have been forgotten, so ids are far beyond positions
        interface.ran(id, batch=id, seen=0, kept=0, run="foreign")
    interface.ran(5_300, batch=7, seen=50, kept=5)
    subject = counts(interface)
    assert of(subject, 7) == (50, 5)
    interface.ran(5_301, batch=8, seen=60, kept=6)
    assert of(subject, 8) == (60, 6)
    del interface.executions[:250]  # everything moves up
    interface.ran(5_302, batch=9, seen=70, kept=7)
    assert of(subject, 9) == (70, 7)
    del interface.executions[:]  # and now our place is gone altogether
    interface.ran(5_303, batch=10, seen=80, kept=8)
    assert of(subject, 10) == (80, 8)


def test_a_first_look_finds_batches_that_ended_long_ago(interface: Interface) -> None:
    for id in range(100):
        interface.ran(id, batch=id, seen=0, kept=0, run="foreign")
    for batch in range(40):
        interface.ran(100 + batch, batch=batch, seen=batch + 1, kept=1)
    subject = counts(interface)
    assert [of(subject, batch) for batch in range(40)] == [(batch + 1, 1) for batch in range(40)]


def test_batches_that_nobody_asked_for_are_neither_listed_nor_read(interface: Interface) -> None:
    """While nothing is dropped, no count is asked for: the first one after that must not pay for all of them."""
    subject = counts(interface)
    interface.ran(0, batch=0, seen=1, kept=1)
    assert of(subject, 0) == (1, 1)
    for batch in range(1, 1_000):
        interface.ran(batch, batch=batch, seen=batch, kept=1)
    before, read = interface.listed, interface.read
    assert of(subject, 999) == (999, 1)
    assert interface.listed - before <= 100
    assert interface.read - read <= 16
    interface.ran(1_000, batch=1_000, seen=7, kept=1)
    assert of(subject, 1_000) == (7, 1)


def test_what_was_read_is_not_asked_for_again(interface: Interface) -> None:
    for id in range(500):
        interface.ran(id, batch=id, seen=0, kept=0, run="foreign")
    interface.ran(500, batch=0, seen=0, kept=0)
    subject = counts(interface)
    of(subject, 0)
    before = interface.listed
    for batch in range(1, 21):
        interface.ran(500 + batch, batch=batch, seen=batch, kept=batch)
        of(subject, batch)
    assert interface.listed - before <= 2 * 20


def test_an_execution_that_runs_on_holds_back_no_other(interface: Interface) -> None:
    interface.ran(0, batch=0, seen=1, kept=1, run="slow", status="RUNNING")
    subject = counts(interface)
    for batch in range(40):
        interface.ran(1 + batch, batch=batch, seen=batch, kept=batch)
        assert of(subject, batch) == (batch, batch)
    interface.executions[0]["status"] = "COMPLETED"
    interface.ran(41, batch=40, seen=40, kept=40)
    assert of(subject, 40) == (40, 40)


def test_a_batch_that_the_interface_does_not_show_yet_is_waited_for(interface: Interface) -> None:
    threading.Timer(0.3, lambda: interface.ran(0, batch=0, seen=5, kept=5)).start()
    assert of(counts(interface), 0, patience_s=120.0) == (5, 5)


def test_counts_that_never_come_are_an_error_with_a_way_out(interface: Interface) -> None:
    interface.ran(0, batch=0, seen=5, kept=5, status="RUNNING")
    with pytest.raises(Unsupported, match=r"row counts of batch 0 .*got none.*Hint: pass accounting='observe'"):
        of(counts(interface), 0, patience_s=0.1)
    with pytest.raises(Unsupported, match="Hint: pass accounting='observe'"):
        of(FilterCounts(Executions("http://127.0.0.1:9", "app", "r"), [MARKS]), 0)


def test_executions_within_a_batch_are_found_whatever_their_description(interface: Interface) -> None:
    interface.ran(0, batch=0, seen=0, kept=0, nodes=[])
    interface.ran(1, batch=0, seen=9, kept=9, rootExecutionId=1, description=None)  # somebody else's
    interface.ran(2, batch=0, seen=10, kept=4, rootExecutionId=0, description="my own words")
    del interface.executions[1]["description"]
    assert counts(interface).of_batch(0, MARKS, any_runs=True) == Counted(10, 4)


def test_a_batch_without_rows_is_exact_where_no_task_ran_its_filters(interface: Interface) -> None:
    """The first batch of a query may be one: its source has begun and offers nothing yet."""
    silent = [{**node(number, MARKS[number], "0"), "metrics": []} for number in (0, 1)]
    interface.ran(0, batch=0, seen=0, kept=0, nodes=silent)
    interface.ran(1, batch=1, seen=0, kept=0, nodes=silent, status="FAILED")
    subject = counts(interface)
    assert subject.of_batch(0, MARKS, any_runs=False, input_rows=0) == Counted(0, 0, True)
    assert subject.of_batch(0, MARKS, any_runs=False, input_rows=7) is None, "Spark says that there were some"
    assert subject.of_batch(0, MARKS, any_runs=True, input_rows=0) is None, "the sink may not have run it"
    assert subject.of_batch(1, MARKS, any_runs=False, input_rows=0) is None
    interface.ran(2, batch=2, seen=0, kept=0, nodes=[])
    interface.ran(3, batch=2, seen=0, kept=0, nodes=silent, rootExecutionId=2)
    assert subject.of_batch(2, MARKS, any_runs=True, input_rows=0) == Counted(0, 0, True)


LIMIT = [node(3, "", "", "Project"), node(4, "", "", "CollectLimit")]
PARTIAL = {"nodes": [node(1, MARKS[0], "22"), node(2, MARKS[1], "10"), *LIMIT]}
PARTIAL["edges"] = [{"fromId": n, "toId": n + 1} for n in (1, 2, 3)]
BEHIND = {"nodes": [node(1, MARKS[0], "1,000"), node(2, MARKS[1], "400"), node(3, "", "", "Exchange"), LIMIT[1]]}
BEHIND["edges"] = PARTIAL["edges"]
TWICE = {"nodes": [node(n, MARKS[n % 2], "2,000" if n % 2 == 0 else "800") for n in range(4)], "edges": []}
WHOLE: dict[str, Any] = {}
FAILED = {"status": "FAILED"}


def through_cache(seen: int, kept: int) -> dict[str, Any]:
    nodes = [node(1, MARKS[0], f"{seen:,}"), node(2, MARKS[1], str(kept)), node(3, "", "0", "InMemoryTableScan")]
    return {"nodes": nodes, "edges": [{"fromId": n, "toId": n + 1} for n in (1, 2)]}


CACHED, SOME, FILLED = through_cache(0, 0), through_cache(600, 250), through_cache(1000, 400)
BESIDE = {"nodes": FILLED["nodes"], "edges": FILLED["edges"][:1]}  # a cached table that the rows are joined with


@pytest.mark.parametrize(
    ("ran", "counted"),
    [
        ([WHOLE], Counted(1000, 400)),
        ([WHOLE, WHOLE], Counted(1000, 400)),
        ([PARTIAL, WHOLE], Counted(1000, 400)),
        ([PARTIAL], Counted(22, 10, False)),
        ([BEHIND], Counted(1000, 400)),
        ([TWICE], Counted(1000, 400, False)),
        ([WHOLE, CACHED, CACHED], Counted(1000, 400)),
        ([PARTIAL, SOME], Counted(600, 250, False)),
        ([FILLED], Counted(1000, 400)),
        ([FILLED, CACHED], Counted(1000, 400)),
        ([BESIDE], Counted(1000, 400)),
        ([SOME], Counted(600, 250, False)),
        ([CACHED], Counted(0, 0, False)),
        ([FAILED, WHOLE], Counted(1000, 400)),
        ([FAILED], Counted(1000, 400, False)),
        ([{**CACHED, **FAILED}, FILLED], Counted(1000, 400, False)),
        ([{**SOME, **FAILED}, CACHED], Counted(600, 250, False)),
        ([{"nodes": [], **FAILED}, FILLED], Counted(1000, 400)),
        ([], None),
    ],
    ids=[
        "once",
        "twice",
        "isEmpty, then all",
        "limit",
        "limit of an aggregate",
        "union with itself",
        "cached",
        "cached in part",
        "into a cache",
        "into a cache and out of it",
        "beside a cache",
        "some into a cache",
        "out of a cache that nobody filled",
        "failed, then all",
        "failed",
        "failed into a cache, then all",
        "failed into a cache, then out of it",
        "something else failed",
        "nothing",
    ],
)
def test_what_a_sink_ran_is_counted_once_or_called_an_estimate(interface, ran, counted) -> None:
    interface.ran(0, batch=0, seen=0, kept=0, nodes=[])
    for number, changes in enumerate(ran, start=1):
        interface.ran(number, batch=0, seen=1000, kept=400, **{"rootExecutionId": 0, **changes})
    assert counts(interface).of_batch(0, MARKS, any_runs=True, input_rows=1000) == counted


def test_rows_that_a_lost_task_has_put_into_a_cache_are_not_counted_by_the_next(interface: Interface) -> None:
    """Nor does Spark count them among the rows that the batch took."""
    interface.ran(0, batch=0, seen=0, kept=0, nodes=[])
    interface.ran(1, batch=0, seen=0, kept=0, rootExecutionId=0, **SOME)
    interface.lost_tasks = 1
    assert counts(interface).of_batch(0, MARKS, any_runs=True, input_rows=600) == Counted(600, 250, False)


def test_whole_executions_that_differ_are_an_estimate(interface: Interface) -> None:
    interface.ran(0, batch=0, seen=0, kept=0, nodes=[])
    interface.ran(1, batch=0, seen=1000, kept=400, rootExecutionId=0)
    interface.ran(2, batch=0, seen=900, kept=400, rootExecutionId=0)
    assert counts(interface).of_batch(0, MARKS, any_runs=True) == Counted(1000, 400, False)


def test_rows_of_a_query_that_reads_its_source_twice_count_once(interface: Interface) -> None:
    nodes = [node(n, MARKS[n % 2], "1,000" if n % 2 == 0 else "400") for n in range(4)]
    interface.ran(0, batch=0, seen=0, kept=0, nodes=nodes, edges=[])
    assert counts(interface).of_batch(0, MARKS, any_runs=False) == Counted(1000, 400)


def test_rdds_of_a_batch_may_have_been_read_any_number_of_times(interface: Interface) -> None:
    interface.ran(0, batch=0, seen=1000, kept=400)
    assert counts(interface).of_batch(0, MARKS, any_runs=True) == Counted(1000, 400, False)


def batch_report(number: int) -> BatchReport:
    return BatchReport("r", number, 1e9, 0.5, 1000, 1)


def test_an_interface_that_fails_three_times_in_a_row_is_given_up(interface: Interface) -> None:
    lost: list[str] = []
    point = DropPoint("rows", ("id",), observed=False)
    subject = MetricCounts(interface.url, "app", [point], lost.append)
    interface.status = 403
    for number in range(2):
        with pytest.raises(Unsupported, match="403"):
            subject(batch_report(number))
    assert not lost
    with pytest.raises(Unsupported, match=r"3 failures in a row.*403.*estimates until the query is started again"):
        subject(batch_report(2))
    assert ["403" in reason for reason in lost] == [True]
    interface.status = 200
    assert subject(batch_report(3)) == {}, "nothing is asked any more"
    assert len(lost) == 1


def test_an_interface_is_tried_before_it_is_relied_on(interface: Interface) -> None:
    subject = Executions(interface.url, "app", "r")
    interface.ran(0, batch=0, seen=1, kept=1)
    assert subject.trouble() is None
    interface.status = 403
    assert "403" in str(subject.trouble())
    interface.status = 200
    del interface.executions[0]["nodes"][0]["desc"], interface.executions[0]["nodes"][1]["desc"]
    assert subject.trouble() == "its plans have no descriptions"


def test_rows_that_spark_itself_hands_to_the_sink_are_read_once(interface: Interface) -> None:
    write = {"nodeId": 9, "nodeName": "WriteToDataSourceV2", "metrics": []}
    nodes = [node(0, MARKS[0], "1,000"), node(1, MARKS[1], "400"), write]
    interface.ran(0, batch=0, seen=0, kept=0, nodes=nodes, edges=[])
    assert counts(interface).of_batch(0, MARKS, any_runs=True) == Counted(1000, 400)


def test_an_execution_that_spark_forgets_while_it_lists_it_is_no_trouble(interface: Interface) -> None:
    """Spark then answers that there is no such application: it looks for the plan of what it has just dropped."""
    interface.ran(0, batch=0, seen=10, kept=4)
    interface.not_found = 2
    assert Executions(interface.url, "app", "r").trouble() is None
    interface.not_found = 2
    assert of(counts(interface), 0) == (10, 4)
    interface.not_found = 1000
    assert str(Executions(interface.url, "app", "r").trouble()).startswith("HTTP Error 404: Not Found at http://")
