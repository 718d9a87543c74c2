"""How the rows of a network travel: computed once before a split, and all outputs as one union to the sinks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

Sink = Callable[[DataFrame, int], None]
OUTPUT = "jt_output"
"""Column with the number of the output that a row belongs to."""
_ROW = "jt_row"


def shared_by_exchange(rows: DataFrame, row_id: Sequence[str]) -> DataFrame:
    """`rows` behind an exchange that is the same in every branch that reads it, so that all but the first reuse it.

    Left alone, the optimizer makes the exchanges differ, and each computes the shared part again: it drops the columns that
    a branch does not read before the exchange, moves its filters there, and renames columns on one side of a join. So
    the columns travel as one, and a condition needs all of it and is non-deterministic in the optimizer's eyes. Its
    first half is always true, so the second is never evaluated.
    """
    packed = rows.select(F.struct("*").alias(_ROW)).repartition(*[F.col(f"{_ROW}.{column}") for column in row_id])
    whole = F.size(F.array(_ROW)) if _holds_map(rows.schema) else F.hash(_ROW)
    return packed.where((F.spark_partition_id() >= -1) | (whole == 0)).select(f"{_ROW}.*")


def _holds_map(kind: DataType) -> bool:
    """Whether a type is or contains a map, which Spark does not hash."""
    if isinstance(kind, StructType):
        return any(_holds_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType) or (isinstance(kind, ArrayType) and _holds_map(kind.elementType))


def row_columns(frames: Mapping[str, DataFrame]) -> dict[str, str]:
    """The column in which each output's rows travel: one for all outputs whose rows have the same fields.

    A column for each output would be null in the rows of all others, and twenty columns cost twenty times the
    bookkeeping of one when a batch is kept in memory.
    """
    kinds: dict[str, str] = {}
    return {name: kinds.setdefault(rows.schema.simpleString(), f"{_ROW}{len(kinds)}") for name, rows in frames.items()}


def numbered(frames: Mapping[str, DataFrame], columns: Mapping[str, str]) -> DataFrame:
    """All outputs' rows, each as a struct in its output's column beside the number of the output."""
    parts = [
        rows.select(F.lit(number).alias(OUTPUT), F.struct("*").alias(columns[name]))
        for number, (name, rows) in enumerate(frames.items())
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def union_all(*streams: DataFrame) -> DataFrame:
    """All rows of streams that have the same columns."""
    return reduce(lambda one, other: one.unionByName(other), streams)


def parquet_sink(folder: str | Path) -> Sink:
    """Write each micro-batch to a folder of its own, so that a batch that is repeated replaces itself."""
    root = re.sub(r"/+$", "", str(folder))

    def write(rows: DataFrame, batch_id: int) -> None:
        rows.write.mode("overwrite").parquet(f"{root}/batch={batch_id}")

    return write
