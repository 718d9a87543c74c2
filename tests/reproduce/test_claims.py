import json
import math
from pathlib import Path

import pytest
from rich.console import Console

from jettison.errors import InvalidSetting
from jettison.reproduce.claims import Claim, save
from jettison.reproduce.command import run_reproduce
from jettison.reproduce.report import Report, Section


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


def test_a_report_shows_failures_and_sections(tmp_path: Path) -> None:
    report = Report("p", "A paper", "jettison reproduce p", [Section("Figure 1", "words")], [claim(1.0, at_least=2.0)])
    report.save(tmp_path)
    text = (tmp_path / "REPORT.md").read_text()
    assert "**does not hold**" in text
    assert "## Figure 1\n\nwords" in text


def test_an_unknown_paper_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="a paper out of"):
        run_reproduce(Console(), "nosuch", quick=True, seed=1, out=tmp_path)
