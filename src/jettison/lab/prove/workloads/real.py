"""Real streams, with their own keys, values, times and bursts, where the folder that `JETTISON_DATA` names holds them.

Flights and taxi rides come in the order of their own times, a week of them in a run, the busiest four hours at three
times the capacity. Requests to the site of the 1998 World Cup are a curve of rates alone, under which NEXMark's bids come.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.shed_streams import FLIGHTS, TAXI, WEEK_US, Rows, flights, taxi
from jettison.lab.demo.schedule import EVENT_EPOCH_S, Schedule
from jettison.lab.prove.loads import Load, Shape, curve
from jettison.lab.prove.vocabulary import Vocabulary
from jettison.lab.prove.workload import Workload
from jettison.lab.prove.workloads.nexmark import workloads as nexmark_workloads
from jettison.lab.prove.workloads.taxi import LONG_RUN, LONG_S

NAMES = ("flights", "real-taxi", "nexmark-q17-worldcup")
REQUESTS = "worldcup98_request_rate/requests_per_minute.parquet"
_MATCH_DAY = "1998-06-30"
_STEPS = 42
WINDOW = f"{LONG_S:g} seconds"
_TIME = "timestamp_micros(cast(substring(value, 7, 16) as bigint))"
_KEY = "substring_index(substring(value, 30, 20), ',', 1)"
_VALUE = "cast(substring_index(substring_index(value, '\"value\":', -1), '}', 1) as double)"


def data_folder() -> Path:
    """Where real streams lie; a folder that is not there, unless told."""
    return Path(os.environ.get("JETTISON_DATA", "no such folder"))


def missing() -> list[str]:
    """Streams that are not there."""
    return [name for name in (FLIGHTS, TAXI, REQUESTS) if not (data_folder() / name).exists()]


@dataclass(frozen=True)
class Replay:
    """Rows of a file in their order, each as often as a schedule wants, with the schedule's times.

    How many arrive in each stretch of a run is what the file has in each stretch of its own time.
    """

    file: str
    read: Callable[[pa.Table], Rows]

    def rows(self) -> Rows:
        """In the order of their times, all weeks folded onto one."""
        keys, values, at_us = self.read(pq.read_table(data_folder() / self.file))
        order = np.argsort(at_us % WEEK_US, kind="stable")
        return keys[order], values[order], at_us[order] % WEEK_US

    def shape(self) -> Shape:
        """The file's own rates, at three times the capacity where they are highest."""

        def made(capacity: float, seconds: float) -> Load:
            at_us = self.rows()[2]
            counts, _ = np.histogram(at_us, bins=_STEPS)
            return curve(counts.astype(float).tolist(), 3.0)(capacity, seconds)

        return made

    def write(self, spark: SparkSession, folder: Path, schedule: Schedule) -> None:
        """Write the rows of a schedule, in the order of the file."""
        keys, values, _ = self.rows()
        folder.mkdir(parents=True)
        for file in range(schedule.files):
            if rows := schedule.file_rows(file):
                arrived_us = schedule.arrival_us(rows)
                place = np.arange(rows.start, rows.stop) * len(keys) // schedule.rows
                columns: dict[str, Any] = {
                    "offset": np.arange(rows.start, rows.stop),
                    "due_us": np.full(len(rows), schedule.due_us(file)),
                    "arrived_us": arrived_us,
                    "value": _texts(arrived_us + EVENT_EPOCH_S * 10**6, keys[place], values[place]),
                }
                pq.write_table(pa.table(columns), folder / f"rides-{file:06d}.parquet", compression="none")


def _texts(at_us: Any, keys: Any, values: Any) -> list[str]:
    rows = zip(at_us.tolist(), keys.tolist(), values.tolist(), strict=True)
    return [f'{{"at":{at:016d},"key":{key},"value":{value}}}' for at, key, value in rows]


def _by_key(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """Rows and mean value by window and key."""
    parsed = rows.select(*say.carried, F.from_json("value", "at BIGINT, key BIGINT, value DOUBLE").alias("it"))
    timed = parsed.select(*say.carried, "it.*", F.timestamp_micros("it.at").alias("time"))
    windows = timed.withWatermark("time", "1 second").groupBy(F.window("time", WINDOW), "key")
    answers = windows.agg(say.count(window="window").alias("rows"), say.avg("value", window="window").alias("mean"))
    return answers.select(F.col("window.end").alias("end"), "key", "rows", "mean")


def workloads() -> Iterator[Workload]:
    """Those whose file is there."""
    policies = {
        "ConceptDrop": lambda: jt.ConceptDrop(group=_KEY, time=_TIME, window=WINDOW),
        "UniformDrop": jt.UniformDrop,
    }
    for name, what, file, read in (
        ("flights", "minutes late by origin, flights of 2001", FLIGHTS, flights),
        ("real-taxi", "fares by pickup zone, New York", TAXI, taxi),
    ):
        if (data_folder() / file).exists():
            stream = Replay(file, read)
            yield Workload(
                name,
                what,
                stream.write,
                _by_key,
                ("key",),
                ("rows", "mean"),
                policies,
                _TIME,
                group=_KEY,
                value=_VALUE,
                shape=stream.shape(),
                seconds=LONG_RUN,
                window_s=LONG_S,
            )
    if (data_folder() / REQUESTS).exists():
        hot = next(one for one in nexmark_workloads() if one.name == "nexmark-q17")
        yield replace(
            hot, name="nexmark-q17-worldcup", what=f"{hot.what}, rates of the 1998 World Cup", shape=match_day(3.0)
        )


def match_day(times: float) -> Shape:
    """Requests on the busiest day, in stretches of half an hour, the highest of them `times` the capacity."""

    def made(capacity: float, seconds: float) -> Load:
        table = pq.read_table(data_folder() / REQUESTS)
        days = np.asarray(table["period"]).astype("datetime64[D]")
        counts = np.asarray(table["count"])[days == np.datetime64(_MATCH_DAY)].astype(float)
        rates = [float(part.sum()) for part in np.array_split(counts, _STEPS)]
        return curve(rates, times)(capacity, seconds)

    return made
