"""What group drops save on Spark: a grouped mean with parsing and an exact grouped median, at 3 % of the rows."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.paired import Pairs
from jettison.lab.bench.result import Result
from jettison.lab.bench.scripted import keep, scripted
from jettison.lab.bench.streams import KeepShare, in_turn, median, median_ratio, task_cpu_s, to_end
from jettison.policies.base import Policy
from jettison.policies.groups.concept_drop import ConceptDrop

SCHEMA = "offset BIGINT, time TIMESTAMP, key BINARY, value STRING"
_RIDE = "ride_id STRING, route STRING, distance_km DOUBLE, tip DOUBLE, payment STRING, passengers INT, fare DOUBLE"
ROUTE = """substring_index(substring_index(value, '","distance_km"', 1), '"', -1)"""
"""Reads the group out of a row by two searches for bytes, from the end of the row that is nearer to it."""
WEIGHTED = "try_divide(sum(jt_weight * fare), sum(jt_weight))"
FIXED_PLACE = "substring(cast(value as binary), 40, 6)"
"""Takes the group from where it stands in every row, without looking for it."""
KEEP = 0.03
WINDOW = "10 minutes"
ROWS_PER_BATCH = 800_000
BATCHES = 5
_OVER_UNIFORM = {"by group": 1.3, "by group, from a fixed place": 1.3, "by group, from the record's key": 1.1}
GROUPS = 1_000


@dataclass(frozen=True, slots=True)
class Run:
    """What a query took after its first batch, which compiles: task CPU, time of each batch, rows kept, state's bytes."""

    cpu_s: float
    batch_s: list[float]
    kept_share: float
    state_bytes: int


