"""A function under load-aware shedding in a process of its own, for the test that kills it. Usage: load_driver.py FOLDER."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from driver_session import session

import jettison as jt


def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sleeps 20 ms for a dear row and 1 ms for another, and says where."""
    for batch in batches:
        for key in batch["key"].to_pylist():
            time.sleep(0.020 if key == "dear" else 0.001)
        yield pa.record_batch({"id": batch["id"], "worker": pa.array([os.getpid()] * batch.num_rows, pa.int64())})


def main(folder: Path) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = session("local[2]", folder, {})
    rows = spark.readStream.schema("id long, key string").option("maxFilesPerTrigger", 2).json(str(folder / "in"))
    worked = jt.load_aware(work, key="key", max_wait="1 hour", checkpoint=folder / "checkpoint")
    writer = worked.map(rows, "id long, worker long").writeStream.format("parquet").option("path", str(folder / "out"))
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
