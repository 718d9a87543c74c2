"""The bounds of a query's answers on record: those given, and in a dry run those that would follow."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import jettison as jt
from jettison.errors import InvalidInput, InvalidSetting
from jettison.lab.bench.streams import KeepShare

SHARE = 0.3


def answers(rows: DataFrame) -> DataFrame:
    """With a plain aggregate and the weights themselves beside the answers."""
    return rows.groupBy("key").agg(
        jt.avg("value").alias("value"),
        jt.sum("value").alias("total"),
        jt.count().alias("rows"),
        jt.percentile("value", 0.5).alias("median"),
        F.count("*").alias("plain"),
        F.sum("jt_weight").alias("weights"),
    )


def run(source, folder: Path, share: float = SHARE, *, dry_run: bool = False, watch: bool = True):
    """One batch; its answers by key, and its record."""
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "c", policy=KeepShare(share), dry_run=dry_run)
    rows = shedder.guard(source.stream(), row_id="id")
    made = shedder.watch(rows, answers) if watch else answers(rows)
    name = f"answers_{folder.name}"
    query = shedder.start(made.writeStream.format("memory").queryName(name).outputMode("complete"))
    query.processAllAvailable()
    query.stop()
    found = {row["key"]: row for row in made.sparkSession.table(name).collect()}
    with_rows = [record for record in shedder.ledger.records("batch") if record.get("answers")]
    return found, with_rows[-1]["answers"] if with_rows else None, shedder


@pytest.fixture
def landed(source, numbered):
    source.land(numbered(0, 3500))
    return source


def half_widths(found, name):
    bounded = [row[name] for row in found.values() if row[name]["status"] == "bounded"]
    return sorted((one["upper"] - one["lower"]) / 2 / one["value"] for one in bounded)


@pytest.mark.usefixtures("interpreted", "one_partition")
def test_a_dry_run_foresees_the_bounds_that_follow_and_answers_as_if_nothing_were(landed, tmp_path: Path) -> None:
    dry, foreseen, shedder = run(landed, tmp_path / "dry", dry_run=True)
    shed, given, _ = run(landed, tmp_path / "shed")
    for name in ("value", "total", "rows", "median"):
        for row in dry.values():
            answer = row[name]
            assert (answer["status"], answer["lower"], answer["upper"]) == ("exact", answer["value"], answer["value"])
            assert answer.asDict().keys() == {"value", "lower", "upper", "kept", "status"}
        widths = half_widths(shed, name)
        assert given[name]["median"] == pytest.approx(statistics.median(widths), rel=0.02)
        assert (given[name]["answers"], given[name]["bounded"], given[name]["foreseen"]) == (7, 7, False)
        assert (foreseen[name]["answers"], foreseen[name]["bounded"], foreseen[name]["foreseen"]) == (7, 7, True)
        assert foreseen[name]["median"] == pytest.approx(given[name]["median"], rel=0.2)
        assert 0.0 < foreseen[name]["median_error"] < foreseen[name]["p95"]
        assert given[name]["median_error"] is None, "the truth is not known there"
    assert all(row["weights"] == pytest.approx(500, rel=1e-5) and row["plain"] == 500 for row in dry.values())
    assert sum(row["rows"]["value"] for row in dry.values()) == 3500
    assert shedder.status().bounds["value"].median == foreseen["value"]["median"]
    assert "value would be" in str(shedder.status())


@pytest.mark.usefixtures("interpreted", "one_partition")
def test_where_nothing_would_be_dropped_no_bound_is_foreseen(landed, tmp_path: Path) -> None:
    _, foreseen, _ = run(landed, tmp_path / "whole", 1.0, dry_run=True)
    assert (foreseen["rows"]["answers"], foreseen["rows"]["bounded"], foreseen["rows"]["median"]) == (7, 0, None)


@pytest.mark.usefixtures("interpreted", "one_partition")
def test_a_dry_run_that_nobody_watches_has_nothing_of_it_in_its_plan(landed, tmp_path: Path) -> None:
    dry, foreseen, _ = run(landed, tmp_path / "alone", dry_run=True, watch=False)
    assert foreseen is None
    assert all(row["weights"] == 500.0 for row in dry.values())


def test_what_cannot_be_watched_is_refused(source, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", dry_run=True)
    rows = shedder.guard(source.stream(), row_id="id")
    with pytest.raises(InvalidInput, match="needs the guarded rows themselves"):
        shedder.watch(rows.where("value > 0"), answers)
    other = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "d")
    with pytest.raises(InvalidInput, match="needs answers of"):
        other.watch(other.guard(source.stream(), row_id="id"), lambda rows: rows.groupBy("key").count())
    with pytest.raises(InvalidSetting, match="called once"):
        other.watch(rows, answers)
