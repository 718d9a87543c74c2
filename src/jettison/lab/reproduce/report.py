"""The report of a reproduction: what was run, what came out, and which claims hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from jettison.lab.reproduce.claims import Claim, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a reproduction is run.

    Parameters
    ----------
    quick
        Fewer repetitions, every claim still checked.
    seed
        All randomness of the run follows from it.
    out
        Folder for reports and plots; it exists.
    say
        Told what is going on, a line at a time.
    """

    quick: bool
    seed: int
    out: Path
    say: Callable[[str], None] = print


@dataclass(frozen=True, slots=True)
class Section:
    """One experiment in the report: a heading, text or tables in Markdown, and a plot if there is one."""

    title: str
    text: str
    plot: Figure | None = None


Judged = tuple[list[Section], list[Claim]]
"""What an experiment gives: its part of the report, and its claims."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that a reproduction has to say."""

    paper: str
    title: str
    command: str
    sections: Sequence[Section]
    claims: Sequence[Claim]

    def save(self, out: Path) -> None:
        """Write `REPORT.md`, `claims.json` and the plots."""
        parts = [f"# {self.title}", f"Made by `{self.command}`.", "## Claims", claims_table(self.claims)]
        for number, section in enumerate(self.sections, start=1):
            parts += [f"## {section.title}", section.text]
            if section.plot is not None:
                name = f"figure-{number:02d}.png"
                section.plot.savefig(out / name, dpi=120, bbox_inches="tight")
                parts.append(f"![{section.title}]({name})")
        (out / "REPORT.md").write_text("\n\n".join(part for part in parts if part) + "\n")
        save(self.claims, out / "claims.json")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; numbers get four digits.

    >>> print(table(["x", "y"], [["a", 0.123456]]))
    | x | y |
    |---|---|
    | a | 0.1235 |
    """
    lines = [_line(header), "|" + "---|" * len(header)]
    return "\n".join([*lines, *(_line([_cell(value) for value in row]) for row in rows)])


def plot(panels: Mapping[str, Mapping[str, Mapping[float, float]]], x: str, y: str) -> Figure:
    """Panels by title, in each the lines by name, in each what y is at which x. What a model says is dashed."""
    from matplotlib.figure import Figure  # only a report needs it, and without pyplot: no window system

    columns = ceil(len(panels) / 2) if len(panels) > 3 else len(panels)
    height = ceil(len(panels) / columns)
    figure = Figure(figsize=(4.5 * columns, 3.6 * height), layout="constrained")
    for axes, (title, lines) in zip(figure.subplots(height, columns, squeeze=False).flat, panels.items(), strict=False):
        for name, points in lines.items():
            axes.plot(list(points), list(points.values()), "--" if "model" in name else "o-", ms=3, label=name)
        axes.set(title=title, xlabel=x, ylabel=y)
        axes.legend(fontsize=6)
    return figure


def claims_table(claims: Sequence[Claim]) -> str:
    """Every claim with the paper's figure, ours and the verdict."""
    verdict = {True: "holds", False: "**does not hold**"}
    rows = [[c.id, c.claim, c.paper, f"{c.ours:.4g}", str(c.bar), verdict[c.holds]] for c in claims]
    return table(["id", "claim", "paper", "ours", "bar", "verdict"], rows)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
