"""The command behind the tables of docs/estimators.md."""

from __future__ import annotations

import pytest

from jettison import coverage


@pytest.fixture(autouse=True)
def few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables' form is tested here, not their figures."""
    monkeypatch.setattr(coverage, "_WINDOWS_AT_ONCE", 60)


def table(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[str]]:
    coverage.main(["--windows", "20", *arguments])
    header, rule, *rows = capsys.readouterr().out.splitlines()
    assert set(rule) == {"|", "-"}
    assert header.count("|") == rule.count("|")
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_each_case_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table(capsys, "--rows", "30", "40")
    assert len(rows) == len(coverage.PUBLISHED) * len(coverage.KEEP_FRACTIONS)
    assert rows[0][:3] == ["taxi_fares", "0.05", "30 to 40"]
    assert "(flagged)" not in rows[0][3]
    assert rows[0][6].endswith("(flagged)")  # a variance of so few rows


def test_ranges_name_the_lowest_and_highest_of_each_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    cells = table(capsys, "--rows", "30", "40")
    shares = [float(row[3]) for row in cells if row[0] == "lognormal"]
    found = {row[0]: row[1:] for row in table(capsys, "--rows", "30", "40", "--ranges")}
    assert list(found) == list(coverage.PUBLISHED)
    assert found["lognormal"][0] == f"{min(shares):.1f} to {max(shares):.1f}"
    assert found["lognormal"][3].endswith("(flagged)")


def test_other_distributions_leave_flagged_cells_out(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table(capsys, "--others", "--ranges")
    assert [row[0] for row in rows] == list(coverage.OTHERS)
    assert not any("flagged" in cell for row in rows for cell in row)


def test_less_confidence_covers_less(capsys: pytest.CaptureFixture[str]) -> None:
    low, high = (table(capsys, "--rows", "30", "40", "--confidence", c) for c in ("0.3", "0.99"))
    assert sum(float(row[3]) for row in low) < sum(float(row[3]) for row in high) / 2
