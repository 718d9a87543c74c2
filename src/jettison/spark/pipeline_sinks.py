"""The outputs of a pipeline file: written by Spark's own sink where there is one, batch by batch where there are several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from jettison.core import hashing
from jettison.core.storage import Folder, home, was_used
from jettison.errors import JettisonError, refuse
from jettison.pipeline.document import OutputFile
from jettison.pipeline.options import expanded
from jettison.spark.network_rows import Sink
from jettison.spark.query_token import query_token

_FILES = ("parquet", "json", "csv", "orc", "text", "avro")


def stream_writer(rows: DataFrame, output: OutputFile, checkpoint: str, *, where: str) -> DataStreamWriter:
    """Writes the only output of a query, as Spark's sinks do: files and Delta each row once, Kafka at least once."""
    if output.format in _FILES and not was_used(home(checkpoint)) and _has_batches(output.path):
        # Its sink goes by numbers that lie in the folder: it would pass over the first batches without a word.
        got, hint = "one to which a query of another checkpoint wrote", "take another `path`, or that checkpoint"
        refuse("a new checkpoint must have a new `path`", got, where=where, hint=hint)
    writer = shaped(rows, output).writeStream.outputMode("append").format(output.format)
    writer = writer.options(**expanded(output.options, where=where))
    return writer.option("path", output.path) if output.path else writer


def _has_batches(path: str) -> bool:
    """Whether Spark's own sink has written to a folder; false of one that only Spark reaches."""
    try:
        return bool((Folder(path) / "_spark_metadata").names())
    except (JettisonError, OSError):
        return False


def batch_sink(output: OutputFile, name: str, checkpoint: str, *, where: str) -> Sink:
    """Writes one output of several. A batch that is repeated replaces itself in folders of files and in Delta tables.

    Nothing else is replaced: the batches of a new checkpoint, whose numbers begin again at 0, are others.
    """
    root, options = output.path.rstrip("/"), expanded(output.options, where=where)
    series = cache(partial(_series, name, checkpoint))  # read with the first batch: none may fail for it later

    def write(rows: DataFrame, batch_id: int) -> None:
        writer = shaped(rows, output).write.format(output.format).options(**options)
        if output.format in _FILES:
            writer.mode("overwrite").save(f"{root}/batch={batch_id}-{series()}")
        elif output.format == "delta":
            once = writer.option("txnAppId", f"jettison {series()}")
            once.option("txnVersion", str(batch_id)).mode("append").save(output.path)
        else:
            writer.mode("append").save(output.path or None)

    return write


def _series(name: str, checkpoint: str) -> str:
    """What the batches of one output under one checkpoint share, and no other: fit for a path, whatever the token holds."""
    return f"{hashing.salt(name, query_token(home(checkpoint))) % 2**64:016x}"


def in_turn(sinks: Sequence[Sink]) -> Sink:
    """Several sinks of the same rows as one."""

    def write(rows: DataFrame, batch_id: int) -> None:
        for sink in sinks:
            sink(rows, batch_id)

    return write


def shaped(rows: DataFrame, output: OutputFile) -> DataFrame:
    """Rows as the sink takes them: Kafka takes a `value`, which is the whole row as JSON where it has none."""
    if output.format != "kafka" or "value" in rows.columns:
        return rows
    return rows.selectExpr("to_json(struct(*)) as value")
