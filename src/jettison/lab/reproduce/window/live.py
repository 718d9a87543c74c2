"""Three times more load than can be processed, live: how many answers come in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import jettison as jt
from jettison.core import durations
from jettison.lab.bench.streams import run_once
from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.load.feed import SCHEMA, TICK_S, Feed
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.reproduce.window import streams
from jettison.policies.window.window_drop import WindowDrop

_BUSY_MS = 0.1  # per row, before the aggregate
_WINDOW = "250 milliseconds"  # short beside the bound: only windows that no row has reached can be dropped
_BOUND_S = 10.0  # for answers
_ROW_BOUND_S = 6.0  # a window is closed by one batch and comes out with the next: rows must be faster than answers
_GAP = 10
_LOAD = 3.0
_CALM_S = 5.0  # at half the capacity, before the overload
_SETTLE_S = 13.0  # after the overload has begun: rows of windows that have begun are kept, and must be worked off first
_CAP_S = 2.0  # of arrivals a batch: at three times the load six seconds of work, if none of it can be dropped


@dataclass(frozen=True, slots=True)
class Answer:
    """When a window ended, in seconds since the start, and how long after that its answer came."""

    end_s: float
    latency_s: float


def overload(spark: SparkSession, folder: Path, settings: RunSettings) -> Judged:
    """Tumbling windows at three times capacity, windows dropped or answers dropped at random."""
    seconds = 40.0 if settings.quick else 90.0
    capacity = _capacity(spark, folder)
    settings.say(f"  capacity about {capacity:,.0f} rows/s, feeding {_LOAD:g} times as many")
    policy = WindowDrop(time="at", window=_WINDOW, max_gap=_GAP)
    peak_rows_per_s = 2 * _CAP_S * _LOAD * capacity / _ROW_BOUND_S  # so that a batch takes at most the rows of `_CAP_S`
    shedder = jt.Shedder(
        latency=_ROW_BOUND_S, checkpoint=folder / "shed", policy=policy, peak_rows_per_s=peak_rows_per_s
    )
    rows = shedder.guard(_rows(spark, folder / "for shed"), row_id="row", arrival="at")
    windows = _watch(shedder.start, shedder.deliver(_counts(rows)), folder / "for shed", capacity, seconds)
    # A random drop behind the aggregates leaves all the work before it. All answers are counted as its own, those that it
    # would drop included, so no rate of dropping could do better.
    random = _watch(
        lambda writer: writer.option("checkpointLocation", str(folder / "random")).start(),
        _counts(_rows(spark, folder / "for random")),
        folder / "for random",
        capacity,
        seconds,
    )
    return judged({"windows": windows, "random": random}, capacity, seconds)


def judged(answers: Mapping[str, Sequence[Answer]], capacity: float, seconds: float) -> Judged:
    """How many of the answers that could come in time did, under windows dropped and under a random drop."""
    since, until = _CALM_S + _SETTLE_S, seconds - _BOUND_S  # while there is time left to be late
    ended = (until - since) / durations.seconds(_WINDOW, name="window")
    in_time = {
        name: sum(since <= a.end_s <= until and a.latency_s <= _BOUND_S for a in of) for name, of in answers.items()
    }
    figures = {
        "three-times-load-in-time": in_time["windows"] / (ended / _LOAD),
        "three-times-load-random": in_time["random"] / (ended / _LOAD),
    }
    config: dict[str, object] = {
        "capacity_rows_per_s": round(capacity),
        "latency_bound_s": _BOUND_S,
        "row_latency_bound_s": _ROW_BOUND_S,
    }
    config |= {"window": _WINDOW, "batch_size": _GAP, "seconds": seconds, "windows_judged": round(ended)}
    header = ["dropped", "answers delivered", f"of windows that ended from {since:.0f} to {until:.0f} s, in time"]
    section = Section("Three times the load", table(header, [[k, len(of), in_time[k]] for k, of in answers.items()]))
    return [section], judge("window", figures, config)


def _capacity(spark: SparkSession, folder: Path) -> float:
    """Rows a second that the plain query processes when it has all it wants: its batches after the first, once warm.

    They take about two seconds each, as long as a batch of the overload that nothing is dropped from: shorter ones
    are fixed work in greater part, and would make the load look larger than it is.
    """
    streams.land(spark, folder / "in", 12 * 10_000, files=12, text=False)

    query = streams.appended(
        lambda _: _counts(streams.source(spark, folder / "in").withColumnRenamed("id", "row")), None
    )
    for _ in range(2):
        cost = run_once(spark, folder / "run", query)
    return cost.rows_per_s


def _rows(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir(parents=True, exist_ok=True)
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", round(_CAP_S / TICK_S)).parquet(str(folder))
    return rows.withWatermark("at", "0 seconds")


def _counts(rows: DataFrame) -> DataFrame:
    working = streams.busy(rows, "row", _BUSY_MS)
    return working.groupBy(F.window("at", _WINDOW)).agg(F.count(F.lit(1)).alias("n"))


def _feed(folder: Path, capacity: float, seconds: float) -> Feed:
    calm = np.arange(0.0, _CALM_S, 2.0 / capacity)
    offsets = np.concatenate([calm, np.arange(_CALM_S, seconds, 1.0 / (_LOAD * capacity))])
    nothing = np.zeros(len(offsets), np.int64)
    return Feed(folder, nothing, nothing, offsets)


def _watch(
    start: Callable[[DataStreamWriter], StreamingQuery],
    answers: DataFrame,
    folder: Path,
    capacity: float,
    seconds: float,
) -> list[Answer]:
    found: list[Answer] = []
    feed, over = _feed(folder, capacity, seconds), threading.Event()

    def collect(batch: DataFrame, number: int) -> None:
        try:
            ends = [row.end / 1e6 for row in batch.select(F.unix_micros("window.end").alias("end")).collect()]
        except Exception:
            if over.is_set():  # stopped in the middle of a batch
                return
            raise
        found.extend(Answer(end - feed.started_s, time.time() - end) for end in ends)

    query = start(answers.writeStream.outputMode("append").foreachBatch(collect))
    try:
        feed.start()
        feed.join()
    finally:
        over.set()
        query.stop()
    return found
