"""Every block of Python in the guides is executed as it stands, with the names that its page takes for granted.

README's is in test_readme.py, the tutorial's are in test_tutorial.py; tests/test_doc_commands.py has those without a
language. What a block cannot have in a test is replaced, and `replaced` says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from doc_blocks import ROOT, blocks
from jettison import functions as jf
from page_ledgers import query as recorded_query

pytestmark = [pytest.mark.long, pytest.mark.spark]

KAFKA = "partition int, offset long, timestamp timestamp, value string"
ELSEWHERE = {"README.md": 1, "docs/tutorial.md": 5}
HERE = {
    "docs/dry-run.md": 2,
    "docs/estimators.md": 1,
    "docs/group-drops.md": 4,
    "docs/ledger.md": 1,
    "docs/load-aware.md": 2,
    "docs/networks.md": 1,
    "docs/operation.md": 1,
    "docs/settle.md": 1,
    "docs/sifter.md": 3,
    "docs/steering.md": 1,
    "docs/window-drops.md": 3,
}


def test_no_block_is_left_out() -> None:
    documents = [path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]]
    assert {name: len(blocks(name)) for name in documents if blocks(name)} == ELSEWHERE | HERE


@pytest.fixture
def names(spark: SparkSession, tmp_path: Path) -> dict[str, Any]:
    """What pages do not say again: imports, and where things lie."""
    return {
        "jt": jt,
        "jf": jf,
        "F": F,
        "np": np,
        "spark": spark,
        "checkpoint": str(tmp_path / "checkpoint"),
        "output": str(tmp_path / "out"),
    }


def stream(spark: SparkSession, folder: Path, schema: str, *rows: str) -> DataFrame:
    folder.mkdir()
    (folder / "rows.json").write_text("".join(f"{row}\n" for row in rows))
    return spark.readStream.schema(schema).json(str(folder))


def run(block: str, names: dict[str, Any], *, replaced: dict[str, str] | None = None) -> None:
    for there, here in (replaced or {}).items():
        assert there in block
        block = block.replace(there, here)
    exec(block, names)


def ended(names: dict[str, Any]) -> None:
    """Its rows have been processed without an error."""
    names["query"].processAllAvailable()
    names["query"].stop()


def test_estimators(spark: SparkSession, names: dict[str, Any], vouched_for: None) -> None:
    (block,) = blocks("docs/estimators.md")
    rows = [(1, "a", 7, 2.0, 1.0), (1, "a", 7, 3.0, 1.0), (1, "a", 8, 4.0, 1.0)]
    names["words"] = spark.createDataFrame(rows, "window int, word string, id int, x double, jt_weight double")
    run(block, names)
    answer = names["answers"].first()
    assert (answer.total.value, answer.rows.value, answer.rows.kept) == (9.0, 3, 2)


def test_dry_run(
    spark: SparkSession, names: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watch, auto = blocks("docs/dry-run.md")
    row = '{"id": 1, "time": "2026-01-01T00:00:00Z", "zone": "Z001", "fare": 7.5}'
    names["raw"] = stream(spark, tmp_path / "in", "id long, time timestamp, zone string, fare double", row)
    run(watch, names)
    ended(names)
    run(auto, names | {"checkpoint": str(tmp_path / "other"), "dry_checkpoint": names["checkpoint"]})
    assert capsys.readouterr().out.startswith("ConceptDrop since answers are by group")


def test_groups(spark: SparkSession, names: dict[str, Any], tmp_path: Path) -> None:
    latency, counts, _, _ = blocks("docs/group-drops.md")
    raw = stream(spark, tmp_path / "in", f"key string, {KAFKA}")
    names |= {"raw": raw.withColumns({name: F.col(name).cast("binary") for name in ("key", "value")})}
    names["schema"] = "fare double"
    run(latency, names)
    assert names["fares"].columns == ["window", "route", "fare"]
    policy = jt.ConceptDrop(group="route", time="timestamp", window="10 minutes", exact_counts=True)
    names["shedder"] = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "other", policy=policy)
    run(counts, names)
    assert names["fares"].columns == ["window", "route", "rides", "fare"]


def test_borrowed_estimates(spark: SparkSession, names: dict[str, Any], tmp_path: Path, vouched_for: None) -> None:
    block = blocks("docs/group-drops.md")[2]
    rows = [("2026-01-01 00:00:00", route, float(fare), 2.0) for route in "ab" for fare in range(40)]
    rides = spark.createDataFrame(rows, "time string, route string, fare double, jt_weight double")
    names |= {
        "rides": rides.withColumn("time", F.to_timestamp("time")),
        "window": F.window("time", "1 minute"),
        "out": str(tmp_path / "out"),
    }
    run(block, names, replaced={"\n...\n": "\nfares.write.parquet(out)\n"})  # the query that writes them
    assert [estimate["kept"] for estimate in names["answers"]["estimate"].to_pylist()] == [40, 40]


def test_joins(spark: SparkSession, names: dict[str, Any], tmp_path: Path) -> None:
    names["views"] = stream(spark, tmp_path / "views", "view long, ad long, time timestamp, minute long, price double")
    names["clicks"] = stream(spark, tmp_path / "clicks", "click long, ad long, time timestamp")
    run(blocks("docs/group-drops.md")[3], names)
    assert names["totals"].columns == ["minute", "value", "lower", "upper", "kept", "status"]


def test_ledger(names: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded_query(tmp_path / "rides", batches=40)
    (block,) = blocks("docs/ledger.md")
    run(block, names, replaced={"checkpoints/rides": str(tmp_path / "rides")})  # there is no such query here
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].endswith("2 twice too many rows")
    assert printed[2] == "Totals(batches=40, seen=40000, kept=25000, estimated=0)"
    assert printed[-2] == "[]"


def test_load_aware(
    spark: SparkSession, names: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, guarded = blocks("docs/load-aware.md")

    def same_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    schema = "id long, mention string, timestamp timestamp"
    row = '{"id": 1, "mention": "m", "timestamp": "2026-01-01T00:00:00Z"}'
    names |= {"tweets": stream(spark, tmp_path / "in", schema, row), "schema": schema, "score": same_rows}
    run(alone, names)
    ended(names)
    names["scored"].close()
    assert capsys.readouterr().out
    names |= {"checkpoint": str(tmp_path / "second"), "output": str(tmp_path / "second-out")}
    names["schema"] = f"{schema}, jt_weight double"
    run(guarded, names)
    ended(names)


def test_networks(
    spark: SparkSession, names: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = blocks("docs/networks.md")
    row = '{"partition": 0, "offset": %d, "timestamp": "2026-01-01T00:00:00Z", "value": "%d"}'
    rows = [row % (number, 10 * number) for number in range(100)]

    def fares_by_zone(rows: DataFrame) -> DataFrame:
        seen = rows.withWatermark("timestamp", "1 minute")
        return seen.groupBy(F.window("timestamp", "1 minute"), "zone").agg(jt.avg("fare").alias("fare"))

    names |= {
        "raw": stream(spark, tmp_path / "in", KAFKA, *rows),
        "sample": spark.read.schema(KAFKA).json(str(tmp_path / "in")),
        "parse": lambda rows: rows.selectExpr("*", "cast(value as double) as fare", "offset % 3 as zone"),
        "fares_by_zone": fares_by_zone,
    }
    # Relative paths would be in the folder that the tests run in.
    run(block, names, replaced={'"out/': f'"{tmp_path}/out/', '"checkpoints/': f'"{tmp_path}/checkpoints/'})
    ended(names)
    assert "alarms" in capsys.readouterr().out
    assert (
        spark.read.option("recursiveFileLookup", True).parquet(f"{tmp_path}/out/alarms").where("fare > 100").count() > 0
    )


def test_operation(spark: SparkSession, names: dict[str, Any], tmp_path: Path) -> None:
    (block,) = blocks("docs/operation.md")
    row = '{"partition": 0, "offset": 1, "timestamp": "2026-01-01T00:00:00Z", "value": ""}'
    stream(spark, tmp_path / "in", KAFKA, row)
    names["raw"] = spark.readStream.format("json").schema(KAFKA).option("path", str(tmp_path / "in"))
    names["answers"] = lambda rows: rows.drop("value")
    # Delta is not installed, and the query of a service never ends.
    run(block, names, replaced={'"delta"': '"parquet"', "awaitTermination()": "processAllAvailable()"})
    assert spark.read.parquet(names["output"]).count() == 1


def test_steering(names: dict[str, Any]) -> None:
    (block,) = blocks("docs/steering.md")
    run(block, names)
    assert [level.count("tier") for level in names["policy"].spec.levels] == [1, 1]


def test_settle(spark: SparkSession, names: dict[str, Any], tmp_path: Path) -> None:
    (block,) = blocks("docs/settle.md")
    names["SCHEMA"] = "id long, time timestamp, route string, fare double"
    names["shedder"] = jt.Shedder(latency="1 hour", checkpoint=names["checkpoint"])
    row = '{"id": 1, "time": "2026-01-01T00:00:00Z", "route": "r", "fare": 2.5}'
    stream(spark, tmp_path / "rides", names["SCHEMA"], row)
    # Relative paths would be in the folder that the tests run in.
    run(block, names, replaced={'"rides"': f'"{tmp_path}/rides"', '"fares")': f'"{tmp_path}/fares")'})
    ended(names)
    batch = names["answers"](
        names["source"](spark.read).load(str(tmp_path / "rides")).withColumn("jt_weight", F.lit(1.0))
    )
    assert {row.fare.value for row in batch.collect()} == {2.5}


def test_sifter(spark: SparkSession, names: dict[str, Any], tmp_path: Path) -> None:
    start, shares, at_the_source = blocks("docs/sifter.md")
    random = np.random.default_rng(1)
    names |= {
        "raw": stream(spark, tmp_path / "in", "partition int, offset long, price double, qty int, sector string"),
        "prices": random.uniform(0, 1000, 500),
        "quantities": random.integers(0, 500, 500),
        "sectors": random.choice(["tech", "food", "steel"], 500),
    }
    run(start, names)
    assert "jt_weight" in names["orders"].columns
    sent = []
    names |= {
        "received": names["policy"].to_bytes(0.5),
        "batch": None,
        "send": lambda batch, keep, *, marked: sent.append(keep),
    }
    run(at_the_source, names)
    assert 0.3 < sent[0].mean() < 0.7
    *setup, shown = shares.strip().splitlines()
    expression, comes_out = shown.split("#")
    run("\n".join(setup), names)
    assert repr(eval(expression, names)) == comes_out.strip()


def test_window_drops(
    spark: SparkSession, names: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guard, gaps, nested = blocks("docs/window-drops.md")
    row = '{"id": 1, "at": "2026-01-01T00:00:00Z", "sensor": "s", "value": 1.0}'
    names["raw"] = stream(spark, tmp_path / "in", "id long, at timestamp, sensor string, value double", row)
    run(guard, names)
    ended(names)
    peaks = {datetime(2026, 1, 1, 8, minute, tzinfo=UTC): peak for minute, peak in ((0, 1.0), (30, 4.0))}
    windows = [SimpleNamespace(window=SimpleNamespace(start=at), peak=peak) for at, peak in peaks.items()]
    run(gaps, names | {"answers": SimpleNamespace(collect=lambda: windows)})
    assert capsys.readouterr().out == blocks("docs/window-drops.md", "")[0]
    run(nested, names)
