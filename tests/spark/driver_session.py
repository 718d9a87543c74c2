"""What the drivers that tests kill have in common: their session, and how they end."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt
from jettison.spark.session import LOCAL


def session(master: str, folder: Path, settings: dict[str, str]) -> SparkSession:
    """A session that keeps to this machine and to `folder`."""
    own = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "ERROR",
        # Each call that makes a column would tell the JVM, in several calls, from which line of Python it comes.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # A driver runs a few batches: to load the compiler and to compile takes longer than they do.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    return SparkSession.builder.master(master).config(map={**LOCAL, **own, **settings}).getOrCreate()


def run(spark: SparkSession, query: StreamingQuery, shedder: jt.Shedder, *, finish: bool) -> None:
    """Run until killed, or to the end of the input with all books closed."""
    print("started", flush=True)
    if not finish:
        query.awaitTermination()
    query.processAllAvailable()
    query.stop()
    assert shedder.await_books()
    print(shedder.status(), flush=True)
    spark.stop()
