"""`jettison run` and `jettison plan --calibrate`: a pipeline file on a session of its own, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from jettison.pipeline import costs
from jettison.pipeline.document import Pipeline, require_runnable
from jettison.pipeline.options import expanded
from jettison.runtime.status import Status
from jettison.spark.pipeline import in_one_sentence, start
from jettison.spark.pipeline_costs import costs_of
from jettison.spark.session import local_session
from jettison.spark.shedder import Shedder


def run_pipeline(
    console: Console,
    pipeline: Pipeline,
    *,
    master: str,
    dry_run: bool = False,
    seconds: float | None = None,
    drain: bool = False,
) -> None:
    """Run until stopped, or for some seconds, or until all is taken that is there; then print how it went."""
    settings = expanded(pipeline.spark, where="spark")
    with in_one_sentence(), local_session("jettison-run", master=master, settings=settings) as session:
        if pipeline.dropping.network:
            pipeline = costs.known(pipeline)
            if pipeline.unmeasured:
                with _shown(console) as say:
                    found = costs_of(session, pipeline, say)
                costs.store(pipeline, found)
                pipeline = costs.with_costs(pipeline, found)
        query, shedder = start(session, pipeline, dry_run=dry_run, drain=drain)
        names = f"{', '.join(pipeline.outputs)} from {', '.join(pipeline.inputs)}"
        console.print(f"Running: {names}, within {pipeline.latency}.", highlight=False)
        if shedder.policy_cause:
            why = f"Policy: {type(shedder.policy).__name__}, since {shedder.policy_cause}."
            console.print(why, markup=False, highlight=False, soft_wrap=True)
        try:
            _follow(console, query, shedder, seconds)
        finally:
            query.stop()
            shedder.await_books()
            console.print(str(shedder.status()), markup=False, highlight=False, soft_wrap=True)


def calibrated(console: Console, pipeline: Pipeline, *, master: str) -> None:
    """Measure what the boxes of a pipeline cost, and keep it beside its checkpoint."""
    require_runnable(pipeline)
    settings = expanded(pipeline.spark, where="spark")
    with (
        in_one_sentence(),
        local_session("jettison-plan", master=master, settings=settings) as session,
        _shown(console) as say,
    ):
        costs.store(pipeline, costs_of(session, pipeline, say))


def _follow(console: Console, query: StreamingQuery, shedder: Shedder, seconds: float | None) -> None:
    """Wait for the end, and show meanwhile how the query is doing and, where that is known, how long it still runs."""
    until = None if seconds is None else time.monotonic() + seconds
    with _bar(console) as bar:
        task = bar.add_task("starting", total=seconds)
        while True:
            left = None if until is None else until - time.monotonic()
            if (left is not None and left <= 0) or query.awaitTermination(1):
                return
            done = 0.0 if seconds is None or left is None else seconds - left
            bar.update(task, description=_brief(shedder.status()), completed=done)


def _brief(status: Status) -> str:
    latency = "" if status.latency_s is None else f", latency {status.latency_s:.1f} s of {status.latency_bound_s:g} s"
    return f"{status.mode}{latency}, {status.rows_kept:,} of {status.rows_seen:,} rows kept"


@contextmanager
def _shown(console: Console) -> Iterator[Callable[[str], None]]:
    with _bar(console) as bar:
        task = bar.add_task("measuring costs", total=None)
        yield lambda doing: bar.update(task, description=f"measuring costs: {doing}")


def _bar(console: Console) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, refresh_per_second=2)
