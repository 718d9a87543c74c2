"""A benchmark's result, and whether it meets its bar."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jettison.lab.bars import Bar


@dataclass(frozen=True, slots=True)
class Result:
    """One measured value beside its baseline.

    Parameters
    ----------
    name, value, unit, baseline
        What was measured, and the same without Jettison or with the alternative; `None` where there is no other side.
    ratio
        The figure to judge: value over baseline, paired and then taken at the median, unless `config` says otherwise.
    at_most, at_least
        The bar on `ratio`, or on `value` where there is no ratio.
    config
        How it was measured.
    required
        Whether the command fails where the bar is missed.
    interval
        Where the figure to judge lies with 95 % confidence. The bar is then met, or missed, by all of it.
    """

    name: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    at_most: float | None = None
    at_least: float | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    required: bool = False
    interval: tuple[float, float] | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the bar is met; `None` where there is no bar, or where the interval contains it."""
        if not self.bar:
            return None
        if self.interval is not None:
            return self.bar.met_within(*self.interval)
        return self.bar.met_by(self.value if self.ratio is None else self.ratio)

    @property
    def verdict(self) -> str:
        """The same in words, empty where there is no bar."""
        return {True: "holds", False: "fails", None: "cannot tell"}[self.holds] if self.bar else ""

    @property
    def bar(self) -> Bar:
        """What the figure must meet, if anything."""
        return Bar(self.at_most, self.at_least)


def failed(results: Sequence[Result]) -> list[Result]:
    """Results that miss a bar that must be met."""
    return [result for result in results if result.required and result.holds is False]


def save(results: Sequence[Result], path: Path) -> None:
    """Write results as a JSON list; a figure that could not be measured is null."""
    path.write_text(json.dumps(list(map(as_row, results)), indent=2, allow_nan=False) + "\n")


def as_row(result: Result) -> dict[str, Any]:
    """A result as it is written, with its verdict."""
    said = {"bar": str(result.bar), "holds": result.holds, "verdict": result.verdict}
    return {name: _finite(value) for name, value in asdict(result).items()} | said


def loaded(path: Path) -> list[Result]:
    """The results of a file that `save` wrote; what could not be measured is not a number again."""
    known = {one.name for one in fields(Result)}
    rows = [{name: value for name, value in row.items() if name in known} for row in json.loads(path.read_text())]
    return [Result(**{**row, "value": _or_nan(row["value"]), "interval": _bounds(row["interval"])}) for row in rows]


def _bounds(stored: Sequence[float | None] | None) -> tuple[float, float] | None:
    """A bound that was not finite says nothing."""
    if stored is None:
        return None
    lower, upper = stored
    return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def show(results: Sequence[Result], console: Console) -> None:
    """Print results as a table."""
    table = Table(title="Benchmarks")
    for column in ("name", "value", "baseline", "ratio", "95 %", "bar", "verdict"):
        table.add_column(column, justify="left" if column == "name" else "right", overflow="fold")
    for result in results:
        table.add_row(
            result.name,
            f"{result.value:,.4g} {result.unit}",
            "" if result.baseline is None else f"{result.baseline:,.4g}",
            "" if result.ratio is None else f"{result.ratio:.3f}",
            "" if result.interval is None else " to ".join(f"{bound:.3g}" for bound in result.interval),
            str(result.bar),
            result.verdict.upper() if result.holds is False else result.verdict,
        )
    console.print(table)


def _finite(value: Any) -> Any:
    """The same without numbers that JSON does not have, which become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value
