"""`jettison reproduce PAPER`: run one paper's experiments and judge its claims."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from jettison.errors import InvalidSetting, did_you_mean, explain
from jettison.reproduce.report import Report, RunSettings, claims_table

PAPERS: Mapping[str, str] = {
    "aurora": "jettison.reproduce.aurora",
    "concept": "jettison.reproduce.concept",
    "load": "jettison.reproduce.load",
    "sifter": "jettison.reproduce.sifter",
    "window": "jettison.reproduce.window",
}
"""Module by short name of the paper; each has `run(settings) -> Report`."""


def run_reproduce(console: Console, paper: str, *, quick: bool, seed: int, out: Path | None = None) -> Report:
    """Run a paper's experiments, print its claims, and write the report to `out`."""
    if paper not in PAPERS:
        raise InvalidSetting(
            explain(
                f"a paper out of {', '.join(PAPERS)}",
                repr(paper),
                hint=did_you_mean(paper, PAPERS, otherwise="`jettison reproduce --help` shows the call"),
            )
        )
    out = Path(f"reproduce-{paper}") if out is None else out
    out.mkdir(parents=True, exist_ok=True)
    run: Callable[[RunSettings], Report] = importlib.import_module(PAPERS[paper]).run
    report = run(RunSettings(quick, seed, out, say=lambda line: console.print(line, highlight=False)))
    report.save(out)
    console.print(Markdown(claims_table(report.claims)))
    held = sum(claim.holds for claim in report.claims)
    console.print(f"{held} of {len(report.claims)} claims hold. Report: {out / 'REPORT.md'}.", highlight=False)
    return report
