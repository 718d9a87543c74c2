"""Pipeline files on live queries."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from doc_blocks import blocks
from jettison.cli import app
from jettison.errors import InvalidSetting, JettisonError, MissingColumn
from jettison.pipeline.document import InputFile, OutputFile, parse
from jettison.runtime.ledger import Ledger
from jettison.runtime.status import Status
from jettison.spark import pipeline, pipeline_command, pipeline_costs
from jettison.spark.explained import explained
from jettison.spark.mechanisms import mechanism_for
from jettison.spark.pipeline_costs import costs_of
from jettison.spark.pipeline_sinks import shaped
from spark.test_network import rows

pytestmark = pytest.mark.spark
WHAT_POLICIES_NEED: dict[str, dict[str, Any]] = {
    "uniform": {},
    "window": {},
    "concept": {},
    "priority": {"priorities": {"vip": 2}},
    "network": {},
}


def test_a_pipeline_file_runs(spark: SparkSession, source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From YAML on disk to Parquet on disk: a shared map, a filter, a windowed aggregate and a join in SQL."""
    # The command as it is, but in the tests' session.
    monkeypatch.setattr(pipeline_command, "local_session", lambda name, **_: nullcontext(spark))
    inputs = {"format": "json", "path": str(source.folder), "schema": source.SCHEMA, "row_id": ["id"]}
    inputs["options"] = {"maxFilesPerTrigger": 1}
    sums = "select window.start, sum(value * jt_weight) as total from parse group by window(at, '1 minute')"
    pairs = (
        "select high.*, other, jt_weight_right from high join (select id as other, at as other_at, jt_weight_right "
        "from parse) on high.id = other and high.at = other_at"
    )
    document = {
        "checkpoint": str(tmp_path / "checkpoint"),
        "latency": "1 minute",
        "policy": "network",
        "inputs": {"readings": inputs},
        "boxes": {
            "parse": {"reads": "readings", "kind": "map", "sql": "select *, value * 2 as twice from readings"},
            "high": {"reads": "parse", "sql": "select * from parse where value >= 60", "selectivity": 0.4},
            "sums": {"reads": "parse", "kind": "aggregate", "sql": sums, "watermark": {"at": "1 second"}},
            "pairs": {"reads": ["high", "parse"], "kind": "join", "sql": pairs, "watermark": {"at": "1 second"}},
        },
        "outputs": {
            "everything": {"reads": "parse", "path": str(tmp_path / "everything")},
            "alarms": {"reads": "high", "path": str(tmp_path / "alarms")},
            "minutes": {"reads": "sums", "path": str(tmp_path / "minutes")},
            "matches": {"reads": "pairs", "path": str(tmp_path / "matches")},
        },
    }
    for box in document["boxes"].values():
        box |= {"cost": 1.0, "selectivity": 0.5}  # stated, so that nothing is measured first
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(document))
    landed = rows(0, 500)
    source.land(landed[:400])
    source.land(landed[400:])
    result = CliRunner().invoke(app, ["run", str(tmp_path / "pipeline.yaml"), "--drain"])
    assert result.exit_code == 0, result.output
    assert "Running: alarms, everything, matches, minutes from readings, within 1 minute." in result.output
    # Two branches read the source, and Spark says 1,000 rows: the count is called an estimate.
    assert "ended, about 500 of 500 rows kept" in result.output
    committed = {int(file.name) for file in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")}
    ledger = Ledger(tmp_path / "checkpoint" / "jettison" / "ledger")
    assert {record["batch_id"] for record in ledger.records("batch")} == committed
    written = {name: spark.read.parquet(str(tmp_path / name)) for name in document["outputs"]}
    high = [row for row in landed if row["value"] >= 60]
    assert written["everything"].count() == 500
    assert written["alarms"].count() == written["matches"].count() == len(high)
    assert "twice" in written["alarms"].columns
    # What each row stands for: itself, as nothing was shed.
    for name in ("everything", "alarms", "matches"):
        assert written[name].where("jt_weight = 1.0").count() == written[name].count()
    totals = [row.total for row in written["minutes"].orderBy("start").collect()]
    assert totals[0] == sum(row["value"] for row in landed[:60])
    assert len(totals) >= 6


def reading(source, folder: Path, **more: Any) -> dict[str, Any]:
    """The document of one query over the rows of `source`, with answers in `folder`."""
    inputs = {"format": "json", "path": str(source.folder), "schema": source.SCHEMA, "row_id": "id"}
    box = {"reads": "rows", "window": {"at": "10 seconds"}, "group": "key", "answers": {"n": "count(*)"}}
    document = {
        "checkpoint": str(folder / "checkpoint"),
        "latency": "1 minute",
        "inputs": {"rows": inputs | {"options": {"maxFilesPerTrigger": 1}, "watermark": {"at": "1 second"}}},
        "boxes": {"counts": box},
        "outputs": {"out": {"reads": "counts", "path": str(folder / "out")}},
    }
    return document | more


def run(spark: SparkSession, document: dict[str, Any]) -> Status:
    query, shedder = pipeline.start(spark, parse(document), drain=True)
    query.awaitTermination()
    assert shedder.await_books()
    return shedder.status()


@pytest.fixture
def landed(source) -> list[dict[str, Any]]:
    """Rows of two windows, and one of a third that lets them out."""
    found = rows(0, 20) + [row | {"id": row["id"] + 100, "at": "2026-01-01T00:05:00Z"} for row in rows(0, 1)]
    source.land(found)
    return found


def test_answers_have_bounds_and_a_sink_of_their_own(spark: SparkSession, source, tmp_path: Path, landed) -> None:
    more = {"percentile": "percentile(value * 2, 0.5)", "n": "count(*)", "mean": "avg(value)"}
    document = reading(source, tmp_path)
    document["boxes"]["counts"]["answers"] = more
    status = run(spark, document)
    assert (status.rows_seen, status.rows_kept) == (len(landed), len(landed))
    written = spark.read.parquet(str(tmp_path / "out"))
    assert set(written.select("n.*").columns) == {"value", "lower", "upper", "kept", "status"}
    assert {row.status for row in written.select("n.status").collect()} == {"exact"}
    assert sum(row.value for row in written.select("n.value").collect()) == 20
    assert "batch" not in written.columns  # Spark's own sink, in which each row is once


def test_several_outputs_under_one_guard(spark: SparkSession, source, tmp_path: Path, landed) -> None:
    document = reading(source, tmp_path, policy={"kind": "priority", "priorities": {"vip": 2}})
    document["inputs"]["rows"] |= {"protect": "value > 1000", "sql": "select *, value * 2 as twice from rows"}
    document["outputs"]["rest"] = {"reads": "rows", "format": "json", "path": str(tmp_path / "rest")}
    document["outputs"]["same"] = {"reads": "counts", "path": str(tmp_path / "same")}
    run(spark, document)
    assert spark.read.parquet(str(tmp_path / "same")).count() == spark.read.parquet(str(tmp_path / "out")).count()
    assert spark.read.json(str(tmp_path / "rest")).where("twice = value * 2").count() == len(landed)
    assert spark.read.parquet(str(tmp_path / "out")).count() > 0


@pytest.mark.long
def test_a_new_checkpoint_leaves_what_the_one_before_it_wrote(
    spark: SparkSession, source, tmp_path: Path, landed
) -> None:
    """Its batches begin at 0 again, and took the places of the old ones."""
    document = reading(source, tmp_path)
    document["outputs"]["rest"] = {"reads": "rows", "path": str(tmp_path / "rest")}
    for runs in (1, 2):
        run(spark, document)
        shutil.rmtree(document["checkpoint"])
        assert spark.read.parquet(str(tmp_path / "rest")).count() == runs * len(landed)


@pytest.mark.long
def test_a_folder_that_spark_would_skip_batches_in_is_refused(
    spark: SparkSession, source, tmp_path: Path, landed
) -> None:
    """Its own sink numbers batches in the folder: those of a new checkpoint passed for written, and were lost."""
    document = reading(source, tmp_path)
    run(spark, document)
    run(spark, document)  # the same checkpoint goes on
    written = spark.read.parquet(str(tmp_path / "out")).count()
    shutil.rmtree(document["checkpoint"])
    with pytest.raises(InvalidSetting, match=r"a query of another checkpoint wrote for outputs\.out"):
        run(spark, document)
    document["outputs"]["out"]["path"] = str(tmp_path / "again")
    run(spark, document)
    assert spark.read.parquet(str(tmp_path / "again")).count() == written > 0


def test_windows_are_delivered_whole_and_without_bounds(spark: SparkSession, source, tmp_path: Path, landed) -> None:
    run(spark, reading(source, tmp_path, policy={"kind": "window", "max_gap": 2}))
    counts = spark.read.parquet(str(tmp_path / "out"))
    assert (counts.schema["n"].dataType.simpleString(), counts.selectExpr("sum(n)").first()[0]) == ("bigint", 20)


def test_the_rules_choose_where_the_file_leaves_it_to_them(spark: SparkSession, source, tmp_path: Path, landed) -> None:
    document = reading(source, tmp_path, policy={"kind": "auto"})
    run(spark, document)
    start = Ledger(tmp_path / "checkpoint" / "jettison" / "ledger").last("start")
    assert (start["policy"], start["policy_cause"].partition(",")[0]) == ("ConceptDrop", "answers are by group")
    assert spark.read.parquet(str(tmp_path / "out")).selectExpr("sum(n.value)").first()[0] == 20


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("boxes", {"sql": "select nonsense from rows"}, r"nonsense.* for boxes\.counts\. Hint"),
        ("boxes", {"sql": "selekt 1"}, r"selekt.* for boxes\.counts\. Hint"),
        ("inputs", {"sql": "select idd from rows"}, r"`idd`.* for inputs\.rows\. Hint"),
        ("inputs", {"format": "nosuch"}, r"nosuch"),
        ("inputs", {"row_id": "idd"}, r"`row_id` must name a column of the stream .*did you mean 'id'"),
        ("inputs", {"options": {"key": "${NOT_SET_ANYWHERE}"}}, r"NOT_SET_ANYWHERE"),
        ("outputs", {"format": "nosuch"}, "nosuch"),
    ],
)
def test_what_spark_refuses_is_one_sentence(
    spark: SparkSession, source, tmp_path: Path, landed, part: str, change: dict[str, Any], said: str
) -> None:
    document = reading(source, tmp_path)
    (name,) = document[part]
    if "sql" in change and part == "boxes":
        document[part] = {name: {"reads": "rows"}}
    document[part][name] |= change
    with pytest.raises(JettisonError, match=said) as caught:
        run(spark, document)
    assert "\n" not in str(caught.value)
    assert "JVM" not in str(caught.value)


