"""What the listener tells, and in which order; stand-ins take the places of pilot and query."""

from __future__ import annotations

import threading
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row

from jettison.policies import ConceptDrop
from jettison.source.space import Attribute, Space
from jettison.spark import unstarted
from jettison.spark.drop_point import DropPoint
from jettison.spark.listener import ProgressListener, report_of
from jettison.spark.mechanisms import GroupMechanism, RandomMechanism, RegionMechanism


class Recorder:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.closed = threading.Event()

    def batch(self, report: Any) -> None:
        time.sleep(0.02)  # long enough for a later event to overtake, if it could
        self.events.append(report.batch_id)

    def idle(self, now_s: float) -> None:
        self.events.append("idle")

    def missed(self, batches: range, why: str) -> None:
        self.events.append((list(batches), why))

    def close(self, **facts: Any) -> None:
        self.events.append("close")
        self.closed.set()


def progress(run: str, batch: int, observed: dict[str, Any] | None = None) -> Any:
    return SimpleNamespace(
        progress=SimpleNamespace(
            runId=run,
            batchId=batch,
            timestamp="2026-01-01T00:00:00.000Z",
            durationMs={"addBatch": 900, "triggerExecution": 1000},
            batchDuration=1000,
            numInputRows=5,
            eventTime={},
            sources=[],
            sink=SimpleNamespace(description="NoopTable"),
            observedMetrics={name: Row(**fields) for name, fields in (observed or {}).items()},
        )
    )


class Query:
    """A query that reports what it has done so far, and its manager."""

    def __init__(self, *recent: Any, run: str = "ours") -> None:
        self.recent = list(recent)
        self.asked = 0
        self.runId, self.isActive, self.active = run, True, [self]
        self.status = {"isDataAvailable": True, "message": "Processing new data"}

    @property
    def lastProgress(self) -> Any:
        return self.recent[-1] if self.recent else None

    @property
    def recentProgress(self) -> list[Any]:
        self.asked += 1
        return list(self.recent)

    def exception(self) -> Any:
        return "it broke"


def listener_of(pilot: Any, on_end: Any = lambda error: None, **settings: Any) -> ProgressListener:
    return ProgressListener(pilot, partial(report_of, points=(), mechanisms={}), "ours", on_end, **settings)


def idle(batch: int) -> Any:
    found = progress("ours", batch).progress
    found.durationMs = {"latestOffset": 1, "triggerExecution": 2}
    return found


def test_batches_come_once_and_in_order_until_the_query_has_ended() -> None:
    pilot, ended = Recorder(), threading.Event()

    def on_end(error: object) -> None:
        pilot.events.append(error)
        ended.set()

    query = Query(*(progress("ours", batch).progress for batch in range(3)))
    listener = listener_of(pilot, on_end)
    listener.attach(query, query)  # type: ignore[arg-type]
    for batch in (3, 4):
        query.recent.append(progress("ours", batch).progress)
        listener.catch_up(query)  # type: ignore[arg-type] # while it asks by itself as well
    query.recent += [progress("ours", 5).progress, progress("ours", 6).progress, idle(7)]
    query.isActive = False
    assert ended.wait(120)
    assert pilot.events == [0, 1, 2, 3, 4, 5, 6, "it broke"]


def test_it_asks_no_more_once_it_is_told_so() -> None:
    pilot, query = Recorder(), Query()
    listener = listener_of(pilot)
    before = set(threading.enumerate())
    listener.attach(query, query)  # type: ignore[arg-type]
    begun = set(threading.enumerate()) - before
    listener.detach()
    for thread in begun:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in begun)


def test_only_what_was_missed_makes_spark_tell_of_all_that_it_remembers() -> None:
    pilot, query = Recorder(), Query()
    listener = listener_of(pilot)
    for reported, asked in (
        ([], 0),
        ([progress("ours", 0).progress], 0),
        ([], 0),
        ([progress("ours", 1).progress], 0),
        ([idle(2)], 0),
        ([progress("ours", 2).progress, progress("ours", 3).progress], 1),
        ([progress("ours", 4).progress], 1),
        ([progress("ours", 5).progress, idle(6)], 2),
    ):
        query.recent += reported
        listener.catch_up(query)  # type: ignore[arg-type]
        assert query.asked == asked
    assert pilot.events == [0, 1, 2, 3, 4, 5]


def test_a_batch_that_cannot_be_read_is_a_fault_and_hides_no_other() -> None:
    pilot, query = Recorder(), Query()
    listener = listener_of(pilot)
    unreadable = progress("ours", 7).progress
    unreadable.timestamp = "yesterday"
    for each in (unreadable, progress("ours", 8).progress):
        query.recent.append(each)
        listener.catch_up(query)  # type: ignore[arg-type]
    (batches, why), after = pilot.events
    assert (batches, after) == ([7], 8)
    assert why.startswith("its report cannot be read (ValueError: ")


