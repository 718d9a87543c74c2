"""The subset guarantee on real Spark runs: random windows, nesting, groups, late rows and changing plans.

Each case runs one streaming query with two sides over the same rows, one shed and one not, so that both see the same
micro-batches and the same watermark. Every answer of the shed side must be one of the other side, and the answers that
are missing must be exactly those of windows that the ledger says were dropped.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, EventTimes, Stats
from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.reproduce.window.cases import MS, START_MS, Case, Outcome, land, long_case, make_case
from jettison.policies.window.query_fan import Branch
from jettison.policies.window.window_choice import highest_share
from jettison.policies.window.window_drop import WindowDrop
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_marks import WindowMarks
from jettison.policies.window.window_needs import Pipeline

_AT_ONCE = 3  # small batches mostly wait: for files, for other processes, for one another
_CHEAP = {
    # Closed windows come out with the next rows instead of in batches of their own: half as many batches.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Every state partition of every aggregate is a task and a file in every batch.
    "spark.sql.shuffle.partitions": "1",
    # No checksum files beside the checkpoint's, neither Hadoop's nor Spark's own: for every file that it creates, Hadoop
    # starts a chmod.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Plans are described for the web interface in every batch; nobody reads them here.
    "spark.sql.ui.explainMode": "simple",
}
_REPORT_S = 10.0
_OLDEST_US = 60_000_000  # no row is later than this
_SCHEMA = "g string, value long, at timestamp"
_BUDGETS = (1.0, 0.7, 0.4, 0.1, 0.0)
_WINDOWS = 1000
_CONSTANT = ((0.4, 10), (0.0, 4))  # share of rows to keep, and the largest gap: one asks for more than the gap allows


def subset(spark: SparkSession, folder: Path, settings: RunSettings) -> Judged:
    """Run random cases; every delivered answer must be exact, and every other one accounted for."""
    cases = [make_case(1000 * settings.seed + number) for number in range(3 if settings.quick else 200)]
    found: Counter[str] = Counter()
    worst_gap, deviations = -math.inf, []
    for case, outcome in run_cases(spark, [*(long_case(settings.seed, *each) for each in _CONSTANT), *cases], folder):
        found.update(
            {
                "cases": 1,
                "cases that dropped rows": int(outcome.rows_kept < outcome.rows_seen),
                "answers delivered": len(outcome.shed),
                "answers held back": len(outcome.plain) - len(outcome.shed),
                "wrong": len(outcome.wrong),
                "lost": len(outcome.lost(case.levels[-1])),
                "marks changed": outcome.changed,
            }
        )
        worst_gap = max(worst_gap, outcome.gap - case.max_gap)
        if case.keep is not None:
            wanted = min(1.0 - case.keep, highest_share(case.max_gap))
            deviations.append(abs(outcome.dropped_share(_WINDOWS) - wanted))
        if found["cases"] % 10 == 0:
            settings.say(f"  {dict(found)}")
    figures = {
        "subset": float(found["wrong"]),
        "kept-windows-whole": float(found["lost"]),
        "marks-final": float(found["marks changed"]),
        "gap-on-spark": float(worst_gap),
        "share-on-spark": float(np.max(deviations)),  # not a number where too few windows were decided
    }
    section = Section("Subset guarantee", table(["", "count"], [[what, found[what]] for what in found]))
    return [section], judge("window", figures, {"seed": settings.seed, "keep and B": _CONSTANT, **found})


@dataclass(frozen=True)
class ChangingBudget(WindowDrop):
    """WindowDrop under a load that changes with every batch: the controller's budget is replaced by one from the seed.

    Spark has no watermark before the second batch has ended, and so nothing would be decided for the first three. Where
    it is known when rows begin, windows are decided from the first batch on: a case needs fewer batches.
    """

    budget_seed: int = 0
    keep: float | None = None  # the same in all batches, where it is given
    begins_us: int | None = None
    step_us: int = 0  # time that a batch covers

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        """Plan for the budget that the seed gives this batch."""
        chance = random.Random(f"{self.budget_seed}:{stats.batch_id}")
        keep = chance.choice(_BUDGETS) if self.keep is None else self.keep
        budget = Budget(keep, keep, budget.late_after_s, f"case: keep {keep}")
        return super().continued(previous, self._with_times(stats), budget)

    def _with_times(self, stats: Stats) -> Stats:
        times = stats.event_times
        if self.begins_us is None or (times is not None and times.watermark_us is not None):
            return stats
        if times is None and stats.batch_id >= 0:
            return stats
        if times is None:  # before the first batch; a plan reaches three advances ahead, so this one spans two batches
            times = EventTimes(self.begins_us - 1, 2 * self.step_us // 3)
        return replace(stats, event_times=replace(times, watermark_us=self.begins_us - _OLDEST_US))


def run_cases(spark: SparkSession, cases: Sequence[Case], folder: Path) -> Iterator[tuple[Case, Outcome]]:
    """Run cases, some at a time, and yield them with their outcomes in the order given."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        running = [pool.submit(_run_and_clear, spark, case, folder / str(i)) for i, case in enumerate(cases)]
        try:
            for case, outcome in zip(cases, running, strict=True):
                yield case, outcome.result()
        finally:
            pool.shutdown(cancel_futures=True)


