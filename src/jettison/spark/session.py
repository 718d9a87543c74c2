"""A local Spark session for the commands, with each setting explained."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

LOCAL: Mapping[str, str] = {
    # Checkpoint files without a checksum file beside each, neither Hadoop's nor Spark's own: for every file that it
    # creates, Hadoop starts a chmod.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Exact row counts come from the web interface; port 0 avoids a clash with other sessions.
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    # Nothing here is to be reached from outside this machine.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}
"""What every session on one machine is given, those of the tests included."""

SHAPING = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
)
"""Settings of a session on which answers depend."""

_LOGGING = Path(__file__).with_name("log4j2.properties")


def shaping(spark: SparkSession) -> dict[str, str]:
    """The settings of a session on which the answers of its queries depend."""
    return {name: str(spark.conf.get(name)) for name in SHAPING}


@contextmanager
def local_session(
    name: str, *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session on this machine, stopped at the end; `settings` go before those made here."""
    cores = min(os.cpu_count() or 2, 4)
    # Python workers must find what this interpreter finds, not what the first python3 on PATH does.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # The web interface asks neither of the settings above where to listen, but this.
    os.environ.setdefault("SPARK_LOCAL_IP", LOCAL["spark.driver.bindAddress"])
    with tempfile.TemporaryDirectory(prefix="jettison-spark-") as scratch:
        session = (
            SparkSession.builder.master(master or f"local[{cores}]")
            .appName(name)
            .config(map=dict(LOCAL))
            # As many state partitions as cores: each one is files and a task in every micro-batch.
            .config("spark.sql.shuffle.partitions", str(cores))
            # A stream of large rows makes garbage fast; more room means fewer pauses.
            .config("spark.driver.memory", "4g")
            # Each micro-batch broadcasts its plan, and Spark starts a new thread for each until it has so many; the
            # usual 128 would idle for a minute.
            .config("spark.sql.broadcastExchange.maxThreadThreshold", "16")
            # The same of the adaptive plan that a broadcast makes of a query without state; the usual limit is 1024.
            .config("spark.sql.resultQueryStage.maxThreadThreshold", "16")
            .config("spark.sql.warehouse.dir", scratch)
            # More than 32 new files in a batch would otherwise be listed by a Spark job, which takes half a second.
            .config("spark.sql.sources.parallelPartitionDiscovery.threshold", "10000")
            # Several tasks a core, whatever the files' number and size: three tasks on two cores take as long as four.
            .config("spark.sql.files.minPartitionNum", str(4 * cores))
            .config("spark.sql.files.openCostInBytes", "65536")
            # Spark's own chatter would bury what a command has to say.
            # A query that is stopped within `foreachBatch` matches the error with a regular expression that recurses with
            # each character: threads have room for the traces of several sinks.
            .config("spark.driver.extraJavaOptions", f"-Xss16m -Dlog4j2.configurationFile={_LOGGING.as_uri()}")
            .config("spark.log.level", "FATAL")
            .config(map=dict(settings or {}))
            .getOrCreate()
        )
        try:
            yield session
        finally:
            session.stop()
