"""`jettison bench settle`: exact answers for a shed stretch of the demo's rides, beside plain Spark over the same rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import jettison as jt
from jettison.lab.bench.result import Result
from jettison.lab.bench.scripted import keep, scripted
from jettison.lab.bench.streams import Took, in_turn, median, median_ratio, took
from jettison.lab.demo.landing import SPARK_SCHEMA, land_all
from jettison.lab.demo.pipeline import guarded_rides, plain_fares, shed_fares
from jettison.policies.uniform.uniform_drop import UniformDrop
from jettison.settle.settlement import Settlement, reconcile

_ROWS, _ROWS_PER_FILE, _FILES_PER_BATCH = 3_000_000, 50_000, 4
_BATCHES = _ROWS // _ROWS_PER_FILE // _FILES_PER_BATCH
_BAR = 1.1


def settle(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Time and CPU of settling all but the first and the last batch of a stream, in which rows were dropped."""
    land_all(folder / "in", _ROWS, rows_per_file=_ROWS_PER_FILE, event_speed=10.0)
    checkpoint, to = folder / "checkpoint", folder / "settled"
    policy = scripted(UniformDrop, lambda batch: keep(0.3 if -1 < batch < _BATCHES - 2 else 1.0))
    shedder = jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=policy)
    rides = source(spark.readStream).load(str(folder / "in"))
    writer = shed_fares(guarded_rides(shedder, rides)).writeStream.format("noop")
    shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    shedder.await_books()

    def again() -> None:
        shutil.rmtree(checkpoint / "jettison" / "settle", ignore_errors=True)
        shutil.rmtree(to, ignore_errors=True)

    def run(*, in_order: bool, dry_run: bool = False) -> Settlement:
        return reconcile(spark, checkpoint, shed_fares, to, sources=source, in_order=in_order, dry_run=dry_run)

    def settled(*, in_order: bool) -> Took:
        again()
        return took(spark, lambda: run(in_order=in_order))

    plan = run(in_order=True, dry_run=True)
    files = sorted(map(str, (folder / "in").glob("*.parquet")))[: plan.rows_to_read // _ROWS_PER_FILE]

    def plain() -> None:
        batch = spark.read.schema(SPARK_SCHEMA).parquet(*files)
        plain_fares(batch).write.mode("overwrite").parquet(str(folder / "plain"))

    ways = {"settled": partial(settled, in_order=False), "settled in order": partial(settled, in_order=True)}
    runs: dict[str, Callable[[], Took]] = {"plain": lambda: took(spark, plain), **ways}
    found = in_turn(runs, repetitions, warm_ups=1)
    results = []
    for name in ways:
        for place, what in enumerate(("time", "task CPU")):
            measure: Callable[[Took], float] = itemgetter(place)
            ratio = median_ratio(found[name], found["plain"], measure)
            base = median(found["plain"], measure)
            config = {"rows": plan.rows_to_read, "windows": plan.ready, "pairs": repetitions}
            value = median(found[name], measure)
            results.append(Result(f"{name}: {what}", value, "s", base, ratio, at_most=_BAR, config=config))
    return results


def source(reader: Any) -> Any:
    """The rides as the query reads them."""
    return reader.format("parquet").schema(SPARK_SCHEMA).option("maxFilesPerTrigger", _FILES_PER_BATCH)
