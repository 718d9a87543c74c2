"""What group drops save on Spark: a grouped mean with parsing and an exact grouped median, at 3 % of the rows."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt
from jettison.bench.result import Result
from jettison.bench.streams import KeepShare, task_cpu_s, to_end
from jettison.reproduce.concept.live import at_share

_SCHEMA = "offset BIGINT, time TIMESTAMP, key BINARY, value STRING"
_RIDE = "ride_id STRING, route STRING, distance_km DOUBLE, tip DOUBLE, payment STRING, passengers INT, fare DOUBLE"
ROUTE = """substring_index(substring_index(value, '","distance_km"', 1), '"', -1)"""
"""Reads the group out of a row by two searches for bytes, from the end of the row that is nearer to it."""
KEEP = 0.03
WINDOW = "10 minutes"
ROWS_PER_BATCH = 800_000
BATCHES = 5
GROUPS = 1_000


@dataclass(frozen=True, slots=True)
class Run:
    """What a query took after its first batch, which compiles: task CPU, time of each batch, rows kept, state's bytes."""

    cpu_s: float
    batch_s: list[float]
    kept_share: float
    state_bytes: int


def grouped_mean(spark: SparkSession, folder: Path, repetitions: int, *, batches: int = BATCHES) -> list[Result]:
    """A grouped mean over parsed rows."""
    return _query(spark, folder, "grouped mean", mean, 2.25, repetitions, batches)


def grouped_median(spark: SparkSession, folder: Path, repetitions: int, *, batches: int = BATCHES) -> list[Result]:
    """An exact grouped median over parsed rows."""
    return _query(spark, folder, "exact grouped median", median, 3.0, repetitions, batches)


def _query(
    spark: SparkSession, folder: Path, name: str, query: Query, better: float, repetitions: int, batches: int
) -> list[Result]:
    """A query plain, and shed to the same share at random and by group; the rows of an earlier one are used again."""
    rows, warm_up = folder / "in", folder / "warm-up"
    if not rows.exists():
        land(spark, rows, rows_per_batch=ROWS_PER_BATCH, batches=batches)
        land(spark, warm_up, rows_per_batch=ROWS_PER_BATCH // 4, batches=2)
    measure(spark, folder, variants(spark, warm_up, query), 1)
    return judged(name, measure(spark, folder, variants(spark, rows, query), repetitions), better)


def land(spark: SparkSession, folder: Path, *, rows_per_batch: int, batches: int) -> None:
    """Records in the shape of Kafka's, their value a ride as JSON; routes by Zipf's law, one file a batch."""
    rows = rows_per_batch * batches
    uniform = (F.pmod(F.xxhash64("id", F.lit(1)), F.lit(1_000_000)) + 0.5) / 1e6
    route = F.floor(F.exp(uniform * F.log(F.lit(float(GROUPS + 1)))) - 1).cast("int")  # about 1 / rank

    def number(seed: int, most: int) -> Column:
        return F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(most)) / 100

    ride = F.format_string(
        '{"ride_id":"%016x","route":"r%05d","distance_km":%.2f,"tip":%.2f,"payment":"card","passengers":%d,"fare":%.2f}',
        F.xxhash64("id", F.lit(5)),
        route,
        number(2, 2000),
        number(3, 900),
        F.pmod("id", F.lit(4)),
        number(4, 6000) + route % 10,
    )
    record = {
        "offset": F.col("id"),
        # A window holds several batches, so that groups are known before it ends.
        "time": F.timestamp_micros(F.col("id") * (600 * 1_000_000 // (3 * rows_per_batch))),
        "key": F.format_string("r%05d", route).cast("binary"),
        "value": ride,
    }
    columns = [column.alias(name) for name, column in record.items()]
    spark.range(0, rows, 1, batches).select(*columns).write.parquet(str(folder))
    for place, path in enumerate(sorted(folder.glob("part-*"))):
        os.utime(path, (1e9 + place, 1e9 + place))  # files are taken in the order of their age


Query = Callable[[DataFrame, str], DataFrame]
Started = tuple[Callable[[], StreamingQuery], jt.Shedder | None]
Variants = Mapping[str, Callable[[Path], Started]]


def mean(rows: DataFrame, kind: str) -> DataFrame:
    """Rows and mean fare by route and window: weighted, without bounds, where rows were dropped."""
    weighted = F.try_divide(F.sum(F.expr("jt_weight * fare")), F.sum("jt_weight"))
    return _grouped(rows, kind).agg((F.avg("fare") if kind == "plain" else weighted).alias("fare"), _rows(kind))


def median(rows: DataFrame, kind: str) -> DataFrame:
    """Rows and median fare by route and window; within a pane the rows of a group have nearly one weight."""
    return _grouped(rows, kind).agg(F.percentile("fare", 0.5).alias("fare"), _rows(kind))


def _rows(kind: str) -> Column:
    """The number of rows there were: estimated where dropped rows are gone."""
    return (F.sum("jt_weight") if kind == "dropped" else F.count(F.lit(1))).alias("rows")


def _grouped(rows: DataFrame, kind: str) -> GroupedData:
    carried = ["time"] if kind == "plain" else ["time", "jt_weight"]
    ride = F.from_json("value", _RIDE)
    if kind == "emptied":
        parsed = rows.select(*carried, "route", ride["fare"].alias("fare"))
    else:
        parsed = rows.select(*carried, ride.alias("ride")).select(*carried, "ride.*")
    return parsed.withWatermark("time", "1 minute").groupBy(F.window("time", WINDOW), "route")


def variants(spark: SparkSession, folder: Path, query: Query) -> Variants:
    """The query plain, at random, and by group: read from the text or the key, dropped rows gone or emptied and counted."""

    def source() -> DataFrame:
        return spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))

    def run(rows: DataFrame, kind: str, checkpoint: Path, shedder: jt.Shedder | None) -> Callable[[], StreamingQuery]:
        writer = query(rows, kind).writeStream.format("noop").outputMode("update").trigger(availableNow=True)
        return to_end(writer if shedder else writer.option("checkpointLocation", str(checkpoint)), shedder)

    def plain(checkpoint: Path) -> Started:
        return run(source(), "plain", checkpoint, None), None

    def shed(
        policy: Callable[[], jt.Policy], kind: str
    ) -> Callable[[Path], tuple[Callable[[], StreamingQuery], jt.Shedder]]:
        def variant(checkpoint: Path) -> tuple[Callable[[], StreamingQuery], jt.Shedder]:
            shedder = jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=policy())
            rows = source().withColumn("route", F.expr(ROUTE)) if kind == "emptied" else source()
            return run(shedder.guard(rows, id="offset"), kind, checkpoint, shedder), shedder

        return variant

    def by_group(group: str, *, exact_counts: bool) -> Callable[[], jt.Policy]:
        return lambda: at_share(KEEP, group=group, time="time", window=WINDOW, exact_counts=exact_counts)

    return {
        "plain": plain,
        "uniform": shed(lambda: KeepShare(KEEP), "dropped"),
        "by group": shed(by_group(ROUTE, exact_counts=False), "dropped"),
        "by group, from the record's key": shed(by_group("key", exact_counts=False), "dropped"),
        "by group, counted": shed(by_group("route", exact_counts=True), "emptied"),
    }


