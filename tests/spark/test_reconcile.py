"""What is settled is exact: the answers of every window that lost rows, from the files, on real Spark."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from typer.testing import CliRunner

import jettison as jt
from doc_blocks import typed, words
from driver_process import kill_when, start_driver
from jettison.cli import app
from jettison.core import storage
from jettison.errors import CheckpointInUse, InvalidSetting, Unsupported
from jettison.lab.bench.scripted import LATE_EVERY, keep, land, land_end, scripted
from jettison.lab.bench.scripted_queries import START, Order
from jettison.page.command import run_top
from jettison.pipeline.document import parse
from jettison.policies.network.network_drop import NetworkDrop
from jettison.runtime.owner import Owner
from jettison.settle import settlement as settling
from jettison.settle import working_hours
from jettison.settle.audited import audit
from jettison.settle.settle_command import named_query, run_audit, run_reconcile
from jettison.settle.settled_record import load, summary
from jettison.settle.settlement import Settlement, reconcile
from jettison.spark import session
from jettison.spark.network_rows import parquet_sink, union_all
from jettison.spark.pipeline import build
from told_stream import DAY, SCHEMA, Told

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]

Answers = dict[tuple[str, str], int]


def answers(rows: DataFrame) -> DataFrame:
    """Counts by key, in windows of ten seconds that start every five."""
    return (
        rows.withWatermark("at", "10 seconds")
        .groupBy(F.window("at", "10 seconds", "5 seconds"), "key")
        .agg(jt.count(window="window").alias("n"))
    )


def source(reader: Any) -> Any:
    return reader.format("json").schema(SCHEMA).option("maxFilesPerTrigger", 1)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stream")


@pytest.fixture
def shed(spark: SparkSession, stream: Path, tmp_path: Path) -> Path:
    """A checkpoint of its own of a query that has shed, been restarted and shed again; made once."""
    if not (stream / "checkpoint").exists():
        with Told(spark, stream, answers) as told:
            told.batch(("a", "00:00:01"), ("b", "00:00:02"))
            told.batch(("a", "00:00:12"), ("c", "00:00:03"), keep=False)
            told.batch(("b", "00:00:30"))
            told.batch(("a", "00:01:00"), ("b", "00:00:58"))
        with Told(spark, stream, answers) as told:
            told.batch(("a", "00:01:31"), ("a", "00:00:14"))  # one comes too late
            told.batch(("b", "00:02:00"), ("d", "00:00:59"), keep=False)
            told.batch(("a", "00:03:00"))
            told.batch(("a", "00:03:00"))  # the next one's rows may be older than the watermark says
            told.batch(("b", "00:03:01"), keep=False)  # in windows that nothing closes
    shutil.copytree(stream / "checkpoint", tmp_path / "checkpoint")
    shutil.copytree(stream / "out", tmp_path / "given", ignore=shutil.ignore_patterns("_spark_metadata"))
    return tmp_path / "checkpoint"


JOB = f"""
from pyspark.sql import functions as F
import jettison as jt

def source(reader):
    return reader.format("json").schema({SCHEMA!r})

def answers(rows):
    window = F.window("at", "10 seconds", "5 seconds")
    return rows.withWatermark("at", "10 seconds").groupBy(window, "key").agg(jt.count(window="window").alias("n"))
"""
"""The same as a module of the user's, for commands."""


def settle(spark: SparkSession, checkpoint: Path, **options: Any) -> Settlement:
    return reconcile(spark, checkpoint, answers, checkpoint.parent / "settled", sources=source, **options)


def found(frame: DataFrame) -> Answers:
    rows = frame.collect()
    told = {(row["key"], f"{row['window']['start']:%H:%M:%S}"): row["n"]["value"] for row in rows}
    assert len(told) == len(rows), "each answer once"
    return told


def settled(spark: SparkSession, checkpoint: Path) -> Answers:
    return found(spark.read.parquet(str(checkpoint.parent / "settled")))


def truth(spark: SparkSession, stream: Path) -> Answers:
    every = spark.read.schema(SCHEMA).json(str(stream / "in")).withColumn("jt_weight", F.lit(1.0))
    return found(answers(every))


