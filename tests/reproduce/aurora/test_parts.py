"""Which experiments run, and what a run that is cut short leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jettison import java
from jettison.errors import Unsupported
from jettison.reproduce import aurora
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section


def part(name: str) -> aurora.Judged:
    return [Section(name, f"about {name}")], [Claim(name, f"{name} holds", paper="", ours=1.0, at_least=0.0)]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSettings:
    monkeypatch.setattr(aurora, "PARTS", {name: lambda settings, name=name: part(name) for name in aurora.PARTS})
    return RunSettings(quick=True, seed=1, out=tmp_path, say=lambda line: None)


def judged(settings: RunSettings, *only: str) -> list[str]:
    return [claim.id for claim in aurora.run(settings, only).claims]


def test_all_or_those_that_are_named(settings: RunSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "java_problem", lambda: None)
    assert judged(settings) == list(aurora.PARTS)
    assert judged(settings, "planners", "figure11") == ["figure11", "planners"]


def test_without_java_the_live_run_is_left_out_unless_it_is_asked_for(
    settings: RunSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "java_problem", lambda: "there is none")
    assert judged(settings) == [name for name in aurora.PARTS if name != "live"]
    with pytest.raises(Unsupported):
        judged(settings, "live")


def test_a_run_cut_short_leaves_what_it_found(settings: RunSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(settings: RunSettings) -> aurora.Judged:
        raise KeyboardInterrupt

    monkeypatch.setitem(aurora.PARTS, "figure12", cut)
    with pytest.raises(KeyboardInterrupt):
        judged(settings, "figure11", "figure12")
    assert [claim["id"] for claim in json.loads((settings.out / "claims.json").read_text())] == ["figure11"]
    assert "about figure11" in (settings.out / "REPORT.md").read_text()
