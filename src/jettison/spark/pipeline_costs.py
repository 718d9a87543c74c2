"""Measures what the boxes of a pipeline file cost, on rows that its own sources give."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from pyspark.sql import DataFrame, SparkSession

from jettison.errors import refuse
from jettison.pipeline.costs import Costs, measured
from jettison.pipeline.document import InputFile, Pipeline
from jettison.spark.pipeline import build, in_one_sentence, streamed

ROWS, WITHIN_S = 100_000, 20.0
"""A sample of an input: so many rows, or what comes within so many seconds."""
_LOOK_AGAIN_S = 0.2


def costs_of(spark: SparkSession, pipeline: Pipeline, say: Callable[[str], None]) -> Costs:
    """What each box costs and lets through, on a sample of each input; takes some seconds for each box."""
    with in_one_sentence(), TemporaryDirectory(prefix="jettison-sample-") as scratch:
        sample = {}
        for name, source in pipeline.inputs.items():
            say(f"taking rows of {name}")
            sample[name] = sampled(spark, name, source, Path(scratch) / name)
        say("measuring the boxes")
        found = build(spark, pipeline).calibrate(sample)
        return measured(pipeline, {name: (one.cost_us, one.selectivity, one.rows) for name, one in found.items()})


def sampled(spark: SparkSession, name: str, source: InputFile, folder: Path) -> DataFrame:
    """Rows of a source as its stream hands them out, in a folder of Parquet; nothing is removed from the source."""
    # A cleaning source would delete what the real query has yet to read.
    options = {key: value for key, value in source.options.items() if key.lower() != "cleansource"}
    capped = {"maxFilesPerTrigger": 1, "maxOffsetsPerTrigger": ROWS} | options
    rows = streamed(spark, name, msgspec.structs.replace(source, options=capped, watermark={}))
    writer = rows.writeStream.format("parquet").option("path", str(folder / "rows"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    until = time.monotonic() + WITHIN_S
    rows_by_batch: dict[int, int] = {}  # Spark keeps the last batches alone
    try:
        while query.isActive and time.monotonic() < until:
            rows_by_batch |= {one.batchId: one.numInputRows for one in query.recentProgress}
            if sum(rows_by_batch.values()) >= ROWS:
                break
            time.sleep(_LOOK_AGAIN_S)
    finally:
        failed = query.exception()
        query.stop()
    if failed is not None:
        raise failed
    taken = spark.read.schema(rows.schema).parquet(str(folder / "rows")).limit(ROWS)
    if taken.isEmpty():
        hint = "measure while rows come, or state `cost` and `selectivity` of each box"
        refuse(f"rows within {WITHIN_S:g} s, to measure costs on", "none", where=f"inputs.{name}", hint=hint)
    return taken
