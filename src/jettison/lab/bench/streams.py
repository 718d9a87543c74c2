"""Runs streaming queries over rows that lie on disk, and measures what they cost."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import jettison as jt
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats
from jettison.errors import Unsupported, refuse
from jettison.policies import UniformDrop
from jettison.policies.uniform.random_setting import RandomDrop

_BOUND = "1 hour"  # far away: the benchmarks set the share kept themselves
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a query took: task CPU and rows; after its first batches rows a second, and of one batch the time,
    the task CPU and the time that Spark plans it; and the most bytes that its state had.
    """

    cpu_s: float
    rows: int
    rows_per_s: float
    batch_s: float
    batch_cpu_s: float
    planning_s: float
    state_bytes: float = math.nan


class Took(NamedTuple):
    """What a piece of work took: time, and CPU of Spark's tasks."""

    wall_s: float
    cpu_s: float


def took(spark: SparkSession, work: Callable[[], object]) -> Took:
    """Do a piece of work and say what it took."""
    cpu_s, began_s = task_cpu_s(spark), time.monotonic()
    work()
    return Took(time.monotonic() - began_s, task_cpu_s(spark) - cpu_s)  # in this order: the second waits


class KeepShare(UniformDrop):
    """A policy for measurements: keeps a set share whatever the controller says."""

    def __init__(self, keep_fraction: float) -> None:
        super().__init__()
        self.keep_fraction = keep_fraction

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        points = {name: RandomDrop(self.keep_fraction) for name in stats.points}
        return DropPlan(0, points, cause=f"told to keep {self.keep_fraction}")


Variant = Callable[[Path], Callable[[], StreamingQuery]]
"""Builds a query with its checkpoint in the given folder and returns how to run it to its end."""


def plain(build: Callable[[], DataFrame]) -> Variant:
    """The query as it is."""

    def variant(folder: Path) -> Callable[[], StreamingQuery]:
        return to_end(_writer(build()).option("checkpointLocation", str(folder)))

    return variant


def guarded(
    source: Callable[[], DataFrame],
    query: Callable[[DataFrame], DataFrame],
    *,
    row_id: Sequence[str],
    arrival: str | None = None,
    keep_fraction: float = 1.0,
    watch: bool = False,
    dry_run: bool = False,
) -> Variant:
    """The same query with a guard on its source, and its answers watched or not."""

    def variant(folder: Path) -> Callable[[], StreamingQuery]:
        shedder = jt.Shedder(latency=_BOUND, checkpoint=folder, policy=KeepShare(keep_fraction), dry_run=dry_run)
        rows = shedder.guard(source(), row_id=row_id, arrival=arrival)
        return to_end(_writer(shedder.watch(rows, query) if watch else query(rows)), shedder)

    return variant


def to_end(writer: DataStreamWriter, shedder: jt.Shedder | None = None) -> Callable[[], StreamingQuery]:
    """How to run a query to its end, and its shedder's books with it: they lie in a folder that is removed next."""

    def run() -> StreamingQuery:
        query = writer.start() if shedder is None else shedder.start(writer)
        query.awaitTermination()
        if shedder is not None:
            shedder.await_books()
        return query

    return run


def alternate(
    spark: SparkSession, folder: Path, variants: Mapping[str, Variant], repetitions: int, *, skip_batches: int = 1
) -> dict[str, list[Cost]]:
    """Run all variants in turn, after one warm-up of each.

    The first `skip_batches` of every run are left out of its times: they compile.
    """
    runs = {name: partial(run_once, spark, folder / "run", variant, skip_batches) for name, variant in variants.items()}
    return in_turn(runs, repetitions, warm_ups=1)


def in_turn(runs: Mapping[str, Callable[[], _T]], repetitions: int, *, warm_ups: int = 0) -> dict[str, list[_T]]:
    """What each of the runs gives, by name: all of them in turn, the order reversed every other time."""
    found: dict[str, list[_T]] = {name: [] for name in runs}
    for repetition in range(warm_ups + repetitions):
        for name in list(runs)[:: -1 if (repetition - warm_ups) % 2 else 1]:
            found[name].append(runs[name]())
    return {name: measured[warm_ups:] for name, measured in found.items()}


