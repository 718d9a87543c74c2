"""What `load_aware` costs while it drops nothing: the same rows with and without it, in turns."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from jettison.costs.load_aware import load_aware
from jettison.costs.timed_partition import ArrowFunction
from jettison.lab.reproduce.claims import Claim
from jettison.lab.reproduce.load.feed import RESULT, SCHEMA, Feed, busy_wait
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.spark.session import local_session

_BATCHES = 4


def whole_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A function that works on columns: some milliseconds a call whatever the rows, and about ten microseconds a row."""
    for batch in batches:
        np.linalg.svd(np.ones((120, 120)))
        values = pc.sqrt(pc.cast(batch["cost_us"], pa.float64()))
        for _ in range(1000):
            values = pc.sin(values)
        yield pa.record_batch({"row": batch["row"], "started": values})


def overhead(settings: RunSettings) -> Judged:
    """Median time of a batch with `load_aware` over that without, nothing shed; no randomness in it."""
    with local_session("jettison-load", master="local[2]") as spark:
        return _measured(spark, repetitions=2 if settings.quick else 4)


def _measured(spark: SparkSession, repetitions: int) -> Judged:
    cases: dict[str, tuple[ArrowFunction, int]] = {
        "1 ms a row": (busy_wait, 800),
        "whole columns": (whole_batches, 160_000),
    }
    # Batches of columns are this long because shorter ones differ from each other by more than the bar.
    rows, ratios = [], {}
    for name, (function, size) in cases.items():
        with tempfile.TemporaryDirectory(prefix="jettison-load-") as scratch:
            folder = Path(scratch)
            _land(folder / "in", size)
            plain: list[float] = []
            aware: list[float] = []
            for number in range(repetitions):
                for with_it in (False, True) if number % 2 == 0 else (True, False):  # what drifts falls on both alike
                    run = f"{'aware' if with_it else 'plain'}{number}"
                    (aware if with_it else plain).extend(_batch_times(spark, folder, run, function, aware=with_it))
        ratios[name] = statistics.median(aware) / statistics.median(plain)
        rows.append([name, size, statistics.median(plain), statistics.median(aware), ratios[name]])
    text = table(["function", "rows a batch", "plain, ms a batch", "with load_aware", "ratio"], rows)
    text += "\n\nDeciding and learning take a fraction of a microsecond a row: functions cheaper than that feel it."
    return [Section("Overhead on Spark while nothing is shed", text)], [
        Claim(f"spark-overhead-{name.replace(' ', '-')}", f"timing and deciding add little, {name}: ratio of batch times",
              "", ratio, at_most=1.03, config={"repetitions": repetitions, "batches": _BATCHES})
        for name, ratio in ratios.items()
    ]  # fmt: skip


def _land(folder: Path, rows: int) -> None:
    total = rows * (_BATCHES + 2)
    feed = Feed(folder, np.arange(total) % 50, np.full(total, 1000), np.zeros(total))
    folder.mkdir(parents=True)
    for number in range(_BATCHES + 2):
        feed.land(rows * number, rows * (number + 1), number)


def _batch_times(spark: SparkSession, folder: Path, name: str, function: ArrowFunction, *, aware: bool) -> list[float]:
    """Milliseconds of each batch but the first two, in which workers start and slices are sized."""
    wrapped = load_aware(function, key="key", max_wait="1 hour", checkpoint=folder / name) if aware else None
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    query = (
        stream.mapInArrow(wrapped or function, RESULT)
        .writeStream.format("noop")
        .option("checkpointLocation", str(folder / name / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    if wrapped is not None:
        wrapped.close()
    return [float(progress.durationMs["addBatch"]) for progress in query.recentProgress][2:]
