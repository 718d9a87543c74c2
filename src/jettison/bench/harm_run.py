"""Runs one case in this process, which is a fresh one: nothing has run before, as when a user starts a query."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt
from jettison.bench import harm_query
from jettison.bench.harm_case import Case
from jettison.bench.kafka_feed import TopicFeed, rows_of
from jettison.demo.feed import RideFeed
from jettison.demo.landing import Landing
from jettison.demo.pipeline import INTERVAL_S
from jettison.errors import JettisonError, explain
from jettison.spark.listener import report_of
from jettison.spark.session import local_session

POINT = "rides"
_PROCESS_STARTED_S = time.time()
_PATIENCE_S, _POLL_S = 60.0, 0.5


def run(spark: SparkSession, case: Case, folder: Path, address: str | None) -> list[dict[str, Any]]:
    """Run a case for as long as its rides arrive, and return its header and one record a batch."""
    rows = harm_query.raw(spark, case, folder / "in", address)
    shedder = None
    if case.bound_s is not None:
        shedder = jt.Shedder(latency=case.bound_s, checkpoint=folder / "checkpoint")
        rows = shedder.guard(rows, id=["partition", "offset"], arrival="timestamp", name=POINT)
    answers = harm_query.answers(case, rows, guarded=shedder is not None)
    writer = harm_query.writer(case, answers, folder / "out")
    with feed(case, folder, address) as feeding:
        started_s = time.time()
        if shedder is None:
            query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        else:
            query = shedder.start(writer)
        time.sleep(max(feeding.started_s + case.duration_s - time.time(), 0.0))
    events = _progress(query)
    ended_s = time.time()
    while len(events) < case.least_batches and query.isActive and time.time() < ended_s + _PATIENCE_S:
        time.sleep(_POLL_S)
        events = _progress(query)
    query.stop()
    if error := query.exception():
        raise error
    if len(events) < case.least_batches:
        hint = "this machine is too busy to measure anything now"
        raise JettisonError(explain(f"{case.least_batches} batches", str(len(events)), hint=hint))
    header = {
        "record": "case",
        **case.to_dict(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],  # far above the cores: others were at work too
        "process_started_s": _PROCESS_STARTED_S,
        "feed_started_s": feeding.started_s,
        "query_started_s": started_s,
        "ended_s": ended_s,
        "feed_late_s": feeding.wait().worst_late_s,
    }
    batches = list(_batches(case, events, feeding.landing))
    if shedder is not None:
        header["books_closed"] = shedder.await_books()
        _with_counts(batches, shedder.ledger)
    return [header, *batches]


@contextmanager
def feed(case: Case, folder: Path, address: str | None) -> Iterator[RideFeed]:
    """The case's rides, on their way."""
    if case.source == "files":
        feeding = RideFeed(folder / "in", case.phases, interval_s=INTERVAL_S)
    else:
        feeding = TopicFeed(str(address), case.name, case.phases)
    with feeding:
        yield feeding


def _progress(query: StreamingQuery) -> list[Any]:
    return [event for event in query.recentProgress if event.numInputRows]


def _batches(case: Case, events: Sequence[Any], landing: Landing) -> Iterator[dict[str, Any]]:
    """One record for each progress event; arrivals follow from the schedule, not from the rows."""
    taken = 0
    for event in events:
        told = json.loads(event.json)
        (source,) = told["sources"]
        if case.source == "files":
            first, last = taken, taken + event.numInputRows - 1
        else:
            starts, ends = ((source[name] or {}).get(case.name, {}) for name in ("startOffset", "endOffset"))
            first = int(rows_of({p: starts.get(p, 0) for p in ends}).min())
            last = int(rows_of({p: end - 1 for p, end in ends.items()}).max())
        taken += event.numInputRows
        oldest_s, newest_s = landing.arrival_of([first, last]).tolist()
        started_s = report_of(event, ()).started_s
        yield {
            "record": "batch",
            "batch_id": event.batchId,
            "started_s": started_s - _PROCESS_STARTED_S,
            "started_epoch_s": started_s,
            "duration_ms": told["durationMs"],
            "rows": event.numInputRows,
            "oldest_arrival_s": oldest_s,
            "newest_arrival_s": newest_s,
            "offsets": {name: source.get(name) for name in ("startOffset", "endOffset", "latestOffset")},
            "state_rows": sum(operator["numRowsTotal"] for operator in told.get("stateOperators", ())),
        }


def _with_counts(batches: Sequence[dict[str, Any]], ledger: jt.Ledger) -> None:
    counted = {record["batch_id"]: record for record in ledger.records("batch")}
    for batch in batches:
        if record := counted.get(batch["batch_id"]):
            point = record["points"][POINT]
            batch |= {"seen": point["seen"], "kept": point["kept"], "exact": point["exact"]}
    causes = {record["version"]: record["cause"] for record in ledger.records("plan")}
    for batch in batches:
        version = counted.get(batch["batch_id"], {}).get("plan_version")
        batch |= {"plan_version": version, "cause": causes.get(version)}


def main() -> None:
    """Run the case that comes as JSON on standard input; the records go to the file that it names."""
    serve(run)


def serve(what: Callable[[SparkSession, Case, Path, str | None], list[dict[str, Any]]]) -> None:
    """Do as the order on standard input says, in a session of its own."""
    order = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory(prefix="jettison-harm-") as scratch, local_session("jettison harm") as spark:
        records = what(spark, Case.from_dict(order["case"]), Path(scratch), order["address"])
    Path(order["out"]).write_text("".join(json.dumps(record) + "\n" for record in records))
