"""Rows that are written once and land again for every run: a feed that takes no part of the machine.

The files of a schedule lie ready. A process of its own links each into the query's folder when it is due, whatever
becomes of it there. A row's arrival follows from the time of its file, so that no file is written twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.lab.demo.feed import Lands, RideFeed
from jettison.lab.demo.landing import Landing, refuse_used
from jettison.lab.demo.schedule import EVENT_EPOCH_S, Phase, Schedule

_APART_NS, _MOST_FILES = 2 * 10**6, 10_000
INTERVAL_S = 0.2
"""Time between two files."""
SCHEMA = "offset BIGINT, due_us BIGINT, arrived_us BIGINT, value STRING"
"""Number of the row, when its file is due and when it arrives, since the start, and its text."""


def schedule_of(phases: Sequence[Phase]) -> Schedule:
    """The schedule that rows are prepared for and fed by."""
    return Schedule.from_phases(phases, interval_s=INTERVAL_S)


def write(
    spark: SparkSession, folder: Path, schedule: Schedule, value: Callable[[Column, Column, Column], Column]
) -> None:
    """Write the files of a schedule.

    `value` makes the text of a row of its number, of its arrival, and of the time between two arrivals, in microseconds.
    """
    edges, before = np.array(schedule.edges_us), np.array(schedule.rows_before)
    columns = {"first": before[:-1], "last": before[1:], "from_us": edges[:-1], "due_us": edges[1:]}
    known = [F.expr(f"array({', '.join(f'{one}L' for one in of)})")[F.col("id")].alias(n) for n, of in columns.items()]
    files = spark.range(0, schedule.files, 1, schedule.files).select(*known).where("last > first")
    rows = files.select("*", F.explode(F.expr("sequence(first, last - 1)")).alias("offset"))
    arrived = F.expr("from_us + (offset - first) * (due_us - from_us) div (last - first)")  # as the schedule has it
    rows = rows.withColumn("arrived_us", arrived)
    between_us = F.expr("(due_us - from_us) / (last - first)")
    made = value(F.col("offset"), F.col("arrived_us"), between_us)
    rows = rows.select("offset", "due_us", "arrived_us", made.alias("value"))
    rows.write.option("compression", "none").option("parquet.enable.dictionary", "false").parquet(str(folder))
    for path in folder.glob("part-*"):
        path.rename(folder / f"rides-{int(path.name.split('-')[1]):06d}.parquet")


def rows_in(spark: SparkSession, folder: Path, *, files_per_batch: int | None = None, stream: bool = True) -> DataFrame:
    """The rows as a query finds them: `offset`, `timestamp` (arrival), `arrived` (on the stream's own clock), `value`."""
    folder.mkdir(parents=True, exist_ok=True)
    if stream:
        reader = spark.readStream.schema(SCHEMA)
        if files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", files_per_batch)
        rows = reader.parquet(str(folder))
    else:
        rows = spark.read.schema(SCHEMA).parquet(str(folder))
    landed_us = F.unix_micros("_metadata.file_modification_time")
    return rows.select(
        "offset",
        F.timestamp_micros(landed_us - F.col("due_us") + F.col("arrived_us")).alias("timestamp"),
        F.timestamp_micros(F.col("arrived_us") + EVENT_EPOCH_S * 1_000_000).alias("arrived"),
        "value",
    )


def land_now(prepared: Path, folder: Path) -> None:
    """Land all files at once, in their order, as if they had come just now."""
    lander, now_ns = Linker(prepared, folder, None), time.time_ns()
    for place, path in enumerate(sorted(prepared.glob("*.parquet")), start=-_MOST_FILES):
        lander.link(path.name, now_ns + place * _APART_NS)


class PreparedFeed(RideFeed):
    """Lands files that were written for these phases, each when it is due.

    Parameters
    ----------
    prepared
        Where they lie.
    directory, phases
        As for `RideFeed`; on the same file system.
    """

    has_texts = True

    def __init__(self, prepared: Path, directory: Path, phases: Sequence[Phase]) -> None:
        super().__init__(directory, phases, interval_s=INTERVAL_S)
        self._prepared = prepared

    def _lander(self) -> Callable[[Landing], Lands]:
        refuse_used(self._directory)
        return partial(Linker, self._prepared.absolute(), self._directory.absolute())


class Linker:
    """Links prepared files into a directory, with the time at which each was due: Spark takes them in that order."""

    def __init__(self, prepared: Path, directory: Path, landing: Landing | None) -> None:
        self._prepared, self._directory, self._landing = prepared, directory, landing
        directory.mkdir(parents=True, exist_ok=True)

    def land(self, file: int) -> int:
        """Link one file of the schedule, and return its number of rows."""
        assert self._landing is not None
        schedule = self._landing.schedule
        if rows := len(schedule.file_rows(file)):
            self.link(f"rides-{file:06d}.parquet", (self._landing.started_us + schedule.due_us(file)) * 1000)
        return rows

    def link(self, name: str, at_ns: int) -> None:
        """Link a file, its time set before anybody sees it."""
        os.utime(self._prepared / name, ns=(at_ns, at_ns))
        os.link(self._prepared / name, self._directory / name)


def texts(spark: SparkSession, folder: Path) -> Iterable[str]:
    """The texts of prepared rows, for tests."""
    return [row.value for row in rows_in(spark, folder, stream=False).orderBy("offset").collect()]