def run_case(spark: SparkSession, case: Case, folder: Path) -> Outcome:
    """Run both sides of a case and collect what they deliver."""
    spark = _session_of_its_own(spark)
    land(case, folder / "in")
    branch = Branch("answers", Pipeline(case.levels), case.max_gap)
    policy = ChangingBudget(
        time="at",
        queries=(branch,),
        budget_seed=case.seed,
        keep=case.keep,
        begins_us=START_MS * MS if case.keep is None else None,
        step_us=case.step_ms * MS,
    )
    shedder = jt.Shedder(latency="1 hour", checkpoint=folder / "checkpoint", policy=policy)
    rows = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    rows = rows.withWatermark("at", f"{case.delay_ms} milliseconds")
    shed = shedder.deliver(_nested(shedder.guard(rows, row_id=["g", "value"]), case.levels))
    both = _side(_nested(rows, case.levels), "plain").unionByName(_side(shed, "shed"))
    outcome = Outcome()

    def collect(answers: DataFrame, batch: int) -> None:
        for row in answers.collect():
            side = outcome.plain if row.side == "plain" else outcome.shed
            side.append((row.start, row.g, row.n, row.total, row.digest))
        _await_reports(shedder, batch)

    query = shedder.start(both.writeStream.outputMode("append").foreachBatch(collect).trigger(availableNow=True))
    query.awaitTermination()
    shedder.await_books()
    _read_ledger(shedder.ledger, outcome)
    return outcome


def _await_reports(shedder: jt.Shedder, batches: int) -> None:
    """Wait until so many batches are on record: batches this small outrun their reports, and so every plan."""
    until = time.monotonic() + _REPORT_S
    while shedder.status().batches < batches and time.monotonic() < until:
        time.sleep(0.02)


def _run_and_clear(spark: SparkSession, case: Case, folder: Path) -> Outcome:
    try:
        return run_case(spark, case, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _session_of_its_own(spark: SparkSession) -> SparkSession:
    """A session of the same application with what makes small batches cheap and changes no answer.

    A listener hears all queries of its session, and PySpark copies every event for every listener: cases that run at
    the same time would pay for one another.
    """
    own = spark.newSession()
    for name, value in _CHEAP.items():
        own.conf.set(name, value)
    return own


def _nested(rows: DataFrame, levels: tuple[Grid, ...]) -> DataFrame:
    """Count, sum and an order-free digest of all rows below, level by level."""
    answers = rows.groupBy(_window("at", levels[0]), "g").agg(
        F.count(F.lit(1)).alias("n"),
        F.sum("value").alias("total"),
        F.hash(F.sort_array(F.collect_list("value"))).cast("long").alias("digest"),
    )
    for level in levels[1:]:
        below = answers.withColumn("at", F.window_time("window")).drop("window")
        answers = below.groupBy(_window("at", level), "g").agg(
            F.count(F.lit(1)).alias("n"), F.sum("total").alias("total"), F.bit_xor("digest").alias("digest")
        )
    return answers


def _window(time: str, grid: Grid) -> Any:
    size, slide, offset = (f"{us // MS} milliseconds" for us in (grid.size, grid.slide, grid.offset))
    return F.window(time, size, slide, offset)


def _side(answers: DataFrame, name: str) -> DataFrame:
    start = F.unix_micros(F.col("window.start")).alias("start")
    return answers.select(F.lit(name).alias("side"), start, "g", "n", "total", "digest")


def _read_ledger(ledger: jt.Ledger, outcome: Outcome) -> None:
    for record in ledger.records("plan"):
        for setting in DropPlan.from_json(json.dumps(record)).points.values():
            if isinstance(setting, WindowMarks) and setting.first:
                for n, letter in enumerate(setting.marks[0], start=setting.first[0]):
                    outcome.changed += outcome.marked.setdefault(n, letter) != letter
    totals = ledger.totals()
    outcome.rows_seen, outcome.rows_kept = totals.seen, totals.kept
