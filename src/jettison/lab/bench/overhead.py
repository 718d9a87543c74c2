"""What a guard costs: installed and idle, per dropped row, and per micro-batch."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.lab.bench import streams
from jettison.lab.bench.result import Result
from jettison.lab.bench.streams import Cost
from jettison.lab.demo.landing import land_all
from jettison.lab.demo.pipeline import plain_fares, raw_rides, shed_fares

_JSON_ROWS_PER_FILE, _JSON_FILES_PER_BATCH = 150_000, 4
_NUMBERS_PER_FILE, _NUMBERS_FILES_PER_BATCH = 6_000_000, 2
_BATCHES = 5
_KAFKA_ID = ("partition", "offset")


def idle_json(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """The demo's JSON pipeline with a guard that drops nothing, against the same without it."""
    source = _rides(spark, folder / "in")
    observing = partial(streams.guarded, source, row_id=_KAFKA_ID, arrival="timestamp")
    variants = {
        "plain": streams.plain(lambda: plain_fares(source())),
        "guard": streams.guarded(source, plain_fares, row_id=_KAFKA_ID),
        "guard that observes arrivals": observing(plain_fares),
        "guard that observes arrivals, and bounds": observing(shed_fares),
    }
    costs = streams.alternate(spark, folder, variants, repetitions)
    bars = {"guard": 0.03, "guard that observes arrivals": 0.03, "guard that observes arrivals, and bounds": None}
    return list(_idle("JSON pipeline", costs, bars))


def idle_native(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """A bare native aggregate with a guard that drops nothing, against the same without it."""
    files = _NUMBERS_FILES_PER_BATCH * _BATCHES
    columns = ["id", "hash(id) % 1000 as key", "rand(1) * 100 as value", "timestamp_micros(id * 10) as time"]
    numbers = spark.range(0, files * _NUMBERS_PER_FILE, 1, files).selectExpr(*columns)
    numbers.write.parquet(str(folder / "in"))

    def source() -> DataFrame:
        reader = spark.readStream.schema("id BIGINT, key BIGINT, value DOUBLE, time TIMESTAMP")
        return reader.option("maxFilesPerTrigger", _NUMBERS_FILES_PER_BATCH).parquet(str(folder / "in"))

    def mean(rows: DataFrame) -> DataFrame:
        windows = rows.withWatermark("time", "1 minute").groupBy(F.window("time", "1 minute"), "key")
        return windows.agg(F.avg("value"))

    variants = {
        "plain": streams.plain(lambda: mean(source())),
        "guard": streams.guarded(source, mean, row_id=["time", "key"]),
        "guard on a column that nothing else reads": streams.guarded(source, mean, row_id=["id"]),
        "guard that observes arrivals": streams.guarded(source, mean, row_id=["time", "key"], arrival="time"),
    }
    costs = streams.alternate(spark, folder, variants, repetitions)
    return list(_idle("bare native aggregate", costs, {name: 0.10 for name in variants if name != "plain"}))


def dropped_row(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """CPU of a dropped row over that of a kept row in the JSON pipeline, the source's own cost subtracted."""
    source = _rides(spark, folder / "in")
    observing = partial(streams.guarded, source, plain_fares, row_id=_KAFKA_ID, arrival="timestamp")

    def nothing() -> DataFrame:
        # Reads all columns, as a row-based source would, and lets no row through.
        return plain_fares(source().where("value < '' and partition + offset < 0 and timestamp is not null"))

    variants = {
        "source": streams.plain(nothing),
        "dropped": observing(keep_fraction=0.0),
        "kept": observing(keep_fraction=1.0),
    }
    costs = streams.alternate(spark, folder, variants, repetitions)
    per_row = {name: [1e9 * cost.cpu_s / cost.rows for cost in runs] for name, runs in costs.items()}
    ratios = [
        (dropped - own) / (kept - own)
        for own, dropped, kept in zip(per_row["source"], per_row["dropped"], per_row["kept"], strict=True)
    ]
    middle = {name: statistics.median(values) for name, values in per_row.items()}
    return [
        Result(
            "dropped row over kept row, task CPU",
            value=middle["dropped"],
            unit="ns/row",
            baseline=middle["kept"],
            ratio=statistics.median(ratios),
            at_most=0.15,
            config={"source_ns_per_row": middle["source"], "ratio": "source's cost subtracted from both sides"},
        )
    ]


def plan_read(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Time that reading the plan adds to a micro-batch, on batches so small that rows do not matter."""
    batches, skipped, rows = 60, 20, 100
    source = _rides(spark, folder / "in", batches=batches, rows_per_file=rows, files_per_batch=1)
    variants = {
        "plain": streams.plain(lambda: source().select("value")),
        "guard": streams.guarded(source, lambda guarded: guarded.select("value"), row_id=_KAFKA_ID),
    }
    costs = streams.alternate(spark, folder, variants, repetitions, skip_batches=skipped)
    added = [1e3 * (a.batch_s - b.batch_s) for a, b in zip(costs["guard"], costs["plain"], strict=True)]
    how = "median batch with the guard less without"
    return [
        Result(
            "plan read per batch",
            value=statistics.median(added),
            unit="ms",
            baseline=1e3 * streams.median(costs["plain"], attrgetter("batch_s")),
            at_most=60.0,
            config={"batches": batches - skipped, "rows_per_batch": rows, "value": how},
        )
    ]


def _idle(pipeline: str, costs: Mapping[str, list[Cost]], bars: Mapping[str, float | None]) -> Iterator[Result]:
    """Task CPU and throughput of each guard over those without, which may differ by so much."""
    plain = costs["plain"]
    batch_s = round(streams.median(plain, attrgetter("batch_s")), 2)
    for name, bar in bars.items():
        runs = costs[name]
        config = {"rows": runs[0].rows, "batches": _BATCHES, "batch_s": batch_s, "repetitions": len(runs)}
        for what, measure, unit, sign in (
            ("task CPU", attrgetter("cpu_s"), "s", 1),
            ("throughput", attrgetter("rows_per_s"), "rows/s", -1),
        ):
            yield Result(
                f"{pipeline}, idle {name}: {what}",
                value=streams.median(runs, measure),
                unit=unit,
                baseline=streams.median(plain, measure),
                ratio=streams.median_ratio(runs, plain, measure),
                at_most=1.0 + bar if bar is not None and sign > 0 else None,
                at_least=1.0 - bar if bar is not None and sign < 0 else None,
                config=config,
            )


def _rides(
    spark: SparkSession,
    folder: Path,
    *,
    batches: int = _BATCHES,
    rows_per_file: int = _JSON_ROWS_PER_FILE,
    files_per_batch: int = _JSON_FILES_PER_BATCH,
) -> Callable[[], DataFrame]:
    """Land rides for so many batches, and return what makes a stream of them."""
    land_all(folder, rows_per_file * files_per_batch * batches, rows_per_file=rows_per_file)
    return partial(raw_rides, spark, folder, files_per_batch=files_per_batch)
