"""Which experiments of a paper run, what is asked for beforehand, and what a run that is cut short leaves behind."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from jettison import extras
from jettison.errors import InvalidSetting, Unsupported
from jettison.lab import recorded_session
from jettison.lab.experiments import PAPERS, Experiment, Kind, Paper
from jettison.lab.reproduce import command
from jettison.lab.reproduce.claims import Claim
from jettison.lab.reproduce.report import Judged, RunSettings, Section


def judged(name: str) -> Judged:
    return [Section(name, f"about {name}")], [Claim(name, f"{name} holds", paper="", ours=1.0, at_least=0.0)]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A made-up paper of four parts, two of them on Spark; returns what happened."""
    ran: list[str] = []

    @contextmanager
    def session(name: str) -> Iterator[str]:
        ran.append("Spark starts")
        yield "spark"
        ran.append("Spark ends")

    def first(settings: RunSettings) -> Judged:
        ran.append("first")
        return judged("first")

    def second(spark: str, folder: Path, settings: RunSettings) -> Judged:
        assert folder.is_dir()
        ran.append(f"second on {spark}")
        return judged("second")

    def failing(settings: RunSettings) -> Judged:
        raise RuntimeError("no more")

    made_up = ModuleType("jettison.lab.reproduce.made_up")
    made_up.__dict__.update(first=first, second=second, failing=failing)
    monkeypatch.setitem(sys.modules, made_up.__name__, made_up)
    kinds = {"first": Kind.PURE, "second": Kind.ON_SPARK, "again": Kind.ON_SPARK, "failing": Kind.PURE}
    functions = {"again": "second"}
    lengths = {"first": "2 min"}
    parts = {
        name: Experiment(name, lengths.get(name, ""), "", kind, f"{made_up.__name__}:{functions.get(name, name)}")
        for name, kind in kinds.items()
    }
    monkeypatch.setattr(command, "PAPERS", {"made_up": Paper("made_up", "A paper", "", "", "", parts)})
    monkeypatch.setattr(recorded_session, "recorded_session", session)
    monkeypatch.setattr(command.java, "require_java", lambda: ran.append("Java"))
    return ran


@pytest.mark.parametrize(
    ("whole", "quick", "only", "said"),
    [
        ("", False, "again", "nobody knows how much longer"),
        ("", False, "first", "about 2 min left"),
        ("8 min", False, "again", "at most 8 min left"),
        ("8 min", True, "first", "at most 8 min left"),
        ("8 min", True, None, "about 8 min left"),
    ],
)
def test_it_says_how_long_it_still_takes_as_far_as_that_is_known(
    ran: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    whole: str,
    quick: bool,
    only: str | None,
    said: str,
) -> None:
    (paper,) = command.PAPERS.values()
    monkeypatch.setattr(command, "PAPERS", {"made_up": replace(paper, quick=whole, full=whole)})
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with suppress(RuntimeError):  # the last part of the whole paper fails
        command.run_reproduce(console, "made_up", quick=quick, seed=1, out=tmp_path, only=[only] if only else ())
    assert said in console.file.getvalue()  # type: ignore[attr-defined]


Run = Callable[..., list[str]]


@pytest.fixture
def run(ran: list[str], tmp_path: Path) -> Run:
    def run(*only: str) -> list[str]:
        told: dict[str, Any] = {"quick": True, "seed": 3, "out": tmp_path, "only": only}
        return [claim.id for claim in command.run_reproduce(Console(file=io.StringIO()), "made_up", **told).claims]

    return run


def test_those_that_are_named_run_in_the_papers_order(run: Run, ran: list[str], tmp_path: Path) -> None:
    assert run("again", "first", "second") == ["first", "second", "second"]
    assert ran == ["Java", "first", "Spark starts", "second on spark", "second on spark", "Spark ends"]
    expected = "Made by `jettison reproduce made_up --only again --only first --only second --quick --seed 3`."
    assert expected in (tmp_path / "REPORT.md").read_text()


def test_a_part_that_needs_no_spark_needs_no_java(run: Run, ran: list[str]) -> None:
    run("first")
    assert ran == ["first"]


def test_java_is_asked_for_before_anything_runs(run: Run, ran: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise Unsupported("no Java")

    monkeypatch.setattr(command.java, "require_java", none)
    with pytest.raises(Unsupported, match="no Java"):
        run()
    assert ran == []


def test_what_was_measured_is_kept_when_a_later_part_fails(run: Run, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no more"):
        run()
    assert [claim["id"] for claim in json.loads((tmp_path / "claims.json").read_text())] == [
        "first",
        "second",
        "second",
    ]
    assert "about first" in (tmp_path / "REPORT.md").read_text()


def test_an_unknown_part_is_refused_before_anything_runs(run: Run, ran: list[str]) -> None:
    with pytest.raises(
        InvalidSetting, match=r"--only must be one of first, second, again, failing, got 'frist'.*'first'"
    ):
        run("frist")
    assert ran == []


def test_the_compiler_of_the_load_simulator_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = extras.importlib.util.find_spec
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None if name == "numba" else found(name))
    with pytest.raises(
        Unsupported,
        match=r"numba must be installed, got .* for `jettison reproduce load`.*\[reproduce\]",
    ):
        command.run_reproduce(Console(), "load", quick=True, seed=1, out=tmp_path, only=["figure4"])


@pytest.mark.parametrize("paper", PAPERS)
def test_every_part_is_where_the_registry_says(paper: str) -> None:
    assert [part.name for part in PAPERS[paper].parts.values() if not callable(part.load())] == []
