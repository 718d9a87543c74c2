"""What the documents point at is there: files, headings, and commands with their options."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import typer
import yaml

import jettison
from doc_blocks import blocks
from jettison.cli import app
from jettison.lab.experiments import BENCHMARKS, PAPERS

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_COMMAND = re.compile(
    r"(?<![\w./-])jettison (demo|bench|reproduce|plan|run|set|advise|top|dashboard|report|reconcile|audit)\b([^`\n#]*)"
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
    # What is set as code may go on in the next line.
    text = _SPAN.sub(lambda span: f"`{' '.join(span[1].split())}`", document.read_text())
    for name, rest in _COMMAND.findall(text):
        known = {"--help", *(option for parameter in commands[name].params for option in parameter.opts)}
        words = rest.split()
        options = re.findall(r"(?<![\w-])--[\w-]+", rest)
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


@by_name
def test_a_page_is_short_enough_to_be_read(document: Path) -> None:
    """Guides and explanations under 800 words, papers under 1,500; three explanations are mostly tables of figures."""
    if document.parent == ROOT or document.name in ("controller.md", "benchmarks.md", "rivals.md"):
        return
    words = re.sub(r"\||-{3,}", " ", document.read_text()).split()
    assert len(words) < (1500 if document.parent.name == "papers" else 800)


def test_the_site_has_every_page_and_the_reference_every_name() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2].partition("\ntheme:")[0]
    listed = set(re.findall(r"^ +- (?:.*: )?([\w./-]+\.md)", nav, re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    elsewhere = {"index.md", "architecture.md", "contributing.md", "changelog.md", "security.md", "notebook.md"}
    assert listed - pages == elsewhere
    assert pages <= listed
    reference = (ROOT / "docs" / "reference" / "jettison.md").read_text()
    assert re.findall(r"^ +- (\w+)$", reference, re.MULTILINE) == jettison.__all__


def test_prometheus_is_told_where_the_page_is_by_default() -> None:
    """The only block of YAML; tests/page fetches the figures that it makes Prometheus fetch."""
    (block,) = blocks("docs/page.md", "yaml")
    (job,) = yaml.safe_load(block)["scrape_configs"]
    port = next(one for one in typer.main.get_command(app).commands["dashboard"].params if one.name == "port").default  # type: ignore[attr-defined]
    assert job["static_configs"] == [{"targets": [f"127.0.0.1:{port}"]}]