CLOSED = {"23:59:55", "00:00:00", "00:00:05", "00:00:10", "00:00:50", "00:00:55", "00:01:55", "00:02:00"}
"""Starts of the windows in which rows of shed batches lie, but for those that are still open."""


def test_settled_answers_are_those_of_all_rows(spark: SparkSession, shed: Path, stream: Path) -> None:
    done = settle(spark, shed)
    expected = {key: n for key, n in truth(spark, stream).items() if key[1] in CLOSED}
    assert settled(spark, shed) == expected
    assert expected["a", "00:00:10"] == 2, "the row that came too late counts"
    assert (done.settled, done.before, done.ready, done.waiting, done.lost) == (len(CLOSED), 0, 0, 2, ())
    rows = spark.read.parquet(str(shed.parent / "settled"))
    assert {row["status"] for row in rows.select("n.*").collect()} == {"exact"}
    assert rows.where("n.lower <> n.value or n.upper <> n.value or settled_at is null").count() == 0
    assert done.rows_read < 14, "batches without rows of these windows are not read"

    again = settle(spark, shed)
    assert (again.settled, again.before, again.rows_read) == (0, len(CLOSED), 0)
    assert settled(spark, shed) == expected


def test_a_dry_run_says_what_there_is_to_do(spark: SparkSession, shed: Path) -> None:
    plan = settle(spark, shed, dry_run=True)
    assert not (shed.parent / "settled").exists()
    assert (plan.settled, plan.ready, plan.waiting) == (0, len(CLOSED), 2)
    assert plan.bytes_to_read is not None
    assert plan.bytes_to_read > 0
    done = settle(spark, shed)
    assert (done.settled, done.rows_read) == (plan.ready, plan.rows_to_read)


