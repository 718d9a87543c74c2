"""One workload on this machine: its load, its truth, and one run of one rival after the other."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from jettison.lab.bench.streams import local_cpu_s
from jettison.lab.demo.experiment import Run, run_query
from jettison.lab.prove.judge import Figures, answer_figures, batches_a_window, latencies, recovery_s
from jettison.lab.prove.loads import Load
from jettison.lab.prove.prepared import PreparedFeed, rows_in, schedule_of
from jettison.lab.prove.rivals.rival import Enter, Entry, Rival, Stage
from jettison.lab.prove.saturated import Saturated, Settled, best_of, settled
from jettison.lab.prove.vocabulary import Plain
from jettison.lab.prove.workload import Workload


@dataclass(frozen=True)
class Trial:
    """A workload under a load, in a folder: `prepared` rows, the `truth`, and one run after the other.

    Parameters
    ----------
    spark, folder
        The session; rows of one workload take gigabytes, so that those of one trial lie there at a time.
    workload, load, bound_s, capacity_rows_per_s
        What runs, and under what.
    """

    spark: SparkSession
    folder: Path
    workload: Workload
    load: Load
    bound_s: float
    capacity_rows_per_s: float
    _own: dict[Enter, Settled] = field(default_factory=dict)
    unsettled: list[str] = field(default_factory=list)
    """Rivals that were set to what no two runs of their own agreed on."""

    def prepare(self) -> None:
        """Write the rows, and the truth if it is not known."""
        if not (self.folder / "prepared").exists():
            self.workload.write(self.spark, self.folder / "prepared", schedule_of(self.load.phases))
        if not (self.folder / "truth").exists():
            rows = rows_in(self.spark, self.folder / "prepared", stream=False)
            self.workload.answers(rows, Plain()).write.parquet(str(self.folder / "truth"))

    def tidy(self) -> None:
        """Make room for the rows of another; the truth stays."""
        for name in ("prepared", "saturated"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    @property
    def truth(self) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / "truth"))

    def saturated(self) -> Saturated:
        """Rows at the plain query's capacity, written once."""
        found = Saturated(self.spark, self.folder / "saturated", self.workload, self.capacity_rows_per_s)
        return found if found.folder.exists() else found.prepare()

    def tuned(self, rival: Rival) -> float | None:
        """The setting that a rival is judged by, from what it processes itself; one that has none is only warmed."""
        rows = self.saturated()
        if rival.sizes:
            return best_of(rival.sizes, lambda size: rows.processes(rival.enter, size))
        if rival.unshed is None:
            rows.processes(rival.enter)
            return None
        unshed = rival.unshed
        if unshed not in self._own:
            self._own[unshed] = settled(lambda _: rows.processes(unshed), 0.0)
        own = self._own[unshed]
        self.unsettled.extend([] if own.agrees else [rival.name])
        return rival.of_own * own.rows_per_s

    def run(self, rival: Rival, setting: float | None) -> Figures:
        """One run from an empty folder, judged."""
        folder = self.folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        stage = Stage(self.spark, folder, self.workload, self.load, self.bound_s, self.capacity_rows_per_s, setting)
        feed = PreparedFeed(self.folder / "prepared", folder / "in", self.load.phases)
        entry = rival.enter(stage)
        answers = self.workload.answers(entry.rows, entry.say)
        writer = answers.writeStream.format("parquet").option("path", str(folder / "out"))
        before_s = local_cpu_s(self.spark)
        run = run_query(rival.name, feed, writer, entry.runner)
        cpu_s = local_cpu_s(self.spark) - before_s
        p50, p95, p99 = latencies(run, self.load)
        of_answers = answer_figures(self.spark, self.workload, self.truth, folder / "out", run, self.bound_s)
        made = Figures(
            p50,
            p95,
            p99,
            rows_processed=self._processed(run, rival, entry, setting),
            recovery_s=recovery_s(run, self.load, self.bound_s),
            cpu_s=cpu_s,
            load_average=run.load_average,
            feed_late_s=run.feed_late_s,
            batches_a_window=batches_a_window(run, self.workload.window_s),
            **of_answers,
        )
        shutil.rmtree(folder, ignore_errors=True)
        return made

    def _processed(self, run: Run, rival: Rival, entry: Entry, setting: float | None) -> float:
        """Share of the rows that arrived; a rival without books processes what it was set to, of those that it took."""
        counted = [batch for batch in run.batches if batch.counted]
        share = sum(batch.rows * batch.kept_fraction for batch in counted) / max(sum(b.rows for b in counted), 1)
        if isinstance(entry.runner, Path) and not rival.delays:
            share = min((math.nan if setting is None else setting) / self.load.peak_rows_per_s, 1.0)
        return share * (run.batches[-1].last / max(run.landed, 1) if run.batches else 0.0)
