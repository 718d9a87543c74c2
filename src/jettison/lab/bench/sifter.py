"""Sifters on Spark: rows looked up a second, and completeness over a live stream."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.lab.bench.fixed_plan import under_fixed_plan
from jettison.lab.bench.result import Result
from jettison.lab.bench.streams import task_cpu_s, to_end
from jettison.policies.regions.consolidate import consolidate
from jettison.policies.regions.queries import RangeQueries
from jettison.policies.regions.sifter import Sifter
from jettison.source.space import Attribute, Floats, Space

_SPACE = Space([Attribute.number("x", 0, 1), Attribute.number("y", 0, 1)])
_QUERIES = 1000
_LOOKUPS = 40_000_000
_STREAM_ROWS, _STREAM_FILES = 1_200_000, 6


def lookup(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Median rows a second through a guard of 16 and of 100 regions, decisions included, against those without a guard.

    By task CPU, so that other work on the machine does not count.
    """
    rows, total = _rows(spark, _LOOKUPS), F.sum(F.col("x") + F.col("y"))

    def million_rows_per_s(of: DataFrame) -> float:
        before = task_cpu_s(spark)
        of.agg(total).collect()
        return 2 * _LOOKUPS / (task_cpu_s(spark) - before) / 1e6

    results = []
    for regions, sample_every in ((16, 0), (100, 0), (100, 100)):
        policy = Sifter(_queries(), _points(np.arange(2000)), regions=regions, sample_every=sample_every)
        sifted = under_fixed_plan(rows, folder / f"{regions}-{sample_every}", policy, 0.5, ["id"])
        rates = [(million_rows_per_s(rows), million_rows_per_s(sifted)) for _ in range(repetitions)]
        results.append(
            Result(
                f"sifter on Spark, {regions} regions, rows made and decided on 2 cores, by task CPU"
                + (f", one row in {sample_every} reported" if sample_every else ""),
                value=statistics.median(rate for _, rate in rates),
                unit="million rows/s",
                baseline=statistics.median(rate for rate, _ in rates),
                at_least=20.0 if regions == 100 and not sample_every else None,
                config={"rows": _LOOKUPS, "plain_and_sifted": rates},
            )
        )
    return results


def live_completeness(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Completeness of 1,000 queries over a guarded stream, counted, against what the model expects of the same plan."""
    queries, stream_folder = _queries(), str(folder / "in")
    rows = _rows(spark, _STREAM_ROWS, _STREAM_FILES)
    rows.write.parquet(stream_folder)
    every_row = _points(np.arange(_STREAM_ROWS))
    wanted = np.bincount(queries.matches(every_row)[0], minlength=len(queries))
    results = []
    for keep_fraction in (0.1, 0.2, 0.5):
        policy = Sifter(queries, every_row[:: _STREAM_ROWS // 2000], regions=16)
        stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(stream_folder)
        sifted = under_fixed_plan(stream, folder / f"plan{keep_fraction}", policy, keep_fraction, ["id"])
        name = f"sifted_{round(100 * keep_fraction)}"
        writer = sifted.select("id").writeStream.format("memory").queryName(name).trigger(availableNow=True)
        to_end(writer.option("checkpointLocation", str(folder / f"checkpoint{keep_fraction}")))()
        kept = spark.table(name).toArrow()["id"].to_numpy()
        got = np.bincount(queries.matches(every_row[kept])[0], minlength=len(queries))
        expected = _expected(policy, keep_fraction)
        known = (wanted > 0) & ~np.isnan(expected)
        measured, model = float((got[known] / wanted[known]).mean()), float(expected[known].mean())
        results.append(
            Result(
                f"completeness over a stream at z = {keep_fraction}, less the model's",
                value=abs(measured - model),
                unit="",
                at_most=0.02,
                config={"measured": measured, "model": model, "queries": int(known.sum())},
            )
        )
    return results


def _rows(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    return spark.range(0, count, 1, partitions).select("id", *_coordinates(F.col("id")))


def _expected(policy: Sifter, keep_fraction: float) -> Floats:
    made = policy.filter(keep_fraction)
    codes = policy.queries.space.codes(_points(np.arange(_STREAM_ROWS))[:: _STREAM_ROWS // 2000])
    counts = np.bincount(made.partition.region_of(codes), minlength=made.partition.regions + 1)[:-1]
    frequency = counts / len(codes)
    kept, wanted = (
        consolidate(policy.queries, made.partition, rows).wanted for rows in (frequency * (1.0 - made.drop), frequency)
    )
    complete: Floats = np.divide(kept, wanted, out=np.full(len(wanted), np.nan), where=wanted > 0.0)
    return complete


# Rows whose density falls with x, and whose y spreads evenly: additive recurrences, the same in numpy and on Spark.
_STEP_X, _STEP_Y = 0.7548776662466927, 0.5698402909980532


def _coordinates(id: Column) -> list[Column]:
    spread = id * F.lit(_STEP_X)
    x = spread - F.floor(spread)
    other = id * F.lit(_STEP_Y)
    return [(x * x).alias("x"), (other - F.floor(other)).alias("y")]


def _points(ids: np.ndarray) -> Floats:
    spread, other = ids * _STEP_X, ids * _STEP_Y
    x = spread - np.floor(spread)
    return np.column_stack([x * x, other - np.floor(other)])


def _queries() -> RangeQueries:
    """Small boxes, most of them where rows are rare."""
    random = np.random.default_rng(7)
    centre = np.column_stack([random.normal(0.7, 0.15, _QUERIES), random.normal(0.4, 0.15, _QUERIES)]).clip(0.02, 0.98)
    half = random.uniform(0.005, 0.02, (_QUERIES, 2))
    return RangeQueries.from_boxes(_SPACE, centre - half, centre + half)
