"""What `load_aware` costs while it drops nothing: the same rows with and without it, in turns."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from jettison.costs.timed_partition import ArrowFunction
from jettison.lab.bench.streams import Variant, alternate, to_end
from jettison.lab.recorded_session import recorded_session
from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.load.feed import RESULT, SCHEMA, Feed, busy_wait
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.spark.load_aware import load_aware

_BATCHES = 4
_WARMING = 2  # first batches, in which workers start and slices are sized


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
    repetitions = 2 if settings.quick else 4
    cases: dict[str, tuple[ArrowFunction, int]] = {
        "1 ms a row": (busy_wait, 800),
        "whole columns": (whole_batches, 160_000),
    }
    # Batches of columns are this long because shorter ones differ from each other by more than the bar.
    rows, ratios = [], {}
    with recorded_session("jettison-load", master="local[2]") as spark:
        for name, (function, size) in cases.items():
            with tempfile.TemporaryDirectory(prefix="jettison-load-") as scratch:
                folder = Path(scratch)
                _land(folder / "in", size)
                times_ms: dict[str, list[list[float]]] = {"plain": [], "aware": []}
                variants = {one: _variant(spark, folder / "in", function, one, times_ms[one]) for one in times_ms}
                alternate(spark, folder, variants, repetitions)
            # The first run of each warms up.
            plain, aware = (statistics.median(chain(*of[1:])) for of in times_ms.values())
            ratios[name] = aware / plain
            rows.append([name, size, plain, aware, ratios[name]])
    text = table(["function", "rows a batch", "plain, ms a batch", "with load_aware", "ratio"], rows)
    text += "\n\nDeciding and learning take a fraction of a microsecond a row: functions cheaper than that feel it."
    figures = {f"spark-overhead-{name.replace(' ', '-')}": ratio for name, ratio in ratios.items()}
    claims = judge("load", figures, {"repetitions": repetitions, "batches": _BATCHES})
    return [Section("Overhead on Spark while nothing is shed", text)], claims


def _land(folder: Path, rows: int) -> None:
    total = rows * (_BATCHES + _WARMING)
    feed = Feed(folder, np.arange(total) % 50, np.full(total, 1000), np.zeros(total))
    folder.mkdir(parents=True)
    for number in range(_BATCHES + _WARMING):
        feed.land(rows * number, rows * (number + 1), number)


def _variant(
    spark: SparkSession, source: Path, function: ArrowFunction, kind: str, times_ms: list[list[float]]
) -> Variant:
    """The function with `load_aware` or without it; tells how long each batch took, but for those of `_WARMING`."""

    def variant(folder: Path) -> Callable[[], StreamingQuery]:
        wrapped = load_aware(function, key="key", max_wait="1 hour", checkpoint=folder) if kind == "aware" else None
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
        writer = stream.mapInArrow(wrapped or function, RESULT).writeStream.format("noop").trigger(availableNow=True)
        to_its_end = to_end(writer.option("checkpointLocation", str(folder / "checkpoint")))

        def run() -> StreamingQuery:
            query = to_its_end()
            if wrapped is not None:
                wrapped.close()
            times_ms.append([float(progress.durationMs["addBatch"]) for progress in query.recentProgress][_WARMING:])
            return query

        return run

    return variant
