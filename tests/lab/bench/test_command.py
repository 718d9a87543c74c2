"""Which benchmarks run, what is refused, and that nothing measured is lost. Starts no Spark."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from jettison.errors import InvalidSetting
from jettison.lab import recorded_session
from jettison.lab.bench import command
from jettison.lab.bench.result import Result, failed, save
from jettison.lab.experiments import BENCHMARKS, Experiment, Kind


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

    monkeypatch.setattr(recorded_session, "recorded_session", session)
    monkeypatch.setattr(command.java, "require_java", lambda: ran.append("Java"))

    def cases(console: Console, only: str | None) -> Iterator[list[Result]]:
        ran.append(f"apart, {only}")
        yield [Result("one case", value=1.0, unit="s", at_most=2.0, required=True)]
        yield [Result("another", value=3.0, unit="s", at_most=2.0, required=True)]
        if only is None:
            raise RuntimeError("the third one failed")

    def pairs(console: Console, only: str | None, pairs: int) -> Iterator[list[Result]]:
        ran.append(f"{pairs} pairs of {only}")
        yield [Result("paired", value=1.0, unit="s")]

    def seeded(console: Console, only: str | None, seeds: Sequence[int]) -> Iterator[list[Result]]:
        ran.append(f"seeds {list(seeds)}")
        yield [Result("seeded", value=1.0, unit="s")]

    made_up = ModuleType("made_up")
    made_up.__dict__.update(first=measured, second=failing, pure=pure, apart=cases, paired=pairs, seeded=seeded)
    monkeypatch.setitem(sys.modules, "made_up", made_up)
    kinds = {"first": Kind.ON_SPARK, "second": Kind.ON_SPARK, "pure": Kind.PURE}
    kinds |= {"apart": Kind.APART, "paired": Kind.PAIRS, "seeded": Kind.SEEDED}
    registered = {name: Experiment(name, "", "", kind, f"made_up:{name}") for name, kind in kinds.items()}
    monkeypatch.setattr(command, "BENCHMARKS", registered)
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
    assert "FAILS" in console.file.getvalue()  # type: ignore[attr-defined]


def test_what_is_measured_is_not_lost_when_the_next_one_fails(ran: list[str], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the second one failed"):
        command.run_bench(Console(file=io.StringIO()), json_path=tmp_path / "out.json")
    assert [row["name"] for row in json.loads((tmp_path / "out.json").read_text())] == ["first"]


def test_one_case_of_a_benchmark_runs_alone_and_what_it_misses_is_a_failure(ran: list[str]) -> None:
    results = command.run_bench(Console(file=io.StringIO()), name="apart", only="this")
    assert ran == ["Java", "apart, this"]
    assert [result.name for result in failed(results)] == ["another"]


def test_pairs_are_told_to_a_benchmark_that_has_them(ran: list[str]) -> None:
    command.run_bench(Console(file=io.StringIO()), name="paired", only="this", repetitions=9)
    assert ran == ["Java", "9 pairs of this"]


def test_seeds_are_told_to_a_benchmark_that_has_them(ran: list[str]) -> None:
    command.run_bench(Console(file=io.StringIO()), name="seeded", seeds=range(4, 6))
    assert ran == ["Java", "seeds [4, 5]"]


def test_rounds_are_saved_in_the_place_of_those_before_and_go_on_from_them(
    ran: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def rivals(
        console: Console, only: str | None, pairs: int, names: object, seconds: float, minutes: float, earlier: list
    ) -> Iterator[list[Result]]:
        ran.append(f"{minutes} minutes on top of {[one['value'] for one in earlier]}")
        for value in (2.0, 3.0):
            yield [Result("taxi", value, "s", config={"entrant": "x"})]

    sys.modules["made_up"].__dict__["rivals"] = rivals
    monkeypatch.setitem(command.BENCHMARKS, "rivals", Experiment("rivals", "", "", Kind.RIVALS, "made_up:rivals"))
    how = {"name": "rivals", "json_path": tmp_path / "out.json", "resume": True, "minutes": 7.0}
    for _ in range(2):
        found = command.run_bench(Console(file=io.StringIO()), **how)  # type: ignore[arg-type]
        assert [one.value for one in found] == [3.0]
    assert ran[1::2] == ["7.0 minutes on top of []", "7.0 minutes on top of [3.0]"]
    with pytest.raises(InvalidSetting, match="--resume needs the file"):
        command.run_bench(Console(file=io.StringIO()), name="rivals", resume=True)


def test_cases_that_ran_are_not_lost_when_a_later_one_fails(ran: list[str], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the third one failed"):
        command.run_bench(Console(file=io.StringIO()), name="apart", json_path=tmp_path / "out.json")
    assert [row["holds"] for row in json.loads((tmp_path / "out.json").read_text())] == [True, False]


@pytest.mark.parametrize(("name", "got"), [(None, "no benchmark"), ("pure", "'pure'")])
def test_one_case_is_refused_where_there_are_none(ran: list[str], name: str | None, got: str) -> None:
    with pytest.raises(InvalidSetting, match=f"--only needs a benchmark of several cases, got {got}"):
        command.run_bench(Console(file=io.StringIO()), name=name, only="this")
    assert ran == []


@pytest.mark.parametrize(("name", "hint"), [("frist", "did you mean 'first'"), ("coffee", "--all runs all")])
def test_an_unknown_name_is_refused_before_anything_starts(ran: list[str], name: str, hint: str) -> None:
    with pytest.raises(
        InvalidSetting, match=rf"must be one of first, second, pure, apart, paired, seeded, got '{name}'.*{hint}"
    ):
        command.run_bench(Console(file=io.StringIO()), name=name)
    assert ran == []


def test_no_repetition_at_all_is_refused(ran: list[str]) -> None:
    with pytest.raises(InvalidSetting, match="at least 1, got 0"):
        command.run_bench(Console(file=io.StringIO()), repetitions=0)
    assert ran == []


@pytest.mark.parametrize(
    ("known", "options", "said"),
    [
        ({}, {"name": "apart", "only": "this"}, "nobody knows how much longer"),
        ({"apart": "30 min"}, {"name": "apart", "only": "this"}, "at most 30 min left"),
        ({"apart": "30 min", "apart/this": "2 min"}, {"name": "apart", "only": "this"}, "about 2 min left"),
        ({"apart": "30 min", "apart/": "3 min"}, {"name": "apart", "only": "this"}, "about 3 min left"),
        ({"paired": "10 min"}, {"name": "paired", "repetitions": 20}, "about 40 min left"),
        ({"seeded": "50 min"}, {"name": "seeded", "seeds": range(4)}, "about 2 min left"),
        ({"pure": "10 min"}, {"name": "pure"}, "about 10 min left"),
    ],
)
def test_it_says_how_long_it_still_takes_as_far_as_that_is_known(
    ran: list[str],
    monkeypatch: pytest.MonkeyPatch,
    known: dict[str, str],
    options: dict[str, Any],
    said: str,
) -> None:
    registered = {name: replace(one, length=known.get(name, "")) for name, one in command.BENCHMARKS.items()}
    monkeypatch.setattr(command, "BENCHMARKS", registered)
    monkeypatch.setattr(
        command, "CASES", {"apart": {name[6:]: known[name] for name in known if name.startswith("apart/")}}
    )
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    command.run_bench(console, **options)
    assert said in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_check_says_how_long_its_rounds_take_at_most(
    ran: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    registered = {name: replace(one, length="10 min") for name, one in command.BENCHMARKS.items()}
    monkeypatch.setattr(command, "BENCHMARKS", registered)
    stored = Result("paired", 1.0, "s", ratio=1.0, at_most=1.1, config={"benchmark": "paired"})
    save([stored], tmp_path / "stored.json")
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    command.run_check(console, tmp_path / "stored.json")
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "at most 32 min left" in text
    assert "paired, round 8 (8 of 8)" in text
    assert "at most 4 min left" in text


def test_every_benchmark_is_where_the_registry_says() -> None:
    assert [one.name for one in BENCHMARKS.values() if not callable(one.load())] == []
