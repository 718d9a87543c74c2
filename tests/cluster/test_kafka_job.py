"""The example for a user's own broker, submitted as its users do: to a cluster, and with a Delta table for its answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jettison as jt
from jettison.lab.bench.fault_topic import Topic
from jettison.lab.bench.kafka import broker
from jettison.lab.bench.maven_jars import CONNECTOR, DELTA, Bundle, jars
from jettison.spark.session import LOCAL
from standalone_cluster import BIN, cluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

EXAMPLE = Path(__file__).parents[2] / "examples" / "kafka_job.py"
ROWS, SENSORS, MINUTES = 3000, 3, 5


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with broker() as address:
        Topic(address, "readings").append([json.dumps(reading(row)).encode() for row in range(ROWS)])
        yield address


def reading(row: int) -> dict[str, Any]:
    second = row * 60 * MINUTES // ROWS
    time = f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}"
    return {"sensor": f"s{row % SENSORS}", "time": time, "value": float(row % 7)}


def submit(folder: Path, address: str, *options: str, sink: str, needs: Sequence[Bundle] = (CONNECTOR,)) -> None:
    """As `docs/cluster.md` has it, but with jars that are pinned; the job takes what is there, and ends."""
    package = shutil.make_archive(str(folder / "jettison"), "zip", Path(jt.__file__).parents[1], "jettison")
    needed = ",".join(str(jar) for bundle in needs for jar in jars(bundle))
    settings = {**LOCAL, "spark.sql.shuffle.partitions": "2", "spark.executor.memory": "512m"}
    asked = {"broker": address, "topic": "readings", "checkpoint": folder / "checkpoint", "out": folder / "out"}
    command = [
        *(str(BIN / "spark-submit"), "--py-files", package, "--jars", needed, *options),
        *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
        *(str(EXAMPLE), "--latency", "1 hour", "--format", sink, "--drain"),
        *(word for name, value in asked.items() for word in (f"--{name}", str(value))),
    ]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert "keeping everything" in done.stdout or "ended" in done.stdout


def expect_all(folder: Path, answers: pa.Table) -> None:
    """Nothing was dropped, so all windows but those that are open are there and exact."""
    totals = jt.Ledger(folder / "checkpoint" / "jettison" / "ledger").totals()
    assert (totals.seen, totals.kept) == (ROWS, ROWS)
    found = {(row["window"]["start"].minute, row["sensor"]): row for row in answers.to_pylist()}
    for minute in range(MINUTES - 2):
        for sensor in range(SENSORS):
            rows = [reading(row) for row in range(ROWS)]
            values = [r["value"] for r in rows if (r["time"][14:16], r["sensor"]) == (f"{minute:02d}", f"s{sensor}")]
            answer = found.pop((minute, f"s{sensor}"))
            assert answer["mean"]["value"] == pytest.approx(sum(values) / len(values))
            assert (answer["readings"]["value"], answer["readings"]["status"]) == (len(values), "exact")


def test_the_example_runs_on_a_cluster(address: str, tmp_path: Path) -> None:
    with cluster(tmp_path, workers=1) as running:
        submit(tmp_path, address, "--master", running.master, sink="parquet")
    expect_all(tmp_path, pq.read_table(tmp_path / "out"))


@pytest.mark.skipif("JETTISON_TEST_DELTA" not in os.environ, reason="a Delta table: run `make test-delta`")
def test_the_example_writes_a_delta_table(address: str, tmp_path: Path) -> None:
    catalog = "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"
    extension = "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension"
    options = ("--master", "local[2]", "--conf", extension, "--conf", catalog)
    submit(tmp_path, address, *options, sink="delta", needs=(CONNECTOR, DELTA))
    log = sorted((tmp_path / "out" / "_delta_log").glob("*.json"))
    added = [json.loads(line).get("add") for file in log for line in file.read_text().splitlines()]
    files = [tmp_path / "out" / each["path"] for each in added if each]
    assert files, "answers are committed to the table"
    expect_all(tmp_path, pa.concat_tables([pq.read_table(file) for file in files]))
