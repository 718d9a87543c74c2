"""A guarded query whose checkpoint lies on an object store: plan, ledger and state are there, and hold as on a disk."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.plan import DropPlan
from jettison.core.storage import Folder, home, newest_batch_us, was_used
from jettison.errors import CheckpointInUse
from jettison.lab.bench.streams import KeepShare
from jettison.runtime.owner import Owner
from jettison.runtime.plan_file import PLAN_FILE, SECOND_FILE, decode
from jettison.runtime.schedule import Schedule
from jettison.spark.channel import Channel

pytestmark = pytest.mark.spark

READS = 12
ROWS = 1000


def test_what_is_replaced_listed_appended_and_removed_is_as_on_a_disk(checkpoint: str) -> None:
    folder = Folder(checkpoint) / "jettison"
    assert folder.read("plan") is None
    assert folder.names() == []
    folder.replace("plan", b"old and longer")
    folder.replace("plan", b"new")
    assert folder.read("plan") == b"new"
    assert folder.read("plan", 1) == b"ew"
    assert folder.sizes() == {"plan": 3}
    for number in range(3):
        (folder / "ledger").append("run-000001.jsonl", b"%d\n" % number)
    pieces = (folder / "ledger").names()
    assert [(folder / "ledger").read(name) for name in pieces] == [b"0\n", b"1\n", b"2\n"]
    assert folder.names() == ["plan"], "files only"
    folder.delete("plan")
    folder.delete("plan")
    assert folder.names() == []


def test_a_batch_finds_a_whole_plan_while_one_is_replaced(spark: SparkSession, checkpoint: str) -> None:
    folder = home(checkpoint)
    channel = Channel(folder, lease_s=1000.0)
    channel.prepare()
    channel.read_cost_s(spark)
    for number in (1, 2, 3):
        channel.publish(Schedule.of(DropPlan(number)))
    on_file = {name: decode(folder.read(name) or b"").newest.version for name in (PLAN_FILE, SECOND_FILE)}
    assert on_file == {PLAN_FILE: 3, SECOND_FILE: 2}, "in turn"
    alone, both = (
        channel._files_read(spark).where(F.input_file_name().endswith("/plan")),
        channel._newest_content(spark),
    )
    channel._files = (PLAN_FILE,)  # from now on the same one again and again
    version, done = 3, threading.Event()

    def replace() -> None:
        nonlocal version
        while not done.is_set():
            version += 1
            channel.publish(Schedule.of(DropPlan(version)))

    replacing = threading.Thread(target=replace)
    replacing.start()
    try:
        assert not all(alone.collect() for _ in range(READS)), "without the other file a batch would be without a plan"
        for _ in range(READS):
            (row,) = both.collect()
            assert 2 <= decode(bytes(row.content)).newest.version <= version + 1
    finally:
        done.set()
        replacing.join()
    (row,) = both.collect()
    assert decode(bytes(row.content)).newest.version == version


def land(folder: Path, number: int) -> None:
    rows = [{"id": ROWS * number + i, "time": f"2026-01-01T00:00:{20 * number:02d}"} for i in range(ROWS)]
    (folder / f"{number}.json").write_text("\n".join(map(json.dumps, rows)) + "\n")


def run(spark: SparkSession, checkpoint: str, tmp_path: Path) -> tuple[jt.Shedder, list[Any]]:
    stream = spark.readStream.schema("id long, time timestamp").option("maxFilesPerTrigger", 1)
    with jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=KeepShare(0.3)) as shedder:
        kept = shedder.guard(stream.json(str(tmp_path / "in")).withWatermark("time", "1 second"), row_id="id")
        counts = kept.groupBy(F.window("time", "10 seconds")).agg(jt.count().alias("rows"))
        writer = counts.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    return shedder, spark.read.parquet(str(tmp_path / "out")).orderBy("window").collect()


def test_a_query_is_shed_recorded_and_goes_on_after_a_restart(
    spark: SparkSession, checkpoint: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    land(tmp_path / "in", 0)
    land(tmp_path / "in", 1)
    run(spark, checkpoint, tmp_path)
    land(tmp_path / "in", 2)
    shedder, answers = run(spark, checkpoint, tmp_path)
    assert shedder.status().faults == {}
    batches = {record["batch_id"]: record["points"]["rows"] for record in shedder.ledger.records("batch")}
    assert [record["record"] for record in shedder.ledger.records() if record["record"] in ("start", "stop")] == [
        *("start", "stop") * 2
    ]
    assert shedder.ledger.gaps() == []
    kept = [batch["kept"] for batch in batches.values() if batch["seen"]]
    assert [batch["seen"] for batch in batches.values() if batch["seen"]] == [ROWS] * 3
    assert all(batch["exact"] for batch in batches.values())
    assert all(0.2 < each / ROWS < 0.4 for each in kept)
    assert [answer.rows.kept for answer in answers] == kept[: len(answers)]
    assert len(answers) == 2, "the last window is still open"
    plans = [record["version"] for record in shedder.ledger.records("plan")]
    assert plans == sorted(set(plans))
    assert was_used(home(checkpoint))
    assert newest_batch_us(home(checkpoint))


def test_a_second_driver_is_refused(checkpoint: str) -> None:
    first, second = (Owner(home(checkpoint), beat_s=0.2) for _ in range(2))
    first.claim(lambda _: None)
    try:
        with pytest.raises(CheckpointInUse):
            second.refuse_second()
    finally:
        first.release()
    second.refuse_second()
