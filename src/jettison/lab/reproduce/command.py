"""`jettison reproduce PAPER`: run one paper's experiments and judge its claims."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from jettison import extras, java
from jettison.errors import did_you_mean, refuse
from jettison.lab.bench.cases import chosen
from jettison.lab.experiments import PAPERS, Experiment, Kind
from jettison.lab.reproduce.claims import Claim
from jettison.lab.reproduce.report import Judged, Report, RunSettings, Section, claims_table
from jettison.lab.time_left import seconds_of, time_left


def run_reproduce(
    console: Console, paper: str, *, quick: bool, seed: int, out: Path | None = None, only: Sequence[str] = ()
) -> Report:
    """Run a paper's experiments, or those in `only`, print its claims, and write the report to `out`.

    The report is saved after each experiment, so that a run cut short leaves what it found.
    """
    parts = _parts(paper, only)
    on_spark = any(part.kind.needs_spark for part in parts)
    packages = [*(["pyspark"] if on_spark else []), *PAPERS[paper].packages]
    extras.require(*packages, where=f"`jettison reproduce {paper}`")
    if on_spark:
        java.require_java()  # now, and not after an hour of simulation
    out = Path(f"reproduce-{paper}") if out is None else out
    out.mkdir(parents=True, exist_ok=True)
    settings = RunSettings(quick, seed, out, say=lambda line: console.print(line, highlight=False))
    words = ["jettison reproduce", paper, *(f"--only {name}" for name in only), *(["--quick"] if quick else [])]
    sections: list[Section] = []
    claims: list[Claim] = []
    report = Report(paper, PAPERS[paper].title, f"{' '.join(words)} --seed {seed}", sections, claims)
    lengths = {part.name: None if quick else seconds_of(part.length) for part in parts}
    whole_s = seconds_of(PAPERS[paper].quick if quick else PAPERS[paper].full)
    as_shares = whole_s is not None and None in lengths.values()
    if whole_s is not None and as_shares:
        lengths = dict.fromkeys(lengths, whole_s / len(parts))  # some parts are no longer than all of them
    with time_left(console, lengths, at_most=as_shares and bool(only)) as begin, ExitStack() as sessions:
        shared = cache(partial(_shared_session, sessions))
        for part in parts:
            begin(part.name)
            settings.say(f"{part.name} ...")
            started = time.monotonic()
            more, judged = _run(part, settings, shared)
            sections += more
            claims += judged
            report.save(out)
            held = sum(claim.holds for claim in judged)
            settings.say(f"{part.name}: {held} of {len(judged)} claims hold, {time.monotonic() - started:.0f} s")
    console.print(Markdown(claims_table(report.claims)))
    held = sum(claim.holds for claim in report.claims)
    console.print(f"{held} of {len(report.claims)} claims hold. Report: {out / 'REPORT.md'}.", highlight=False)
    return report


def _parts(paper: str, only: Sequence[str]) -> list[Experiment]:
    if paper not in PAPERS:
        hint = did_you_mean(paper, PAPERS, otherwise="`jettison reproduce --help` shows the call")
        refuse(f"PAPER must be one of {', '.join(PAPERS)}", repr(paper), hint=hint)
    parts = PAPERS[paper].parts
    named = {name for one in only for name in chosen(parts, one)}
    return [part for part in parts.values() if not only or part.name in named]


def _run(part: Experiment, settings: RunSettings, shared: Callable[[], object]) -> Judged:
    if part.kind is Kind.ON_SPARK:
        with tempfile.TemporaryDirectory(prefix="jettison-reproduce-") as scratch:
            sections, claims = part.load()(shared(), Path(scratch), settings)
    else:
        sections, claims = part.load()(settings)
    return sections, claims


def _shared_session(sessions: ExitStack) -> object:
    """The session that parts on Spark share, from the first of them on."""
    from jettison.lab.recorded_session import recorded_session  # only here: other parts run without pyspark

    return sessions.enter_context(recorded_session("jettison reproduce"))
