"""What a pipeline file says of one of its outputs: the query behind it, and how its input is read."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from jettison.errors import Unsupported, refuse
from jettison.policies.network.document import Pipeline
from jettison.settle.answer_shape import Query
from jettison.settle.stretch import Source
from jettison.spark.pipeline import box_function, opened


def output_of(pipeline: Pipeline, output: str | None) -> tuple[Query, Source]:
    """The query that makes the answers of an output, of all rows that a source gives; the only output, if none is named."""
    if len(pipeline.inputs) != 1:
        hint = "pass --query, and a --source for each input in the order in which Spark's plan of the query has them"
        got = f"{len(pipeline.inputs)}: {', '.join(pipeline.inputs)}"
        refuse("a pipeline must have one input to be settled", got, hint=hint, error=Unsupported)
    if output is None and len(pipeline.outputs) == 1:
        (output,) = pipeline.outputs
    if output not in pipeline.outputs:
        hint = f"pass --output with one of {', '.join(pipeline.outputs)}"
        refuse("--output must name an output of the pipeline", repr(output), hint=hint)
    boxes, ((name, source),) = pipeline.graph.boxes, pipeline.inputs.items()

    def made(stream: str, rows: DataFrame) -> DataFrame:
        if stream == name:
            return rows
        body = pipeline.boxes[stream]
        entering = [made(one, rows) for one in boxes[stream].sources]
        return box_function(boxes[stream], body.sql, body.watermark)(*entering)

    return partial(made, pipeline.outputs[output].reads), partial(opened, source=source)
