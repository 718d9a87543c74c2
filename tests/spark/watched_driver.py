"""A watched query that is too slow for its stream, in a process of its own. Usage: watched_driver.py FOLDER."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from driver_session import session
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import jettison as jt
from live_stream import Feed, costly


def answers(rows: DataFrame) -> DataFrame:
    """A count and a mean by two seconds, of rows that cost a millisecond each."""
    windows = costly(rows, 1.0).withWatermark("at", "1 second").groupBy(F.window("at", "2 seconds"))
    return windows.agg(jt.count().alias("rides"), jt.avg("value").alias("fare"))


def main(folder: Path) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = session("local[2]", folder, {})
    with Feed(folder / "in", 2500.0) as feed:
        shedder = jt.Shedder(latency="6 seconds", checkpoint=folder / "checkpoint")
        rows = shedder.guard(feed.stream(spark), row_id="id", arrival="at", name="rides")
        shedder.start(shedder.watch(rows, answers).writeStream.format("noop")).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
