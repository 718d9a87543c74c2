"""`jettison bench exactness`: answers that are called exact, and how many of them are wrong, live on Spark."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.bench.result import Result
from jettison.bench.scripted import DELAY_S, POLICIES, WINDOW_DROP, WINDOW_S, Script, keep, land, land_end, rows, stream
from jettison.stats import Budget

_GROUPS, _FILES = 3000, 26
_COURSE = (*[keep(1.0)] * 2, *[keep(0.3)] * 2, *[keep(1.0)] * 13, *[keep(1.0, late=0.05)] * 2)
"""The budgets of one round, batch by batch: kept whole, thinned, kept whole for some windows, late rows thinned."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Group-windows of a run: all, those with an answer, those called exact, those of them that are wrong; rows dropped."""

    group_windows: int
    answered: int
    exact: int
    wrong: int
    dropped: int


def exactness(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Wrong answers among those called exact: for each policy one stream, with a restart and changes inside windows."""
    results = []
    for policy in POLICIES:
        found = judge(spark, folder / policy, policy, course, groups=_GROUPS, files=_FILES)
        # A run in which nothing was dropped, or nothing was called exact, proves nothing.
        wrong = found.wrong if found.dropped and found.exact else math.nan
        config = {
            "group_windows": found.group_windows,
            "answered": found.answered,
            "called_exact": found.exact,
            "rows_dropped": found.dropped,
        }
        name = f"{policy}: wrong answers called exact"
        results.append(Result(name, wrong, f"of {found.exact:,}", at_most=0.0, config=config, required=True))
    return results


def course(batch: int) -> Budget:
    """The budget after a batch; a run begins by keeping everything."""
    return _COURSE[batch % len(_COURSE)] if batch >= 0 else keep(1.0)


def judge(spark: SparkSession, folder: Path, policy: str, script: Script, *, groups: int, files: int) -> Judged:
    """Run a policy by a script over a stream, with a restart in the middle, and hold the answers against all rows."""
    for part in (range(files // 2), range(files // 2, files)):
        land(folder / "in", part, groups=groups)
        if part.stop == files:
            land_end(folder / "in", files)
        run(spark, folder, policy, script)
    dropped = jt.Ledger(folder / "checkpoint" / "jettison" / "ledger").totals().dropped
    return _judged(_true_answers(spark, folder / "in"), spark.read.parquet(str(folder / "out")), dropped)


def run(spark: SparkSession, folder: Path, policy: str, script: Script) -> None:
    """Answer what has arrived in `in` by now; answers go to `out`."""
    shedder = jt.Shedder(latency="1 hour", checkpoint=folder / "checkpoint", policy=POLICIES[policy](script))
    arriving, delay = stream(spark, folder / "in"), f"{DELAY_S} seconds"
    if policy == WINDOW_DROP:
        kept = shedder.guard(arriving.withWatermark("at", delay), id="id")
        answers = shedder.deliver(_answers(kept))
    else:
        answers = _answers(
            shedder.guard(arriving, id="id", arrival="arrived", protect="vip").withWatermark("at", delay)
        )
    writer = answers.writeStream.format("parquet").option("path", str(folder / "out")).trigger(availableNow=True)
    shedder.start(writer).awaitTermination()
    shedder.await_books()


def _answers(kept: DataFrame) -> DataFrame:
    window = F.window("at", f"{WINDOW_S} seconds").alias("window")
    return kept.groupBy(window, "key").agg(
        jt.count(window="window").alias("rows"), jt.sum("value", window="window").alias("total")
    )


def _true_answers(spark: SparkSession, folder: Path) -> DataFrame:
    window = F.window("at", f"{WINDOW_S} seconds").alias("window")
    answers = rows(spark, folder).where("id >= 0").groupBy(window, "key")
    return answers.agg(F.count(F.lit(1)).alias("true_rows"), F.sum("value").alias("true_total"))


def _judged(truth: DataFrame, answers: DataFrame, dropped: int) -> Judged:
    judged = truth.join(answers, ["window", "key"], "left")
    exact = [F.col(name)["status"] == "exact" for name in ("rows", "total")]
    wrong = [F.col(name)["value"] != F.col(f"true_{name}") for name in ("rows", "total")]
    found = judged.agg(
        F.count(F.lit(1)),
        F.count("rows"),
        F.count_if(exact[0] | exact[1]),
        F.count_if((exact[0] & wrong[0]) | (exact[1] & wrong[1])),
    ).first()
    assert found is not None
    group_windows, answered, called_exact, wrong_ones = found
    return Judged(group_windows, answered, called_exact, wrong_ones, dropped)
