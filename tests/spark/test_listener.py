"""The listener's order of events; a stand-in takes the pilot's place."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row

from jettison.spark.drop_point import DropPoint
from jettison.spark.listener import ProgressListener, report_of


class Recorder:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.closed = threading.Event()

    def batch(self, report: Any) -> None:
        time.sleep(0.02)  # long enough for a later event to overtake, if it could
        self.events.append(report.batch_id)

    def idle(self, now_s: float) -> None:
        self.events.append("idle")

    def fault(self, kind: str, detail: str) -> None:
        self.events.append((kind, detail))

    def close(self, **facts: Any) -> None:
        self.events.append("close")
        self.closed.set()


def progress(run: str, batch: int, observed: dict[str, Any] | None = None) -> Any:
    return SimpleNamespace(
        progress=SimpleNamespace(
            runId=run,
            batchId=batch,
            timestamp="2026-01-01T00:00:00.000Z",
            durationMs={"triggerExecution": 1000},
            batchDuration=1000,
            numInputRows=5,
            eventTime={},
            sources=[],
            observedMetrics={name: Row(**fields) for name, fields in (observed or {}).items()},
        )
    )


def test_events_before_bind_come_first_and_those_of_other_runs_never() -> None:
    pilot, ended = Recorder(), threading.Event()

    def on_end(error: object) -> None:
        pilot.close(error=error)
        ended.set()

    listener = ProgressListener(pilot, (), on_end=on_end)  # type: ignore[arg-type]
    for batch in range(3):
        listener.onQueryProgress(progress("ours", batch))
        listener.onQueryProgress(progress("theirs", 100 + batch))
    later = threading.Thread(target=lambda: [listener.onQueryProgress(progress("ours", batch)) for batch in (3, 4)])
    binder = threading.Thread(target=lambda: listener.bind("ours"))
    binder.start()
    time.sleep(0.01)
    later.start()
    binder.join()
    later.join()
    listener.onQueryTerminated(SimpleNamespace(runId="theirs", exception=None))
    assert not ended.is_set()
    listener.onQueryTerminated(SimpleNamespace(runId="ours", exception=None))
    assert ended.wait(5)
    assert pilot.events == [0, 1, 2, 3, 4, "close"]


def test_an_event_that_cannot_be_read_is_a_fault_and_reaches_nobody_else() -> None:
    pilot = Recorder()
    listener = ProgressListener(pilot, (), on_end=lambda error: None)  # type: ignore[arg-type]
    unreadable = progress("ours", 7)
    unreadable.progress.timestamp = "yesterday"
    listener.onQueryProgress(unreadable)
    listener.bind("ours")
    listener.onQueryProgress(progress("ours", 8))
    (kind, detail), after = pilot.events
    assert (kind, after) == ("report", 8)
    assert detail.startswith("batch 7 cannot be read (ValueError: ")


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
    arrivals = {"kept": 5, "recent": recent, "oldest_us": 1, "newest_us": newest_us}
    observed = {point.metric: arrivals, point.plan_metric: {"version": 3, "now_us": 10_000_000}}
    report = report_of(progress("ours", 1, observed).progress, (point,))
    assert (report.recent_rows_per_s, report.plan_version) == (rate, 3)


def test_without_a_plan_there_is_no_recent_rate() -> None:
    point = DropPoint("rides", ("id",), arrival="at")
    arrivals = {"kept": 5, "recent": None, "oldest_us": 1, "newest_us": 2}
    assert report_of(progress("ours", 1, {point.metric: arrivals}).progress, (point,)).recent_rows_per_s is None


def test_sampled_rows_come_as_numbers_and_missing_values_as_nan() -> None:
    point = DropPoint("rides", ("id",))
    observed = {point.metric: {"kept": 5, "sample": '[[1.5,null],["NaN",2.0]]'}}
    report = report_of(progress("ours", 1, observed).progress, (point,))
    np.testing.assert_array_equal(report.sampled["rides"], [[1.5, np.nan], [np.nan, 2.0]])
    assert report_of(progress("ours", 2, {point.metric: {"kept": 5}}).progress, (point,)).sampled == {}


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
    event.sources = [SimpleNamespace(latestOffset=latest, endOffset=end) for latest, end in offsets]
    assert report_of(event, ()).waiting_rows == waiting


def test_the_work_of_a_batch_is_told_apart_from_the_rest() -> None:
    event = progress("ours", 1).progress
    assert report_of(event, ()).work_s is None
    event.durationMs = {"triggerExecution": 1000, "addBatch": 850, "queryPlanning": 60, "walCommit": 40}
    report = report_of(event, ())
    assert (report.duration_s, report.work_s) == (1.0, 0.85)
