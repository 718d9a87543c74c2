"""Tables of claims are made of what was stored, and no figure in them is typed in."""

from __future__ import annotations

from pathlib import Path

import pytest

from doc_blocks import ROOT
from jettison.lab.experiments import PAPERS
from jettison.lab.reproduce.claims import claims_of, judge, load, save
from jettison.lab.reproduce.claims_page import BLOCK, page

TO_BE_MEASURED = {
    "aurora": {"aurora/planners.json", "aurora/timed.json"},
    "sifter": {"sifter/speed.json"},
}
"""Files of claims that are yet to be made, on a machine that does nothing else where figures are times; tables stay."""
KEPT_BY_HAND = ["concept", "load", "window"]
"""Pages without stored claims."""


@pytest.mark.parametrize("paper", PAPERS)
def test_the_tables_on_a_page_are_those_that_its_stored_claims_give(paper: str) -> None:
    """After a change: `python -m jettison.lab.reproduce.claims_page docs/papers/PAPER.md`."""
    document = ROOT / "docs" / "papers" / f"{paper}.md"
    text = document.read_text()
    assert text == page(text, document.parent)
    files = {found[2] for found in BLOCK.finditer(text)}
    assert bool(files) == (paper not in KEPT_BY_HAND)
    assert {name for name in files if not (document.parent / name).exists()} == TO_BE_MEASURED.get(paper, set())
    for name in TO_BE_MEASURED.get(paper, ()):
        assert "*Typed by hand, from" in text.partition(f"<!-- claims of {name}")[0].splitlines()[-2]


@pytest.mark.parametrize("paper", PAPERS)
def test_stored_claims_are_as_they_are_stated_now(paper: str) -> None:
    for path in (ROOT / "docs" / "papers" / paper).glob("*.json"):
        for one in load(path):
            stated = claims_of(paper)[one.id]
            assert (one.claim, one.paper, str(one.bar)) == (stated.claim, stated.paper, str(stated.bar))


def test_a_table_has_the_claims_that_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "sifter").mkdir()
    save(judge("sifter", {"size-16": 130.0, "slopes": 0.02, "size-100": 400.0}), tmp_path / "sifter" / "claims.json")
    text = "before\n<!-- claims of sifter/claims.json: size-* -->\nby hand\n<!-- end of claims -->\nafter\n"
    made = page(text, tmp_path)
    assert (
        "| `size-16`: bytes of 16 regions, 2 attributes |  | 130 | <= 120 | **does not hold** |\n| `size-100`: " in made
    )
    assert "| 400 | <= 700 | holds |\n" in made
    assert "slopes" not in made
    assert "by hand" not in made
    assert made.startswith("before\n")
    assert made.endswith("<!-- end of claims -->\nafter\n")
    assert page(made, tmp_path) == made
    assert "slopes" in page(text.replace(": size-*", ""), tmp_path)


def test_a_table_whose_file_is_not_there_stays(tmp_path: Path) -> None:
    text = "<!-- claims of claims.json -->\nby hand\n<!-- end of claims -->\n"
    assert page(text, tmp_path) == text
