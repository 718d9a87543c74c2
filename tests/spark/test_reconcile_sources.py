"""What reconciliation takes from its sources is what the batches took, or it is lost; on real Spark."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

import jettison as jt
from jettison.core import storage
from jettison.errors import InvalidInput, InvalidSetting
from jettison.lab.bench.streams import KeepShare
from jettison.runtime.ledger import Ledger
from jettison.settle import working_hours
from jettison.settle.audited import audit
from jettison.settle.settle_command import run_reconcile, told
from jettison.settle.settled_record import load, stretches, summary
from jettison.settle.settlement import Settlement, reconcile
from jettison.settle.stretch import Reading
from told_stream import SCHEMA, Told

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]


def answers(rows: DataFrame) -> DataFrame:
    by_window = rows.withWatermark("at", "10 seconds").groupBy(F.window("at", "10 seconds"), "key")
    return by_window.agg(jt.count(window="window").alias("n"))


def source(reader: Any) -> Any:
    return reader.format("json").schema(SCHEMA).option("maxFilesPerTrigger", 1)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stream")


@pytest.fixture
def shed(spark: SparkSession, stream: Path, tmp_path: Path) -> Path:
    """A folder of its own with the files and the checkpoint of a query that has shed one batch; made once."""
    if not (stream / "checkpoint").exists():
        with Told(spark, stream, answers, empty_batches=False) as live:
            live.batch(("a", "00:00:01"), ("b", "00:00:02"))
            live.batch(("a", "00:00:12"), ("c", "00:00:03"), keep=False)
            live.batch(("b", "00:00:30"), ("a", "00:00:13"))
            live.batch(("a", "00:01:00"))
            live.batch(("b", "00:02:00"))
    for name in ("checkpoint", "in"):
        shutil.copytree(stream / name, tmp_path / name)
    for log in (tmp_path / "checkpoint" / "sources" / "0").iterdir():
        if not log.name.startswith("."):
            log.write_text(log.read_text().replace(str(stream), str(tmp_path)))
    return tmp_path


def settle(spark: SparkSession, folder: Path, query: Any = answers, of: Any = source, **options: Any) -> Settlement:
    return reconcile(spark, folder / "checkpoint", query, folder / "settled", sources=of, **options)


def settled(spark: SparkSession, folder: Path) -> dict[tuple[str, str], int]:
    rows = spark.read.parquet(str(folder / "settled")).collect()
    return {(row["key"], f"{row['window']['start']:%H:%M:%S}"): row["n"]["value"] for row in rows}


TRUE = {("a", "00:00:00"): 1, ("b", "00:00:00"): 1, ("c", "00:00:00"): 1, ("a", "00:00:10"): 2}


def test_settled(spark: SparkSession, shed: Path) -> None:
    said: list[str] = []
    done = settle(spark, shed, progress=lambda doing, rows, of: said.append(doing))
    assert (done.settled, done.lost) == (2, ())
    assert settled(spark, shed) == TRUE
    left = r"settling windows, about [\d,]+ s left"
    assert any(re.fullmatch(left, words) for words in said), "also of a single part, whose bar does not move"


@pytest.fixture
def unlike(spark: SparkSession) -> Iterator[Callable[[str, DataFrame], str]]:
    """Makes a table of the catalog, with the columns of some answers, in no Delta format."""
    made = list[str]()

    def table(name: str, like: DataFrame) -> str:
        like.write.saveAsTable(name, format="parquet")
        made.append(name)
        return name

    yield table
    for name in made:
        spark.sql(f"drop table if exists {name}")


def test_a_table_of_another_format_is_not_merged_into(
    spark: SparkSession, shed: Path, unlike: Callable[[str, DataFrame], str]
) -> None:
    """Spark would make a new table of it, which holds the settled windows alone."""
    given = answers(spark.read.schema(SCHEMA).json(str(shed / "in")).withColumn("jt_weight", F.lit(1.0)))
    name = unlike("jettison_given", given)
    rows = spark.table(name).count()
    with pytest.raises(InvalidInput, match="`jettison_given` must be a Delta table, got parquet"):
        settle(spark, shed, merge=name)
    assert spark.table(name).count() == rows
    given.createOrReplaceTempView("jettison_view")
    with pytest.raises(InvalidInput, match="must be a Delta table, got a view"):
        settle(spark, shed, merge="jettison_view")
    spark.catalog.dropTempView("jettison_view")
    with pytest.raises(InvalidInput, match="must be a Delta table"):
        settle(spark, shed, merge="jettison_nothing")


@pytest.mark.long
def test_columns_that_folders_name_have_their_values(spark: SparkSession, tmp_path: Path) -> None:
    """As they have in a stream, which knows from which folder on folders are named after columns."""
    schema, rows = f"{SCHEMA}, day string", tmp_path / "other_=x" / "rides"
    times = ["00:00:01", "00:00:12", "00:00:13", "00:01:00", "00:02:00"]
    for number, at in enumerate(times):
        line = {"id": number, "key": "a", "at": f"2026-01-01T{at}Z"}
        path = rows / f"day={'mon' if number % 2 else 'tue'}" / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(line))
        os.utime(path, (1000 + number, 1000 + number))

    def by_day(rows: DataFrame) -> DataFrame:
        by_window = rows.withWatermark("at", "10 seconds").groupBy(F.window("at", "10 seconds"), "day")
        return by_window.agg(jt.count(window="window").alias("n"))

    def of(reader: Any) -> Any:
        return reader.format("json").schema(schema).option("maxFilesPerTrigger", 1)

    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=KeepShare(0.0))
    last = F.col("at") >= "2026-01-01 00:01:00"
    kept = shedder.guard(of(spark.readStream).load(str(rows)), row_id="id", protect=last)
    writer = by_day(kept).writeStream.format("parquet").option("path", str(tmp_path / "out"))
    shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    assert shedder.await_books()
    assert shedder.ledger.totals().dropped > 0
    settle(spark, tmp_path, by_day, of)
    found = spark.read.parquet(str(tmp_path / "settled")).collect()
    every = spark.read.schema(schema).json(str(rows)).withColumn("jt_weight", F.lit(1.0))
    true = {(row["window"]["start"], row["day"]): row["n"]["value"] for row in by_day(every).collect()}
    assert found
    assert all(true[row["window"]["start"], row["day"]] == row["n"]["value"] for row in found)


def file_of(folder: Path, number: int) -> Path:
    return folder / "in" / f"{number:04d}.json"


def forget(folder: Path, *batches: int) -> None:
    """Take batches out of the ledger, as if the driver had died between their commits and their records."""
    for file in (folder / "checkpoint" / "jettison" / "ledger").glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        kept = [line for line in lines if line["record"] != "batch" or line["batch_id"] not in batches]
        file.write_text("".join(json.dumps(line) + "\n" for line in kept))


def rewrite(file: Path, change: Callable[[str], str]) -> None:
    """Put something else in the place of a file, a minute later."""
    at_s = file.stat().st_mtime
    file.write_text(change(file.read_text()))
    os.utime(file, (at_s + 60, at_s + 60))


@pytest.mark.parametrize("is_on_record", [True, False])
def test_a_file_that_was_changed_is_lost_though_it_has_as_many_rows(
    spark: SparkSession, shed: Path, is_on_record: bool
) -> None:
    """Also where a batch that is not on record, of which nobody knows how many rows it took, is read with it."""
    if not is_on_record:
        forget(shed, 0)
    rewrite(file_of(shed, 1), lambda text: text.replace('"c"', '"d"'))
    done = settle(spark, shed)
    assert [lost.reason.endswith("0001.json was changed since") for lost in done.lost] == [True]
    assert done.settled == 0


def test_a_file_that_goes_between_two_parts_is_not_taken_for_one_that_is_there(
    spark: SparkSession, shed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other rows are put in the place of a file once the first windows are settled, or while they are."""
    rounds: list[str] = []

    def progress(doing: str, rows: int, of: int) -> None:
        rounds.append(doing.partition(",")[0])
        if rounds.count("settling windows") == 2:
            rewrite(file_of(shed, 2), lambda text: text.replace('"a"', '"b"'))

    done = settle(spark, shed, part_rows=1, progress=progress)
    assert (done.settled, done.lost_windows) == (1, 1)
    assert "0002.json was changed since" in done.lost[0].reason
    assert settled(spark, shed) == {key: n for key, n in TRUE.items() if key[1] == "00:00:00"}


