"""`jettison bench coverage-tables`: the tables of docs/bounds.md."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console

from jettison.lab import coverage
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.result import Result


@dataclass(frozen=True, slots=True)
class Table:
    """One table: every distribution under every keep fraction in every band of effective rows.

    With `ranges` only the lowest and highest of each distribution, with `percentiles` those too.
    """

    distributions: Collection[str]
    keep_fractions: Collection[tuple[float, ...]]
    bands: Collection[tuple[float, float]]
    windows: int
    seed: int
    confidence: float = 0.95
    ranges: bool = False
    percentiles: bool = False

    def lines(self) -> Iterable[str]:
        """The table in Markdown, line by line as it is measured."""
        how = {
            "windows": self.windows,
            "confidence": self.confidence,
            "seed": self.seed,
            "percentiles": coverage.PERCENTILES if self.percentiles else coverage.NONE,
        }
        cases = (
            (name, kept, band) for name in self.distributions for kept in self.keep_fractions for band in self.bands
        )
        shown = coverage.ranges if self.ranges else coverage.table
        return shown(coverage.measure_coverage(*case, **how) for case in cases)  # type: ignore[arg-type]


_FULL, _WIDE = coverage.KEEP_FRACTIONS, coverage.BANDS[2:]
TABLES: Mapping[str, Table] = {
    "published": Table(coverage.PUBLISHED, _FULL, coverage.BANDS, windows=4000, seed=2026),
    "confidence-0.8": Table(coverage.PUBLISHED, _FULL, _WIDE, 2000, 2026, confidence=0.8, ranges=True),
    "confidence-0.99": Table(coverage.PUBLISHED, _FULL, _WIDE, 2000, 2026, confidence=0.99, ranges=True),
    "others": Table(coverage.OTHERS, ((0.1,), (0.7,)), coverage.BANDS[1:], 3000, 4, ranges=True),
    "percentiles": Table(coverage.DISTRIBUTIONS, _FULL, coverage.BANDS[1:], 500, 2026, ranges=True, percentiles=True),
}


def tables(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """Print the tables; there is no bar to meet."""
    for name, table in chosen(TABLES, only).items():
        console.print(f"{name}:", highlight=False)
        for line in table.lines():
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        yield []