def measure(spark: SparkSession, folder: Path, kinds: Variants, repetitions: int) -> dict[str, list[Run]]:
    """Run all kinds in turn, the order reversed every other time."""
    runs: dict[str, list[Run]] = {name: [] for name in kinds}
    for repetition in range(repetitions):
        for name in list(kinds)[:: -1 if repetition % 2 else 1]:
            checkpoint = folder / "checkpoint"
            shutil.rmtree(checkpoint, ignore_errors=True)
            start, shedder = kinds[name](checkpoint)
            query = start()
            progress = [p for p in query.recentProgress if p.numInputRows]
            totals = shedder.ledger.totals() if shedder else None
            runs[name].append(
                Run(
                    cpu_s=task_cpu_s(spark, run_id=str(query.runId), first_batch=1),
                    batch_s=[p.durationMs["triggerExecution"] / 1e3 for p in progress[1:]],
                    kept_share=totals.kept / totals.seen if totals else 1.0,
                    state_bytes=max(p.stateOperators[0].memoryUsedBytes for p in progress),
                )
            )
    return runs


def judged(name: str, runs: Mapping[str, list[Run]], better: float) -> list[Result]:
    """Each kind against plain: task CPU, the slowest batches and state; and by group against at random."""
    cpu = {kind: [run.cpu_s for run in of_kind] for kind, of_kind in runs.items()}
    slow = {kind: _high([batch for run in of_kind for batch in run.batch_s]) for kind, of_kind in runs.items()}
    state = {kind: statistics.median(run.state_bytes for run in of_kind) for kind, of_kind in runs.items()}
    results = []
    for kind in list(runs)[1:]:
        by_group = kind.startswith("by group")
        cpu_s, bar = statistics.median(cpu[kind]), better if by_group else None
        faster, sooner, against = _ratio(cpu["plain"], cpu[kind]), slow["plain"] / slow[kind], "plain over shed"
        figures: list[tuple[str, float, str, float, float, float | None, float | None, str]] = [
            ("task CPU", cpu_s, "s", statistics.median(cpu["plain"]), faster, None, bar, against),
            ("95th percentile of batch times", slow[kind], "s", slow["plain"], sooner, None, bar, against),
        ]
        if by_group:
            beside, random = _ratio(cpu[kind], cpu["uniform"]), statistics.median(cpu["uniform"])
            larger = state[kind] / state["plain"]
            figures += [
                ("task CPU against uniform", cpu_s, "s", random, beside, 1.5, None, "by group over uniform"),
                ("memory of the state", state[kind], "bytes", state["plain"], larger, 1.0, None, "shed over plain"),
            ]
        for what, value, unit, baseline, ratio, at_most, at_least, of in figures:
            config = _config(runs[kind]) | {"ratio": of}
            results.append(Result(f"{name}, {kind}: {what}", value, unit, baseline, ratio, at_most, at_least, config))
    return results


def _config(runs: list[Run]) -> dict[str, object]:
    return {
        "kept_share": round(statistics.mean(run.kept_share for run in runs), 4),
        "rows_per_batch": ROWS_PER_BATCH,
        "batches": 1 + len(runs[0].batch_s),
        "groups": GROUPS,
        "repetitions": len(runs),
    }


def _ratio(ours: list[float], others: list[float]) -> float:
    """Median of the ratios of runs that stood side by side."""
    return statistics.median(a / b for a, b in zip(ours, others, strict=True))


def _high(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
