"""What a dry run of a pipeline file foresees, and what is on record of the bounds that it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.errors import InvalidSetting
from jettison.lab.bench.streams import KeepShare
from jettison.pipeline.document import parse
from jettison.spark import pipeline
from spark.test_network import rows

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]
SECONDS, SHARE = 3600, 0.3


def document(source, folder: Path, **more: Any) -> dict[str, Any]:
    """Answers by key and half an hour, each from about 257 rows."""
    inputs = {"format": "json", "path": str(source.folder), "schema": source.SCHEMA, "row_id": "id"}
    box = {"window": {"at": "30 minutes"}, "group": "key", "answers": {"n": "count(*)", "mean": "avg(value)"}}
    return {
        "checkpoint": str(folder / "checkpoint"),
        "latency": "1 minute",
        "inputs": {"rows": inputs | {"watermark": {"at": "1 second"}}},
        "boxes": {"answered": box | {"reads": "rows"}},
        "outputs": {"out": {"reads": "answered", "path": str(folder / "out")}},
    } | more


def branched(source, folder: Path) -> dict[str, Any]:
    """The same with boxes before and behind the answers, and another output."""
    given = document(source, folder)
    given["boxes"]["parsed"] = {"reads": "rows", "sql": "select * from rows"}
    given["boxes"]["answered"]["reads"] = "parsed"
    given["boxes"]["shown"] = {"reads": "answered", "sql": "select window, key, n, mean from answered"}
    given["outputs"]["out"]["reads"] = "shown"
    given["outputs"]["rest"] = {"reads": "parsed", "path": str(folder / "rest")}
    return given


def doubled(source, folder: Path) -> dict[str, Any]:
    """The same with the answers in two places."""
    given = document(source, folder)
    given["outputs"]["again"] = {"reads": "answered", "path": str(folder / "again")}
    return given


def run(spark: SparkSession, given: dict[str, Any], *, dry_run: bool) -> tuple[jt.Shedder, dict[str, Any]]:
    """A run that keeps a share, or would, and what is on record of its bounds."""
    policy = KeepShare(SHARE)
    shedder = jt.Shedder(latency="1 minute", checkpoint=given["checkpoint"], policy=policy, dry_run=dry_run)
    writer = pipeline.guarded(spark, parse(given), shedder)
    query = shedder.start(writer.trigger(availableNow=True))
    query.awaitTermination()
    assert shedder.await_books()
    (said,) = [one["answers"] for one in shedder.ledger.records("batch") if one.get("answers")]
    return shedder, said


@pytest.fixture
def landed(source):
    source.land([*rows(0, SECONDS), *({**row, "id": 10**6, "at": "2026-01-01T09:00:00Z"} for row in rows(0, 1))])
    return source


@pytest.mark.parametrize("made", [document, branched, doubled])
def test_a_dry_run_foresees_the_bounds_that_follow(spark: SparkSession, landed, tmp_path: Path, made: Any) -> None:
    dry, foreseen = run(spark, made(landed, tmp_path / "dry"), dry_run=True)
    live, given = run(spark, made(landed, tmp_path / "live"), dry_run=False)
    answers = {name: spark.read.parquet(str(tmp_path / name / "out")) for name in ("dry", "live")}
    assert set(answers["dry"].select("n.*").columns) == {"value", "lower", "upper", "kept", "status"}
    assert {row.status for row in answers["dry"].select("n.status").collect()} == {"exact"}
    assert "bounded" in {row.status for row in answers["live"].select("n.status").collect()}
    assert answers["dry"].selectExpr("sum(n.value)").first()[0] == SECONDS
    for name in ("n", "mean"):
        assert (foreseen[name]["foreseen"], given[name]["foreseen"]) == (True, False)
        assert foreseen[name]["answers"] == given[name]["answers"] == 14
        assert foreseen[name]["median"] == pytest.approx(given[name]["median"], rel=0.2)
        assert 0.0 < foreseen[name]["median_error"] < foreseen[name]["p95"]
    assert "n would be off by up to" in str(dry.status())
    assert dry.status().rows_seen == live.status().rows_seen == SECONDS + 1
    assert dry.status().rows_kept == pytest.approx(live.status().rows_kept, rel=0.2)
    if made is branched:
        rest = spark.read.parquet(str(tmp_path / "dry" / "rest"))
        assert (rest.count(), rest.where("jt_weight = 1").count()) == (SECONDS + 1, SECONDS + 1)


def test_a_dry_run_and_what_follows_have_checkpoints_of_their_own(spark: SparkSession, source, tmp_path: Path) -> None:
    """Aggregates that foresee have more in their state: Spark would say so in a page of Java."""
    source.land(rows(0, 2))
    given = parse(document(source, tmp_path))
    query, shedder = pipeline.start(spark, given, dry_run=True, drain=True)
    query.awaitTermination()
    assert shedder.await_books()
    with pytest.raises(InvalidSetting, match=r"a dry run .* Hint: .*checkpoint"):
        pipeline.start(spark, given, drain=True)
    query, shedder = pipeline.start(spark, given, dry_run=True, drain=True)
    query.awaitTermination()
    assert shedder.await_books()


@pytest.mark.parametrize(
    ("change", "watched"),
    [
        ({}, "answered"),
        ({"policy": "network"}, None),
        ({"policy": {"kind": "window", "max_gap": 2}}, None),
    ],
)
def test_one_box_with_all_answers_is_watched(source, tmp_path: Path, change: dict[str, Any], watched: str) -> None:
    assert parse(document(source, tmp_path, **change)).watched == watched
