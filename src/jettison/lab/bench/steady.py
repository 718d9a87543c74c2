"""What the driver does from batch to batch of a running query, once it is warm: CPU, steps, classes, threads."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt
from jettison.lab.bench.driver_process import cpu_by_thread
from jettison.lab.bench.streams import KeepShare, driver_metrics, driver_says
from jettison.lab.demo.landing import land_all
from jettison.lab.demo.pipeline import Runner, guarded_rides, plain_fares, raw_rides, shed_fares, started

_LOOK_AGAIN_S = 0.3
_BOUND = "1 hour"  # far away: the share kept is told
_STEPS = ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets", "triggerExecution")


@dataclass(frozen=True, slots=True)
class Steady:
    """What one batch takes in the mean, in ms: CPU by kind of thread, time by step of the micro-batch.

    `classes` were compiled over all of the batches, and the driver had so many `threads` at their end.
    """

    cpu_ms: Mapping[str, float]
    step_ms: Mapping[str, float]
    classes: int
    threads: int


def land_batches(folder: Path, batches: int, rows_per_batch: int, *, event_speed: float = 10.0) -> None:
    """Rides for so many batches, a second of event time each, so that every fifth one closes windows."""
    land_all(folder, rows_per_batch * batches, rows_per_file=rows_per_batch, event_speed=event_speed)


def steady_fares(
    spark: SparkSession, folder: Path, keep_fraction: float | None, *, warm_up: int, batches: int
) -> Steady:
    """Run the demo's query over the files in `in`, one a batch, and look at the driver for so many batches.

    Guarded with arrivals and bounds, under a plan that keeps such a share; or plain, where there is none.
    """
    raw, run = raw_rides(spark, folder / "in", files_per_batch=1), folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    runner: Runner = run
    if keep_fraction is None:
        answers = plain_fares(raw)
    else:
        runner = jt.Shedder(latency=_BOUND, checkpoint=run, policy=KeepShare(keep_fraction))
        answers = shed_fares(guarded_rides(runner, raw))
    query = started(answers.writeStream.format("noop").outputMode("append"), runner)
    try:
        return _between(spark, query, warm_up, batches)
    finally:
        query.stop()
        if isinstance(runner, jt.Shedder):
            runner.await_books()


def _between(spark: SparkSession, query: StreamingQuery, warm_up: int, batches: int) -> Steady:
    first = _await_batch(query, warm_up)
    with cpu_by_thread() as cpu:
        classes = classes_compiled(spark)
        last = _await_batch(query, first + batches)
        cpu_s = cpu.so_far()
    steps = [p.durationMs for p in query.recentProgress if first < p.batchId <= last]
    return Steady(
        {kind: 1e3 * used_s / (last - first) for kind, used_s in cpu_s.items()},
        {step: sum(one.get(step, 0) for one in steps) / len(steps) for step in _STEPS},
        classes_compiled(spark) - classes,
        len(driver_says(spark, "executors/driver/threads")),
    )


def _await_batch(query: StreamingQuery, batch: int) -> int:
    """The last batch that has ended, once it is this one or a later one."""
    while (last := query.lastProgress) is None or last.batchId < batch:
        if error := query.exception():
            raise error
        time.sleep(_LOOK_AGAIN_S)
    return int(last.batchId)


def classes_compiled(spark: SparkSession) -> int:
    """How often Spark has compiled generated code so far, by the metrics that its web interface shows as JSON."""
    histograms = driver_metrics(spark)["histograms"]
    return int(next(one["count"] for name, one in histograms.items() if name.endswith("CodeGenerator.compilationTime")))
