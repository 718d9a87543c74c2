"""`python -m jettison.bench.threads plain|guard|answers BATCHES`: threads of the driver after so many short batches."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.spark.session import local_session

_LOOK_AGAIN_S = 0.5


def threads(spark: SparkSession) -> Counter[str]:
    """How many threads of each pool the driver has now, by its documented REST interface."""
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/executors/driver/threads"
    with urllib.request.urlopen(url, timeout=30) as response:
        return Counter(re.split(r"[-#]?\d", thread["threadName"])[0] for thread in json.load(response))


def after_batches(spark: SparkSession, folder: Path, kind: str, batches: int) -> Counter[str]:
    """Threads after so many batches of windowed counts, over rows that arrive steadily."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
    shedder = None
    if kind != "plain":
        shedder = jt.Shedder(latency="1 minute", checkpoint=folder)
        rows = shedder.guard(rows, id="value")
    writer = _windows(rows, bounds=kind == "answers").writeStream.format("noop").outputMode("append")
    query = shedder.start(writer) if shedder else writer.option("checkpointLocation", str(folder)).start()
    while (last := query.lastProgress) is None or last.batchId < batches:
        time.sleep(_LOOK_AGAIN_S)
    found = threads(spark)
    query.stop()
    return found


def _windows(rows: DataFrame, *, bounds: bool) -> DataFrame:
    windows = rows.withWatermark("timestamp", "1 second").groupBy(F.window("timestamp", "2 seconds"))
    if not bounds:
        return windows.agg(F.count("*").alias("rows"))
    return windows.agg(jt.count(window="window").alias("rows"), jt.avg("value", window="window").alias("mean"))


if __name__ == "__main__":
    with local_session("threads") as session, tempfile.TemporaryDirectory() as scratch:
        by_pool = after_batches(session, Path(scratch), sys.argv[1], int(sys.argv[2]))
    print(by_pool.total(), dict(by_pool.most_common(6)))
