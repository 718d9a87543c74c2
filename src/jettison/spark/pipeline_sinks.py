"""The outputs of a pipeline file: written by Spark's own sink where there is one, batch by batch where there are several."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from jettison.pipeline.document import OutputFile
from jettison.pipeline.options import expanded
from jettison.spark.network_rows import Sink

_FILES = ("parquet", "json", "csv", "orc", "text", "avro")


def stream_writer(rows: DataFrame, output: OutputFile, *, where: str) -> DataStreamWriter:
    """Writes the only output of a query, as Spark's sinks do: files and Delta each row once, Kafka at least once."""
    writer = shaped(rows, output).writeStream.outputMode("append").format(output.format)
    writer = writer.options(**expanded(output.options, where=where))
    return writer.option("path", output.path) if output.path else writer


def batch_sink(output: OutputFile, query: str, *, where: str) -> Sink:
    """Writes one output of several. A batch that is repeated replaces itself in folders of files and in Delta tables.

    `query` tells a Delta table whose batches these are.
    """
    root, options = output.path.rstrip("/"), expanded(output.options, where=where)

    def write(rows: DataFrame, batch_id: int) -> None:
        writer = shaped(rows, output).write.format(output.format).options(**options)
        if output.format in _FILES:
            writer.mode("overwrite").save(f"{root}/batch={batch_id}")
        elif output.format == "delta":
            once = writer.option("txnAppId", query).option("txnVersion", str(batch_id))
            once.mode("append").save(output.path)
        else:
            writer.mode("append").save(output.path or None)

    return write


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
