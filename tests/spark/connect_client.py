"""A guarded query over Spark Connect, in a process of its own: one process cannot hold classic and Connect sessions."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import jettison as jt
from jettison.errors import Unsupported
from jettison.lab.bench.streams import KeepShare


def main(folder: Path) -> None:
    spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    raw = spark.readStream.schema("id long, key string, value double").json(str(folder / "in"))
    refused = ""
    try:
        jt.Shedder(latency="1 minute", checkpoint=folder / "refused", accounting="metrics").guard(raw, row_id="id")
    except Unsupported as error:
        refused = str(error)
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "checkpoint", policy=KeepShare(0.5))
    means = shedder.guard(raw, row_id="id").groupBy("key").agg(jt.avg("value").alias("value"))
    query = shedder.start(means.writeStream.format("noop").outputMode("complete"))
    query.processAllAvailable()
    while not shedder.status().batches:
        time.sleep(0.05)
    query.stop()
    shedder.await_books()
    batch = next(shedder.ledger.records("batch"))
    hidden = folder / ".result"
    hidden.write_text(json.dumps({"batch": batch, "refused": refused}))
    hidden.rename(folder / "result.json")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
