"""What the benchmarks of cost look at is there: the driver's threads and classes, a plan alone, sinks one at a time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jettison.lab.bench import sharing
from jettison.lab.bench.driver_process import PYTHON
from jettison.lab.bench.fixed_plan import under_fixed_plan
from jettison.lab.bench.steady import land_batches, steady_fares
from jettison.lab.demo.landing import land_all
from jettison.policies import UniformDrop


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux has /proc")
@pytest.mark.parametrize("keep_fraction", [None, 0.3])
def test_a_running_query_tells_where_its_cpu_goes(
    spark: SparkSession, tmp_path: Path, keep_fraction: float | None
) -> None:
    land_batches(tmp_path / "in", 20, 50)
    found = steady_fares(spark, tmp_path, keep_fraction, warm_up=1, batches=5)
    assert found.cpu_ms["tasks"] > 0.0
    assert found.cpu_ms["micro-batch: planning, generating code, logs"] > 0.0
    assert found.cpu_ms[PYTHON] > 0.0
    assert 0.0 < found.step_ms["queryPlanning"] < found.step_ms["triggerExecution"]
    assert found.classes >= 0
    assert found.threads > 10


@pytest.mark.parametrize(("keep_fraction", "least", "most"), [(1.0, 1000, 1000), (0.3, 200, 400)])
def test_a_fixed_plan_keeps_its_share(
    spark: SparkSession, tmp_path: Path, keep_fraction: float, least: int, most: int
) -> None:
    rows = spark.range(1000)
    kept = under_fixed_plan(rows, tmp_path / "plan", UniformDrop(), keep_fraction, ["id"]).count()
    assert least <= kept <= most


@pytest.mark.long
@pytest.mark.usefixtures("interpreted", "one_partition")
def test_time_in_sinks_is_taken_with_sinks_one_after_another_and_side_by_side(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, seen, lock, all_there = [0], set[int](), threading.Lock(), threading.Event()

    def discard(output: int) -> sharing.Sink:
        def write(rows: object, batch_id: int) -> None:
            with lock:
                running[0] += 1
                seen.add(running[0])
                if running[0] == 4:
                    all_there.set()
            all_there.wait(patience_s[0])
            with lock:
                running[0] -= 1

        return write

    patience_s = [0.05]  # where sinks follow each other, nobody comes
    monkeypatch.setattr(sharing, "_discard", discard)
    monkeypatch.setattr(sharing, "_OUTPUTS", 6)  # more than run at once; each takes a second to plan
    land_all(tmp_path / "in", 200, rows_per_file=100)
    assert sharing._time_in_sinks(spark, tmp_path, 1) > 0.0
    assert seen == {1}
    patience_s[0] = 120.0
    assert sharing._time_in_sinks(spark, tmp_path, 4) > 0.0
    assert max(seen) == 4
