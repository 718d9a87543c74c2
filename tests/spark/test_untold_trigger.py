"""A trigger interval that nobody told the shedder of is noticed once, and short waits are none."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.spark import untold_trigger
from jettison.spark.untold_trigger import UntoldTrigger

LOOK_S, EPOCH_S = 0.25, 1_700_000_000.0
NEXT, DATA = "Waiting for next trigger", "Waiting for data to arrive"


@dataclass
class Played:
    """A query of some trigger interval, looked at every quarter of a second."""

    now_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    def look(self, told_s: float, messages: Iterable[tuple[str, bool, float | None]]) -> list[str]:
        trigger = UntoldTrigger(told_s, lambda kind, detail: self.faults.append(f"{kind}: {detail}"))
        for message, had_rows, ended_s in messages:
            trigger.look(message, had_rows, lambda ended_s=ended_s: ended_s)
            self.now_s += LOOK_S
        return self.faults


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    played = Played()
    clock = SimpleNamespace(monotonic=lambda: played.now_s, time=lambda: EPOCH_S + played.now_s)
    monkeypatch.setattr(untold_trigger, "time", clock)
    return played


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
    told_s: float, messages: list[str], said: bool, played: Played
) -> None:
    faults = played.look(told_s, ((message, True, None) for message in messages))
    assert [fault.startswith("trigger: the writer has a longer trigger interval") for fault in faults] == [True] * said


@pytest.mark.parametrize(
    ("told_s", "interval_s", "said"),
    [(1.0, 1.0, False), (2.0, 2.0, False), (0.0, 0.9, False), (1.0, 2.5, True), (1.0, 3.5, True), (0.0, 1.6, True)],
)
def test_batches_shorter_than_the_time_between_two_looks_end_the_wait(
    told_s: float, interval_s: float, said: bool, played: Played
) -> None:
    looks = (0.1 + number * LOOK_S for number in range(240))  # each misses every batch, which takes 20 ms
    ends = ((NEXT, True, EPOCH_S + at_s // interval_s * interval_s - 0.08) for at_s in looks)
    assert bool(played.look(told_s, ends)) is said


def test_a_trigger_that_finds_no_rows_is_none_that_was_not_told_of(played: Played) -> None:
    assert not played.look(1.0, ((NEXT, False, EPOCH_S) for _ in range(240)))


def test_spark_calls_the_wait_for_a_trigger_so(spark: SparkSession, tmp_path: Path) -> None:
    with jt.Shedder(latency="3 seconds", checkpoint=tmp_path / "c") as shedder:
        rows = shedder.guard(spark.readStream.format("rate").load(), row_id="value")
        shedder.start(rows.writeStream.format("noop").trigger(processingTime="1 hour"))
        deadline = time.monotonic() + 120.0
        while not shedder.status().faults and time.monotonic() < deadline:
            time.sleep(0.05)
        assert shedder.status().faults == {"trigger": 1}
        assert "; faults: trigger 1" in str(shedder.status())


@pytest.mark.parametrize("comes", ["rows", pytest.param("nothing", marks=pytest.mark.long)])
def test_a_trigger_that_was_told_of_is_no_fault_however_short_its_batches(
    spark: SparkSession, tmp_path: Path, comes: str
) -> None:
    (tmp_path / "empty").mkdir()
    stream = spark.readStream
    rows = stream.format("rate").load() if comes == "rows" else stream.schema("value long").json(f"{tmp_path}/empty")
    with jt.Shedder(latency="3 seconds", trigger="1 second", checkpoint=tmp_path / "c") as shedder:
        guarded = shedder.guard(rows, row_id="value")
        query = shedder.start(guarded.writeStream.format("noop").trigger(processingTime="1 second"))
        query.awaitTermination(8)
        assert "trigger" not in shedder.status().faults
