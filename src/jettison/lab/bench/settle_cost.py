"""`jettison bench settle`: exact answers for a shed stretch of the demo's rides, beside plain Spark over the same rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import jettison as jt
from jettison.lab.bench.result import Result
from jettison.lab.bench.streams import KeepShare, Took, in_turn, median, median_ratio, took
from jettison.lab.demo.landing import SPARK_SCHEMA, land_all
from jettison.lab.demo.pipeline import guarded_rides, plain_fares, shed_fares
from jettison.settle.settlement import reconcile

_ROWS, _FILES_PER_BATCH = 3_000_000, 8
_BAR = 1.1


def settle(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Time and CPU of settling everything, in all and without the search for the windows."""
    land_all(folder / "in", _ROWS, event_speed=10.0)
    checkpoint, to = folder / "checkpoint", folder / "settled"
    shedder = jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=KeepShare(0.3))
    rides = source(spark.readStream).load(str(folder / "in"))
    writer = shed_fares(guarded_rides(shedder, rides)).writeStream.format("noop")
    shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    shedder.await_books()

    def settled() -> None:
        reconcile(spark, checkpoint, shed_fares, to, sources=source)

    def plain() -> None:
        batch = spark.read.schema(SPARK_SCHEMA).parquet(str(folder / "in"))
        plain_fares(batch).write.mode("overwrite").parquet(str(folder / "plain"))

    def all_of_it() -> Took:
        shutil.rmtree(checkpoint / "jettison" / "settle", ignore_errors=True)
        shutil.rmtree(to, ignore_errors=True)
        return took(spark, settled)

    def without_search() -> Took:
        shutil.rmtree(checkpoint / "jettison" / "settle", ignore_errors=True)
        shutil.rmtree(to, ignore_errors=True)
        reconcile(spark, checkpoint, shed_fares, to, sources=source, dry_run=True)
        return took(spark, settled)

    runs = {"plain": lambda: took(spark, plain), "settled": all_of_it, "windows known": without_search}
    found = in_turn(runs, repetitions, warm_ups=1)
    results = []
    for name in ("settled", "windows known"):
        for place, what in enumerate(("time", "task CPU")):
            measure: Callable[[Took], float] = itemgetter(place)
            ratio = median_ratio(found[name], found["plain"], measure)
            base = median(found["plain"], measure)
            config = {"rows": _ROWS, "pairs": repetitions}
            value = median(found[name], measure)
            results.append(Result(f"{name}: {what}", value, "s", base, ratio, at_most=_BAR, config=config))
    return results


def source(reader: Any) -> Any:
    """The rides as the query reads them."""
    return reader.format("parquet").schema(SPARK_SCHEMA).option("maxFilesPerTrigger", _FILES_PER_BATCH)
