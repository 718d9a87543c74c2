"""What the drivers that tests kill have in common: their session, and how they end."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt


def session(master: str, folder: Path, settings: dict[str, str]) -> SparkSession:
    """A session that keeps to this machine and to `folder`."""
    builder = (
        SparkSession.builder.master(master)
        .config("spark.sql.shuffle.partitions", "2")
        # Checkpoint files without a checksum file beside each: for every file that it creates, Hadoop starts a chmod.
        .config("spark.hadoop.fs.AbstractFileSystem.file.impl", "org.apache.hadoop.fs.local.RawLocalFs")
        .config("spark.ui.port", "0")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.log.level", "ERROR")
    )
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


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
