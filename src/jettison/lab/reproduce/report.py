"""The report of a reproduction: what was run, what came out, and which claims hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jettison.lab.reproduce.claims import Claim, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a reproduction is run: quickly, with fewer repetitions and every claim still checked, or not.

    All randomness follows from `seed`. `out`, which exists, is for reports and plots; `say` is told what is going on.
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


Point = float | tuple[float, float, float]
"""What a plot shows at one x: a figure, or one with its lower and upper end."""

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


def plot(
    panels: Mapping[str, Mapping[str, Mapping[float, Point]]],
    x: str,
    y: str = "",
    *,
    logarithmic: Collection[str] = (),
    marks: Mapping[float, str] | None = None,
) -> Figure:
    """Panels by title, in each the lines by name, in each what y is at which x. Bounds and what a model says are dashed.

    `logarithmic` names panels whose y is, or the x of all; `marks` are words at some x.
    """
    from matplotlib.figure import Figure  # only a report needs it, and without pyplot: no window system

    columns = ceil(len(panels) / 2) if len(panels) > 3 else len(panels)
    height = ceil(len(panels) / columns)
    figure = Figure(figsize=(4.5 * columns, 3.6 * height), layout="constrained")
    for axes, (title, lines) in zip(figure.subplots(height, columns, squeeze=False).flat, panels.items(), strict=False):
        for name, points in lines.items():
            middle, low, high = np.array([one if isinstance(one, tuple) else (one,) * 3 for one in points.values()]).T
            bars = np.maximum([middle - low, high - middle], 0.0) if (low < high).any() else None
            style = "--" if "model" in name or name == "bound" else "o-"
            axes.errorbar(list(points), middle, bars, fmt=style, ms=3, capsize=2, lw=1.2, label=name)
        axes.set_title(title, pad=18 if marks else None)
        axes.set(xlabel=x, ylabel=y)
        axes.set(xscale="log" if x in logarithmic else "linear", yscale="log" if title in logarithmic else "linear")
        for at, word in (marks or {}).items():
            axes.axvline(at, color="0.85", zorder=0)
            axes.text(at, 1.0, word, transform=axes.get_xaxis_transform(), ha="center", va="bottom")
        if x not in logarithmic:
            axes.locator_params(axis="x", nbins=6)  # more, and numbers of six digits run into each other
        # Below the axes: whatever the data, a legend among them covers some.
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False)
    return figure


def claims_table(claims: Sequence[Claim]) -> str:
    """Every claim with the paper's figure, ours and the verdict; a star says what was settled after a look at figures."""
    verdict = {True: "holds", False: "**does not hold**"}
    stars = [f" (* {c.config['after_a_look']})" if "after_a_look" in c.config else "" for c in claims]
    rows = [
        [f"`{c.id}`: {c.claim}{star}", c.paper, f"{c.ours:.4g}", str(c.bar), verdict[c.holds]]
        for c, star in zip(claims, stars, strict=True)
    ]
    return table(["claim", "paper", "ours", "bar", "verdict"], rows)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
