"""A query that is killed in its second batch, and repeated. Usage: replay_driver.py FOLDER SHARE [finish].

The share kept is another in each run. The second batch's rows go to a file; unless told to finish, the run then waits.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from driver_session import run, session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt
from jettison.lab.bench.scripted import keep, scripted, stream

_BATCH = 1


def start(spark: SparkSession, folder: Path, share: str, *, finish: bool) -> tuple[jt.Shedder, StreamingQuery]:
    """The query, which goes on where an earlier run ended."""
    policy = scripted(jt.UniformDrop, lambda batch: keep(float(share), late=float(share) / 2))
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "checkpoint", policy=policy)

    def sink(rows: DataFrame, batch: int) -> None:
        kept = sorted((row.id, row.jt_weight) for row in rows.collect())
        if batch != _BATCH:
            return
        hidden = folder / ".attempt"
        hidden.write_text(json.dumps(kept))
        hidden.rename(folder / f"attempt-{share}.json")
        if not finish:
            time.sleep(600.0)

    rows = shedder.guard(stream(spark, folder / "in"), row_id="id", arrival="arrived", protect="vip")
    return shedder, shedder.start(rows.writeStream.foreachBatch(sink))


def main(folder: Path, share: str, *, finish: bool) -> None:
    spark = session("local[2]", folder, {})
    shedder, query = start(spark, folder, share, finish=finish)
    run(spark, query, shedder, finish=finish)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], finish=sys.argv[3:] == ["finish"])