def test_a_file_that_is_changed_while_it_is_read_is_lost(spark: SparkSession, shed: Path) -> None:
    settle(spark, shed, dry_run=True)

    def query(rows: DataFrame) -> DataFrame:
        if not rows.isStreaming and not changed:
            changed.append(True)
            rewrite(file_of(shed, 1), lambda text: text.replace('"c"', '"d"'))
        return answers(rows)

    changed: list[bool] = []
    done = settle(spark, shed, query)
    assert done.settled == 0
    assert done.lost_windows == 2


def test_answers_are_not_seen_before_their_rows_are_proven(
    spark: SparkSession, shed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads no folder whose name begins with `_`; what a run leaves there the next one removes."""
    to, seen = shed / "settled", list[list[str]]()

    def check(self: Reading) -> int:
        seen.append([path.parent.name for path in to.rglob("*.parquet")])
        if not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        return checked(self)

    settle(spark, shed, dry_run=True)
    stopped, checked = list[bool](), Reading.check
    monkeypatch.setattr(Reading, "check", check)
    with pytest.raises(KeyboardInterrupt):
        settle(spark, shed)
    assert seen.pop(0) == ["settlement=1"]
    assert not list(to.glob("settlement=*"))
    assert settle(spark, shed).settled == 2
    assert seen == [["settlement=2"]], "what was left there is gone"
    assert [path.parent for path in to.rglob("*.parquet")] == [to / "settlement=2"]
    assert settled(spark, shed) == TRUE


def test_rows_of_a_batch_that_is_not_on_record_count_too(spark: SparkSession, shed: Path) -> None:
    forget(shed, 1)
    done = settle(spark, shed)
    assert done.lost == ()
    assert {key: n for key, n in settled(spark, shed).items() if key in TRUE} == TRUE


def test_a_folder_that_was_empty_in_a_batch_has_no_rows(spark: SparkSession, shed: Path) -> None:
    """Spark says null where the source ends, before it has found a file."""
    for file in (shed / "checkpoint" / "jettison" / "ledger").glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            if line["record"] == "batch":
                line["taken"]["sources"].append({"rows": 0, "start": None, "end": None})
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (shed / "nothing").mkdir()

    def both(rows: DataFrame, more: DataFrame) -> DataFrame:
        return answers(rows.unionByName(more))

    done = reconcile(spark, shed / "checkpoint", both, shed / "settled", sources=[source, source])
    assert (done.settled, done.lost) == (2, ())
    assert settled(spark, shed) == TRUE


def of_key(rows: DataFrame, key: str) -> DataFrame:
    return answers(rows.where(f"key = '{key}'"))


@pytest.mark.long
def test_of_a_query_with_several_watermarks_each_output_is_settled(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of a batch lie at other times in one than in the other, and Spark tells the times of one."""
    both = lambda rows: of_key(rows, "a").unionByName(of_key(rows, "x"))  # noqa: E731
    with Told(spark, tmp_path, both, empty_batches=False) as live:
        live.batch(("a", "00:00:01"), ("x", "00:00:31"))
        live.batch(("a", "00:00:02"), ("x", "00:00:32"), keep=False)
        live.batch(("a", "00:03:00"), ("x", "00:03:01"))
        live.batch(("a", "00:03:02"), ("x", "00:03:02"))
    true = {"a": ("00:00:00", 2), "x": ("00:00:30", 2)}
    for key, (start, rows) in true.items():
        shutil.copytree(tmp_path / "checkpoint", tmp_path / key / "checkpoint")
        settle(spark, tmp_path / key, lambda rows, key=key: of_key(rows, key))  # type: ignore[misc]
        assert settled(spark, tmp_path / key)[key, start] == rows


def test_exact_answers_are_made_with_the_live_sessions_settings(spark: SparkSession, shed: Path) -> None:
    """Hours of the day are those of the time zone in which the query ran; the command takes it, a program is told."""
    zone = "spark.sql.session.timeZone"
    start = Ledger(storage.home(shed / "checkpoint") / "ledger").last("start")
    assert start is not None
    assert start["session"] == {
        zone: "UTC",
        "spark.sql.ansi.enabled": spark.conf.get("spark.sql.ansi.enabled"),
        "spark.sql.caseSensitive": "false",
        "spark.sql.legacy.timeParserPolicy": spark.conf.get("spark.sql.legacy.timeParserPolicy"),
    }
    for file in (shed / "checkpoint" / "jettison" / "ledger").glob("*.jsonl"):
        file.write_text(file.read_text().replace('"UTC"', '"Asia/Tokyo"'))

    def by_hour(rows: DataFrame) -> DataFrame:
        by_window = rows.withWatermark("at", "10 seconds").groupBy(F.window("at", "10 seconds"), F.hour("at"))
        return by_window.agg(jt.count(window="window").alias("n"))

    with pytest.raises(InvalidInput, match=f"`{zone}` must be 'Asia/Tokyo', as in the live query"):
        settle(spark, shed, by_hour)
    said = Console(file=io.StringIO(), width=200)
    checkpoint, to = str(shed / "checkpoint"), str(shed / "settled")
    done = run_reconcile(said, contextlib.nullcontext(spark), checkpoint, by_hour, to, [source])
    assert done.settled == 2
    assert {row["hour(at)"] for row in spark.read.parquet(to).collect()} == {9}
    assert spark.conf.get(zone) == "UTC", "as it was before"


def test_what_was_lost_stays_so_until_it_has_been_tried_again(
    spark: SparkSession, shed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, file = storage.home(shed / "checkpoint"), file_of(shed, 1)
    settle(spark, shed, dry_run=True)
    file.rename(shed / "elsewhere")
    assert settle(spark, shed).lost_windows == 2
    (shed / "elsewhere").rename(file)
    with monkeypatch.context() as patched:
        patched.setattr(working_hours, "sheds", lambda home, now_s: True)
        done = settle(spark, shed)
    assert (done.stopped, done.lost_windows) == ("the live query sheds", 2)
    assert len(load(home).lost_windows) == 2
    assert settle(spark, shed).lost == load(home).lost == ()


@pytest.mark.long
def test_a_number_of_a_part_is_given_once_and_only_confirmed_parts_are_audited(spark: SparkSession, shed: Path) -> None:
    """Whoever read a part that was taken back must not take the next one for it."""
    home, to = storage.home(shed / "checkpoint"), shed / "settled"
    settle(spark, shed, dry_run=True)

    def query(rows: DataFrame) -> DataFrame:
        if not rows.isStreaming and file_of(shed, 1).exists():
            file_of(shed, 1).rename(shed / "elsewhere")
        return answers(rows)

    assert settle(spark, shed, query).settled == 0
    taken_back = load(home).numbered
    assert taken_back > 0
    (shed / "elsewhere").rename(file_of(shed, 1))
    assert settle(spark, shed).settled == 2
    assert min(part.number for part in load(home).parts) > taken_back
    given = spark.read.parquet(str(to)).drop("settlement", "settled_at")
    before = audit(spark, shed / "checkpoint", given, keys=["key"])
    shutil.copytree(to / f"settlement={load(home).parts[0].number}", to / "settlement=99")
    assert audit(spark, shed / "checkpoint", given.limit(4), keys=["key"])[0].compared == before[0].compared


def test_batches_that_ended_after_the_last_record_are_open(spark: SparkSession, shed: Path) -> None:
    assert settle(spark, shed).unrecorded is None
    forget(shed, 3, 4)
    done = settle(spark, shed)
    assert done.unrecorded == (3, 4)
    assert "open: batches 3 to 4, which are not on record until the query has run again" in told(done, dry_run=False)
    record = load(storage.home(shed / "checkpoint"))
    assert "batches 3 to 4 not on record yet" in str(summary(record))
    assert ("open", "unknown", "unknown", "batches 3 to 4 not on record yet") in list(stretches(record, 9))


def test_a_relative_path_is_where_it_was(spark: SparkSession, shed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shed)
    done = reconcile(spark, shed / "checkpoint", answers, "settled", sources=source)
    assert done.settled == 2
    monkeypatch.chdir(shed / "in")
    assert load(storage.home(shed / "checkpoint")).to == str(shed / "settled")
    with pytest.raises(InvalidSetting, match="where earlier answers lie"):
        reconcile(spark, shed / "checkpoint", answers, "settled", sources=source)
    assert settled(spark, shed) == TRUE