@pytest.mark.parametrize("part", ["inputs", "boxes"])
def test_a_watermark_is_on_a_column_that_is_there(spark: SparkSession, source, tmp_path: Path, part: str) -> None:
    """A misspelt one was passed over without a word, and no window ever closed. Case is Spark's affair."""
    source.land(rows(0, 1))
    document = reading(source, tmp_path)
    document["inputs"]["rows"]["watermark"] = {}
    ((name, body),) = document[part].items()
    body["watermark"] = {"att": "1 second"}
    said = rf"`watermark` must name a column of the stream \(.*, got 'att' for {part}\.{name}\.watermark\. .* mean 'at'"
    with pytest.raises(MissingColumn, match=said):
        pipeline.build(spark, parse(document)).compiled(parse(document).graph)
    body["watermark"] = {"AT": "1 s"}
    (answers,) = pipeline.build(spark, parse(document)).compiled(parse(document).graph).values()
    assert re.search(r"at#\d+-T1000ms", analyzed(answers))


def analyzed(rows: DataFrame) -> str:
    """The analyzed plan, as `explain` prints it."""
    return explained(rows.explain).partition("== Optimized")[0]


@pytest.mark.parametrize("policy", ["uniform", "network"])
def test_inputs_from_kafka_share_the_cap_that_the_peak_gives(
    spark: SparkSession, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caps: dict[str, int | None] = {}

    def streamed(spark: SparkSession, name: str, source: InputFile, *, cap: int | None = None) -> DataFrame:
        caps[name] = cap
        return spark.readStream.format("rate").load()

    monkeypatch.setattr(pipeline, "streamed", streamed)
    one = {"format": "kafka", "row_id": "value"}
    document = {
        "checkpoint": "none",
        "policy": policy,
        "latency": "4 seconds",
        "peak_rows_per_s": 1000,
        "inputs": {"a": one, "b": one, "c": one | {"format": "rate"}},
        "boxes": {"all": {"reads": ["a", "b", "c"]}},
        "outputs": {"o": {"reads": "all", "format": "noop"}},
    }
    pipeline.build(spark, parse(document))
    assert caps == {"a": 1000, "b": 1000, "c": None}


def test_a_cap_is_told_to_kafka_unless_the_file_has_one() -> None:
    spark = MagicMock()
    reader = spark.readStream
    pipeline.streamed(spark, "a", InputFile(format="kafka", options={"subscribe": "a"}), cap=7)
    reader.option.assert_called_once_with("maxOffsetsPerTrigger", "7")


@pytest.mark.parametrize(("kind", "settings"), WHAT_POLICIES_NEED.items())
def test_whole_windows_are_what_the_mechanism_lets_out(kind: str, settings: dict[str, Any]) -> None:
    boxes = {"counts": {"reads": "rows", "window": {"at": "10 s"}, "group": "key", "answers": {"n": "count(*)"}}}
    document = {"inputs": {"rows": {}}, "boxes": boxes, "outputs": {"out": {"reads": "counts"}}}
    given = parse(document | {"policy": {"kind": kind} | settings})
    holds = mechanism_for(given.made_policy().spec).holds_answers_back
    assert given.dropping.whole_windows == holds == (kind == "window")


def test_calibrating_what_cannot_run_is_refused_before_spark_starts(
    source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_command, "local_session", MagicMock(side_effect=AssertionError))
    document = reading(source, tmp_path, checkpoint="")
    with pytest.raises(InvalidSetting, match="`checkpoint` must be given"):
        pipeline_command.calibrated(MagicMock(), parse(document), master="local[1]")


def test_what_one_chain_costs_is_measured_and_a_capacity_follows(
    spark: SparkSession, source, tmp_path: Path, landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_command, "local_session", lambda name, **_: nullcontext(spark))
    monkeypatch.setattr(pipeline_costs, "ROWS", len(landed))
    document = reading(source, tmp_path)
    document["boxes"]["high"] = {"reads": "rows", "sql": "select * from rows where id < 10"}
    document["boxes"]["counts"]["reads"] = "high"
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(document))
    done = CliRunner().invoke(app, ["plan", str(tmp_path / "p.yaml"), "--calibrate"])
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    (high,) = [line for line in lines if line[:1] == ["high"] and len(line) == 4]
    (counts,) = [line for line in lines if line[:1] == ["counts"] and len(line) == 4]
    assert (float(high[2]), high[3], counts[3]) == (pytest.approx(10 / len(landed), rel=0.01), str(len(landed)), "10")
    capacity = float(re.search(r"`capacity_rows_per_s: (\d+)`", done.output)[1])
    assert 1e6 / capacity == pytest.approx(float(high[1]) + float(high[2]) * float(counts[1]), rel=0.05)