def grouped_mean(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Rows and mean fare by route and window: weighted, without bounds, where rows were dropped."""
    return _judged("grouped mean", _mean(spark).measured(folder, repetitions), 2.25)


def over_uniform(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """Task CPU of group drops over that of drops at random: the group cut from the text, and from the record's key."""
    bars = {"by group": 1.3, "by group, from the record's key": 1.1}
    runs = _mean(spark).measured(folder, pairs, only=["uniform", *bars])
    how = {"keep_fraction": KEEP, "rows_per_batch": ROWS_PER_BATCH, "batches": BATCHES, "groups": GROUPS}
    beside = Pairs(runs, "uniform", how)
    return [
        beside.over(f"{kind}, over uniform: task CPU", kind, _cpu_ns, "ns", at_most=bar) for kind, bar in bars.items()
    ]


def grouped_median(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Rows and exact median fare; within a pane the rows of a group have nearly one weight."""
    query = Query(spark, lambda kind: F.percentile("fare", 0.5))
    return _judged("exact grouped median", query.measured(folder, repetitions), 3.0)


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


@dataclass(frozen=True)
class Query:
    """An aggregate by route and window over parsed rides, plain and under each way to shed."""

    spark: SparkSession
    fare: Callable[[str], Column]

    def measured(self, folder: Path, repetitions: int, only: Collection[str] = ()) -> dict[str, list[Run]]:
        """All kinds in turn, or some, after one of each on fewer rows."""
        kinds: dict[str, tuple[str, Callable[[], Policy] | None]] = {
            "plain": ("plain", None),
            "uniform": ("dropped", lambda: KeepShare(KEEP)),
            "by group": ("dropped", lambda: _by_group(ROUTE)),
            "by group, from a fixed place": ("dropped", lambda: _by_group(FIXED_PLACE)),
            "by group, from the record's key": ("dropped", lambda: _by_group("key")),
            "by group, counted": ("emptied", lambda: _by_group("route", exact_counts=True)),
        }
        kinds = {name: kind for name, kind in kinds.items() if not only or name in only}
        land(self.spark, folder / "in", rows_per_batch=ROWS_PER_BATCH, batches=BATCHES)
        land(self.spark, folder / "warm-up", rows_per_batch=ROWS_PER_BATCH // 4, batches=2)
        for kind in kinds.values():
            self._run(folder / "warm-up", folder / "checkpoint", *kind)
        run = partial(self._run, folder / "in", folder / "checkpoint")
        return in_turn({name: partial(run, *kind) for name, kind in kinds.items()}, repetitions)

    def _run(self, rows: Path, checkpoint: Path, kind: str, policy: Callable[[], Policy] | None) -> Run:
        shutil.rmtree(checkpoint, ignore_errors=True)
        source = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(rows))
        shedder = None if policy is None else jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=policy())
        if shedder is not None:
            source = source.withColumn("route", F.expr(ROUTE)) if kind == "emptied" else source
            source = shedder.guard(source, row_id="offset")
        writer = (
            grouped(source, kind, self.fare(kind))
            .writeStream.format("noop")
            .outputMode("update")
            .trigger(availableNow=True)
        )
        query = to_end(writer if shedder else writer.option("checkpointLocation", str(checkpoint)), shedder)()
        progress = [p for p in query.recentProgress if p.numInputRows]
        totals = shedder.ledger.totals() if shedder else None
        return Run(
            cpu_s=task_cpu_s(self.spark, run_id=str(query.runId), first_batch=1),
            batch_s=[p.durationMs["triggerExecution"] / 1e3 for p in progress[1:]],
            kept_share=totals.kept / totals.seen if totals else 1.0,
            state_bytes=max(p.stateOperators[0].memoryUsedBytes for p in progress),
        )


def grouped(rows: DataFrame, kind: str, fare: Column) -> DataFrame:
    """The aggregate by route and window over rides that are parsed first."""
    carried = ["time"] if kind == "plain" else ["time", "jt_weight"]
    ride = F.from_json("value", _RIDE)
    if kind == "emptied":
        parsed = rows.select(*carried, "route", ride["fare"].alias("fare"))
    else:
        parsed = rows.select(*carried, ride.alias("ride")).select(*carried, "ride.*")
    # The number of rows there were: estimated where dropped rows are gone.
    count = F.sum("jt_weight") if kind == "dropped" else F.count(F.lit(1))
    by_route = parsed.withWatermark("time", "1 minute").groupBy(F.window("time", WINDOW), "route")
    return by_route.agg(fare.alias("fare"), count.alias("rows"))


def _mean(spark: SparkSession) -> Query:
    return Query(spark, lambda kind: F.avg("fare") if kind == "plain" else F.expr(WEIGHTED))


def _cpu_ns(run: Run) -> float:
    """Task CPU of a row that was seen, without the first batch."""
    return 1e9 * run.cpu_s / (ROWS_PER_BATCH * (BATCHES - 1))


def _by_group(group: str, *, exact_counts: bool = False) -> Policy:
    how = {"group": group, "time": "time", "window": WINDOW, "exact_counts": exact_counts}
    made: Policy = scripted(ConceptDrop, lambda batch: keep(KEEP), **how)
    return made


def _judged(name: str, runs: Mapping[str, list[Run]], better: float) -> list[Result]:
    """Each kind against plain: task CPU, the slowest batches and state; and by group against at random."""
    cpu, state = (
        {kind: median(of, attrgetter(what)) for kind, of in runs.items()} for what in ("cpu_s", "state_bytes")
    )
    slow = {kind: _high([batch for run in of_kind for batch in run.batch_s]) for kind, of_kind in runs.items()}
    cpu_ratio = partial(median_ratio, measure=attrgetter("cpu_s"))
    results = []
    for kind in list(runs)[1:]:
        by_group, against = kind.startswith("by group"), {"ratio": "plain over shed"}
        bar, faster, sooner = (
            better if by_group else None,
            cpu_ratio(runs["plain"], runs[kind]),
            slow["plain"] / slow[kind],
        )
        figures = [
            Result("task CPU", cpu[kind], "s", cpu["plain"], faster, at_least=bar, config=against),
            Result(
                "95th percentile of batch times", slow[kind], "s", slow["plain"], sooner, at_least=bar, config=against
            ),
        ]
        if by_group:
            beside, against = cpu_ratio(runs[kind], runs["uniform"]), {"ratio": "by group over uniform"}
            larger, grown = state[kind] / state["plain"], {"ratio": "shed over plain"}
            figures += [
                Result(
                    "task CPU against uniform",
                    cpu[kind],
                    "s",
                    cpu["uniform"],
                    beside,
                    at_most=_OVER_UNIFORM.get(kind, 1.5),
                    config=against,
                ),
                Result("memory of the state", state[kind], "bytes", state["plain"], larger, at_most=1.0, config=grown),
            ]
        config = {
            "kept_share": round(statistics.mean(run.kept_share for run in runs[kind]), 4),
            "rows_per_batch": ROWS_PER_BATCH,
            "batches": BATCHES,
            "groups": GROUPS,
            "repetitions": len(runs[kind]),
        }
        results += [
            replace(one, name=f"{name}, {kind}: {one.name}", config={**config, **one.config}) for one in figures
        ]
    return results


def _high(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
