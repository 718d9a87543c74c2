"""What a guard costs: installed and idle, per dropped row, and per micro-batch."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.bench import streams
from jettison.bench.result import Result
from jettison.bench.streams import Cost
from jettison.demo.landing import land_all
from jettison.demo.pipeline import plain_fares, raw_rides, shed_fares

_JSON_ROWS_PER_FILE = 150_000
_JSON_FILES_PER_BATCH = 4
_NUMBERS_PER_FILE = 6_000_000
_BATCHES = 5


def idle_json(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """The demo's JSON pipeline with a guard that drops nothing, against the same without it."""
    land_all(folder / "in", _JSON_ROWS_PER_FILE * _JSON_FILES_PER_BATCH * _BATCHES, rows_per_file=_JSON_ROWS_PER_FILE)
    source = _source(spark, folder / "in")
    variants = {
        "plain": streams.plain(lambda: plain_fares(source())),
        "guard": streams.guarded(source, plain_fares, id=["partition", "offset"]),
        "guard that observes arrivals": _guarded(source, plain_fares),
        "guard that observes arrivals, and bounds": _guarded(source, shed_fares),
    }
    costs = streams.alternate(spark, folder, variants, repetitions)
    bars: dict[str, tuple[float | None, float | None]] = {
        "guard": (1.03, 0.97),
        "guard that observes arrivals": (1.03, 0.97),
        "guard that observes arrivals, and bounds": (None, None),
    }
    return _idle_results("JSON pipeline", costs, bars)


def idle_native(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """A bare native aggregate with a guard that drops nothing, against the same without it."""
    _land_numbers(spark, folder / "in")
    schema = "id BIGINT, key BIGINT, value DOUBLE, time TIMESTAMP"

    def source() -> DataFrame:
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(folder / "in"))

    def mean(rows: DataFrame) -> DataFrame:
        windows = rows.withWatermark("time", "1 minute").groupBy(F.window("time", "1 minute"), "key")
        return windows.agg(F.avg("value"))

    variants = {
        "plain": streams.plain(lambda: mean(source())),
        "guard": streams.guarded(source, mean, id=["time", "key"]),
        "guard on a column that nothing else reads": streams.guarded(source, mean, id=["id"]),
        "guard that observes arrivals": streams.guarded(source, mean, id=["time", "key"], arrival="time"),
    }
    costs = streams.alternate(spark, folder, variants, repetitions)
    bars = {name: (1.10, 0.90) for name in variants if name != "plain"}
    return _idle_results("bare native aggregate", costs, bars)


def dropped_row(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """CPU of a dropped row over that of a kept row in the JSON pipeline, the source's own cost subtracted."""
    land_all(folder / "in", _JSON_ROWS_PER_FILE * _JSON_FILES_PER_BATCH * _BATCHES, rows_per_file=_JSON_ROWS_PER_FILE)
    source = _source(spark, folder / "in")

    def nothing() -> DataFrame:
        # Reads all columns, as a row-based source would, and lets no row through.
        return plain_fares(source().where("value < '' and partition + offset < 0 and timestamp is not null"))

    variants = {
        "source": streams.plain(nothing),
        "dropped": _guarded(source, plain_fares, keep_fraction=0.0),
        "kept": _guarded(source, plain_fares),
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
    land_all(folder / "in", rows * batches, rows_per_file=rows)
    source = _source(spark, folder / "in", files_per_batch=1)
    variants = {
        "plain": streams.plain(lambda: source().select("value")),
        "guard": streams.guarded(source, lambda guarded: guarded.select("value"), id=["partition", "offset"]),
    }
    costs = streams.alternate(spark, folder, variants, repetitions, skip_batches=skipped)
    added = [1e3 * (a.batch_s - b.batch_s) for a, b in zip(costs["guard"], costs["plain"], strict=True)]
    return [
        Result(
            "plan read per batch",
            value=statistics.median(added),
            unit="ms",
            baseline=1e3 * streams.median(costs["plain"], lambda cost: cost.batch_s),
            at_most=60.0,
            config={
                "batches": batches - skipped,
                "rows_per_batch": rows,
                "value": "median batch with the guard less without",
            },
        )
    ]


def _idle_results(
    pipeline: str, costs: dict[str, list[Cost]], bars: Mapping[str, tuple[float | None, float | None]]
) -> list[Result]:
    results = []
    for name, (cpu_bar, throughput_bar) in bars.items():
        for measure, unit, what, at_most, at_least in (
            (lambda cost: cost.cpu_s, "s", "task CPU", cpu_bar, None),
            (lambda cost: cost.rows_per_s, "rows/s", "throughput", None, throughput_bar),
        ):
            results.append(
                Result(
                    f"{pipeline}, idle {name}: {what}",
                    value=streams.median(costs[name], measure),
                    unit=unit,
                    baseline=streams.median(costs["plain"], measure),
                    ratio=streams.median_ratio(costs[name], costs["plain"], measure),
                    at_most=at_most,
                    at_least=at_least,
                    config={
                        "rows": costs[name][0].rows,
                        "batches": _BATCHES,
                        "batch_s": round(streams.median(costs["plain"], lambda cost: cost.batch_s), 2),
                        "repetitions": len(costs[name]),
                    },
                )
            )
    return results


def _guarded(
    source: Callable[[], DataFrame], query: Callable[[DataFrame], DataFrame], keep_fraction: float = 1.0
) -> streams.Variant:
    """Guarded as the demo does it: Kafka's identity, and arrivals observed."""
    return streams.guarded(source, query, id=["partition", "offset"], arrival="timestamp", keep_fraction=keep_fraction)


def _source(spark: SparkSession, folder: Path, files_per_batch: int = _JSON_FILES_PER_BATCH) -> Callable[[], DataFrame]:
    return lambda: raw_rides(spark, folder, files_per_batch=files_per_batch)


def _land_numbers(spark: SparkSession, folder: Path) -> None:
    rows = 2 * _BATCHES * _NUMBERS_PER_FILE
    columns = ["id", "hash(id) % 1000 as key", "rand(1) * 100 as value", "timestamp_micros(id * 10) as time"]
    spark.range(0, rows, 1, 2 * _BATCHES).selectExpr(*columns).write.parquet(str(folder))
