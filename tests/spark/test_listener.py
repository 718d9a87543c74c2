"""The listener's order of events; a stand-in takes the pilot's place."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

from jettison.spark.listener import ProgressListener


class Recorder:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.closed = threading.Event()

    def batch(self, report: Any) -> None:
        time.sleep(0.02)  # long enough for a later event to overtake, if it could
        self.events.append(report.batch_id)

    def idle(self, now_s: float) -> None:
        self.events.append("idle")

    def close(self, **facts: Any) -> None:
        self.events.append("close")
        self.closed.set()


def progress(run: str, batch: int) -> Any:
    return SimpleNamespace(
        progress=SimpleNamespace(
            runId=run,
            batchId=batch,
            timestamp="2026-01-01T00:00:00.000Z",
            durationMs={"triggerExecution": 1000},
            batchDuration=1000,
            numInputRows=5,
            observedMetrics={},
        )
    )


def test_events_before_bind_come_first_and_those_of_other_runs_never() -> None:
    pilot, ended = Recorder(), threading.Event()
    listener = ProgressListener(pilot, (), on_end=ended.set)  # type: ignore[arg-type]
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
