"""A query that drops windows, in a process of its own, for tests that kill it. Usage: window_driver.py FOLDER [finish]."""

from __future__ import annotations

import sys
from pathlib import Path

from driver_session import run, session

sys.path.append(str(Path(__file__).parent.parent))  # this is run as a file, beside pytest
import jettison as jt
from window_streams import SCHEMA, KeepHalf, counts

# Closed windows come out with the next rows instead of in a batch of their own: half as many batches.
SETTINGS = {"spark.sql.shuffle.partitions": "1", "spark.sql.streaming.noDataMicroBatches.enabled": "false"}


def main(folder: Path, *, finish: bool) -> None:
    spark = session("local[2]", folder, SETTINGS)
    raw = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    policy = KeepHalf(time="at", window=("10 seconds", "5 seconds"), max_gap=4)
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "checkpoint", policy=policy)
    rows = shedder.guard(raw.withWatermark("at", "2 seconds"), row_id="value")
    answers = shedder.deliver(counts(rows, "10 seconds", "5 seconds"))
    query = shedder.start(answers.writeStream.format("parquet").option("path", str(folder / "out")))
    run(spark, query, shedder, finish=finish)


if __name__ == "__main__":
    main(Path(sys.argv[1]), finish=sys.argv[2:] == ["finish"])
