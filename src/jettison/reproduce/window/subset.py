"""The subset guarantee on real Spark runs: random windows, nesting, groups, late rows and changing plans.

Each case runs one streaming query with two sides over the same rows, one shed and one not, so that both see the same
micro-batches and the same watermark. Every answer of the shed side must be one of the other side, and the answers that
are missing must be exactly those of windows that the ledger says were dropped.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.plan import DropPlan
from jettison.policies.window_drop import WindowDrop
from jettison.settings import WindowMarks
from jettison.settings.window_marks import DROP, VOID
from jettison.stats import Budget, Stats
from jettison.windows.fan import Branch
from jettison.windows.grid import Grid
from jettison.windows.needs import Pipeline

_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
_MS = 1000
_SCHEMA = "g string, value long, at timestamp"
_START_MS = 1_767_225_600_000  # 2026-01-01
_SPAN_MS = 120_000
_BUDGETS = (1.0, 0.7, 0.4, 0.1, 0.0)


@dataclass(frozen=True)
class ChangingBudget(WindowDrop):
    """WindowDrop under a load that changes with the batch: the controller's budget is replaced by one from the seed."""

    budget_seed: int = 0

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        """Plan for the budget that the seed gives this batch."""
        chance = random.Random(f"{self.budget_seed}:{stats.batch_id // 3}")
        keep = chance.choice(_BUDGETS)
        return super().continued(previous, stats, Budget(keep, keep, budget.late_after_s, f"case: keep {keep}"))


@dataclass(frozen=True, slots=True)
class Case:
    """One random case; everything follows from the seed."""

    seed: int
    levels: tuple[Grid, ...]
    max_gap: int
    groups: int
    delay_ms: int
    decide: str
    batches: int = 8
    rows_per_batch: int = 250


@dataclass
class Outcome:
    """What came out of a case.

    Parameters
    ----------
    plain, shed
        Answers of both sides, by window start, group and values.
    dropped
        Numbers of the windows that the ledger has as dropped.
    gap
        Most consecutive windows dropped, void ones left out.
    changed
        Windows whose mark differed between two plans; there must be none.
    rows_seen, rows_kept
        At the guard.
    """

    plain: list[tuple[Any, ...]] = field(default_factory=list)
    shed: list[tuple[Any, ...]] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    gap: int = 0
    changed: int = 0
    rows_seen: int = 0
    rows_kept: int = 0

    @property
    def wrong(self) -> list[tuple[Any, ...]]:
        """Delivered answers that the query without shedding does not give."""
        return sorted(set(self.shed) - set(self.plain)) + _repeated(self.shed)

    def lost(self, final: Grid) -> list[tuple[Any, ...]]:
        """Answers of windows that were not dropped, and yet were not delivered."""
        missing = set(self.plain) - set(self.shed)
        return sorted(answer for answer in missing if (answer[0] - final.offset) // final.slide not in self.dropped)


def make_case(seed: int) -> Case:
    """A random case."""
    chance = random.Random(seed)
    depth = 1 + seed % 3
    levels = []
    for level in range(depth):
        slide = chance.choice([500, 700, 1000, 1500, 2000, 3000]) * (level + 1)
        size = slide * chance.choice([1, 1, 2, 3]) + chance.choice([0, 0, 0, slide // 3])
        offset = chance.choice([0, 0, 250, slide // 2, 333])
        levels.append(Grid(size * _MS, slide * _MS, offset * _MS))
    return Case(
        seed=seed,
        levels=tuple(levels),
        max_gap=chance.choice([1, 2, 4, 8]),
        groups=chance.choice([1, 3, 8]),
        delay_ms=chance.choice([0, 1000, 4000]),
        decide=chance.choice(["runs", "runs", "coin"]),
    )


def run_case(spark: SparkSession, case: Case, folder: Path) -> Outcome:
    """Run both sides of a case and collect what they deliver."""
    _land(case, folder / "in")
    branch = Branch("answers", Pipeline(case.levels), case.max_gap)
    policy = ChangingBudget(time="at", queries=(branch,), decide=case.decide, budget_seed=case.seed)  # type: ignore[arg-type]
    shedder = jt.Shedder(latency="1 hour", checkpoint=folder / "checkpoint", policy=policy)

    def source() -> DataFrame:
        rows = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
        return rows.withWatermark("at", f"{case.delay_ms} milliseconds")

    shed = shedder.deliver(_nested(shedder.guard(source(), id=["g", "value"]), case.levels))
    both = _side(_nested(source(), case.levels), "plain").unionByName(_side(shed, "shed"))
    outcome = Outcome()

    def collect(answers: DataFrame, batch: int) -> None:
        for row in answers.collect():
            side = outcome.plain if row.side == "plain" else outcome.shed
            side.append((row.start, row.g, row.n, row.total, row.digest))

    with _only_batches_with_rows(spark):
        query = shedder.start(both.writeStream.outputMode("append").foreachBatch(collect).trigger(availableNow=True))
        query.awaitTermination()
    shedder.await_books()
    _read_ledger(shedder.ledger, branch, outcome)
    return outcome


@contextmanager
def _only_batches_with_rows(spark: SparkSession) -> Iterator[None]:
    """Closed windows come out with the next rows instead of in batches of their own: half as many batches."""
    before = spark.conf.get(_EMPTY_BATCHES)
    spark.conf.set(_EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        spark.conf.set(_EMPTY_BATCHES, before or "true")


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
    size, slide, offset = (f"{us // _MS} milliseconds" for us in (grid.size, grid.slide, grid.offset))
    return F.window(time, size, slide, offset)


def _side(answers: DataFrame, name: str) -> DataFrame:
    start = F.unix_micros(F.col("window.start")).alias("start")
    return answers.select(F.lit(name).alias("side"), start, "g", "n", "total", "digest")


def _land(case: Case, folder: Path) -> None:
    """One file a batch: time goes on, a tenth of the rows is late within the delay, a few are too late."""
    chance = random.Random(case.seed)
    folder.mkdir(parents=True)
    step = _SPAN_MS // case.batches
    for batch in range(case.batches):
        lines = []
        for i in range(case.rows_per_batch):
            at = _START_MS + batch * step + step * i // case.rows_per_batch
            if (luck := chance.random()) < 0.1:
                at -= chance.randint(0, case.delay_ms)
            elif luck < 0.12:
                at -= case.delay_ms + chance.randint(0, 20_000)
            number = batch * case.rows_per_batch + i
            time = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
            lines.append(json.dumps({"g": f"g{chance.randrange(case.groups)}", "value": number, "at": time}))
        path = folder / f"{batch:03d}.json"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (_START_MS / 1000 + batch,) * 2)  # files are taken in the order of their age


def _read_ledger(ledger: jt.Ledger, branch: Branch, outcome: Outcome) -> None:
    marked: dict[int, str] = {}
    for record in ledger.records("plan"):
        for setting in DropPlan.from_json(json.dumps(record)).points.values():
            if isinstance(setting, WindowMarks) and setting.first:
                for n, letter in enumerate(setting.marks[0], start=setting.first[0]):
                    outcome.changed += marked.setdefault(n, letter) != letter
    run = 0
    for n in range(min(marked, default=0), max(marked, default=-1) + 1):
        if marked.get(n) != VOID:
            run = run + 1 if marked.get(n) == DROP else 0
            outcome.gap = max(outcome.gap, run)
    outcome.dropped = {n for n, letter in marked.items() if letter == DROP}
    totals = ledger.totals()
    outcome.rows_seen, outcome.rows_kept = totals.seen, totals.kept


def _repeated(answers: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted({answer for answer in answers if answers.count(answer) > 1})
