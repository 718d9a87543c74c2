"""The audit of real streams, at a size that takes seconds."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from jettison.lab.bench import audits, shed_streams

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]


def test_bounds_of_a_stream_are_held_against_the_settled_truth(spark: SparkSession, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = 20_000
    keys, values = random.integers(0, 5, rows), random.exponential(10.0, rows)
    at_us = np.arange(rows) * 10**6
    stream = shed_streams.real(Path("nowhere"), lambda table: table, "1 hour")
    shed_streams.land(tmp_path / "in", (keys, values, at_us), files=6)
    verdicts = audits.judged(spark, tmp_path, stream, "UniformDrop")
    results = {answer: audits._result("made up", verdicts, answer) for answer in ("count", "avg")}
    by_policy = [one for one in verdicts if one.by == "ScriptedUniformDrop" and one.answer == "count"]
    assert [one.compared for one in by_policy] == [5 * 5], "all keys in all windows that are closed"
    assert results["count"].config["bounded"] == by_policy[0].bounded > 20
    assert results["count"].value > 60.0
    assert sum(bounds for bounds, _ in results["avg"].config["by_rows_kept"].values()) == by_policy[0].bounded
    assert results["avg"].config["windows"] == 0, "five bounds in a window are too few to speak of it"
    assert results["avg"].bar.at_least == 93.0
    assert audits._wrong_exact("made up", verdicts).holds


def test_a_stream_that_is_not_there_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JETTISON_DATA", str(tmp_path))
    console = Console(file=(said := io.StringIO()))
    assert not list(shed_streams.landed(console, "taxi"))
    assert "taxi: not there, JETTISON_DATA names no folder with it" in said.getvalue()


def test_real_files_become_rows_in_the_order_of_time() -> None:
    day = np.datetime64("2018-01-01", "ms")
    times = np.array([day + np.timedelta64(9, "D"), day, day + np.timedelta64(1, "D")])
    taxi = pa.table(
        {
            "pickup_datetime": times,
            "pickup_location_id": pa.array([7, 8, 9], pa.int16()),
            "fare_amount": [-3.0, 8.0, 900.0],
            "in_month": [True, True, False],
        }
    )
    keys, fares, at_us = shed_streams.taxi(taxi)
    assert (keys.tolist(), fares.tolist()) == ([8, 7], [8.0, 0.0]), "two days after a Monday, a week later"
    assert np.all(np.diff(at_us) > 0)
    flights = pa.table({"origin": ["a", "b", "a"], "delay": pa.array([1, -2, 3], pa.int16()), "date": times})
    assert [part.tolist() for part in shed_streams.flights(flights)[:2]] == [[0, 1, 0], [1.0, -2.0, 3.0]]
