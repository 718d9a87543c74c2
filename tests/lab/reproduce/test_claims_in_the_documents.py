"""The tables of claims in `docs/papers`: every claim that is stated, under its bar, with a verdict that its figures give."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

from doc_blocks import ROOT
from jettison.lab.bars import Bar
from jettison.lab.experiments import PAPERS
from jettison.lab.reproduce.claims import Claim, claims_of

_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
_SIDE = re.compile(rf"([<>]=) ?({_NUMBER})")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: patterns of the claims it is about, their bar, what was measured, what it says of that."""

    names: tuple[str, ...]
    bar: Bar
    bold: tuple[float, ...]
    other: tuple[float, ...]
    holds: bool
    star: bool

    @property
    def figures(self) -> tuple[float, ...]:
        return self.bold + self.other


def number(text: str) -> float:
    return float(text.replace(",", ""))


def numbers(text: str) -> tuple[float, ...]:
    """Figures, and not the numbers of what is in brackets or belongs to a name."""
    without = re.sub(r"\([^)]*\)", "", text)
    return tuple(map(number, re.findall(rf"(?<![\w.-]){_NUMBER}(?![\w%])", without)))


def bar_of(text: str) -> Bar:
    if both := re.fullmatch(rf"({_NUMBER}) to ({_NUMBER})", text):
        return Bar(at_least=number(both[1]), at_most=number(both[2]))
    sides = {sign: number(limit) for sign, limit in _SIDE.findall(text)}
    return Bar(at_least=sides.get(">="), at_most=sides.get("<="))


def section(paper: str) -> str:
    page = (ROOT / "docs" / "papers" / f"{paper}.md").read_text()
    return page.partition("\n## Claims\n")[2].partition("\n## ")[0]


def lines(paper: str) -> list[Line]:
    """Of the tables under "Claims": their columns are found by the headings, which all of them share."""
    table = [line for line in section(paper).splitlines() if "|" in line]
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table]
    heads, found = rows[0], []
    measured = slice(heads.index("paper") + 1, heads.index("bar"))
    for row in rows:
        if row == heads or set("".join(row)) <= {"-"}:
            continue
        names = re.findall(r"`([^`]+)`", row[0]) or [row[0]]
        cells = " ".join(row[measured])
        bold = tuple(figure for part in re.findall(r"\*\*(.+?)\*\*", cells) for figure in numbers(part))
        other = numbers(re.sub(r"\*\*.+?\*\*", " ", cells))
        verdict = row[-1].strip("*")
        found.append(
            Line(
                tuple(names),
                bar_of(row[heads.index("bar")]),
                bold,
                other,
                verdict.startswith(("holds", "yes")),
                "(*" in row[0],
            )
        )
    return found


def by_line(paper: str) -> list[tuple[Line, list[Claim]]]:
    """The claims that each line is about: of the patterns that fit a claim, the longest counts."""
    table = lines(paper)
    about: list[list[Claim]] = [[] for _ in table]
    for name, claim in claims_of(paper).items():
        fits = [
            (len(pattern), place)
            for place, line in enumerate(table)
            for pattern in line.names
            if fnmatchcase(name, pattern)
        ]
        if fits:
            about[max(fits)[1]].append(claim)
    return list(zip(table, about, strict=True))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_that_is_stated_is_on_the_page_and_no_line_is_about_another(paper: str) -> None:
    found = {claim.id for _, claims in by_line(paper) for claim in claims}
    text = section(paper)
    assert [name for name in claims_of(paper) if name not in found and f"`{name}`" not in text] == []
    assert [line.names for line, claims in by_line(paper) if len(claims) < len(line.names)] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_a_line_has_the_bar_of_its_claims_and_the_verdict_of_its_figures(paper: str) -> None:
    for line, claims in by_line(paper):
        assert {str(claim.bar) for claim in claims} == {str(line.bar)}, line
        assert line.holds == all(map(line.bar.met_by, line.figures)), line
        assert not any(map(line.bar.met_by, line.bold)), line
        assert all(map(line.bar.met_by, line.other)) or not (line.holds or line.bold), line
        assert line.figures or not line.holds, line


@pytest.mark.parametrize("paper", PAPERS)
def test_how_many_hold_is_the_number_of_those_that_do(paper: str) -> None:
    """Where the page says so; a line may be about claims of which some hold."""
    told = re.search(r"(\d+) of (\d+)\s+hold", section(paper))
    if told is None:
        return
    table = by_line(paper)
    surely = sum(len(claims) for line, claims in table if line.holds)
    perhaps = sum(len(claims) - 1 for line, claims in table if not line.holds)
    assert surely <= int(told[1]) <= surely + perhaps
    assert int(told[2]) <= len(claims_of(paper))


@pytest.mark.parametrize("paper", PAPERS)
def test_what_was_settled_after_a_look_has_a_star_where_the_page_uses_stars(paper: str) -> None:
    if "A star: settled after a look" not in section(paper):
        return
    for line, claims in by_line(paper):
        assert any("after_a_look" in claim.config for claim in claims) == line.star, line
