"""A query that drops windows, in a process of its own, for tests that kill it. Usage: window_driver.py FOLDER [finish]."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.plan import DropPlan
from jettison.policies.window_drop import WindowDrop
from jettison.stats import Budget, Stats


class KeepHalf(WindowDrop):
    """Drops in every batch, so that each one matters."""

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        return super().continued(previous, stats, Budget(0.5, 0.5, 3.0, "a burst"))


def main(folder: Path, *, finish: bool) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.port", "0")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    raw = spark.readStream.schema("value long, at timestamp").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    policy = KeepHalf(time="at", window=("10 seconds", "5 seconds"), max_gap=4)
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "checkpoint", policy=policy)
    rows = shedder.guard(raw.withWatermark("at", "2 seconds"), id="value")
    answers = rows.groupBy(F.window("at", "10 seconds", "5 seconds")).agg(F.count(F.lit(1)).alias("n"))
    answers = shedder.deliver(answers)
    query = shedder.start(answers.writeStream.format("parquet").option("path", str(folder / "out")))
    print("started", flush=True)
    if not finish:
        query.awaitTermination()
    query.processAllAvailable()
    query.stop()
    while not list(shedder.ledger.records("stop")):
        time.sleep(0.05)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), finish=sys.argv[2:] == ["finish"])
