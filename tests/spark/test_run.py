"""How runs begin and end: one at a time on a checkpoint, with their books closed however they end."""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from driver_process import start_driver
from jettison.core.plan import PLAN_BYTES, DropPlan
from jettison.core.storage import Folder
from jettison.errors import CheckpointInUse, Unsupported
from jettison.lab.bench.streams import KeepShare
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime.ledger import Totals
from jettison.runtime.schedule import NEVER_US, UNKNOWN_US
from jettison.spark.run import Run


def shedder_on(checkpoint: Path, **settings: Any) -> jt.Shedder:
    return jt.Shedder(**({"latency": "1 minute", "checkpoint": checkpoint} | settings))


@pytest.mark.long
@pytest.mark.parametrize("way", ["waits", "stops", "any", "leaves"])
def test_a_finite_run_has_all_its_batches_and_its_end_on_record(tmp_path: Path, way: str) -> None:
    (tmp_path / "in").mkdir()
    for file in range(4):
        rows = [{"id": 5000 * file + i} for i in range(5000)]
        (tmp_path / "in" / f"{file}.json").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert start_driver("finite_driver", tmp_path, str(tmp_path), way).wait(timeout=240) == 0
    ledger = jt.Ledger(tmp_path / "checkpoint" / "jettison" / "ledger")
    assert [record["batch_id"] for record in ledger.records("batch")] == [0, 1, 2, 3]
    (stop,) = ledger.records("stop")
    assert stop["error"] == ("the driver's process ended while the query ran" if way == "leaves" else None)
    totals = ledger.totals()
    assert (totals.seen, totals.estimated) == (20_000, 0)
    assert 600 < totals.kept < 1400
    assert not (tmp_path / "checkpoint" / "jettison" / "owner.json").exists()


@pytest.mark.since(4, 1)
def test_real_time_mode_is_refused_with_the_reason_and_the_books_are_closed(
    spark: SparkSession, tmp_path: Path
) -> None:
    shedder = shedder_on(tmp_path / "c")
    rows = shedder.guard(spark.readStream.format("rate").load(), row_id="value")
    writer = rows.writeStream.format("console").outputMode("update").trigger(realTime="5 seconds")
    with pytest.raises(Unsupported, match=r"must run in micro-batches.*REAL_TIME_MODE.*Hint: leave `realTime` out"):
        shedder.start(writer).awaitTermination(60)
    (stop,) = shedder.ledger.records("stop")
    assert stop["error"]
    assert not (tmp_path / "c" / "jettison" / "owner.json").exists()


def test_continuous_processing_is_refused_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    shedder = shedder_on(tmp_path / "c")
    rows = shedder.guard(spark.readStream.format("rate").load(), row_id="value")
    with pytest.raises(Unsupported, match=r"must run in micro-batches, got continuous processing.*leave `continuous`"):
        shedder.start(rows.writeStream.format("noop").trigger(continuous="1 second"))


def test_a_query_that_fails_closes_its_books_and_can_be_started_again_at_once(source, numbered, tmp_path: Path) -> None:
    def fail(rows: Any, batch: int) -> None:
        rows.count()
        if batch == 1:
            raise ValueError("jdbc:x://ann:hunter2@db is down")

    for number in range(2):
        source.land(numbered(1000 * number, 1000 * number + 1000))
    shedder = shedder_on(tmp_path / "c", policy=KeepShare(0.5))
    query = shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.foreachBatch(fail))
    with pytest.raises(Exception, match="is down"):
        query.awaitTermination()
    status = shedder.status()
    assert (status.mode, status.batches) == ("ended", 1)
    assert str(status).startswith("ended by an error (ValueError: jdbc:x://***@db is down), ")
    assert "is down" in str(status.error)
    (stop,) = shedder.ledger.records("stop")
    assert "is down" in stop["error"]
    assert "hunter2" not in stop["error"]
    again = shedder_on(tmp_path / "c", policy=KeepShare(0.5))
    with again:
        rows = again.guard(source.stream(), row_id="id").writeStream.foreachBatch(lambda rows, batch: rows.count())
        again.start(rows).processAllAvailable()
        assert again.status().mode == "shedding"
    assert again.status().mode == "ended"
    assert [record["batch_id"] for record in again.ledger.records("batch")] == [0, 1]
    assert again.ledger.totals().seen == 2000
    assert again.ledger.gaps() == []


