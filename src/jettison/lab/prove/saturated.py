"""How many rows a second an entrant processes that has them all at hand: its own capacity, once it is warm."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

import jettison as jt
from jettison.lab.demo.pipeline import started
from jettison.lab.prove.loads import Load, constant
from jettison.lab.prove.prepared import land_now, schedule_of
from jettison.lab.prove.rivals.rival import Enter, Stage
from jettison.lab.prove.workload import Workload

AGREE, MOST_RUNS = 0.10, 6
_RUNS_A_SIZE = 3
_BATCH_S, _BATCHES = 2.0, 8
_NO_BOUND_S = 3600.0


class Settled(NamedTuple):
    """What the last two runs agree on, and all runs; they do not agree where there were as many as there may be."""

    rows_per_s: float
    runs: tuple[float, ...]

    @property
    def agrees(self) -> bool:
        """Whether the last two differ by little enough."""
        return len(self.runs) > 1 and abs(self.runs[-1] / self.runs[-2] - 1.0) <= AGREE


def settled(measure: Callable[[float], float], guess: float) -> Settled:
    """Measure again, each time with what came out before, until two runs agree: a cold JVM gets faster from run to run.

    >>> settled(lambda before: min(2.0 * before, 100.0), 20.0)
    Settled(rows_per_s=100.0, runs=(40.0, 80.0, 100.0, 100.0))
    """
    runs: list[float] = []
    while len(runs) < MOST_RUNS and not Settled(0.0, tuple(runs)).agrees:
        runs.append(measure(runs[-1] if runs else guess))
    return Settled(statistics.mean(runs[-2:]), tuple(runs))


def best_of(sizes: Sequence[float], measure: Callable[[float], float]) -> float:
    """The size with the best median of three runs, which take turns: one lucky run decides nothing.

    >>> lucky = iter([9.0, 5.0, 2.0, 5.0, 2.0, 5.0])
    >>> best_of([1.0, 2.5], lambda size: next(lucky))
    2.5
    """
    runs = [[measure(size) for size in sizes] for _ in range(_RUNS_A_SIZE)]
    return max(zip(map(statistics.median, zip(*runs, strict=True)), sizes, strict=True))[1]


@dataclass(frozen=True)
class Saturated:
    """Rows of a workload that lie on disk, some seconds of so many rows a second, for entrants to process one by one.

    The feed takes no part of the machine, so nothing runs beside.
    """

    spark: SparkSession
    folder: Path
    workload: Workload
    rows_per_s: float

    @property
    def load(self) -> Load:
        return constant(1.0)(self.rows_per_s, _BATCH_S * _BATCHES)

    def prepare(self) -> Saturated:
        """Write the rows."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.workload.write(self.spark, self.folder / "prepared", schedule_of(self.load.phases))
        return self

    def processes(self, enter: Enter, setting: float | None = None) -> float:
        """Rows a second in batches of about two seconds, or of what the setting says; the first batch does not count."""
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        land_now(self.folder / "prepared", run / "in")
        files = max(schedule_of(self.load.phases).files // _BATCHES, 1)
        stage = Stage(
            self.spark, run, self.workload, self.load, _NO_BOUND_S, self.rows_per_s, setting, files_per_batch=files
        )
        entry = enter(stage)
        answers = self.workload.answers(entry.rows, entry.say)
        writer = answers.writeStream.format("parquet").option("path", str(run / "out"))
        query = started(writer.trigger(availableNow=True), entry.runner)
        query.awaitTermination()
        if isinstance(entry.runner, jt.Shedder):
            entry.runner.await_books()
        batches = [(p.numInputRows, p.durationMs["triggerExecution"]) for p in query.recentProgress if p.numInputRows]
        shutil.rmtree(run)
        return statistics.median(1e3 * rows / max(ms, 1) for rows, ms in batches[1:] or batches)


def capacity(spark: SparkSession, folder: Path, workload: Workload, guess: float = 30_000.0) -> Settled:
    """What the plain query processes, in batches as long as a bound of 5 s allows."""

    def measure(rows_per_s: float) -> float:
        return (
            Saturated(spark, folder, workload, rows_per_s).prepare().processes(lambda stage: stage.bare(stage.rows()))
        )

    found = settled(measure, guess)
    shutil.rmtree(folder)
    return found
