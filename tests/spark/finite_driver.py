"""A finite run that ends its process at once. Usage: finite_driver.py FOLDER WAY.

WAY says how it ends: `waits` for the query and exits, `stops` the session first, waits for `any` query, or `leaves` the
query running.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from driver_session import session

import jettison as jt
from jettison.lab.bench.streams import KeepShare


def main(folder: Path, way: str) -> None:
    spark = session("local[2]", folder, {})
    raw = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "checkpoint", policy=KeepShare(0.05))
    writer = shedder.guard(raw, row_id="id").writeStream.format("parquet").option("path", str(folder / "out"))
    if way == "leaves":
        query = shedder.start(writer)
        query.processAllAvailable()
        time.sleep(0.2)
        return
    query = shedder.start(writer.trigger(availableNow=True))
    if way == "any":
        spark.streams.awaitAnyTermination()
    else:
        query.awaitTermination()
    if way == "stops":
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
