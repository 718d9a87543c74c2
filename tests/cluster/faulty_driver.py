"""One stream under one plan three times: undisturbed, and twice with a fault in each batch but the first.

Usage: faulty_driver.py FOLDER. The rows that were kept and the batches on record go to a file for each run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

import jettison as jt
from jettison.lab.bench.streams import KeepShare
from jettison.spark.assembly import Accounting

FAULTS = {1: "task", 2: "executor", 3: "straggler", 4: "worker"}
_FOREVER_S = 300.0


def parent(process: int) -> int:
    return int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(process)]))


def troubled(folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Passes rows on; one attempt of a batch's first task comes to grief after some of them.

    Not the first one, but the one that gets there first: a slow one may be overtaken by its copy.
    """

    def strike(fault: str) -> None:
        hidden, said = folder / f".{fault}", folder / fault
        try:
            hidden.touch(exist_ok=False)
        except FileExistsError:
            return
        executor = parent(os.getppid())  # of the daemon that makes Python workers
        hidden.write_text(f"{executor} {parent(executor)}")
        os.link(hidden, said)
        if fault == "task":
            raise RuntimeError("on purpose")
        if fault == "executor":
            os.kill(executor, signal.SIGKILL)
        time.sleep(_FOREVER_S)  # the worker is killed by the test; a straggler, when a copy of the task has ended

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        fault = FAULTS.get(int(task.getLocalProperty("streaming.sql.batchId") or -1))
        for batch in batches:
            yield batch
            if fault and task.partitionId() == 0:
                strike(fault)

    return pass_on


def run(spark: SparkSession, folder: Path, name: str, accounting: Accounting, *, faults: bool) -> None:
    checkpoint = folder / name
    (checkpoint / "jettison").mkdir(parents=True)
    (checkpoint / "jettison" / "token").write_text("one for all runs")
    (checkpoint / "struck").mkdir()
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 4).json(str(folder / "in"))
    policy = KeepShare(0.4)
    with jt.Shedder(latency="1 hour", checkpoint=checkpoint, policy=policy, accounting=accounting) as shedder:
        kept = shedder.guard(stream, row_id="id")
        if faults:
            kept = kept.mapInArrow(troubled(checkpoint / "struck"), kept.schema)
        writer = kept.writeStream.format("parquet").option("path", str(folder / f"{name}-out"))
        shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    rows = spark.read.parquet(str(folder / f"{name}-out")).collect()
    found = {
        "package": jt.__file__,
        "rows": sorted((row.id, row.jt_weight) for row in rows),
        "batches": [record["points"]["rows"] for record in shedder.ledger.records("batch")],
        "faults": dict(shedder.status().faults),
    }
    (folder / f"{name}.json").write_text(json.dumps(found))


def main(folder: Path) -> None:
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    run(spark, folder, "undisturbed", "auto", faults=False)
    run(spark, folder, "auto", "auto", faults=True)
    run(spark, folder, "observe", "observe", faults=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
