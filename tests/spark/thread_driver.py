"""Runs a query of short batches plain, then guarded, and writes down the JVM's threads. Usage: thread_driver.py FOLDER.

In a session as our own commands have it. Spark's idle threads live for a minute.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

import jettison as jt
from jettison.lab.bench.streams import KeepShare, driver_says
from jettison.spark.session import local_session

_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def main(folder: Path) -> None:
    with local_session("threads", settings=_INTERPRETED) as spark:
        stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
        query = stream.writeStream.format("noop").option("checkpointLocation", str(folder / "plain")).start()
        query.processAllAvailable()
        plain = threads(spark)
        query.stop()
        shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "guarded", policy=KeepShare(0.5))
        with shedder:
            shedder.start(shedder.guard(stream, row_id="id").writeStream.format("noop")).processAllAvailable()
            guarded = threads(spark)
    (folder / "threads.json").write_text(json.dumps({"plain": plain, "guarded": guarded}))


def threads(spark: SparkSession) -> Counter[str]:
    """How many there are of each kind, by what the driver's web interface says of them."""
    names = (thread["threadName"] for thread in driver_says(spark, "executors/driver/threads"))
    return Counter(re.sub(r"[^A-Za-z]*\d.*", "", name) for name in names)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
