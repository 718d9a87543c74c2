"""A query submitted to a cluster keeps and counts the same rows, whatever happens to its tasks, executors and workers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import jettison
from jettison.spark.session import LOCAL
from standalone_cluster import BIN, Cluster, cluster

pytestmark = pytest.mark.spark

FILES_PER_BATCH, ROWS_PER_FILE, BATCHES = 4, 500, 5
ROWS_PER_BATCH = FILES_PER_BATCH * ROWS_PER_FILE
_SETTINGS = {
    **LOCAL,
    "spark.executor.memory": "512m",
    # A file is a task, and its rows reach Python a hundred at a time: there is a middle in which to fail.
    "spark.sql.files.maxPartitionBytes": str(4 * 2**20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    # A task that takes long is run twice.
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.efficiency.enabled": "false",
}


def land(folder: Path) -> None:
    """Files in the order of their times, which is that in which Spark takes them."""
    folder.mkdir()
    for number in range(FILES_PER_BATCH * BATCHES):
        file = folder / f"{number:03d}.json"
        first = number * ROWS_PER_FILE
        file.write_text("".join(f'{{"id": {row}}}\n' for row in range(first, first + ROWS_PER_FILE)))
        os.utime(file, (1_700_000_000 + number,) * 2)


def submit(folder: Path, running: Cluster) -> subprocess.Popen[bytes]:
    """As `docs/operation.md` has it: the package goes along, and is not installed where the query runs."""
    package = shutil.make_archive(str(folder / "jettison"), "zip", Path(jettison.__file__).parents[1], "jettison")
    driver = Path(__file__).with_name("faulty_driver.py")
    settings = [word for name, value in _SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    command = [str(BIN / "spark-submit"), "--master", running.master, "--py-files", package, *settings]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "driver.log").open("wb") as log:
        return subprocess.Popen(
            [*command, str(driver), str(folder)], cwd=folder, env=environment, stdout=log, stderr=log
        )


def lose_worker(folder: Path, run: str, running: Cluster, driver: subprocess.Popen[bytes]) -> None:
    """Kill the worker that runs the task which says so, with its executor, and bring another."""
    said = folder / run / "struck" / "worker"
    deadline = time.monotonic() + 300.0
    while not said.exists():
        assert driver.poll() is None, (folder / "driver.log").read_text()[-3000:]
        assert time.monotonic() < deadline, f"{run} has come to {sorted(map(str, said.parent.iterdir()))}"
        time.sleep(0.05)
    executor, worker = map(int, said.read_text().split())
    os.kill(worker, signal.SIGKILL)
    os.kill(executor, signal.SIGKILL)
    running.add_worker()


def test_rows_and_counts_are_the_same_under_faults(tmp_path: Path) -> None:
    land(tmp_path / "in")
    with cluster(tmp_path, workers=2) as running:
        driver = submit(tmp_path, running)
        try:
            for run in ("auto", "observe"):
                lose_worker(tmp_path, run, running, driver)
            assert driver.wait(timeout=300.0) == 0, (tmp_path / "driver.log").read_text()[-3000:]
        finally:
            driver.kill()
            driver.wait()
    found: dict[str, dict[str, Any]] = {
        run: json.loads((tmp_path / f"{run}.json").read_text()) for run in ("undisturbed", "auto", "observe")
    }
    kept = [0] * BATCHES
    for row, weight in found["undisturbed"]["rows"]:
        assert weight == 2.5
        kept[row // ROWS_PER_BATCH] += 1
    assert all(0.3 < share / ROWS_PER_BATCH < 0.5 for share in kept)
    counts = [{"seen": ROWS_PER_BATCH, "kept": each, "dropped": ROWS_PER_BATCH - each, "exact": True} for each in kept]
    for run, result in found.items():
        assert ".zip" in result["package"], "the package that was submitted"
        assert result["rows"] == found["undisturbed"]["rows"], run
        assert result["batches"] == counts, run
        assert result["faults"] == {}, run
        struck = {file.name for file in (tmp_path / run / "struck").glob("[!.]*")}
        assert struck == (set() if run == "undisturbed" else {"task", "executor", "straggler", "worker"})