def test_a_query_that_has_just_failed_is_shown_with_its_error(
    source, numbered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anybody has waited for it, and before its books are closed."""

    def fail(rows: Any, batch: int) -> None:
        raise ValueError("it broke")

    source.land(numbered(0, 10))
    shedder = shedder_on(tmp_path / "c")
    with monkeypatch.context() as unnoticed:
        unnoticed.setattr(Run, "close", lambda run, error=None: None)
        query = shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.foreachBatch(fail))
        while query.isActive:
            time.sleep(0.05)
        assert str(shedder.status()).startswith("ended by an error (ValueError: it broke), ")
    shedder.close()


def test_whoever_closes_second_waits_for_the_first() -> None:
    """A program may end after either; what closes on a thread of its own would end with it."""
    begun, go_on, done = threading.Event(), threading.Event(), []

    def close(error: str | None) -> None:
        begun.set()
        assert go_on.wait(10)
        done.append(error)

    nobody = SimpleNamespace(streams=None, facts=None, close=close, release=lambda: None)
    run = Run(nobody, "nowhere", nobody, {}, {}, [], nobody, nobody)  # type: ignore[arg-type]
    first = threading.Thread(target=run.close, args=("it broke",))
    second = threading.Thread(target=run.close)
    first.start()
    assert begun.wait(10)
    second.start()
    second.join(0.2)
    assert second.is_alive()
    go_on.set()
    second.join(10)
    assert (second.is_alive(), done, run.error) == (False, ["it broke"], "it broke")
    first.join()


class Large(KeepShare):
    """Needs a plan file of another size."""

    plan_bytes = 2 * PLAN_BYTES


def test_a_second_query_on_a_checkpoint_is_refused_before_it_writes_anything(source, numbered, tmp_path: Path) -> None:
    source.land(numbered(0, 1000))
    first = shedder_on(tmp_path / "c", policy=KeepShare(0.9))
    with first:
        query = first.start(first.guard(source.stream(), row_id="id").writeStream.format("noop"))
        query.processAllAvailable()
        home = tmp_path / "c" / "jettison"
        before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file() and path.name != "owner.json"}
        with pytest.raises(CheckpointInUse, match="holds"):
            shedder_on(tmp_path / "c", policy=Large(0.2)).guard(source.stream(), row_id="id")
        assert {path: path.read_bytes() for path in before} == before
        early = shedder_on(tmp_path / "other")
        early.guard(source.stream(), row_id="id")
        early._assembly.owner = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c")._assembly.owner
        with pytest.raises(CheckpointInUse, match="holds"):
            early.start(early.guard(source.stream(), row_id="id").writeStream.format("noop"))
        early.close()
    assert first.ledger.totals().batches == 1


def test_a_run_whose_checkpoint_was_taken_over_writes_nothing_more(source, numbered, tmp_path: Path) -> None:
    shedder = shedder_on(tmp_path / "c")
    shedder._assembly.owner._beat_s = 0.05
    query = shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.format("noop"))
    home = Folder(tmp_path / "c") / "jettison"
    home.replace("owner.json", b'{"run": "theirs", "host": "elsewhere", "pid": 7}')
    deadline = time.monotonic() + 120
    while not list(shedder.ledger.records("stop")) and time.monotonic() < deadline:
        time.sleep(0.05)
    (stop,) = shedder.ledger.records("stop")
    assert stop["error"] == "process 7 on 'elsewhere' has taken over the checkpoint"
    assert stop["faults"] == {"owner": 1}
    query.stop()
    assert json.loads(home.read("owner.json") or b"{}")["run"] == "theirs"


@pytest.mark.long
def test_restarts_leave_no_thread_behind(tmp_path: Path) -> None:
    """In a process of its own: a start calls the listeners of all other queries, on a thread that Python keeps."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text('{"id": 1}\n')
    assert start_driver("restart_driver", tmp_path, str(tmp_path)).wait(timeout=240) == 0


@pytest.mark.long
def test_short_batches_leave_few_more_threads_in_the_jvm_than_those_of_a_plain_query(tmp_path: Path) -> None:
    """An adaptive plan has pools that Spark lets grow by a thread for every batch: each idles for a minute."""
    batches, pool = 80, 16
    (tmp_path / "in").mkdir()
    for batch in range(batches):
        (tmp_path / "in" / f"{batch:03d}.json").write_text(json.dumps({"id": batch}) + "\n")
    assert start_driver("thread_driver", tmp_path, str(tmp_path)).wait(timeout=600) == 0
    threads = json.loads((tmp_path / "threads.json").read_text())
    plain, guarded = threads["plain"], threads["guarded"]
    assert jt.Ledger(tmp_path / "guarded" / "jettison" / "ledger").totals().batches == batches
    assert guarded.get("broadcast-exchange", 0) <= pool, guarded
    assert guarded.get("ResultQueryStageExecution", 0) <= pool, guarded
    assert sum(guarded.values()) <= 1.4 * sum(plain.values()), (plain, guarded)


def test_a_guarded_query_that_its_shedder_did_not_start_is_told_of_once(
    spark: SparkSession, source, numbered, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source.land(numbered(0, 10))
    other, shedder = shedder_on(tmp_path / "other"), shedder_on(tmp_path / "c")
    with caplog.at_level(logging.WARNING, logger="jettison"), other:
        rows = shedder.guard(source.stream(), row_id="id")
        # Another shedder's query reads a plan under the same name, and is started as it should be.
        other.start(other.guard(source.stream(), row_id="id").writeStream.format("noop")).processAllAvailable()
        time.sleep(0.5)
        assert not [record for record in caplog.records if "not started by its shedder" in record.message]
        query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "plain")).start()
        query.processAllAvailable()
        source.land(numbered(10, 20))
        query.processAllAvailable()
        deadline = time.monotonic() + 120
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.05)
        query.stop()
        shedder.close()
    (warning,) = [record.getMessage() for record in caplog.records if "not started by its shedder" in record.message]
    assert "shedder.start(writer)" in warning


