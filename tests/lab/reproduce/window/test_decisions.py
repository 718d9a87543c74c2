from __future__ import annotations

from pathlib import Path

import pytest

from jettison.lab.reproduce.report import RunSettings
from jettison.lab.reproduce.window.decisions import decisions, longest_gap


def test_gaps_are_counted() -> None:
    assert longest_gap([True, False, True, True, True, False]) == 3
    assert longest_gap([]) == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_the_claims_hold_whatever_the_seed(tmp_path: Path, seed: int) -> None:
    (section,), claims = decisions(RunSettings(quick=True, seed=seed, out=tmp_path))
    assert [claim.holds for claim in claims] == [True, True]
    assert "coin" in section.text