def test_batches_that_spark_has_forgotten_are_missing() -> None:
    pilot, query = Recorder(), Query(progress("ours", 40).progress)  # the first one of a run that was started again
    listener = listener_of(pilot)
    listener.catch_up(query)  # type: ignore[arg-type]
    query.recent.append(progress("ours", 41).progress)
    listener.catch_up(query)  # type: ignore[arg-type]
    query.recent = [progress("ours", batch).progress for batch in (45, 46)]
    listener.catch_up(query)  # type: ignore[arg-type]
    assert [event if isinstance(event, int) else event[0] for event in pilot.events] == [40, 41, [42, 43, 44], 45, 46]


@pytest.mark.parametrize(
    ("available", "message", "heard"),
    [
        (False, "Waiting for data to arrive", ["idle"]),
        (False, "Waiting for next trigger", ["idle"]),
        (False, "Initializing sources", []),
        (True, "Waiting for next trigger", []),
    ],
)
def test_a_source_that_has_had_nothing_for_long_is_told_of(available: bool, message: str, heard: list[str]) -> None:
    pilot, query = Recorder(), Query()
    query.status = {"isDataAvailable": available, "message": message}
    listener_of(pilot).look_around(query, query)  # type: ignore[arg-type]
    assert pilot.events == [], "not for long yet"
    listener_of(pilot, idle_after_s=0.0).look_around(query, query)  # type: ignore[arg-type]
    assert pilot.events == heard


@pytest.mark.parametrize(
    ("offsets", "sink", "nothing_new", "any_runs"),
    [([("1", "1"), ("2", "2")], "NoopTable", True, False), ([("1", "1"), ("2", "3")], "ForeachBatchSink", False, True)],
)
def test_a_report_says_what_the_sources_offered_and_what_the_sink_may_do(offsets, sink, nothing_new, any_runs) -> None:
    found = progress("ours", 1).progress
    found.sources = [
        SimpleNamespace(numInputRows=0, startOffset=start, endOffset=end, latestOffset=None) for start, end in offsets
    ]
    found.sink = SimpleNamespace(description=sink)
    report = report_of(found, (), {})
    assert (report.nothing_new, report.any_runs) == (nothing_new, any_runs)


@pytest.mark.parametrize(
    ("newest_us", "recent", "rate"),
    [
        (10_000_000, 500.0, 500.0),  # rows up to the batch itself
        (9_500_000, 500.0, 1000.0),  # the last half second has not been landed yet
        (9_100_000, 500.0, None),  # a tenth of a second says too little
        (8_000_000, None, None),  # a backlog: nothing recent among the rows
    ],
)
def test_the_recent_rate_covers_the_time_until_the_newest_row(
    newest_us: int, recent: float | None, rate: float
) -> None:
    point = DropPoint("rides", ("id",), arrival="at")
    arrivals = {"kept": 5, "recent": recent, "arrivals_us": [1, newest_us]}
    observed = {point.metric: arrivals, point.plan_metric: {"version": 3, "now_us": 10_000_000}}
    report = report_of(progress("ours", 1, observed).progress, (point,), {"rides": RandomMechanism()})
    assert (report.recent_rows_per_s, report.plan_version) == (rate, 3)


WILD_US = {"1970": 0, "9999": 253_402_214_400_000_000}


@pytest.mark.parametrize("wild", [(0, "1970"), (1, "9999")], ids=["1970", "9999"])
def test_in_a_batch_of_few_rows_a_single_wild_timestamp_counts_for_nothing(wild: tuple[int, str]) -> None:
    """There it is one of the quantiles: the latency on record was 56 years."""
    point, found = DropPoint("rides", ("id",), arrival="at"), progress("ours", 1).progress
    started_us = round(report_of(found, (), {}).started_s * 1e6)
    place, year = wild
    arrivals = [started_us - 2_000_000, started_us]
    arrivals[place] = WILD_US[year]
    found.observedMetrics = progress(
        "ours", 1, {point.metric: {"kept": 5, "arrivals_us": arrivals}}
    ).progress.observedMetrics
    report = report_of(found, (point,), {"rides": RandomMechanism()})
    right_s = arrivals[1 - place] / 1e6
    assert (report.oldest_arrival_s, report.newest_arrival_s) == (right_s, right_s)


def test_without_a_plan_there_is_no_recent_rate() -> None:
    point = DropPoint("rides", ("id",), arrival="at")
    arrivals = {"kept": 5, "recent": None, "oldest_us": 1, "newest_us": 2}
    assert (
        report_of(
            progress("ours", 1, {point.metric: arrivals}).progress, (point,), {"rides": RandomMechanism()}
        ).recent_rows_per_s
        is None
    )


