"""The demo's taxi rides: fares by zone, and where shedding by group has nothing to win."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.demo.landing import RIDE_SCHEMA, Lander, Landing
from jettison.lab.demo.rides import RideBook
from jettison.lab.demo.schedule import Schedule
from jettison.lab.prove.loads import step
from jettison.lab.prove.vocabulary import Vocabulary
from jettison.lab.prove.workload import Workload
from jettison.policies.priority.priority_drop import PriorityDrop

SHORT_S, LONG_S = 5.0, 60.0
"""Windows; of the long ones each holds as many batches as shedding by group is advised for, or half of them."""
LONG_RUN = 4.0
_TIME = "to_timestamp(substring(value, 35, 20))"
_ZONE = "substring(value, 65, 4)"
_FARE = "cast(substring_index(substring_index(value, '\"fare\":', -1), ',', 1) as double)"


LEFT_OUT = {
    "WindowDrop": "needs its guard behind the watermark, which this query sets once rows are parsed",
    "Sifter": "drops by regions of numbers that queries ask for; this query asks for all zones",
    "JoinDrop": "nothing is joined",
    "NetworkDrop": "there is one output",
    "load_aware": "no row costs more than another",
}


def write(spark: SparkSession, folder: Path, schedule: Schedule) -> None:
    """The rides of the demo's feed, in its own text."""
    lander = _Rides(folder, Landing(schedule, RideBook(), 0))
    for file in range(schedule.files):
        lander.land(file)


class _Rides(Lander):
    """Lands rides with times since the start in place of a clock's."""

    def land(self, file: int) -> int:
        rows = self._landing.schedule.file_rows(file)
        if rows:
            table = self._table(file)
            columns = {
                "offset": table["offset"],
                "due_us": pa.array([self._landing.schedule.due_us(file)] * len(rows), pa.int64()),
                "arrived_us": table["timestamp"].cast(pa.int64()),
                "value": table["value"],
            }
            bare = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
            pq.write_table(pa.table(columns), self._directory / f"rides-{file:06d}.parquet", compression="none", **bare)
        return len(rows)


def _fares(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """Rides, mean fare and sum of fares by window and zone."""
    windows = _parsed(rows, say).groupBy(F.window("time", f"{LONG_S:g} seconds"), "zone")
    answers = windows.agg(
        say.count(window="window").alias("rides"),
        say.avg("fare", window="window").alias("fare"),
        F.percentile_approx("tip", 0.95).alias("tip_p95"),
    )
    return answers.select(F.col("window.end").alias("end"), "zone", "rides", "fare", "tip_p95")


def _mean(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """One mean fare a window: no groups to spare."""
    windows = _parsed(rows, say).groupBy(F.window("time", f"{SHORT_S:g} seconds"))
    answers = windows.agg(say.avg("fare", window="window").alias("fare"))
    return answers.select(F.col("window.end").alias("end"), "fare")


def _parsed(rows: DataFrame, say: Vocabulary) -> DataFrame:
    ride = F.from_json("value", RIDE_SCHEMA).alias("ride")
    return rows.select(*say.carried, ride).select(*say.carried, "ride.*").withWatermark("time", "1 second")


def workloads() -> Iterator[Workload]:
    """Fares by zone at three times the capacity and below it, and one mean for all."""
    policies = {
        "ConceptDrop": lambda: jt.ConceptDrop(group=_ZONE, time=_TIME, window=f"{LONG_S:g} seconds"),
        "UniformDrop": jt.UniformDrop,
        "PriorityDrop": lambda: PriorityDrop({f"{_FARE} > 20": 1.0}),
    }
    fares = Workload(
        "taxi",
        "mean fare, rides and a percentile by zone",
        write,
        _fares,
        ("zone",),
        ("rides", "fare"),
        policies,
        _TIME,
        group=_ZONE,
        value=_FARE,
        left_out=LEFT_OUT,
        seconds=LONG_RUN,
        window_s=LONG_S,
    )
    yield fares
    yield replace(fares, name="taxi-below", what="the same at 0.7 of the capacity", shape=step(0.7), left_out={})
    uniform = {"UniformDrop": jt.UniformDrop}
    mean = replace(fares, name="taxi-mean", what="one mean fare, no groups", answers=_mean, keys=(), group=None)
    yield replace(mean, measures=("fare",), policies=uniform, left_out={}, seconds=1.0, window_s=SHORT_S)