def test_rows_for_kafka_are_json_unless_they_have_a_value(spark: SparkSession) -> None:
    output = OutputFile(reads="x", format="kafka")
    answers = spark.sql("select 'a' as zone, named_struct('value', 3) as n")
    assert shaped(answers, output).first().value == '{"zone":"a","n":{"value":3}}'
    assert shaped(answers.selectExpr("zone as value", "1 as key"), output).columns == ["value", "key"]


def test_costs_are_measured_on_rows_of_the_source(
    spark: SparkSession, source, tmp_path: Path, landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_costs, "ROWS", len(landed))  # enough, so that nobody waits for more
    document = reading(source, tmp_path)
    document["boxes"] = {"high": {"reads": "rows", "sql": "select * from rows where id < 10"}}
    document["outputs"] = {"out": {"reads": "high", "path": str(tmp_path / "out"), "qos": {}}}
    given = parse(document)
    found = costs_of(spark, given, lambda doing: None)
    assert (found["high"].rows, round(found["high"].selectivity, 3)) == (len(landed), round(10 / len(landed), 3))
    assert len(list(source.folder.glob("*.json"))) == 1


def test_the_pipeline_of_the_documents_runs(spark: SparkSession, tmp_path: Path) -> None:
    """As it stands, but for the broker: records of its shape lie in files."""
    (block,) = blocks("docs/pipelines.md", "yaml")
    document = yaml.safe_load(block)
    (name,) = document["inputs"]
    schema = "partition int, offset long, timestamp timestamp, value string"
    at = ["2026-03-02T08:00:01Z", "2026-03-02T08:00:02Z", "2026-03-02T09:00:00Z"]
    records = [
        {
            "partition": 0,
            "offset": row,
            "timestamp": time,
            "value": json.dumps({"time": time, "zone": "a", "fare": 8.0}),
        }
        for row, time in enumerate(at)
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text("\n".join(map(json.dumps, records)))
    document["inputs"][name] |= {"format": "json", "schema": schema, "path": str(tmp_path / "in"), "options": {}}
    document["outputs"]["answers"]["path"] = str(tmp_path / "out")
    document["checkpoint"] = str(tmp_path / "checkpoint")
    run(spark, document)
    (row,) = spark.read.parquet(str(tmp_path / "out")).collect()
    assert (row.zone, row.fare.value, row.rides.value, row.rides.status) == ("a", 8.0, 2, "exact")
