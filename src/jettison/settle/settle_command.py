"""`jettison reconcile` and `jettison audit`: the user's functions, a progress bar, and what came of it in words."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from jettison.errors import InvalidInput, refuse
from jettison.settle.audited import Verdict, audit
from jettison.settle.history import BEGINNING_US, END_US
from jettison.settle.settlement import Settlement, reconcile
from jettison.settle.touched_windows import Lost

Session = AbstractContextManager[SparkSession]


def run_reconcile(
    console: Console, session: Session, checkpoint: str, query: str, to: str, sources: Sequence[str], **settings: Any
) -> Settlement:
    """Settle, with a progress bar, and say what was settled and what was not."""
    made, readers = function(query, "--query"), [function(each, "--source") for each in sources]
    with session as spark, _bar(console) as bar:
        task = bar.add_task("reading the ledger", total=None)

        def progress(doing: str, rows: int, of: int) -> None:
            bar.update(task, description=doing, completed=rows, total=of or None)

        done = reconcile(spark, checkpoint, made, to, sources=readers, progress=progress, **settings)
    for line in told(done, dry_run=bool(settings.get("dry_run"))):
        console.print(line, highlight=False)
    return done


def run_audit(console: Console, session: Session, checkpoint: str, answers: str) -> list[Verdict]:
    """Print how the answers that were given compare with the settled ones."""
    with session as spark:
        verdicts = audit(spark, checkpoint, answers)
    table = Table("by", "answer", "compared", "with bounds", "covered", "median error", "bias", "missing")
    for one in verdicts:
        covered = "-" if one.coverage is None else f"{100 * one.coverage:.1f} %"
        error = "-" if one.median_error is None else f"{100 * one.median_error:.2f} %"
        bias = "-" if one.bias is None else f"{100 * one.bias:+.2f} %"
        table.add_row(
            one.by, one.answer, f"{one.compared:,}", f"{one.bounded:,}", covered, error, bias, f"{one.missing:,}"
        )
    console.print(table)
    return verdicts


def told(done: Settlement, *, dry_run: bool) -> list[str]:
    """A settlement in words."""
    size = "" if done.bytes_to_read is None else f", {done.bytes_to_read / 1e6:,.1f} MB"
    about = "" if done.seconds_to_go is None else f", about {done.seconds_to_go:,.0f} s"
    lines = [f"settled {done.settled:,} windows from {done.rows_read:,} rows in {done.seconds:,.1f} s"]
    if dry_run:
        lines = [f"to settle: {done.ready:,} windows from {done.rows_to_read:,} rows{size}{about}"]
    if done.stopped:
        lines.append(f"stopped, because {done.stopped}; {done.ready:,} windows could be settled now")
    if done.before:
        lines.append(f"settled before: {done.before:,}")
    if done.waiting:
        lines.append(f"open until the watermark has passed them: {done.waiting:,}")
    if done.lost:
        lines.append(f"lost: {done.lost_windows:,} windows that are known, and all others in these times")
        lines += [f"  {_times(lost)}: batches {lost.first} to {lost.last}, {lost.reason}" for lost in done.lost]
    return lines


def function(name: str, option: str) -> Callable[..., Any]:
    """The function `MODULE:FUNCTION`, from a module that can be imported or lies in the working directory."""
    module, _, attribute = name.partition(":")
    hint = f"pass MODULE:FUNCTION, as in {option} jobs.fares:answers"
    if not module or not attribute:
        refuse(f"{option} must name a module and a function in it", repr(name), hint=hint)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        refuse(f"{option} must name a function that can be imported", f"{name!r} ({error})", hint=hint, cause=error)
    if not callable(found):
        refuse(f"{option} must name a function", f"{name!r}, {type(found).__name__}", hint=hint, error=InvalidInput)
    return found  # type: ignore[no-any-return]


def _bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True)


def _times(lost: Lost) -> str:
    first = "the beginning" if lost.from_us <= BEGINNING_US else _time(lost.from_us)
    return f"{first} to {'the end' if lost.until_us >= END_US else _time(lost.until_us)}"


def _time(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(" ", "seconds")
