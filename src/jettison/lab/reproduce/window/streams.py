"""Streams, busy boxes and fixed window drops for the experiments on Spark."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt
from jettison.core.plan import LARGE_PLAN_BYTES, PLAN_BYTES, DropPlan
from jettison.core.stats import Budget, Stats
from jettison.lab.bench.streams import Variant, run_once, to_end
from jettison.policies.window import horizon
from jettison.policies.window.query_fan import Branch
from jettison.policies.window.window_drop import WindowDrop
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_marks import WindowMarks
from jettison.policies.window.window_needs import Pipeline

TUPLE_US = 1000
"""One tuple a millisecond: a window of n tuples is n milliseconds long."""
START_US = 1_767_225_600_000_000
_BYTES_PER_MS = 900_000  # text that SHA-256 takes about a millisecond of CPU for, where the processor helps


@dataclass(frozen=True)
class FixedDrop(WindowDrop):
    """Drops a set share of the windows in a span of time, all decided before the query starts."""

    share: float = 0.0
    tuples: int = 0

    @property
    def plan_bytes(self) -> int:
        """Thousands of windows marked at once need more room than plans for a few batches, which are the rule."""
        many = self.share > 0.0 and self.tuples * TUPLE_US / self.fan.length > horizon.MOST_MARKS
        return LARGE_PLAN_BYTES if many else PLAN_BYTES

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        """Marks for the whole span, or those there are."""
        if previous.points:
            return DropPlan(0, previous.points, "experiment")
        marks = WindowMarks()
        if self.share > 0.0:
            decider, fan = self.decider(self.fan), self.fan
            first, last = fan.first_unit_after(START_US - 1), fan.first_unit_after(START_US + self.tuples * TUPLE_US)
            marks = horizon.begin(fan, START_US)
            marks = horizon.extend(fan, marks, decider, begun=first, until=last, drop_share=self.share)
        return DropPlan(0, {name: marks for name in stats.points}, "experiment")


def branch(*levels: tuple[int, int], max_gap: int = 10, name: str = "answers") -> Branch:
    """A query whose windows are given in tuples."""
    grids = tuple(Grid(size * TUPLE_US, slide * TUPLE_US) for size, slide in levels)
    return Branch(name, Pipeline(grids), max_gap)


def window(time: str, size: int, slide: int | None = None) -> Column:
    """Spark's window over so many tuples."""
    return F.window(time, f"{size} milliseconds", f"{slide or size} milliseconds")


def land(spark: SparkSession, folder: Path, tuples: int, files: int = 4, *, text: bool = True) -> None:
    """Readings of a temperature sensor, one a millisecond, as columns and, with `text`, as JSON too."""
    shutil.rmtree(folder, ignore_errors=True)
    at = f"timestamp_micros({START_US} + id * {TUPLE_US}) as at"
    reading = (
        "to_json(named_struct('id', id, 'value', value, 'unit', 'celsius', 'station', concat('s', id % 97))) as json"
    )
    numbers = spark.range(0, tuples, 1, files).selectExpr("id", "20 + 10 * sin(id / 1000) + rand(7) as value", at)
    numbers.selectExpr("id", "at", "value", *([reading] if text else [])).write.parquet(str(folder))


def source(spark: SparkSession, folder: Path, *, files_a_batch: int = 4) -> DataFrame:
    """The readings as a stream, with the watermark in front of everything; by default all that `land` lays down at once."""
    schema = "id BIGINT, at TIMESTAMP, value DOUBLE, json STRING"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", files_a_batch).parquet(str(folder))
    return rows.withWatermark("at", "0 seconds")


def busy(rows: DataFrame, on: str, milliseconds: float) -> DataFrame:
    """A box that takes about this much CPU for each row and lets all of them pass."""
    if milliseconds <= 0:
        return rows
    text = F.repeat(F.rpad(F.col(on).cast("string"), 100, "."), max(1, round(milliseconds * _BYTES_PER_MS / 100)))
    # Always true, but the optimizer cannot know; a mark keeps it in its place.
    return rows.where((F.length(F.sha2(text, 256)) == 64) | (F.spark_partition_id() < -1))


def random_drop(answers: DataFrame, drop_share: float) -> DataFrame:
    """A random drop behind the aggregates: all that could be done without knowing the windows."""
    if drop_share <= 0.0:
        return answers
    hashed = F.pmod(F.xxhash64(F.col("window.start")), F.lit(1_000_003))
    return answers.where((hashed >= int(drop_share * 1_000_003)) | (F.spark_partition_id() < -1))


def cpu_s(spark: SparkSession, folder: Path, variant: Variant, repetitions: int = 1) -> float:
    """Task CPU of a variant: the median of several runs."""
    runs = [run_once(spark, folder / "run", variant, skip_batches=0) for _ in range(repetitions)]
    return statistics.median(run.cpu_s for run in runs)


def side_by_side(variants: Sequence[Variant]) -> Variant:
    """Several queries at the same time: what they cost together."""

    def variant(folder: Path) -> Callable[[], StreamingQuery]:
        each = [variant(folder / str(number)) for number, variant in enumerate(variants)]

        def run() -> StreamingQuery:
            with ThreadPoolExecutor(len(each)) as pool:
                running = [pool.submit(start_and_wait) for start_and_wait in each]
            return [query.result() for query in running][-1]

        return run

    return variant


def appended(build: Callable[[jt.Shedder | None], DataFrame], policy: FixedDrop | None) -> Variant:
    """A query in append mode over all there is; `policy` None leaves Jettison out altogether."""

    def variant(folder: Path) -> Callable[[], StreamingQuery]:
        shedder = None if policy is None else jt.Shedder(latency="1 hour", checkpoint=folder, policy=policy)
        writer = build(shedder).writeStream.format("noop").outputMode("append").trigger(availableNow=True)
        return to_end(writer if shedder else writer.option("checkpointLocation", str(folder)), shedder)

    return variant


def guarded(shedder: jt.Shedder | None, rows: DataFrame) -> DataFrame:
    """The rows behind a guard, where there is a shedder."""
    return rows if shedder is None else shedder.guard(rows, row_id="at")


def whole(shedder: jt.Shedder | None, answers: DataFrame, query: str | None = None) -> DataFrame:
    """The answers through delivery, where there is a shedder."""
    return answers if shedder is None else shedder.deliver(answers, query=query)
