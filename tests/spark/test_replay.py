"""A batch that was interrupted is repeated as it was, although other plans were published in between."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from driver_process import kill_when, start_driver
from jettison.lab.bench.replay import interrupted_runs
from jettison.lab.bench.scripted import land
from jettison.lab.bench.scripted_queries import START
from spark_since import cases

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]


@pytest.mark.parametrize("policy", cases(START, quick=("PriorityDrop", "Sifter")))
def test_a_repeated_batch_keeps_the_same_rows(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    """All but window drops thin late rows too: half arrived an hour ago. Windows are marked some batches ahead."""
    files = 8 if policy == "WindowDrop" else 4
    sink = interrupted_runs(spark, tmp_path, policy, groups=500, files=files)
    assert len(sink.repeated) >= files // 2
    assert all(len(attempts) == 1 + batch % 2 for batch, attempts in sink.by_batch.items())
    assert sink.differing == 0
    # A sink that merges by id holds each row once, with one weight.
    assert sum(len(attempts[-1]) for attempts in sink.by_batch.values()) == len(sink.merged)
    assert all(sink.merged[id] == weight for attempts in sink.by_batch.values() for id, weight in attempts[0].items())
    ledger = jt.Ledger(tmp_path / "checkpoint" / "jettison" / "ledger")
    settings = {json.dumps(record["points"], sort_keys=True) for record in ledger.records("plan")}
    assert len(settings) > 1, "the plans were the same all along"


@pytest.mark.long
def test_a_batch_repeated_after_kill_9_keeps_the_same_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(tmp_path / "in", range(3), groups=500)
    first, again = tmp_path / "attempt-0.3.json", tmp_path / "attempt-0.9.json"
    kill_when(start_driver("replay_driver", tmp_path, str(tmp_path), "0.3"), first.exists)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # where a driver finds what it needs
    shedder, query = import_module("replay_driver").start(spark, tmp_path, "0.9", finish=True)
    query.processAllAvailable()
    shedder.close()
    kept = json.loads(first.read_text())
    assert 0 < len(kept) < 0.5 * 600
    assert json.loads(again.read_text()) == kept
