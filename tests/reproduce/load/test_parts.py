"""Experiments by name: all or some of them, and what was measured is kept should a later one fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jettison.reproduce.load as load
from jettison.errors import InvalidSetting, Unsupported
from jettison.reproduce.claims import Claim
from jettison.reproduce.load.parts import ON_SPARK, PARTS
from jettison.reproduce.report import RunSettings, Section


def settings(out: Path, lines: list[str] | None = None) -> RunSettings:
    return RunSettings(quick=True, seed=0, out=out, say=(lines if lines is not None else []).append)


def part(name: str):
    def run(_: RunSettings):
        return [Section(name, "text")], [Claim(name, "is one", "", 1.0, at_most=1.0)]

    return run


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "HAVE_COMPILER", True)
    monkeypatch.setattr(load, "PARTS", {name: part(name) for name in ("first", "second", "spark-third")})


def test_every_figure_of_the_paper_is_there_and_spark_parts_are_marked() -> None:
    assert [f"figure{number}" for number in (4, 5, 6, 7, 8, 9, 11)] == [name for name in PARTS if name[:6] == "figure"]
    assert {"spark-figure10", "spark-figure11", "spark-overhead", "spark-executors"} == ON_SPARK


def test_all_run_in_order_or_those_that_are_named(tmp_path: Path, fakes: None) -> None:
    assert [claim.id for claim in load.run(settings(tmp_path)).claims] == ["first", "second", "spark-third"]
    lines: list[str] = []
    assert [claim.id for claim in load.run(settings(tmp_path, lines), ["second"]).claims] == ["second"]
    assert lines == ["second: 1 of 1 claims hold, 0 s"]
    with pytest.raises(InvalidSetting, match="figure99"):
        load.run(settings(tmp_path), ["figure99"])


def test_what_was_measured_is_kept_when_a_later_part_fails(
    tmp_path: Path, fakes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: RunSettings):
        raise RuntimeError("no more")

    monkeypatch.setitem(load.PARTS, "second", fails)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError):
        load.run(settings(tmp_path))
    assert [claim["id"] for claim in json.loads((tmp_path / "claims.json").read_text())] == ["first"]


def test_java_is_asked_for_before_anything_runs_and_only_where_spark_does(
    tmp_path: Path, fakes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise Unsupported("no Java")

    monkeypatch.setattr(load, "ON_SPARK", {"spark-third"})
    monkeypatch.setattr(load.java, "require_java", none)
    with pytest.raises(Unsupported, match="no Java"):
        load.run(settings(tmp_path))
    assert not (tmp_path / "claims.json").exists()
    assert len(load.run(settings(tmp_path), ["first"]).claims) == 1
