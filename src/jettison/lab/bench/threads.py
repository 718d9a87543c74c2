"""`jettison bench threads`: threads of the driver after so many short batches."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

import jettison as jt
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.result import Result
from jettison.lab.bench.streams import driver_says
from jettison.lab.demo.pipeline import Runner, started
from jettison.lab.fresh_process import in_fresh_process
from jettison.spark.session import local_session

_LOOK_AGAIN_S, _WITHIN_S = 0.5, 1200.0
_BATCHES = 200
_KINDS = ("plain", "guard", "answers")


def threads(spark: SparkSession) -> Counter[str]:
    """How many threads of each pool the driver has now."""
    all_threads = driver_says(spark, "executors/driver/threads")
    return Counter(re.split(r"[-#]?\d", thread["threadName"])[0] for thread in all_threads)


def after_batches(spark: SparkSession, folder: Path, kind: str, batches: int) -> Counter[str]:
    """Threads after so many batches of windowed counts, over rows that arrive steadily."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
    runner: Runner = folder
    if kind != "plain":
        runner = jt.Shedder(latency="1 minute", checkpoint=folder)
        rows = runner.guard(rows, row_id="value")
    query = started(_windows(rows, bounds=kind == "answers").writeStream.format("noop").outputMode("append"), runner)
    while (last := query.lastProgress) is None or last.batchId < batches:
        time.sleep(_LOOK_AGAIN_S)
    found = threads(spark)
    query.stop()
    return found


def _windows(rows: DataFrame, *, bounds: bool) -> DataFrame:
    windows = rows.withWatermark("timestamp", "1 second").groupBy(F.window("timestamp", "2 seconds"))
    if not bounds:
        return windows.agg(F.count("*").alias("rows"))
    return windows.agg(jt.count(window="window").alias("rows"), jt.avg("value", window="window").alias("mean"))


def _in_this_process(kind: str) -> Counter[str]:
    with local_session("jettison bench threads") as spark, tempfile.TemporaryDirectory() as scratch:
        return after_batches(spark, Path(scratch), kind, _BATCHES)


def driver_threads(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """Threads of the driver after many short batches, each kind of query in a fresh process."""
    for kind in chosen(dict.fromkeys(_KINDS), only):
        console.print(f"{kind} ...", highlight=False)
        found = in_fresh_process(_WITHIN_S, _in_this_process, kind)
        config = {"batches": _BATCHES, "largest_pools": dict(found.most_common(6))}
        yield [Result(f"threads of the driver: {kind}", value=found.total(), unit="threads", config=config)]
