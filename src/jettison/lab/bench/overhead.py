"""What a guard costs while nothing is wrong: in small, large and empty batches, natively, and for each dropped row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.lab.bench import streams
from jettison.lab.bench.fixed_plan import under_fixed_plan
from jettison.lab.bench.paired import Pairs
from jettison.lab.bench.result import Result
from jettison.lab.bench.steady import land_batches
from jettison.lab.demo.landing import land_all
from jettison.lab.demo.pipeline import plain_fares, raw_rides, shed_fares
from jettison.policies import UniformDrop

_BATCHES = 5
_NUMBERS_PER_FILE, _NUMBERS_FILES_PER_BATCH = 6_000_000, 2
_SMALL = {"batches": 24, "rows_per_batch": 2000, "left_out": 8}
_KAFKA_ID = ("partition", "offset")
_FULL, _BOUNDS = "guard, arrival and bounds", "bounds without a guard"
_CPU, _THROUGHPUT = attrgetter("cpu_s"), attrgetter("rows_per_s")
_BATCH, _BATCH_CPU = attrgetter("batch_s"), attrgetter("batch_cpu_s")


def small_batch(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """The demo's query on batches of 2,000 rows, guarded with arrivals and bounds: median batch, and task CPU of one."""
    costs = Pairs(_small_batches(spark, folder, pairs, [_FULL, _BOUNDS]), config=_SMALL)
    return [
        costs.over(f"small batch, {_FULL}: median batch", _FULL, _BATCH, "s", at_most=1.25),
        # 75 ms where plain takes 51 ms.
        costs.over(f"small batch, {_BOUNDS}: task CPU", _BOUNDS, _BATCH_CPU, "s", at_most=75 / 51),
        costs.over(f"small batch, {_BOUNDS}: bytes of state", _BOUNDS, attrgetter("state_bytes"), "bytes", at_most=2.0),
        costs.over(f"small batch, {_FULL}: task CPU", _FULL, _BATCH_CPU, "s"),
        costs.over(f"small batch, {_BOUNDS}: median batch", _BOUNDS, _BATCH, "s"),
        costs.over(f"small batch, {_BOUNDS}: planning", _BOUNDS, attrgetter("planning_s"), "s"),
    ]


