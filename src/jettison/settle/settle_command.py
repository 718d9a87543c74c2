"""`jettison reconcile` and `jettison audit`: the user's functions, a progress bar, and what came of it in words."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from jettison.errors import InvalidInput, Unsupported, refuse
from jettison.pipeline.document import Pipeline, load
from jettison.settle.answer_shape import Query
from jettison.settle.audited import Verdict, audit
from jettison.settle.live_session import adopted, live_session
from jettison.settle.settled_record import time_of
from jettison.settle.settlement import Settlement, reconcile
from jettison.settle.stretch import Source
from jettison.spark.drop_point import WEIGHT
from jettison.spark.pipeline import box_function, opened, prepared

Session = AbstractContextManager[SparkSession]


def named_query(
    query: str | None, sources: Sequence[str], pipeline: Path | None, output: str | None
) -> tuple[Query, list[Source]]:
    """The query and its sources, as functions that are named or as a pipeline file has them."""
    if (query is None) == (pipeline is None):
        got = "neither" if query is None else "both"
        refuse("one of --query and --pipeline must be given", got, hint="--query MODULE:FUNCTION or --pipeline FILE")
    if pipeline is not None:
        made, source = output_of(load(pipeline), output)
        return made, [source]
    return function(query or "", "--query"), [function(each, "--source") for each in sources]


def output_of(pipeline: Pipeline, output: str | None) -> tuple[Query, Source]:
    """The query that makes the answers of an output, of all rows that a source gives; the only output, if none is named."""
    if len(pipeline.inputs) != 1:
        hint = "pass --query, and a --source for each input in the order in which Spark's plan of the query has them"
        got = f"{len(pipeline.inputs)}: {', '.join(pipeline.inputs)}"
        refuse("a pipeline must have one input to be settled", got, hint=hint, error=Unsupported)
    if output is None and len(pipeline.outputs) == 1:
        (output,) = pipeline.outputs
    if output not in pipeline.outputs:
        hint = f"pass --output with one of {', '.join(pipeline.outputs)}"
        refuse("--output must name an output of the pipeline", repr(output), hint=hint)
    boxes, ((name, source),) = pipeline.graph.boxes, pipeline.inputs.items()
    plain = pipeline.dropping.whole_windows

    def made(stream: str, rows: DataFrame) -> DataFrame:
        if stream == name:
            rows = rows.drop(WEIGHT)  # the live query's guard adds it behind the input's SQL
            return prepared(name, source, rows).withColumn(WEIGHT, F.lit(1.0))
        entering = [made(one, rows) for one in boxes[stream].sources]
        return box_function(boxes[stream], pipeline.boxes[stream], plain=plain)(*entering)

    return partial(made, pipeline.outputs[output].reads), partial(opened, source=source)


def run_reconcile(
    console: Console,
    session: Session,
    checkpoint: str,
    query: Query,
    to: str,
    sources: Sequence[Source],
    **settings: Any,
) -> Settlement:
    """Settle, with a progress bar, and say what was settled and what was not."""
    with session as spark, adopted(spark, live_session(checkpoint)), _bar(console) as bar:
        task = bar.add_task("reading the ledger", total=None)

        def progress(doing: str, rows: int, of: int) -> None:
            bar.update(task, description=doing, completed=rows, total=of or None)

        done = reconcile(spark, checkpoint, query, to, sources=sources, progress=progress, **settings)
    for line in told(done, dry_run=bool(settings.get("dry_run"))):
        console.print(line, highlight=False)
    return done


def run_audit(
    console: Console, session: Session, checkpoint: str, answers: str, keys: Sequence[str] = ()
) -> list[Verdict]:
    """Print how the answers that were given compare with the settled ones."""
    with session as spark, _bar(console, "comparisons") as bar:
        task = bar.add_task("comparing answers", total=None)
        verdicts = audit(
            spark, checkpoint, answers, keys=keys, progress=lambda made, of: bar.update(task, completed=made, total=of)
        )
    console.print(verdict_table(verdicts))
    return verdicts


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """One line for each verdict."""
    bounds, errors = ("bounded", "covered", "few rows", "covered"), ("median error", "bias")
    table = Table("by", "answer", "compared", *bounds, *errors, "missing", "surplus", "wrong `exact`")
    for one in verdicts:
        covered, of_few = (
            "-" if share is None else f"{100 * share:.1f} %" for share in (one.coverage, one.few_coverage)
        )
        error = "-" if one.median_error is None else f"{100 * one.median_error:.2f} %"
        bias = "-" if one.bias is None else f"{100 * one.bias:+.2f} %"
        held = f"{one.bounded:,}", covered, f"{one.few_rows:,}", of_few
        counts = f"{one.missing:,}", f"{one.surplus:,}", f"{one.wrong_exact:,}"
        table.add_row(one.by, one.answer, f"{one.compared:,}", *held, error, bias, *counts)
    return table


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
    if done.unrecorded:
        first, last = done.unrecorded
        lines.append(f"open: batches {first} to {last}, which are not on record until the query has run again")
    if done.lost:
        lines.append(f"lost: {done.lost_windows:,} windows that are known, and all others in these times")
        lines += [
            f"  {time_of(lost.from_us)} to {time_of(lost.until_us)}: batches {lost.first} to {lost.last}, {lost.reason}"
            for lost in done.lost
        ]
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


def _bar(console: Console, what: str = "rows") -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeRemainingColumn(),
    )
    # One step may take longer than the half minute over which the speed is otherwise measured.
    return Progress(*columns, console=console, transient=True, speed_estimate_period=3600.0)