def median_ratio(runs: Sequence[_T], baseline: Sequence[_T], measure: Callable[[_T], float]) -> float:
    """Median of the ratios of runs that stood side by side."""
    return statistics.median(measure(a) / measure(b) for a, b in zip(runs, baseline, strict=True))


def median(runs: Sequence[_T], measure: Callable[[_T], float]) -> float:
    """Median of a measure over runs."""
    return statistics.median(map(measure, runs))


def run_once(spark: SparkSession, folder: Path, variant: Variant, skip_batches: int = 1) -> Cost:
    """Run one variant to its end in a fresh folder."""
    shutil.rmtree(folder, ignore_errors=True)
    run = variant(folder)
    before = task_cpu_s(spark)
    query = run()
    batches = [p for p in query.recentProgress if p.numInputRows]
    later = batches[skip_batches:]
    seconds = [p.durationMs["triggerExecution"] / 1e3 for p in later]
    stages = _settled_stages(spark)
    return Cost(
        cpu_s=_cpu_s(stages) - before,
        rows=sum(p.numInputRows for p in batches),
        rows_per_s=sum(p.numInputRows for p in later) / sum(seconds),
        batch_s=statistics.median(seconds),
        batch_cpu_s=_cpu_s(stages, str(query.runId), later[0].batchId) / len(later),
        planning_s=statistics.median(p.durationMs["queryPlanning"] / 1e3 for p in later),
        state_bytes=max((float(sum(of.memoryUsedBytes for of in p.stateOperators)) for p in batches), default=math.nan),
    )


def _writer(rows: DataFrame) -> DataStreamWriter:
    return rows.writeStream.format("noop").outputMode("update").trigger(availableNow=True)


def task_cpu_s(spark: SparkSession, *, run_id: str = "", first_batch: int = 0) -> float:
    """CPU time of all tasks so far, once it has settled.

    Of one run of a query alone, and of its micro-batches from `first_batch` on, where `run_id` is given.
    """
    return _cpu_s(_settled_stages(spark), run_id, first_batch)


def _settled_stages(spark: SparkSession) -> list[dict[str, Any]]:
    """All stages that have ended, once the interface has heard of the last one."""
    last = -1.0
    while True:
        stages: list[dict[str, Any]] = driver_says(spark, "stages?status=complete")
        if (total := _cpu_s(stages)) == last:
            return stages
        last = total
        time.sleep(0.2)


def _cpu_s(stages: Sequence[Mapping[str, Any]], run_id: str = "", first_batch: int = 0) -> float:
    of_run = [stage for stage in stages if _is_of(stage, run_id, first_batch)]
    if run_id and not of_run:
        refuse(
            "stages that say which run they belong to",
            "none",
            where=f"run {run_id}",
            hint="ask after its query has run; old stages are forgotten beyond spark.ui.retainedStages",
            error=Unsupported,
        )
    return float(sum(stage["executorCpuTime"] for stage in of_run)) / 1e9


def driver_says(spark: SparkSession, what: str) -> Any:
    """What the driver's documented REST interface answers."""
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/{what}"
    with urllib.request.urlopen(url, timeout=30) as response:
        return json.load(response)


def local_cpu_s(spark: SparkSession) -> float:
    """CPU time of all tasks that have ended in a local session: a counter, where `task_cpu_s` reads a list of all stages."""
    counters = driver_metrics(spark)["counters"]
    return float(next(one["count"] for name, one in counters.items() if name.endswith(".executor.cpuTime"))) / 1e9


def driver_metrics(spark: SparkSession) -> Any:
    """What Spark's metrics servlet says of the driver."""
    with urllib.request.urlopen(f"{spark.sparkContext.uiWebUrl}/metrics/json/", timeout=30) as response:
        return json.load(response)


def _is_of(stage: Mapping[str, Any], run_id: str, first_batch: int) -> bool:
    """Whether a stage belongs to the run; streaming queries describe their jobs by run and batch."""
    if not run_id:
        return True
    found = re.search(rf"runId = {re.escape(run_id)}.*batch = (\d+)", stage.get("description") or "", re.DOTALL)
    return found is not None and int(found[1]) >= first_batch
