"""Holds back the answers of windows that were dropped: what is left is exact.

A row that a kept window needs may also lie in a dropped one, so that window comes out of the aggregate in part. Two
filters keep it from the reader. Spark moves the first below the aggregate, so that a dropped window takes neither work
nor state; it is left out where a row lies in one window alone, because the guard has dropped all such rows already. The
second stays where the answers leave: it catches a window that some rows had reached before its mark did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jettison.errors import InvalidInput, Unsupported, explain, refuse
from jettison.policies.window.window_grid import Grid
from jettison.spark.drop_point import PLAN
from jettison.spark.validate import present

if TYPE_CHECKING:
    from jettison.spark.mechanisms.window_mechanism import WindowMechanism

_SESSION_MARK = "spark.sessionWindow"


def delivered(answers: DataFrame, window: str, place: int, mechanism: WindowMechanism, plan: Column) -> DataFrame:
    """The answers of windows that were kept whole; `plan` is a subquery over the newest plan."""
    _check(answers, window)
    if mechanism.keeps_rows_of_dropped_windows:
        answers = answers.where(mechanism.not_dropped(place, answers[window], plan))
    # As a column the subquery is planned once, and not again for each of its fields.
    judged = answers.withColumn(PLAN, plan)
    kept = mechanism.delivers(place, F.col(window), F.col(PLAN))
    grid = mechanism.fan.branches[place].pipeline.final
    # Partitions have no negative number: this never holds, but it ties the filter to its place.
    never = F.spark_partition_id() < -1
    differs = F.when(_differs(F.col(window), grid), F.raise_error(_complaint(grid)))
    return judged.where(differs.when(kept, F.lit(True)).otherwise(never)).drop(PLAN)


def _check(answers: DataFrame, window: str) -> None:
    present(answers, window, "window", where="`deliver`")
    field = answers.schema[window]
    if _SESSION_MARK in field.metadata:
        refuse(
            "`WindowDrop` needs windows of a fixed size",
            "session windows",
            hint="a session ends where rows are missing, so none can be dropped ahead of its rows; use UniformDrop",
            error=Unsupported,
        )
    if not (isinstance(field.dataType, StructType) and {"start", "end"} <= set(field.dataType.names)):
        refuse(
            "`window` must name the column that Spark's `window` made",
            f"{window!r} of type {field.dataType.simpleString()}",
            hint="call `deliver` on the aggregate itself, before its window is unpacked",
            error=InvalidInput,
        )


def _differs(window: Column, grid: Grid) -> Column:
    start, end = F.unix_micros(window["start"]), F.unix_micros(window["end"])
    return (end - start != grid.size) | (F.pmod(start - grid.offset, F.lit(grid.slide)) != 0)


def _complaint(grid: Grid) -> Column:
    return F.lit(
        explain(
            f"windows of {grid.size} us every {grid.slide} us, offset {grid.offset} us, as the policy was told",
            "others",
            hint="give WindowDrop the windows of the query",
        )
    )
