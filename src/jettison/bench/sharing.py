"""What a network saves: twenty outputs behind a shared parse, against twenty queries of their own."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from jettison.bench.result import Result
from jettison.bench.streams import task_cpu_s
from jettison.demo.landing import RIDE_SCHEMA, SPARK_SCHEMA, land_all
from jettison.spark.network import Network

_OUTPUTS = 20
_ROWS_PER_FILE = 60_000
_BATCHES = 3


def sharing(spark: SparkSession, folder: Path, repetitions: int) -> list[Result]:
    """Task CPU of both ways over the same files, micro-batch by micro-batch."""
    land_all(folder / "in", _ROWS_PER_FILE * _BATCHES, rows_per_file=_ROWS_PER_FILE)
    apart, together = [], []
    for repetition in range(repetitions + 1):  # the first of each compiles
        run = folder / f"run{repetition}"
        apart.append(_cpu(spark, lambda run=run: _separate(spark, folder / "in", run)))  # type: ignore[misc]
        together.append(_cpu(spark, lambda run=run: _network(spark, folder / "in", run)))  # type: ignore[misc]
        shutil.rmtree(run)
    ratios = [a / b for a, b in zip(apart[1:], together[1:], strict=True)]
    return [
        Result(
            f"{_OUTPUTS} outputs behind a shared parse: task CPU of separate queries over that of a network",
            value=statistics.median(together[1:]),
            unit="s",
            baseline=statistics.median(apart[1:]),
            ratio=statistics.median(ratios),
            at_least=3.0,
            config={"outputs": _OUTPUTS, "rows": _ROWS_PER_FILE * _BATCHES, "batches": _BATCHES},
        )
    ]


def _raw(spark: SparkSession, source: Path) -> DataFrame:
    return spark.readStream.schema(SPARK_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))


def _parsed(rows: DataFrame) -> DataFrame:
    kept = [name for name in ("partition", "offset", "jt_weight") if name in rows.columns]
    return rows.selectExpr(*kept, f"from_json(value, '{RIDE_SCHEMA}') r").select(*kept, "r.*")


def _condition(output: int) -> str:
    return f"fare between {output} and {output + 5}"


def _discard(rows: DataFrame, batch_id: int) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _separate(spark: SparkSession, source: Path, run: Path) -> None:
    for output in range(_OUTPUTS):
        rows = _parsed(_raw(spark, source)).where(_condition(output))
        writer = rows.writeStream.foreachBatch(_discard).trigger(availableNow=True)
        writer.option("checkpointLocation", str(run / f"separate{output}")).start().awaitTermination()


def _network(spark: SparkSession, source: Path, run: Path) -> None:
    network = Network(value="fare")
    rides = network.input("rides", _raw(spark, source), id=["partition", "offset"])
    parsed = network.map("parse", rides, _parsed)
    for output in range(_OUTPUTS):
        stream = network.filter(f"box{output}", parsed, _condition(output), selectivity=0.2)
        network.output(f"out{output}", stream, _discard)
    query = network.start(latency="1 hour", checkpoint=run / "network", trigger={"availableNow": True})
    query.awaitTermination()


def _cpu(spark: SparkSession, action: Callable[[], None]) -> float:
    before = task_cpu_s(spark)
    action()
    return task_cpu_s(spark) - before
