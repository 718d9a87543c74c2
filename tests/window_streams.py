"""Streams in whole seconds, and window drops that a test knows beforehand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats
from jettison.policies.window import horizon
from jettison.policies.window.window_drop import WindowDrop

START = 1_767_225_600  # 2026-01-01, a multiple of all window sizes in the tests
SCHEMA = "value long, at timestamp"


def land_seconds(path: Path, seconds: Iterable[int], per_second: int, *, age: int) -> None:
    """A file of rows with so many a second; files are taken in the order of their age."""
    lines = [
        json.dumps({"value": per_second * s + i, "at": datetime.fromtimestamp(START + s, UTC).isoformat()})
        for s in seconds
        for i in range(per_second)
    ]
    temporary = path.with_name(f".{path.name}")
    temporary.write_text("\n".join(lines) + "\n")
    os.utime(temporary, (START + age, START + age))
    temporary.rename(path)


class Seconds:
    """A stream with one file for each call of `land`, rows by second."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, 0
        folder.mkdir(parents=True, exist_ok=True)

    def land(self, *files: range) -> None:
        for seconds in files:
            land_seconds(self.folder / f"{self.files:03d}.json", seconds, 4, age=self.files)
            self.files += 1

    def stream(self, watermark: str | None = "0 seconds") -> DataFrame:
        stream = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(self.folder))
        return stream if watermark is None else stream.withWatermark("at", watermark)


class Ahead(WindowDrop):
    """Marks fixed windows from the start, so that a test knows what is dropped."""

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        if "rows" in previous.points:
            return DropPlan(0, previous.points, "as before")
        fan = self.fan
        start = START * 1_000_000
        marks = horizon.begin(fan, start)
        first = fan.first_unit_after(start - 1)
        marks = horizon.extend(fan, marks, self.decider(fan), begun=first + 2, until=first + 12, drop_share=0.6)
        return DropPlan(0, {name: marks for name in stats.points}, "fixed")


class KeepHalf(WindowDrop):
    """Drops in every batch, so that each one matters."""

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        return super().continued(previous, stats, Budget(0.5, 0.5, 3.0, "half"))


def counts(rows: DataFrame, size: str = "10 seconds", slide: str | None = None) -> DataFrame:
    return rows.groupBy(F.window("at", size, slide)).agg(F.count(F.lit(1)).alias("n"), F.sum("value").alias("total"))


def folded(rows: DataFrame, size: str = "10 seconds", slide: str | None = None) -> DataFrame:
    """An aggregate of the user's own: a beginning, a step for each value in order, and an end."""
    values = F.array_sort(F.collect_list("value"))
    fold = F.aggregate(
        values, F.lit(7).cast("long"), lambda so_far, value: (31 * so_far + value) % 1009, lambda n: n + 1
    )
    return rows.groupBy(F.window("at", size, slide)).agg(fold.alias("n"))


def fold_of(values: Iterable[int]) -> int:
    """What `folded` makes of these values."""
    return reduce(lambda so_far, value: (31 * so_far + value) % 1009, sorted(values), 7) + 1


class Answers:
    """A sink that counts rows by the start of their window, in seconds, and refuses a window that comes twice."""

    def __init__(self) -> None:
        self.found: dict[int, int] = {}
        self.batch_of: dict[int, int] = {}

    def __call__(self, batch: DataFrame, number: int) -> None:
        for row in batch.select(F.unix_seconds("window.start").alias("start"), "n").collect():
            assert row.start - START not in self.found, "a window is delivered twice"
            self.found[row.start - START] = row.n
            self.batch_of[row.start - START] = number


def run(shedder: jt.Shedder, answers: DataFrame) -> dict[int, int]:
    """Deliver all there is; count by start of the window in seconds."""
    sink = Answers()
    query = shedder.start(answers.writeStream.outputMode("append").foreachBatch(sink).trigger(availableNow=True))
    query.awaitTermination()
    return sink.found


def dropped_windows(plans: Iterable[Mapping[str, Any]]) -> set[int]:
    """Numbers of the windows that some plan of a ledger marks as dropped; fails where a mark has changed."""
    marked: dict[int, str] = {}
    for plan in plans:
        setting = plan["points"].get("rows", {"marks": []})
        for n, letter in enumerate(
            setting["marks"][0] if setting["marks"] else "", start=sum(setting.get("first", []))
        ):
            assert marked.setdefault(n, letter) == letter, "a decision has changed"
    return {n for n, letter in marked.items() if letter == "d"}