@pytest.mark.parametrize("name", ["a[b]", "{c}", "d*", "e?f", "g\\h"])
def test_a_path_with_patterns_in_it_is_read_by_spark_as_it_stands(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    folder = Folder(tmp_path / name) / "jettison"
    (Folder(tmp_path / name.strip("[]{}*?\\")) / "jettison").replace("plan", b"not this one")
    folder.replace("plan", b"this one")
    assert [row.value for row in spark.read.text(f"{folder.glob_escaped}/plan").collect()] == ["this one"]
    assert [
        row.value
        for row in spark.read.text(f"{Folder(f'file://{tmp_path}/{name}').glob_escaped}/jettison/plan").collect()
    ] == ["this one"]


@pytest.mark.parametrize(
    "name",
    ["a[b]{c}d*e?f\\g", *(pytest.param(each, marks=pytest.mark.long) for each in ("[b]", "{c,d}", "d*", "e?", "g\\h"))],
)
def test_a_query_whose_checkpoint_has_patterns_in_its_path_drops_rows_and_counts_them(
    source, numbered, tmp_path: Path, name: str
) -> None:
    """A plan that is not found would keep every row."""
    kept: dict[int, set[int]] = {}

    def write(rows: Any, batch: int) -> None:
        kept[batch] = {row.id for row in rows.collect()}

    for number in range(3):
        source.land(numbered(1000 * number, 1000 * number + 1000))
    shedder = shedder_on(tmp_path / name, policy=KeepShare(0.3))
    with shedder:
        shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.foreachBatch(write)).processAllAvailable()
    points = {batch["batch_id"]: batch["points"]["rows"] for batch in shedder.ledger.records("batch")}
    assert {batch: (point["seen"], point["kept"]) for batch, point in points.items()} == {
        batch: (1000, len(ids)) for batch, ids in kept.items()
    }
    assert len(points) == 3
    assert all(point["exact"] for point in points.values())
    assert 800 < sum(map(len, kept.values())) < 1000
    assert shedder.status().faults == {}
    assert {path.name for path in tmp_path.iterdir()} == {"in", name}


def test_the_status_names_the_share_of_late_rows(source, numbered, tmp_path: Path) -> None:
    shedder = shedder_on(tmp_path / "c", latency="5 seconds")
    with shedder:
        shedder.start(shedder.guard(source.stream(), row_id="id", arrival="at").writeStream.format("noop"))
        shedder._run.pilot.plan = DropPlan(9, {"rows": RandomDrop(1.0, 0.05, 3.0)})  # type: ignore[union-attr]
        status = shedder.status()
    assert (status.mode, status.keep_fraction) == ("thinning late rows", {"rows": 1.0})
    assert status.late_keep_fraction == {"rows": 0.05}


def test_the_books_of_a_query_that_runs_are_not_closed(source, numbered, tmp_path: Path) -> None:
    source.land(numbered(0, 100))
    shedder = shedder_on(tmp_path / "c")
    assert shedder.close(), "nothing was started"
    query = shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.format("noop"))
    query.processAllAvailable()
    assert not shedder.await_books("0.3 seconds")
    assert query.isActive
    assert shedder.close()
    assert not query.isActive
    assert shedder.ledger.totals() == Totals(1, 100, 100)


def test_a_second_query_over_guarded_rows_leaves_no_answer_certain(
    source, numbered, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source.land(numbered(0, 10))
    shedder = shedder_on(tmp_path / "c")
    with caplog.at_level(logging.WARNING, logger="jettison"), shedder:
        rows = shedder.guard(source.stream(), row_id="id")
        shedder.start(rows.writeStream.format("noop")).processAllAvailable()
        assert shedder._run is not None
        assert shedder._run.pilot.doubts.otherwise_us == NEVER_US
        query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "second")).start()
        query.processAllAvailable()
        source.land(numbered(10, 20))
        query.processAllAvailable()
        deadline = time.monotonic() + 120
        while not shedder.status().faults and time.monotonic() < deadline:
            time.sleep(0.05)
        query.stop()
        assert shedder.status().faults == {"guard": 1}
        assert shedder._run.pilot.doubts.otherwise_us == UNKNOWN_US
    (warning,) = [record.getMessage() for record in caplog.records if "not started by its shedder" in record.message]
    assert "not counted" in warning
