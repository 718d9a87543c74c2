"""A query over files hears from its folder how many rows have come, without being told where they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import jettison as jt
from jettison.spark.read_files import ReadFiles, folders_read

pytestmark = pytest.mark.spark

SCHEMA = "id long, zone string"
LINE = '{"id": %d, "zone": "a"}\n'


def land(folder: Path, rows: range) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(LINE % row for row in rows)
    (folder / f".{rows.start}").write_text(text)
    (folder / f".{rows.start}").rename(folder / f"{rows.start}.json")


def until(holds: Callable[[], object], what: str) -> None:
    end_s = time.monotonic() + 120.0
    while not holds():
        assert time.monotonic() < end_s, what
        time.sleep(0.05)


def test_the_folders_of_streams_are_found_and_those_of_patterns_and_other_sources_are_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = [tmp_path / "a b", tmp_path / "c"]
    for folder in folders:
        land(folder, range(3))
    first, second = (spark.readStream.schema(SCHEMA).json(str(folder)) for folder in folders)
    other = spark.readStream.format("rate").load().selectExpr("value as id", "'a' as zone")
    both = first.where("id > 1").union(second)
    found = folders_read([both, second])
    assert [path.removeprefix("file:") for path in found] == [str(folder) for folder in folders]
    assert folders_read([first, other]) == folders_read([first.union(other)]) == []
    assert folders_read([spark.readStream.schema(SCHEMA).json(f"{tmp_path}/*")]) == []
    rows = ReadFiles([both])
    assert rows() == 0.0
    land(folders[1], range(3, 50))
    assert rows() == pytest.approx(47, rel=0.05)
    assert ReadFiles([other])() is None


def test_a_running_query_says_how_far_it_is_behind_its_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[float | None] = []
    asked = ReadFiles.__call__
    monkeypatch.setattr(ReadFiles, "__call__", lambda self: answers.append(asked(self)) or answers[-1])
    folder = tmp_path / "in"
    land(folder, range(1000))
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint")
    rows = shedder.guard(spark.readStream.schema(SCHEMA).json(str(folder)), row_id="id")
    taken, seen_waiting = [], threading.Event()

    def sink(batch: DataFrame, number: int) -> None:
        taken.append(batch.count())
        if number == 1:
            seen_waiting.wait(60.0)

    writer = rows.writeStream.foreachBatch(sink)
    with shedder:
        shedder.start(writer)
        until(lambda: shedder.status().batches == 1 and shedder.status().lag_rows == 0, "the first batch")
        land(folder, range(1000, 1010))
        until(lambda: len(taken) == 2, "the second batch")
        # What comes between two answers is shared out in proportion: one must have come since the batch began.
        known = len(answers)
        until(lambda: len(answers) > known + 1, "an answer")
        land(folder, range(1010, 3000))  # while it runs
        until(lambda: (shedder.status().lag_rows or 0) >= 1500, "rows wait")
        assert "behind the source" in str(shedder.status())
        seen_waiting.set()
        until(lambda: shedder.status().batches == 3 and shedder.status().lag_rows == 0, "all were taken")
    assert shedder.status().faults == {}
    assert shedder.status().lag_rows is None
    by_batch = {one["batch_id"]: one for one in shedder.ledger.records("batch")}
    assert by_batch[1]["lag_rows"] >= 1500, "what came while it ran"
    assert by_batch[1]["lag_s"] > 0.0
    assert by_batch[2]["lag_rows"] == 0
    assert "waiting_rows" not in by_batch[1], "a folder has no offsets"


def test_a_source_that_cannot_be_asked_changes_nothing_and_one_that_fails_is_a_fault(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jettison.runtime.inquiry._TICK_S", 0.001)
    land(tmp_path / "in", range(100))

    def fails() -> float:
        raise ConnectionError("password=hunter2 was refused")

    for name, ask in (("a", lambda: None), ("b", fails)):
        shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / name, ask=ask)
        rows = shedder.guard(spark.readStream.schema(SCHEMA).json(str(tmp_path / "in")), row_id="id")
        with shedder:
            shedder.start(rows.writeStream.format("noop"))
            until(lambda s=shedder: s.status().batches == 1, "the batch")
            if ask is fails:
                until(lambda s=shedder: s.status().faults, "the fault")
        assert shedder.status().faults == ({"source": 1} if ask is fails else {})
        assert shedder.status().rows_seen == 100
        said = "".join(fault["detail"] for fault in shedder.ledger.records("fault"))
        assert "hunter2" not in said


def test_what_cannot_be_called_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="`ask` must be callable, got str"):
        jt.Shedder(latency=1, checkpoint=tmp_path, ask="rides")  # type: ignore[arg-type]
