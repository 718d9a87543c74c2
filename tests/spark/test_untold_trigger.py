"""A trigger interval that nobody told the shedder of is noticed once, and short waits are none."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.spark import untold_trigger
from jettison.spark.untold_trigger import UntoldTrigger

NEXT, DATA = "Waiting for next trigger", "Waiting for data to arrive"


@pytest.mark.parametrize(
    ("told_s", "messages", "said"),
    [
        (0.0, [NEXT] * 4, False),
        (0.0, [NEXT] * 6, True),
        (0.0, [NEXT, NEXT, DATA] * 9, False),
        (0.0, [NEXT] * 40, True),
        (2.0, [NEXT] * 12, False),
        (2.0, [NEXT] * 14, True),
        (0.0, [DATA] * 40, False),
    ],
)
def test_only_a_longer_wait_for_the_trigger_is_one(
    told_s: float, messages: list[str], said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, faults = [0.0], list[str]()
    monkeypatch.setattr(untold_trigger, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    trigger = UntoldTrigger(told_s, lambda kind, detail: faults.append(f"{kind}: {detail}"))
    for message in messages:
        trigger.look(message)
        now_s[0] += 0.25
    assert [fault.startswith("trigger: the writer has a longer trigger interval") for fault in faults] == [True] * said


def test_spark_calls_the_wait_for_a_trigger_so(spark: SparkSession, tmp_path: Path) -> None:
    with jt.Shedder(latency="3 seconds", checkpoint=tmp_path / "c") as shedder:
        rows = shedder.guard(spark.readStream.format("rate").load(), row_id="value")
        shedder.start(rows.writeStream.format("noop").trigger(processingTime="1 hour"))
        deadline = time.monotonic() + 120.0
        while not shedder.status().faults and time.monotonic() < deadline:
            time.sleep(0.05)
        assert shedder.status().faults == {"trigger": 1}
        assert "; faults: trigger 1" in str(shedder.status())
