"""The demo from end to end over made-up runs: what it measures, shows and writes. Starts no Spark."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demo_runs import run_with
from jettison.lab.demo import command
from jettison.lab.demo.experiment import Moment, Run
from jettison.lab.demo.schedule import Phase
from jettison.lab.demo.verdict import Answers

ANSWERS = Answers(
    windows=5, answers=120, exact_answers=60, mean_relative_error=0.02, bounds_coverage=0.95, groups_missing=1
)
# The phases of the made-up runs: 0.5, 3 and 0.5 times this capacity for so many seconds.
CAPACITY, SECONDS = 200.0, (10.0, 30.0, 10.0)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Everything that would start Spark is made up; returns what the parts were told."""
    told: dict[str, Any] = {}

    @contextmanager
    def session(name: str) -> Iterator[None]:
        yield

    def capacity(spark: None, folder: Path, *, batch_s: float, overload: float) -> float:
        told.update(batch_s=batch_s, overload=overload)
        return CAPACITY

    def run_fares(
        spark: None,
        folder: Path,
        phases: Sequence[Phase],
        bound_s: float | None,
        watch: Any,
        address: str | None,
        known: float | None,
    ) -> Run:
        told.update(address=address, known=known)
        if bound_s is None:
            told["plain"] = list(phases)
            watch(Moment("plain", 1.0, 50.0, 100.0, 1.0, 77.0))
            return run_with([1.0] * 10 + [3.0, 9.0, 27.0], name="plain", kept=1.0)
        told.update(shed=list(phases), bound_s=bound_s)
        return run_with([1.0] * 60, name="shed", kept=0.3)

    monkeypatch.setattr(command, "recorded_session", session)
    monkeypatch.setattr(command, "measure_capacity", capacity)
    monkeypatch.setattr(command, "run_fares", run_fares)
    monkeypatch.setattr(command.verdict, "answers", lambda spark, run, output: ANSWERS)
    return told


def test_both_runs_get_the_same_arrivals_and_everything_is_written(told: dict[str, Any], tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=140)
    document = command.run_demo(
        console, bound_s=4.0, seconds=SECONDS, json_path=tmp_path / "out.json", picture_path=tmp_path / "demo.png"
    )
    assert told["plain"] == told["shed"] == [Phase(10.0, 100.0), Phase(30.0, 600.0), Phase(10.0, 100.0)]
    assert (told["bound_s"], told["overload"]) == (4.0, 3.0)
    assert 1.0 < told["batch_s"] < 2.0, "a row waits for one batch and is processed in the next"
    assert json.loads((tmp_path / "out.json").read_text()) == document
    assert (tmp_path / "demo.png").stat().st_size > 0
    shed = document["shed"]
    assert (shed["kept_fraction"], shed["groups_missing"]) == (pytest.approx(0.3), 1)
    assert shed["latency_p95_s"] < 4.0 < document["plain"]["latency_peak_s"]
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Capacity: 200 rides/s" in text
    assert "latency  77.0 s (bound 4 s) OVER" in text
    assert "The latency bound of 4 s was held" in text
    assert f"Figures: {tmp_path / 'out.json'}." in text.replace("\n", "")


def test_loads_are_chosen_and_the_guard_is_told_the_capacity_where_asked(told: dict[str, Any], tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=140)
    how: dict[str, Any] = {"bound_s": 4.0, "seconds": SECONDS, "picture_path": tmp_path / "demo.png"}
    document = command.run_demo(console, **how, loads=(0.5, 10.0, 0.5), capacity_known=True)
    assert told["shed"][1] == Phase(30.0, 2_000.0)
    assert (told["known"], told["overload"]) == (CAPACITY, 10.0)
    assert (document["capacity_known"], document["loads"]) == (True, [0.5, 10.0, 0.5])
    command.run_demo(console, **how)
    assert told["known"] is None


def test_without_json_only_the_picture_is_written(told: dict[str, Any], tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=140)
    command.run_demo(console, bound_s=4.0, seconds=SECONDS, picture_path=tmp_path / "demo.png")
    assert [path.name for path in tmp_path.iterdir()] == ["demo.png"]
    assert "Figures" not in console.file.getvalue()  # type: ignore[attr-defined]


def test_on_kafka_rides_arrive_at_a_broker_and_the_capacity_is_measured_there(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def broker() -> Iterator[str]:
        yield "here:1"

    def capacity(spark: None, source: str, work: str, load: float, address: str) -> float:
        told.update(source=source, measured_at=address, overload=load)
        return CAPACITY

    monkeypatch.setattr(command, "broker", broker)
    monkeypatch.setattr(command, "with_connector", lambda: None)
    monkeypatch.setattr(command, "plain_capacity", capacity)
    console = Console(file=io.StringIO(), width=140)
    command.run_demo(console, bound_s=4.0, seconds=SECONDS, picture_path=tmp_path / "demo.png", kafka=True)
    assert (told["source"], told["measured_at"], told["address"], told["overload"]) == (
        "kafka",
        "here:1",
        "here:1",
        3.0,
    )


def test_cold_runs_have_processes_of_their_own_and_show_their_first_minute(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple[bool, float]] = []

    def apart(within_s: float, function: Any) -> Run:
        assert function.__func__ is command.Side.run_cold
        side = pickle.loads(pickle.dumps(function)).__self__  # as it goes to the process
        runs.append((side.guarded, side.bound_s))
        return run_with([7.0] + [1.0] * 50, name="shed" if side.guarded else "plain", kept=0.5 if side.guarded else 1.0)

    monkeypatch.setattr(command, "in_fresh_process", apart)
    console = Console(file=io.StringIO(), width=140)
    document = command.run_demo(console, bound_s=4.0, seconds=SECONDS, picture_path=tmp_path / "demo.png", cold=True)
    assert runs == [(False, 4.0), (True, 4.0)]
    assert "plain" not in told, "nothing may run where the capacity was measured"
    assert document["first_minute"]["shed"]["first_batch_s"] == pytest.approx(7.0)
    assert document["first_minute"]["shed"]["kept_below_capacity"] == pytest.approx(0.5)
    assert "The first minute of a cold process" in console.file.getvalue()  # type: ignore[attr-defined]
