"""`jettison run`: a pipeline file as a running network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.network.document import Pipeline, require_runnable
from jettison.network.graph import Box
from jettison.spark.network import Network, Stream, union_all
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
    for name, input in graph.inputs.items():
        source = pipeline.sources[name]
        rows = _opened(spark, source)
        streams[name] = network.input(
            name, rows, id=source["id"], arrival=source.get("arrival"), rate=input.rate, values=input.values
        )
    for box in graph.boxes.values():
        function = _function(box, pipeline.sql.get(box.name), pipeline.watermarks.get(box.name, {}))
        streams[box.name] = network.add(box, function)
    for name, output in graph.outputs.items():
        network.output(name, streams[output.source], pipeline.paths[name], qos=output.qos)
    return network


def _opened(spark: SparkSession, source: Mapping[str, Any]) -> DataFrame:
    reader = spark.readStream.format(source["format"])
    if "schema" in source:
        reader = reader.schema(source["schema"])
    for option, value in source.get("options", {}).items():
        reader = reader.option(option, str(value))
    return reader.load(source["path"]) if "path" in source else reader.load()


def _function(box: Box, sql: str | None, watermark: Mapping[str, str]) -> Callable[..., DataFrame]:
    def apply(*entering: DataFrame) -> DataFrame:
        if not sql:
            return union_all(*entering)
        for source, rows in zip(box.sources, entering, strict=True):
            for column, delay in watermark.items():
                rows = rows.withWatermark(column, delay) if column in rows.columns else rows
            rows.createOrReplaceTempView(source)
        return entering[0].sparkSession.sql(sql)

    return apply