def small_batch_parts(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """The same with less of a guard; there is no bar to meet."""
    parts = ["guard", "guard and arrival"]
    costs = Pairs(_small_batches(spark, folder, pairs, parts), config=_SMALL)
    return [
        costs.over(f"small batch, {part}: {what}", part, measure, "s")
        for part in parts
        for what, measure in (("median batch", _BATCH), ("task CPU", _BATCH_CPU))
    ]


def large_batch(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """The demo's query on batches of 600,000 rows, with a guard that drops nothing."""
    source = _rides(spark, folder / "in", batches=_BATCHES, rows_per_file=150_000, files_per_batch=4)
    variants = _fares(source)
    del variants[_BOUNDS]
    costs = streams.alternate(spark, folder, variants, pairs)
    return _idle("large batch", costs, {"guard": (1.03, 0.97), "guard and arrival": (1.03, 0.97)})


def native(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """A bare native aggregate on batches of 12 million rows, with a guard that drops nothing."""
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
        "guard and arrival": streams.guarded(source, mean, row_id=["time", "key"], arrival="time"),
    }
    costs = streams.alternate(spark, folder, variants, pairs)
    usual = (1.10, 0.90)
    bars = {"guard and arrival": (1.15, 0.90), "guard": usual, "guard on a column that nothing else reads": usual}
    return _idle("native aggregate", costs, bars)


def empty_batch(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """What a guard adds to a batch of 100 rows and no work; of it, what reading the plan and deciding adds; and what any
    one-line file would add that is read beside the rows, which is the least that a plan can cost.
    """
    how = {"batches": 60, "rows_per_batch": 100, "left_out": 20}
    source = _rides(spark, folder / "in", batches=60, rows_per_file=100, files_per_batch=1)

    def plan_alone(folder: Path) -> Any:
        rows = under_fixed_plan(source(), folder / "plan", UniformDrop(), 1.0, _KAFKA_ID)
        return streams.plain(lambda: rows.select("value"))(folder / "checkpoint")

    def any_file() -> DataFrame:
        line = spark.read.text(str(beside)).withColumnRenamed("value", "line")
        return source().join(F.broadcast(line), how="left").where("line > '' or offset < 0").select("value")

    beside = folder / "line"
    beside.write_text("a line\n")
    variants = {
        "plain": streams.plain(lambda: source().select("value")),
        "any file": streams.plain(any_file),
        "plan alone": plan_alone,
        "guard": streams.guarded(source, lambda guarded: guarded.select("value"), row_id=_KAFKA_ID),
    }
    costs = Pairs(streams.alternate(spark, folder, variants, pairs, skip_batches=20), config=how)
    return [
        costs.added("empty batch: a guard adds", "guard", _batch_ms, "ms", at_most=35.0),
        costs.added("empty batch: of it, its plan", "plan alone", _batch_ms, "ms", at_most=22.0),
        costs.added("empty batch: any file beside the rows adds", "any file", _batch_ms, "ms"),
    ]


def dropped_row(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """Task CPU of a row that is dropped, over that of a row which is only read."""
    source = _rides(spark, folder / "in", batches=_BATCHES, rows_per_file=500_000, files_per_batch=2)

    def nothing() -> DataFrame:
        # Reads all columns, as a row-based source would, and lets no row through.
        return plain_fares(source().where("value < '' and partition + offset < 0 and timestamp is not null"))

    dropping = partial(streams.guarded, source, plain_fares, row_id=_KAFKA_ID, keep_fraction=0.0)
    variants = {
        "plain": streams.plain(nothing),
        "dropped": dropping(),
        "dropped, with arrival": dropping(arrival="timestamp"),
    }
    costs = Pairs(streams.alternate(spark, folder, variants, pairs))
    # 115 ns where reading takes 105 ns.
    return [
        costs.over(f"{name} row over the source alone: task CPU", name, _ns_per_row, "ns", at_most=bar)
        for name, bar in (("dropped", 115 / 105), ("dropped, with arrival", None))
    ]


def watched(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """What watching its answers adds to a batch of the demo's query that sheds, and to one of a dry run."""
    land_batches(folder / "in", _SMALL["batches"], _SMALL["rows_per_batch"])
    source = partial(raw_rides, spark, folder / "in", files_per_batch=1)
    results = []
    for side, dry_run in (("sheds", False), ("dry run", True)):
        guarded = partial(streams.guarded, source, shed_fares, row_id=_KAFKA_ID, keep_fraction=0.3, dry_run=dry_run)
        variants = {"plain": guarded(), "watched": guarded(watch=True)}
        costs = Pairs(streams.alternate(spark, folder, variants, pairs, skip_batches=_SMALL["left_out"]), config=_SMALL)
        results += [
            costs.added(f"{side}: watching adds to a batch", "watched", _batch_ms, "ms"),
            costs.added(f"{side}: watching adds to a batch's task CPU", "watched", _batch_cpu_ms, "ms"),
        ]
    return results


def _batch_cpu_ms(cost: streams.Cost) -> float:
    return 1e3 * cost.batch_cpu_s


def _batch_ms(cost: streams.Cost) -> float:
    return 1e3 * cost.batch_s


def _ns_per_row(cost: streams.Cost) -> float:
    return 1e9 * cost.cpu_s / cost.rows


def _small_batches(
    spark: SparkSession, folder: Path, pairs: int, sides: Sequence[str]
) -> dict[str, list[streams.Cost]]:
    land_batches(folder / "in", _SMALL["batches"], _SMALL["rows_per_batch"])
    variants = _fares(partial(raw_rides, spark, folder / "in", files_per_batch=1))
    chosen = {side: variants[side] for side in ("plain", *sides)}
    return streams.alternate(spark, folder, chosen, pairs, skip_batches=_SMALL["left_out"])


def _fares(source: Callable[[], DataFrame]) -> dict[str, streams.Variant]:
    """The demo's query plain, and with more and more of a guard."""

    def bounded() -> DataFrame:
        # A weight that is always 1, which Spark does not know.
        return shed_fares(source().withColumn("jt_weight", F.when(F.col("offset") < 0, 2.0).otherwise(1.0)))

    observing = partial(streams.guarded, source, row_id=_KAFKA_ID, arrival="timestamp")
    return {
        "plain": streams.plain(lambda: plain_fares(source())),
        "guard": streams.guarded(source, plain_fares, row_id=_KAFKA_ID),
        "guard and arrival": observing(plain_fares),
        _FULL: observing(shed_fares),
        _BOUNDS: streams.plain(bounded),
    }


def _idle(what: str, costs: Mapping[str, list[streams.Cost]], bars: Mapping[str, tuple[float, float]]) -> list[Result]:
    """Task CPU of each guard over plain, and throughput, each with the bar that it has."""
    results = []
    for name in costs:
        if name != "plain":
            most_cpu, least = bars.get(name, (None, None))
            results += [
                Pairs(costs).over(f"{what}, {name}: task CPU", name, _CPU, "s", at_most=most_cpu),
                Pairs(costs).over(f"{what}, {name}: throughput", name, _THROUGHPUT, "rows/s", at_least=least),
            ]
    return results


def _rides(
    spark: SparkSession, folder: Path, *, batches: int, rows_per_file: int, files_per_batch: int
) -> Callable[[], DataFrame]:
    """Land rides for so many batches, and return what makes a stream of them."""
    land_all(folder, rows_per_file * files_per_batch * batches, rows_per_file=rows_per_file)
    return partial(raw_rides, spark, folder, files_per_batch=files_per_batch)