def test_what_was_observed_is_read_by_the_mechanism() -> None:
    point, mechanism = DropPoint("rides", ("id",)), RegionMechanism(Space([Attribute.number("x", 0, 1)]), 10)
    observed = {point.metric: {"kept": 5, "sample": '[[1.5,null],["NaN",2.0]]'}}
    report = report_of(progress("ours", 1, observed).progress, (point,), {"rides": mechanism})
    np.testing.assert_array_equal(report.observed["rides"], [[1.5, np.nan], [np.nan, 2.0]])
    nothing = progress("ours", 2, {point.metric: {"kept": 5}}).progress
    assert report_of(nothing, (point,), {"rides": mechanism}).observed == {}


KAFKA = '{"rides": {"0": 100, "1": 250}}'


@pytest.mark.parametrize(
    ("offsets", "waiting"),
    [
        ([(KAFKA, '{"rides": {"0": 100, "1": 250}}')], 0),
        ([(KAFKA, '{"rides": {"0": 60, "1": 200}}')], 90),
        ([(KAFKA, '{"rides": {"0": 60, "1": 250}}'), (KAFKA, '{"rides": {"0": 90, "1": 250}}')], 50),
        ([(KAFKA, '{"rides": {"0": 60}}')], None),
        ([(KAFKA, None)], None),
        ([(None, '{"logOffset": 3}')], None),
        ([("7", "7")], None),
        ([(KAFKA, KAFKA), (None, '{"logOffset": 3}')], None),
        ([], None),
    ],
)
def test_rows_that_wait_are_told_by_kafkas_offsets_alone(offsets: list[Any], waiting: int | None) -> None:
    event = progress("ours", 1).progress
    event.sources = [
        SimpleNamespace(numInputRows=0, startOffset=None, latestOffset=latest, endOffset=end) for latest, end in offsets
    ]
    assert report_of(event, (), {}).waiting_rows == waiting


def test_the_work_of_a_batch_is_told_apart_from_the_rest() -> None:
    event = progress("ours", 1).progress
    event.durationMs = {"triggerExecution": 1000}
    assert report_of(event, (), {}).work_s is None
    event.durationMs = {"triggerExecution": 1000, "addBatch": 850, "queryPlanning": 60, "walCommit": 40}
    report = report_of(event, (), {})
    assert (report.duration_s, report.work_s) == (1.0, 0.85)


@pytest.mark.parametrize("kind", [Row, dict])
def test_groups_are_read_from_events_and_from_what_spark_keeps_of_them(kind: Any) -> None:
    """An event brings rows; recent progress, which is looked at when a query ends, brings the same as JSON."""
    listed = [kind(item=11, count=3), kind(item=22, count=1), kind(item=None, count=9)]
    point = DropPoint("rows", ("id",))
    seen = {"kept": 4, "groups": listed, "grouped": 4, "groups_until_us": 5}
    mechanism = GroupMechanism(ConceptDrop(group="key", time="at", window="10 seconds").spec)
    (groups,) = report_of(
        progress("run", 0, {point.metric: seen}).progress, (point,), {"rows": mechanism}
    ).observed.values()
    assert (tuple(groups.keys), tuple(groups.kept)) == ((11, 22), (3, 1))


@pytest.mark.parametrize(
    ("sink", "any_runs"),
    [
        ("FileSink[file:/out]", False),
        ("MemorySink", False),
        ("ForeachWriterTable(writer,Right(encoder))", False),
        ("org.apache.spark.sql.execution.datasources.noop.NoopTable$@3b4d", False),
        ("org.apache.spark.sql.execution.streaming.ConsoleTable$@3b4d", False),
        ("org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable@3b4d", False),
        ("ForeachBatchSink", True),
        ("com.example.TwiceSink@3b4d", True),
        ("com.example.FileSink@3b4d", True),
    ],
)
def test_of_sinks_that_are_not_known_to_run_a_plan_once_nothing_is_certain(sink: str, any_runs: bool) -> None:
    told = progress("mine", 0).progress
    told.sink.description = sink
    assert report_of(told, (), {}).any_runs == any_runs


def test_a_foreign_query_under_the_same_plans_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unstarted, "_started", {"ours", "of another shedder"})
    heard: list[str] = []
    ours = Query()

    def other(run: str, observed: str, name: str | None = None) -> Query:
        told = progress(run, 0, {observed: {"version": 1}}).progress
        told.name = name
        return Query(told, run=run)

    empty, short = other("empty", "other"), other("short", "plan")
    empty.lastProgress.numInputRows = 0  # what has no rows may not read the plan
    ours.active += [other("x", "plan"), other("y", "other"), other("of another shedder", "plan"), empty]
    listener = listener_of(SimpleNamespace(facts=SimpleNamespace(shared=heard.append)), plan_metrics={"plan"})
    listener.look_around(ours, ours)  # type: ignore[arg-type]
    empty.recent = other("empty", "plan", "z").recent
    ours.active += [short]
    short.recent, later = [], short.recent
    listener.look_around(ours, ours)  # type: ignore[arg-type]
    ours.active.remove(short)  # it has ended since, and said what it read
    short.recent, short.isActive = later, False
    for _ in range(2):
        listener.look_around(ours, ours)  # type: ignore[arg-type]
    assert heard == ["x", "z", "short"]
