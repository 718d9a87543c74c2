"""What the documents point at is there: files, headings, and commands with their options."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import typer

from jettison.cli import app
from jettison.lab.experiments import BENCHMARKS, PAPERS

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_COMMAND = re.compile(
    r"(?<![\w.])jettison (demo|bench|reproduce|plan|run|top|dashboard|report|reconcile|audit)\b((?: +[\w./:<>\[\]-]+)*)"
)
_TARGET = re.compile(r"^([\w-]+):", re.MULTILINE)
_MAKE = re.compile(r"`make ([a-z]+)|^make ([a-z]+)", re.MULTILINE)

by_name = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@cache
def headings(document: Path) -> set[str]:
    """Anchors of a document's headings, as code hosts make them."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@by_name
def test_every_link_leads_somewhere(document: Path) -> None:
    for link in _LINK.findall(document.read_text()):
        path, _, anchor = link.partition("#")
        target = document if not path else document.parent / path
        if path.startswith("http"):
            continue
        assert target.exists(), link
        assert not anchor or anchor in headings(target), link


@by_name
def test_every_command_is_there_with_its_options(document: Path) -> None:
    if document.name == "CHANGELOG.md":
        return  # it also names what is gone
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, rest in _COMMAND.findall(document.read_text()):
        known = {"--help", *(option for parameter in commands[name].params for option in parameter.opts)}
        words = rest.split()
        options = [word.strip("[]") for word in words if word.strip("[]").startswith("--")]
        assert [option for option in options if option not in known] == [], f"jettison {name}{rest}"
        first = words[0] if words else ""
        if name == "bench" and re.fullmatch(r"[a-z-]+", first) and not first.startswith("-"):
            assert first in BENCHMARKS, f"jettison {name}{rest}"
        if name == "reproduce" and re.fullmatch(r"[a-z]+", first):
            assert first in PAPERS, f"jettison {name}{rest}"
            parts = [part for option, part in pairwise(words) if option == "--only" and part.islower()]
            assert [part for part in parts if part not in PAPERS[first].parts] == [], f"jettison {name}{rest}"


@by_name
def test_every_target_of_make_is_there(document: Path) -> None:
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    named = {first or second for first, second in _MAKE.findall(document.read_text())}
    assert named <= targets
