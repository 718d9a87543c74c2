"""`jettison bench exactness`: answers that are called exact, and how many of them are wrong, live on Spark."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

import jettison as jt
from jettison.core.stats import Budget
from jettison.lab.bench.result import Result
from jettison.lab.bench.scripted import Script, keep, land, land_end, rows
from jettison.lab.bench.scripted_queries import MEASURES, START, Order, by_policy, window
from jettison.spark.network_rows import parquet_sink

_GROUPS, _FILES = 3000, 64
_COURSE = (*[keep(1.0)] * 2, *[keep(0.3)] * 2, *[keep(1.0)] * 26, *[keep(1.0, late=0.05)] * 2)
"""The budgets of one round, batch by batch: kept whole, thinned, kept whole for some windows, late rows thinned."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Group-windows of a run: all, those with an answer, those called exact, those of them that are wrong; rows dropped."""

    group_windows: int
    answered: int
    called_exact: int
    wrong: int
    rows_dropped: int


def exactness(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """Wrong answers among those called exact: for each policy one stream, with a restart and changes inside windows."""
    return by_policy(console, only, _result)


def _result(spark: SparkSession, folder: Path, policy: str) -> Result:
    seed = zlib.crc32(policy.encode())  # rows of its own for each, the same in every run
    found = judge(spark, folder, policy, course, groups=_GROUPS, files=_FILES, seed=seed)
    # A run in which nothing was dropped, or nothing was called exact, proves nothing.
    wrong = found.wrong if found.rows_dropped and found.called_exact else math.nan
    name = f"{policy}: wrong answers called exact"
    return Result(name, wrong, f"of {found.called_exact:,}", at_most=0.0, config=asdict(found), required=True)


def course(batch: int) -> Budget:
    """The budget after a batch; a run begins by keeping everything."""
    return _COURSE[batch % len(_COURSE)] if batch >= 0 else keep(1.0)


def judge(
    spark: SparkSession, folder: Path, policy: str, script: Script, *, groups: int, files: int, seed: int = 0
) -> Judged:
    """Run a policy by a script over a stream, with a restart in the middle, and hold the answers against all rows."""
    for part in (range(files // 2), range(files // 2, files)):
        land(folder / "in", part, groups=groups, seed=seed)
        if part.stop == files:
            land_end(folder / "in", files)
        order = Order(spark, folder, script, parquet_sink(folder / "out"), answers=True)
        shedder, query = START[policy](order)
        query.awaitTermination()
        shedder.await_books()
    dropped = jt.Ledger(folder / "checkpoint" / "jettison" / "ledger").totals().dropped
    return judged(_true_answers(spark, folder / "in"), spark.read.parquet(str(folder / "out")), dropped)


def _true_answers(spark: SparkSession, folder: Path) -> DataFrame:
    answers = rows(spark, folder).where("id >= 0").groupBy(window(), "key")
    return answers.agg(*(plain().alias(f"true_{name}") for name, (plain, _) in MEASURES.items()))


def judged(truth: DataFrame, answers: DataFrame, dropped: int) -> Judged:
    """Hold answers against those over all rows, `true_` before their names; a null is right only where the truth is one."""
    exact = {name: F.col(name)["status"] == "exact" for name in MEASURES}
    wrong = [exact[name] & ~F.col(name)["value"].eqNullSafe(F.col(f"true_{name}")) for name in MEASURES]
    found = (
        truth.join(answers, ["window", "key"], "left")
        .agg(
            F.count(F.lit(1)), F.count("rows"), F.count_if(reduce(or_, exact.values())), F.count_if(reduce(or_, wrong))
        )
        .first()
    )
    assert found is not None
    group_windows, answered, called_exact, wrong_ones = found
    return Judged(group_windows, answered, called_exact, wrong_ones, dropped)
