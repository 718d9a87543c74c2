"""`jettison run`: a pipeline file as a running network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.policies.network.document import InputFile, Pipeline, require_runnable
from jettison.policies.network.graph import Box
from jettison.spark.network_query import Network, Stream
from jettison.spark.network_rows import union_all
from jettison.spark.session import local_session


def run_pipeline(pipeline: Pipeline, *, master: str, dry_run: bool = False, seconds: float | None = None) -> None:
    """Run until stopped, or for some seconds, and print how it went."""
    graph = pipeline.graph
    with local_session("jettison-run", master=master) as session:
        network = build(session, pipeline)
        query = network.start(
            latency=pipeline.latency, checkpoint=pipeline.checkpoint, semantic=pipeline.semantic, dry_run=dry_run
        )
        assert network.shedder is not None
        print(
            f"Running: {', '.join(graph.outputs)} from {', '.join(graph.inputs)}, within {pipeline.latency}.",
            flush=True,
        )
        try:
            query.awaitTermination(None if seconds is None else math.ceil(seconds))
        except KeyboardInterrupt:
            print("Stopping.", flush=True)
        finally:
            query.stop()
        network.shedder.await_books()
        print(network.shedder.status())


def build(spark: SparkSession, pipeline: Pipeline) -> Network:
    """The network of a pipeline file, with its sources opened."""
    require_runnable(pipeline)
    graph = pipeline.graph
    network = Network(value=pipeline.value, integral_values=graph.integral_values)
    streams: dict[str, Stream] = {}
    for name, source in pipeline.inputs.items():
        row_id = (source.row_id,) if isinstance(source.row_id, str) else source.row_id
        reader = opened(spark.readStream, source)
        rows = reader.load() if source.path is None else reader.load(source.path)
        streams[name] = network.input(
            name, rows, row_id=row_id, arrival=source.arrival, rate=source.rate, values=source.values
        )
    for box in graph.boxes.values():
        body = pipeline.boxes[box.name]
        streams[box.name] = network.add(box, box_function(box, body.sql, body.watermark))
    for name, output in graph.outputs.items():
        network.output(name, streams[output.source], pipeline.outputs[name].path, qos=output.qos)
    return network


def opened(reader: Any, source: InputFile) -> Any:
    """A reader, of a stream or of what lies there, with all but the path of an input."""
    reader = reader.format(source.format).options(**source.options)
    return reader if source.schema is None else reader.schema(source.schema)


def box_function(box: Box, sql: str, watermark: Mapping[str, str]) -> Callable[..., DataFrame]:
    """What a box of the file does with the streams that enter it."""

    def apply(*entering: DataFrame) -> DataFrame:
        if not sql:
            return union_all(*entering)
        for source, rows in zip(box.sources, entering, strict=True):
            for column, delay in watermark.items():
                rows = rows.withWatermark(column, delay) if column in rows.columns else rows
            rows.createOrReplaceTempView(source)
        return entering[0].sparkSession.sql(sql)

    return apply
