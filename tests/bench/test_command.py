"""Which benchmarks run, what is refused, and that nothing measured is lost. Starts no Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from jettison.bench import command, names
from jettison.bench.result import Result
from jettison.errors import InvalidSetting


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two made-up benchmarks on Spark, the second of which fails, and a pure one; returns what happened."""
    ran: list[str] = []

    @contextmanager
    def session(name: str) -> Iterator[None]:
        ran.append("Spark starts")
        yield

    def measured(spark: None, folder: Path, repetitions: int) -> list[Result]:
        assert folder.is_dir()
        ran.append(f"measured {repetitions} times")
        return [Result("first", value=1.0, unit="s")]

    def failing(spark: None, folder: Path, repetitions: int) -> list[Result]:
        raise RuntimeError("the second one failed")

    def pure() -> list[Result]:
        ran.append("pure")
        return [Result("pure", value=2.0, unit="ms", at_most=1.0)]

    monkeypatch.setattr(command, "local_session", session)
    monkeypatch.setattr(command.java, "require_java", lambda: ran.append("Java"))
    monkeypatch.setattr(command, "ON_SPARK", {"first": measured, "second": failing})
    monkeypatch.setattr(command, "PURE", {"pure": pure})
    return ran


def test_a_benchmark_by_name_runs_alone(ran: list[str]) -> None:
    results = command.run_bench(Console(file=io.StringIO()), name="first", repetitions=7)
    assert [result.name for result in results] == ["first"]
    assert ran == ["Java", "Spark starts", "measured 7 times"]


def test_a_pure_benchmark_needs_neither_java_nor_spark(ran: list[str], tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    command.run_bench(console, name="pure", json_path=tmp_path / "out.json")
    assert ran == ["pure"]
    (row,) = json.loads((tmp_path / "out.json").read_text())
    assert (row["name"], row["holds"]) == ("pure", False)
    assert "NO" in console.file.getvalue()  # type: ignore[attr-defined]


def test_what_is_measured_is_not_lost_when_the_next_one_fails(ran: list[str], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the second one failed"):
        command.run_bench(Console(file=io.StringIO()), json_path=tmp_path / "out.json")
    assert [row["name"] for row in json.loads((tmp_path / "out.json").read_text())] == ["first"]


@pytest.mark.parametrize(("name", "hint"), [("frist", "did you mean 'first'"), ("coffee", "leave the name out")])
def test_an_unknown_name_is_refused_before_anything_starts(ran: list[str], name: str, hint: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"a benchmark out of first, second, pure, got '{name}'.*{hint}"):
        command.run_bench(Console(file=io.StringIO()), name=name)
    assert ran == []


def test_no_repetition_at_all_is_refused(ran: list[str]) -> None:
    with pytest.raises(InvalidSetting, match="at least 1, got 0"):
        command.run_bench(Console(file=io.StringIO()), repetitions=0)
    assert ran == []


def test_every_benchmark_has_one_name_and_help_knows_it() -> None:
    assert not set(command.ON_SPARK) & set(command.PURE)
    assert list(names.BENCHMARKS) == [*command.ON_SPARK, *command.PURE]
