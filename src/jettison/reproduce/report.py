"""The report of a reproduction: what was run, what came out, and which claims hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jettison.reproduce.claims import Claim, save

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

    def command(self, paper: str) -> str:
        """The command that makes this run."""
        return f"jettison reproduce {paper}{' --quick' if self.quick else ''} --seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Section:
    """One experiment in the report: a heading, text or tables in Markdown, and a plot if there is one."""

    title: str
    text: str
    plot: Figure | None = None


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


def claims_table(claims: Sequence[Claim]) -> str:
    """Every claim with the paper's figure, ours and the verdict."""
    verdict = {True: "holds", False: "**does not hold**"}
    rows = [[c.id, c.claim, c.paper, f"{c.ours:.4g}", str(c.bar), verdict[c.holds]] for c in claims]
    return table(["id", "claim", "paper", "ours", "bar", "verdict"], rows)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
