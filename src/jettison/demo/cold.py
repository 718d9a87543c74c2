"""Runs of the demo in processes of their own, where nothing has run before, and what became of their first minute."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from jettison.demo import verdict
from jettison.demo.experiment import Run, run_plain, run_shed
from jettison.demo.live import View
from jettison.demo.schedule import Phase
from jettison.spark.session import local_session

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class FirstMinute:
    """What a run did with the rows that arrived in its first minute.

    `kept_below_capacity` is the share kept of those that arrived before the overload, which had better be 1; shares are
    over batches whose count is on record. `None` where there is no such batch, or no row.
    """

    first_batch_s: float | None
    latency_p95_s: float | None
    latency_worst_s: float | None
    kept_fraction: float | None
    kept_below_capacity: float | None


def run_in_fresh_process(folder: Path, phases: Sequence[Phase], bound_s: float, title: str, *, guarded: bool) -> Run:
    """Run the query, guarded or plain, in a new process with a new JVM; its ledger stays in the folder."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_run, folder, phases, bound_s, title, guarded).result()


def _run(folder: Path, phases: Sequence[Phase], bound_s: float, title: str, guarded: bool) -> Run:
    with local_session("jettison demo, cold") as spark, View(Console(), title, bound_s) as view:
        if not guarded:
            return run_plain(spark, folder, phases, view.show)
        run = run_shed(spark, folder, phases, bound_s, view.show)
    run.ledger = None  # it holds locks, which do not travel between processes
    return run


def first_minute(run: Run, phases: Sequence[Phase]) -> FirstMinute:
    """Judge the rows that arrived in the first minute, from the very first batch on."""
    first = run.batches[0] if run.batches else None
    value, weight, _ = verdict.row_latencies(run, run.batches, run.started_s, run.started_s + MINUTE_S)
    calm_s, _ = verdict.overload_span(phases)
    return FirstMinute(
        first_batch_s=None if first is None else first.committed_s - first.started_s,
        latency_p95_s=verdict.weighted_quantile(value, weight, 0.95),
        latency_worst_s=float(value.max()) if len(value) else None,
        kept_fraction=_kept(run, MINUTE_S),
        kept_below_capacity=_kept(run, calm_s),
    )


def _kept(run: Run, until_s: float) -> float | None:
    """Share kept of the rows that arrived up to then; a batch is taken to keep early and late rows alike."""
    assert run.landing is not None
    last = int(np.searchsorted(run.landing.arrival_of(np.arange(run.landed)), run.started_s + until_s))
    counted = [batch for batch in run.batches if batch.first < last and not math.isnan(batch.kept_fraction)]
    rows = [min(batch.last, last) - batch.first for batch in counted]
    kept = sum(batch.kept_fraction * count for batch, count in zip(counted, rows, strict=True))
    return kept / sum(rows) if rows else None
