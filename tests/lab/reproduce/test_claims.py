import json
import math
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from rich.console import Console

from jettison.errors import InvalidSetting
from jettison.lab.reproduce.claims import Claim, claims_of, judge, load, save
from jettison.lab.reproduce.command import run_reproduce
from jettison.lab.reproduce.report import Report, Section

PAPERS = Path(__file__).parents[3] / "docs" / "papers"


def claim(ours: float, **bar: float) -> Claim:
    return Claim("c1", "it is so", "2.25", ours, **bar)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ours", "bar", "holds"),
    [
        (2.0, {"at_least": 2.0}, True),
        (1.9, {"at_least": 2.0}, False),
        (2.0, {"at_most": 2.0}, True),
        (2.1, {"at_most": 2.0}, False),
        (1.5, {"at_least": 1.0, "at_most": 2.0}, True),
        (2.5, {"at_least": 1.0, "at_most": 2.0}, False),
        (math.nan, {"at_most": 2.0}, False),
    ],
)
def test_the_verdict_follows_from_the_figure(ours: float, bar: dict[str, float], holds: bool) -> None:
    assert claim(ours, **bar).holds is holds


def test_a_claim_without_a_bar_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="a claim needs a bar"):
        claim(1.0)


def test_claims_that_do_not_hold_are_saved_as_such(tmp_path: Path) -> None:
    save([claim(1.0, at_least=2.0), claim(math.nan, at_least=2.0)], tmp_path / "claims.json")
    first, second = json.loads((tmp_path / "claims.json").read_text())
    assert (first["ours"], first["holds"]) == (1.0, False)
    assert (second["ours"], second["holds"]) == (None, False)
    assert set(first) >= {"id", "claim", "paper", "ours", "holds", "config"}


def test_claims_come_back_as_they_were_saved(tmp_path: Path) -> None:
    given = [claim(1.0, at_least=2.0), *judge("window", {"pipeline-random-fails": 0.5}, {"seeds": 2})]
    save([*given, claim(math.nan, at_most=2.0)], tmp_path / "claims.json")
    *back, unknown = load(tmp_path / "claims.json")
    assert back == given
    assert math.isnan(unknown.ours)


def test_a_report_shows_failures_and_sections(tmp_path: Path) -> None:
    report = Report("p", "A paper", "jettison reproduce p", [Section("Figure 1", "words")], [claim(1.0, at_least=2.0)])
    report.save(tmp_path)
    text = (tmp_path / "REPORT.md").read_text()
    assert "**does not hold**" in text
    assert "## Figure 1\n\nwords" in text


def test_an_unknown_paper_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="PAPER must be one of"):
        run_reproduce(Console(), "nosuch", quick=True, seed=1, out=tmp_path)


def test_figures_are_held_against_what_is_stated() -> None:
    plain, told = judge("sifter", {"size-16": 130.0, "size-100": (400.0, {"seeds": 5})}, {"seeds": 1})
    assert (plain.claim, plain.holds, plain.config) == ("bytes of 16 regions and 2 attributes", False, {"seeds": 1})
    assert (told.holds, told.config) == (True, {"seeds": 5})


def test_what_was_settled_after_a_look_is_said_beside_the_number() -> None:
    (moved,) = judge("window", {"pipeline-random-fails": 0.5})
    assert moved.config == {"after_a_look": "the bar"}


def test_a_figure_without_a_claim_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"a claim that claims.csv states, got 'size-61'.*'size-16'"):
        judge("sifter", {"size-61": 1.0})


@pytest.mark.parametrize("paper", ["concept", "sifter", "window"])
def test_a_page_publishes_every_claim_no_other_and_marks_those_that_were_moved(paper: str) -> None:
    lines = [line for line in (PAPERS / f"{paper}.md").read_text().splitlines() if line.startswith("| `")]
    published = {name: line for line in lines for name in re.findall("`([^`]+)`", line.split("|")[1])}
    stated = claims_of(paper)
    assert [name for name in published if not any(fnmatchcase(one, name) for one in stated)] == []
    for name, claim in stated.items():
        found = [line for pattern, line in published.items() if fnmatchcase(name, pattern)]
        assert found, name
        assert "after_a_look" not in claim.config or any("(*" in line for line in found), name
