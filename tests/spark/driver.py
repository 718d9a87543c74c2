"""A guarded query in a process of its own, for tests that kill it. Usage: driver.py MASTER FOLDER [finish].

The first run sheds half of every batch. The one that finishes leaves the share to the controller, so that its first plan
shows what the controller remembers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from driver_session import run, session
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.streams import KeepShare

SCHEMA = "id long, key string, value double, vip boolean, at timestamp"
SETTINGS = {
    # Executors of a local cluster are processes of their own; the default gives each a gigabyte.
    "spark.executor.memory": "512m",
    # Closed windows come out with the next rows instead of in a batch of their own: half as many batches.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def main(master: str, folder: Path, *, finish: bool) -> None:
    spark = session(master, folder, SETTINGS)
    raw = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    policy = None if finish else KeepShare(0.5)  # drops in every batch, so that each one matters
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "checkpoint", policy=policy)
    rows = shedder.guard(raw, row_id="id", protect="vip", name="rides")
    answers = (
        rows.withWatermark("at", "1 second")
        .groupBy(F.window("at", "10 seconds"), "key")
        .agg(jt.count().alias("rides"), F.count_if("vip").alias("vips"))
    )
    query = shedder.start(answers.writeStream.format("parquet").option("path", str(folder / "out")))
    run(spark, query, shedder, finish=finish)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), finish=sys.argv[3:] == ["finish"])
