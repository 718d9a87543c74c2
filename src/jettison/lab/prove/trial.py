"""One workload on this machine: its capacity, its truth, and one run of one rival after the other."""

from __future__ import annotations

import shutil
import statistics
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from jettison.lab.bench.streams import task_cpu_s
from jettison.lab.demo.experiment import run_query
from jettison.lab.prove.judge import Figures, answer_figures, latencies, recovery_s
from jettison.lab.prove.loads import Load, constant
from jettison.lab.prove.prepared import PreparedFeed, land_now, rows_in, schedule_of
from jettison.lab.prove.rivals.rival import Rival, Stage
from jettison.lab.prove.vocabulary import Plain
from jettison.lab.prove.workload import Workload

_FIRST_GUESS_ROWS_PER_S = 30_000.0
_BATCH_S, _BATCHES = 2.0, 6
_HELD = 0.95  # of the rows


def capacity(spark: SparkSession, folder: Path, workload: Workload) -> float:
    """Rows a second that the plain query processes, warm, in batches as long as a bound of 5 s allows.

    Its rows lie on disk before the clock starts, because the feed takes no part of the machine. What the first run finds
    sets the size of the second one's batches, which counts.
    """
    found = _FIRST_GUESS_ROWS_PER_S
    for name in ("warm-up", "measured"):
        load = constant(1.0)(found, _BATCH_S * _BATCHES)
        schedule = schedule_of(load.phases)
        workload.write(spark, folder / name, schedule)
        land_now(folder / name, folder / f"{name}-in")
        files = max(schedule.files // _BATCHES, 1)
        answers = workload.answers(rows_in(spark, folder / f"{name}-in", files_per_batch=files), Plain())
        writer = answers.writeStream.format("parquet").option("path", str(folder / f"{name}-out"))
        query = writer.option("checkpointLocation", str(folder / f"{name}-at")).trigger(availableNow=True).start()
        query.awaitTermination()
        batches = [(p.numInputRows, p.durationMs["triggerExecution"]) for p in query.recentProgress if p.numInputRows]
        found = statistics.median(1e3 * rows / max(ms, 1) for rows, ms in batches[1:])
    shutil.rmtree(folder)
    return found


@dataclass(frozen=True)
class Trial:
    """A workload whose rows lie ready, and whose true answers are known.

    Parameters
    ----------
    spark, folder
        The session; `prepared` and `truth` lie here, and a run after the other.
    workload, load, bound_s, capacity_rows_per_s
        What runs, and under what.
    """

    spark: SparkSession
    folder: Path
    workload: Workload
    load: Load
    bound_s: float
    capacity_rows_per_s: float

    @classmethod
    def of(cls, spark: SparkSession, folder: Path, workload: Workload, *, bound_s: float, seconds: float) -> Trial:
        """Measure the capacity, make the load that the workload wants of it, write its rows and compute their truth."""
        found = capacity(spark, folder / "capacity", workload)
        trial = cls(spark, folder, workload, workload.shape(found, seconds), bound_s, found)
        trial.prepare()
        return trial

    def prepare(self) -> None:
        """Write rows and truth."""
        self.workload.write(self.spark, self.folder / "prepared", schedule_of(self.load.phases))
        rows = rows_in(self.spark, self.folder / "prepared", stream=False)
        self.workload.answers(rows, Plain()).write.parquet(str(self.folder / "truth"))

    @property
    def truth(self) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / "truth"))

    def tuned(self, rival: Rival) -> float | None:
        """The setting that a rival is judged by: of those that it tries, the best."""
        if not rival.tries:
            return None
        by_latency: dict[float, float] = {}
        for setting in rival.tries:
            found = self.run(rival, setting)
            by_latency[setting] = found.latency_p95_s
            if not rival.delays and found.latency_p95_s <= self.bound_s:
                return setting
        return min(by_latency, key=lambda one: by_latency[one]) if rival.delays else rival.tries[-1]

    def run(self, rival: Rival, setting: float | None) -> Figures:
        """One run from an empty folder, judged."""
        folder = self.folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        stage = Stage(self.spark, folder, self.workload, self.load, self.bound_s, self.capacity_rows_per_s, setting)
        feed = PreparedFeed(self.folder / "prepared", folder / "in", self.load.phases)
        entry = rival.enter(stage)
        answers = self.workload.answers(entry.rows, entry.say)
        writer = answers.writeStream.format("parquet").option("path", str(folder / "out"))
        before_s = task_cpu_s(self.spark)
        run = run_query(rival.name, feed, writer, entry.runner)
        cpu_s = task_cpu_s(self.spark) - before_s
        p50, p95, p99 = latencies(run, self.load)
        counted = [batch for batch in run.batches if batch.counted]
        rows = sum(batch.rows for batch in counted)
        processed = sum(batch.rows * batch.kept_fraction for batch in counted) / max(rows, 1)
        if isinstance(entry.runner, Path) and not rival.delays:
            processed = min(stage.rows_per_s / self.load.peak_rows_per_s, 1.0)
        of_answers = answer_figures(self.spark, self.workload, self.truth, folder / "out", run, self.bound_s)
        taken = run.batches[-1].last / max(run.landed, 1) if run.batches else 0.0
        made = Figures(
            p50,
            p95,
            p99,
            rows_processed=processed * taken,
            recovery_s=recovery_s(run, self.load, self.bound_s),
            cpu_s=cpu_s,
            load_average=run.load_average,
            **of_answers,
        )
        shutil.rmtree(folder, ignore_errors=True)
        return made