def test_in_a_stream_that_keeps_to_its_watermark_rows_are_read_once(
    spark: SparkSession, shed: Path, stream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the last batch, which no row follows; of rows that came too late nothing is found out."""
    looked: list[int] = []
    original = settling.Stretches.rows

    def rows(self: Any, spans: Any) -> Any:
        looked.extend(span.first for span in spans)
        return original(self, spans)

    monkeypatch.setattr(settling.Stretches, "rows", rows)
    plan = settle(spark, shed, in_order=True, dry_run=True)
    assert looked == [load(storage.home(shed)).looks[-1].first]
    assert plan.seconds_to_go is not None
    looked.clear()
    again = settle(spark, shed, in_order=True, dry_run=True)
    assert again.seconds_to_go, "also where nobody looked: a sample was read"
    assert looked
    done = settle(spark, shed, in_order=True)
    assert (done.settled, done.ready, done.lost) == (plan.ready, 0, ())
    exact, true = settled(spark, shed), truth(spark, stream)
    # Rows may lie from the watermark of the batch before on, and until the next rows come and the watermark with them.
    also = {"00:00:25", "00:00:30", "00:01:00", "00:01:25", "00:01:30"}
    assert {start for _, start in exact} == CLOSED | also
    assert exact == {key: true[key] for key in true if key[1] in {start for _, start in exact}}
    later = settle(spark, shed, in_order=True, dry_run=True).seconds_to_go
    assert later == 0.0, "nothing is left to do"
    assert load(storage.home(shed)).rows_per_s
    looked.clear()
    settle(spark, shed, dry_run=True)
    assert len(looked) == 2, "a run that does not assume it looks at those batches, too"


@pytest.mark.long
def test_it_stops_when_the_live_query_sheds_again_and_the_next_run_goes_on(
    spark: SparkSession, shed: Path, stream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(working_hours, "sheds", lambda home, now_s: len(load(home).settled) > 1)
        done = settle(spark, shed, part_rows=1)
        assert done.stopped == "the live query sheds"
        assert 0 < done.settled < len(CLOSED) == done.settled + done.ready
        assert done.seconds_to_go
        assert settle(spark, shed).settled == 0
        assert settle(spark, shed, part_rows=1, beside_shedding=True).ready == 0
    assert settled(spark, shed) == {key: n for key, n in truth(spark, stream).items() if key[1] in CLOSED}


@pytest.mark.parametrize("last_save", [5])  # three looks, what was unfinished, a part begun; its answers are written
def test_whatever_ends_a_run_the_next_one_completes_it(
    spark: SparkSession, shed: Path, stream: Path, monkeypatch: pytest.MonkeyPatch, last_save: int
) -> None:
    saves = 0

    def save(*arguments: Any) -> None:
        nonlocal saves
        saves += 1
        if saves > last_save:
            raise KeyboardInterrupt
        original(*arguments)

    original = settling.save
    with monkeypatch.context() as patched:
        patched.setattr(settling, "save", save)
        with pytest.raises(KeyboardInterrupt):
            settle(spark, shed, part_rows=5)
    settle(spark, shed, part_rows=7)
    assert settled(spark, shed) == {key: n for key, n in truth(spark, stream).items() if key[1] in CLOSED}


@pytest.mark.long
@pytest.mark.parametrize("moment", ["looking", "settling"])
def test_a_run_that_is_killed_is_completed_by_the_next_one(
    spark: SparkSession, shed: Path, stream: Path, tmp_path: Path, moment: str
) -> None:
    """By kill -9, of the process and of Spark with it, after one look or in its third part."""
    (tmp_path / "settle_job.py").write_text(JOB)
    home, refused = storage.home(shed), list[bool]()

    def is_reached() -> bool:
        record = load(home)
        if moment == "looking":
            return bool(record.looks)
        if len(record.parts) >= 3 and not refused:  # two at once
            with pytest.raises(CheckpointInUse, match="nobody else may settle"):
                settle(spark, shed)
            refused.append(True)
        return bool(refused) and load(home).parts[-1].at_s is None

    kill_when(start_driver("settle_driver", tmp_path, str(shed), str(tmp_path / "settled")), is_reached)
    left = load(home)
    settled_then = [part for part in left.parts if part.at_s is not None]
    assert not settled_then if moment == "looking" else 2 <= len(settled_then) < len(CLOSED)

    done = settle(spark, shed)
    assert done.settled == len(CLOSED) - sum(len(part.windows) for part in settled_then)
    assert settled(spark, shed) == {key: n for key, n in truth(spark, stream).items() if key[1] in CLOSED}
    assert list(load(home).parts[: len(settled_then)]) == settled_then, "what was settled is not settled again"


def test_what_cannot_be_read_is_lost_and_nothing_is_guessed(spark: SparkSession, shed: Path, stream: Path) -> None:
    file = stream / "in" / "0001.json"  # of the first batch that dropped rows
    whole = file.read_text()
    file.rename(stream / "0001.json")
    try:
        done = settle(spark, shed)
        assert [(lost.first, "0001.json is gone" in lost.reason) for lost in done.lost] == [(2, True)]
        # Its rows may be as new as those of the batch after the next one, and newer by the delay: up to 00:01:10.
        expected = {key: n for key, n in truth(spark, stream).items() if key[1] in CLOSED and key[1] > "00:01:10"}
        assert settled(spark, shed) == {key: n for key, n in expected.items() if key[1] < "23:00:00"}
        file.write_text(whole.splitlines()[0] + "\n")  # there again, but not all of it
        (lost,) = settle(spark, shed).lost
        assert "0001.json was changed since" in lost.reason
    finally:
        (stream / "0001.json").rename(file)
    settle(spark, shed)
    assert settled(spark, shed) == {key: n for key, n in truth(spark, stream).items() if key[1] in CLOSED}


def test_rows_that_go_after_somebody_looked_are_lost_too(spark: SparkSession, shed: Path, stream: Path) -> None:
    """Among them one that came late, far from all others of its batch."""
    assert settle(spark, shed, dry_run=True).ready == len(CLOSED)
    file = stream / "in" / "0005.json"  # of the second batch that dropped rows
    file.rename(stream / "0005.json")
    try:
        assert settle(spark, shed, dry_run=True).lost_windows == 4
        done = settle(spark, shed)
    finally:
        (stream / "0005.json").rename(file)
    assert done.settled == len(CLOSED) - 4
    starts = {"23:59:55", "00:00:00", "00:00:05", "00:00:10"}
    assert settled(spark, shed) == {key: n for key, n in truth(spark, stream).items() if key[1] in starts}


def test_two_at_once_and_another_query_and_another_path_are_refused(spark: SparkSession, shed: Path) -> None:
    owner = Owner(storage.home(shed) / "settle")
    owner.claim(lambda _: None)
    try:
        with pytest.raises(CheckpointInUse, match="nobody else may settle"):
            settle(spark, shed)
    finally:
        owner.release()
    settle(spark, shed)
    with pytest.raises(InvalidSetting, match="one that has changed since"):
        reconcile(spark, shed, lambda rows: answers(rows.where("key <> 'a'")), shed.parent / "settled", sources=source)
    with pytest.raises(InvalidSetting, match="where earlier answers lie"):
        reconcile(spark, shed, answers, shed.parent / "elsewhere", sources=source)


@pytest.mark.parametrize(
    "query",
    [
        lambda rows: answers(rows).where("n.value > 1"),
        lambda rows: answers(rows.dropDuplicates(["key"])),
        lambda rows: rows.groupBy(F.window("at", "10 seconds"), "key").agg(F.count("*").alias("n")),
        lambda rows: rows.withWatermark("at", "1 second").groupBy("key").agg(F.count("*").alias("n")),
        lambda rows: rows.withWatermark("at", "1 second").groupBy(F.session_window("at", "5 seconds")).count(),
        lambda rows: rows.withWatermark("at", "1 second").select(F.window("at", "5 seconds")),
    ],
)
def test_a_query_whose_windows_cannot_be_settled_one_by_one_is_refused(
    spark: SparkSession, shed: Path, query: Any
) -> None:
    with pytest.raises(Unsupported, match="rows of its own window alone"):
        reconcile(spark, shed, query, shed.parent / "settled", sources=source)


# What is settled does not depend on the policy but for where it drops.


@dataclass(frozen=True)
class Past:
    """How a stream was shed: files of each run, shares kept after each batch, how late some rows of a file were.

    After the runs in `settle_after` all windows are settled that can be.
    """

    runs: list[int]
    shares: list[float]
    late_s: dict[int, float]
    settle_after: set[int]


SHARES = st.sampled_from([0.2, 0.5, 1.0])
PASTS = st.builds(
    Past,
    runs=st.lists(st.integers(2, 4), min_size=2, max_size=3),
    # What a run begins with, and after which it always drops something.
    shares=st.lists(SHARES, min_size=12, max_size=12).map(lambda later: [0.3, *later]),
    late_s=st.dictionaries(st.integers(1, 8), st.sampled_from([3.0, 15.0, 40.0]), max_size=3),
    settle_after=st.sets(st.integers(0, 1)),
)


@pytest.mark.long
@pytest.mark.parametrize("policy", START)
@settings(
    max_examples=2,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each example is a stream that runs for seconds
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(
    past=Past(runs=[3, 3], shares=[0.3, 0.2, 0.5] * 4 + [0.2], late_s={2: 15.0, 4: 40.0}, settle_after={0}),
    part_rows=30,
    look_rows=30,
    in_order=False,
)
@given(
    past=PASTS,
    part_rows=st.sampled_from([30, 10**6]),
    look_rows=st.sampled_from([30, 10**6]),
    in_order=st.booleans(),
)
def test_whatever_was_shed_is_settled(
    spark: SparkSession, policy: str, past: Past, part_rows: int, look_rows: int, in_order: bool
) -> None:
    """Under any policy, budgets, restarts and late rows: row for row what an unshed run in batch mode gives."""

    def by_window(*rows: DataFrame) -> DataFrame:
        sides = [side.where(where) for side, where in zip(rows, ("value < 50", "value >= 50"), strict=False)]
        every = union_all(*sides) if len(rows) > 1 else rows[0]
        counts = F.count(F.lit(1)).alias("rows"), F.sum("value").alias("total")
        return every.withWatermark("at", "2 seconds").groupBy(F.window("at", "10 seconds"), "key").agg(*counts)

    def reader(reader: Any) -> Any:
        return reader.format("parquet").schema(landed().schema)

    def landed() -> DataFrame:
        return spark.read.parquet(str(folder / "in"))

    def exact() -> list[Any]:
        path = folder / "settled"
        return spark.read.parquet(str(path)).drop("settlement", "settled_at").collect() if path.exists() else []

    expected: list[Any] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder, in_order = (
            Path(scratch),
            in_order and not past.late_s,
        )  # then windows are settled that have no rows, too
        for run, files in enumerate(past.runs):
            first, last = sum(past.runs[:run]), run == len(past.runs) - 1
            land(folder / "in", range(first, first + files), groups=20, late_s=past.late_s)
            if last:
                land_end(folder / "in", first + files)
            script = lambda batch: keep(past.shares[batch + 1 if 0 <= batch < 12 else 0])  # noqa: E731
            order = Order(spark, folder, script, parquet_sink(folder / "out"), answers=True)
            shedder, query = START[policy](order)
            query.awaitTermination()
            shedder.await_books()
            if last or run in past.settle_after:
                sources = [reader] * (2 if policy == "JoinDrop" else 1)
                read = {"part_rows": part_rows, "look_rows": look_rows, "in_order": in_order}
                done = reconcile(spark, order.checkpoint, by_window, folder / "settled", sources=sources, **read)
                before = {row["window"] for row in expected}
                new = {row["window"] for row in exact()} - before
                assert (done.ready, done.lost) == (0, ())
                assert in_order or (done.settled, done.before) == (len(new), len(before))
                # What is settled is settled for good, and rows that come even later do not count.
                expected += [row for row in by_window(landed()).collect() if row["window"] in new]
                assert sorted(exact()) == sorted(expected)
        dropped = shedder.ledger.totals().dropped > 0
        assert dropped or policy == "WindowDrop"  # it drops whole windows, and a short history may have none of them
        if dropped and policy != "NetworkDrop":  # the last row is protected everywhere else, and closes all windows
            assert done.before + done.settled > 0
            assert done.waiting == 0
        # What is not settled has missed nothing but rows that came too late, which a live query throws away.
        settled = {row["window"] for row in expected}
        counts = {(row["window"], row["key"]): row["rows"] for row in by_window(landed()).collect()}
        given = [row for row in spark.read.parquet(str(folder / "out")).collect() if row["window"] not in settled]
        missed = {
            (row["window"], row["key"]): counts[row["window"], row["key"]] - row["rows"]["value"] for row in given
        }
        too_late = (
            landed().where(f"id >= 0 and (id % 24) % {LATE_EVERY} = 0").groupBy(F.window("at", "10 seconds"), "key")
        )
        late = {(row["window"], row["key"]): row["count"] for row in too_late.count().collect()}
        assert {place: n for place, n in missed.items() if not 0 <= n <= late.get(place, 0)} == {}
        assert past.late_s or not any(missed.values())


def test_the_commands_of_the_documents_settle_and_audit(
    spark: SparkSession, shed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they stand, beside a query that they name: only the session is that of the tests."""
    for folder in ("jobs", "checkpoints"):
        (tmp_path / folder).mkdir()
    (tmp_path / "jobs" / "fares.py").write_text(JOB)
    shed.rename(tmp_path / "checkpoints" / "fares")
    (tmp_path / "given").rename(tmp_path / "fares")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(session, "local_session", lambda *_, **__: contextlib.nullcontext(spark))
    # The session's Java began in another folder: to it, paths must be whole.
    paths = {name: str(tmp_path / name) for name in ("checkpoints/fares", "fares", "fares-exact")}
    typed_in = [[paths.get(word, word) for word in words(line)[1:]] for line in typed("docs/settle.md")]
    settled, audited = (CliRunner().invoke(app, line, env={"COLUMNS": "200"}) for line in typed_in)
    assert f"settled {len(CLOSED)} windows from " in settled.output
    assert audited.exit_code == 0, audited.exception
    assert "bounded" in audited.output


def test_the_command_tells_what_it_did(
    spark: SparkSession, shed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settle_job.py").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    said = Console(file=io.StringIO(), width=200)
    to, named = str(tmp_path / "settled"), named_query("settle_job:answers", ["settle_job:source"], None, None)
    for options in ({"dry_run": True}, {"hours": (0, 24), "rows_per_s": 1000.0}):
        run_reconcile(said, contextlib.nullcontext(spark), str(shed), named[0], to, named[1], **options)
    seen = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    verdicts = run_audit(seen, contextlib.nullcontext(spark), str(shed), str(shed.parents[0] / "given"))
    answers = len({one.answer for one in verdicts})
    steps = re.findall(r"(\d+)/(\d+) comparisons", seen.file.getvalue())  # type: ignore[attr-defined]
    assert {int(of) for _, of in steps} == {3 * answers}
    assert len(set(steps)) > 1
    text = said.file.getvalue()  # type: ignore[attr-defined]
    assert f"to settle: {len(CLOSED)} windows from " in text
    assert f"settled {len(CLOSED)} windows from " in text
    assert "open until the watermark has passed them: 2" in text
    home = storage.home(shed)
    said = f"of {len(CLOSED) + 2} windows that rows were dropped from: {len(CLOSED)} settled, 2 open, 0 lost"
    assert str(summary(load(home))).startswith(f"{said}; exact by reconciliation since 20")
    run_top(shown := Console(file=io.StringIO(), width=200), str(shed))
    assert "settled, 2 open" in shown.file.getvalue()  # type: ignore[attr-defined]
    assert verdicts
    with pytest.raises(InvalidSetting, match="can be imported"):
        named_query("settle_job:nothing", [], None, None)
    with pytest.raises(InvalidSetting, match="got both"):
        named_query("settle_job:answers", [], tmp_path / "pipeline.yaml", None)


def test_an_output_of_a_pipeline_file_is_settled(spark: SparkSession, tmp_path: Path) -> None:
    """By the file alone, one of two that share their input."""
    by_window = "select window, key, sum(jt_weight) as n from all_rows group by window(at, '10 seconds'), key"
    rows = {"format": "json", "path": str(tmp_path / "in"), "schema": SCHEMA, "row_id": "id"}
    document = {
        "checkpoint": str(tmp_path / "checkpoint"),
        "inputs": {"rows": rows | {"options": {"maxFilesPerTrigger": 1}}},
        "boxes": {
            "all_rows": {"reads": "rows", "kind": "map", "sql": "select * from rows"},
            "counts": {"reads": "all_rows", "kind": "aggregate", "sql": by_window, "watermark": {"at": "1 second"}},
        },
        "outputs": {
            "answers": {"reads": "counts", "path": str(tmp_path / "answers")},
            "copies": {"reads": "all_rows", "path": str(tmp_path / "copies")},
        },
    }
    (tmp_path / "in").mkdir()
    for file, seconds in enumerate((range(30), range(30, 60), [120])):
        lines = [
            {"id": 100 * file + i, "key": "ab"[i % 2], "at": f"{DAY}T00:{s // 60:02d}:{s % 60:02d}Z"}
            for i, s in enumerate(seconds)
        ]
        (tmp_path / "in" / f"{file}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(document))
    network = build(spark, parse(document))
    script = lambda batch: keep(0.3 if batch < 1 else 1.0)  # noqa: E731
    network.policy = lambda graph, **given: scripted(NetworkDrop, script, graph, **given)  # type: ignore[method-assign]
    network.start(latency="1 hour", checkpoint=tmp_path / "checkpoint", available_now=True).awaitTermination()
    assert network.shedder is not None
    network.shedder.await_books()
    assert network.shedder.ledger.totals().dropped > 0

    with pytest.raises(InvalidSetting, match="must name an output"):
        named_query(None, [], tmp_path / "pipeline.yaml", None)
    query, sources = named_query(None, [], tmp_path / "pipeline.yaml", "answers")
    done = reconcile(spark, tmp_path / "checkpoint", query, tmp_path / "settled", sources=sources)
    exact = spark.read.parquet(str(tmp_path / "settled")).drop("settlement", "settled_at")
    every = spark.read.schema(SCHEMA).json(str(tmp_path / "in")).withColumn("jt_weight", F.lit(1.0))
    assert done.settled > 0
    assert not done.lost
    true = {(row["window"], row["key"]): row["n"] for row in query(every).collect()}
    assert {(row["window"], row["key"]): row["n"] for row in exact.collect()}.items() <= true.items()


def test_an_audit_finds_what_the_bounds_were_worth(spark: SparkSession, shed: Path) -> None:
    """Of answers that were made up: a quarter of the bounds does not hold, and all values are too high by a tenth."""
    settle(spark, shed)
    exact = spark.read.parquet(str(shed.parent / "settled")).drop("settlement", "settled_at")
    keys = exact.select("window", "key").orderBy("window", "key").collect()
    off = [(*key, place % 4 == 0) for place, key in enumerate(keys)]
    marked = spark.createDataFrame(off[1:], "window struct<start timestamp, end timestamp>, key string, off boolean")
    value = F.col("n")["value"]
    shifted = F.struct(
        (value * 1.1).alias("value"),
        (value - F.when(F.col("off"), -1).otherwise(1)).cast("double").alias("lower"),
        (value + 2).cast("double").alias("upper"),
        F.lit(50).cast("bigint").alias("kept"),
        F.lit("bounded").alias("status"),
    )
    given = exact.join(marked, ["window", "key"]).select("window", "key", shifted.alias("n"))
    verdicts = {one.by: one for one in audit(spark, shed, given)}
    policy = verdicts["KeepShare"]
    assert (policy.answer, policy.compared, policy.bounded, policy.missing) == ("n", len(keys) - 1, len(keys) - 1, 1)
    assert policy.coverage == pytest.approx(1 - sum(each[2] for each in off[1:]) / (len(keys) - 1))
    assert policy.bias == pytest.approx(0.1)
    assert policy.median_error == pytest.approx(0.1)
    assert verdicts["under    100 rows kept"].compared == len(keys) - 1
    assert sum(one.compared for by, one in verdicts.items() if by.startswith("window ")) == len(keys) - 1


def test_an_audit_judges_few_rows_apart_and_finds_exact_answers_that_are_wrong(spark: SparkSession, shed: Path) -> None:
    """Also of groups that the truth lacks; of windows that are not settled it says nothing."""
    settle(spark, shed)
    exact = spark.read.parquet(str(shed.parent / "settled")).drop("settlement", "settled_at")
    place = F.expr("row_number() over (order by window, key)")
    off = F.when(F.col("place") <= 2, 0.0).otherwise(1.0)
    # Two are right and exact, one exact and wrong, three have bounds that do not hold, all others ones that do.
    answer = F.struct(
        (F.col("n")["value"] + off).cast("bigint").alias("value"),
        (F.col("n")["value"] + F.when(F.col("place") <= 6, off).otherwise(0.0)).alias("lower"),
        (F.col("n")["value"] + off).alias("upper"),
        F.lit(2).cast("bigint").alias("kept"),
        F.when(F.col("place") <= 3, "exact").otherwise("few rows").alias("status"),
    )
    given = exact.withColumn("place", place).select("window", "key", answer.alias("n"))
    nobody = given.limit(1).withColumn("key", F.lit("nobody"))
    later = F.expr("named_struct('start', window.start + interval 1 day, 'end', window.end + interval 1 day)")
    more = given.union(nobody).union(given.withColumn("window", later))
    verdict = audit(spark, shed, more)[0]
    settled = exact.count()
    assert (verdict.compared, verdict.bounded, verdict.few_rows) == (settled, 0, settled - 3)
    assert verdict.few_coverage == pytest.approx(1 - 3 / (settled - 3))
    assert (verdict.wrong_exact, verdict.missing, verdict.surplus) == (2, 0, 1), "one of them is nobody's"
