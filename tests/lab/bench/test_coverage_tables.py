"""The tables of docs/bounds.md: their form, not their figures."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from jettison.errors import InvalidSetting
from jettison.lab import coverage
from jettison.lab.bench import coverage_tables
from jettison.lab.bench.coverage_tables import TABLES, Table

ONE_BAND = replace(TABLES["published"], bands=((30.0, 40.0),), windows=20)


@pytest.fixture(autouse=True)
def few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "_WINDOWS_AT_ONCE", 60)


def cells(table: Table) -> list[list[str]]:
    header, rule, *rows = table.lines()
    assert set(rule) == {"|", "-"}
    assert header.count("|") == rule.count("|")
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_each_case_is_a_row() -> None:
    rows = cells(ONE_BAND)
    assert len(rows) == len(coverage.PUBLISHED) * len(coverage.KEEP_FRACTIONS)
    assert rows[0][:3] == ["taxi_fares", "0.05", "30 to 40"]
    assert "(flagged)" not in rows[0][3]
    assert rows[0][6].endswith("(flagged)")  # a variance of so few rows


def test_ranges_name_the_lowest_and_highest_of_each_distribution() -> None:
    shares = [float(row[3]) for row in cells(ONE_BAND) if row[0] == "lognormal"]
    found = {row[0]: row[1:] for row in cells(replace(ONE_BAND, ranges=True))}
    assert list(found) == list(coverage.PUBLISHED)
    assert found["lognormal"][0] == f"{min(shares):.1f} to {max(shares):.1f}"
    assert found["lognormal"][3].endswith("(flagged)")


def test_other_distributions_leave_flagged_cells_out() -> None:
    rows = cells(replace(TABLES["others"], windows=20))
    assert [row[0] for row in rows] == list(coverage.OTHERS)
    assert not any("flagged" in cell for row in rows for cell in row)


def test_less_confidence_covers_less() -> None:
    low, high = (cells(replace(ONE_BAND, confidence=confidence)) for confidence in (0.3, 0.99))
    assert sum(float(row[3]) for row in low) < sum(float(row[3]) for row in high) / 2


def test_one_table_is_printed_or_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_tables, "TABLES", {"one": ONE_BAND, "other": replace(ONE_BAND, ranges=True)})
    console = Console(file=io.StringIO())
    assert list(coverage_tables.tables(console, "other")) == [[]]
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.startswith("other:\n| values | count |")
    with pytest.raises(InvalidSetting, match="--only must be one of one, other, got 'ohter'"):
        list(coverage_tables.tables(console, "ohter"))
