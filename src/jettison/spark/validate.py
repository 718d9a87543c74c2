"""Checks of what users pass to the Spark backend: refused before anything starts, with a way out."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, MapType, TimestampNTZType, TimestampType

from jettison.errors import InvalidInput, InvalidSetting, MissingColumn, explain


def streaming(rows: object) -> None:
    """`rows` must be a streaming DataFrame."""
    if not hasattr(rows, "isStreaming"):
        raise InvalidInput(explain("`rows` must be a streaming DataFrame", repr(rows), hint="use spark.readStream"))
    if not rows.isStreaming:
        raise InvalidInput(
            explain("`rows` must be a streaming DataFrame", "a batch DataFrame", hint="read it with spark.readStream")
        )


def no_reserved_column(rows: DataFrame, names: Collection[str]) -> None:
    """`rows` must not use a name that the guard needs for itself: such a column would be overwritten and dropped."""
    taken = [column for column in rows.columns if column.lower() in names]  # Spark's names ignore case
    if taken:
        raise InvalidInput(
            explain(f"a stream without the column {taken[0]!r}", "one with it", hint="rename that column")
        )


def identity(rows: DataFrame, id: str | Sequence[str]) -> tuple[str, ...]:
    """Names of the identity columns: at least one, all present, all of a type that can be hashed."""
    names = (id,) if isinstance(id, str) else tuple(id or ())
    if not names:
        raise InvalidSetting(
            explain(
                "`id` must name the columns that identify a row",
                "none",
                hint="for Kafka pass id=['partition', 'offset']",
            )
        )
    for name in names:
        present(rows, name, "id")
        if isinstance(rows.schema[name].dataType, MapType):
            raise InvalidSetting(
                explain("`id` must name columns that can be hashed", f"the map {name!r}", hint="use one of its values")
            )
    return names


def timestamp(rows: DataFrame, name: str, *, argument: str = "arrival") -> str:
    """Name of a timestamp column of `rows`."""
    present(rows, name, argument)
    kind = rows.schema[name].dataType
    if not isinstance(kind, (TimestampType, TimestampNTZType)):
        raise InvalidSetting(
            explain(f"`{argument}` must name a timestamp column", f"{name!r} of type {kind.simpleString()}")
        )
    return name


def predicate(rows: DataFrame, protect: Column | str) -> Column:
    """A boolean column over `rows`, from a column or SQL text."""
    column = F.expr(protect) if isinstance(protect, str) else protect
    try:
        kind = rows.select(column.alias("protect")).schema["protect"].dataType
    except AnalysisException as error:
        message = explain("`protect` must be a predicate over the stream's columns", f"{protect!r} ({error})")
        raise InvalidSetting(message) from error
    if not isinstance(kind, BooleanType):
        raise InvalidSetting(
            explain("`protect` must be true or false", f"{protect!r} of type {kind.simpleString()}", hint="compare it")
        )
    return column


def expression(rows: DataFrame, text: str, argument: str) -> DataType:
    """Type of a column of `rows`, or of SQL text over them."""
    try:
        return rows.select(F.expr(text).alias("value")).schema["value"].dataType
    except PySparkException as error:
        message = explain(f"`{argument}` must be a column of the stream or SQL over it", f"{text!r} ({error})")
        raise InvalidSetting(message) from error


def present(rows: DataFrame, name: str, argument: str) -> None:
    """`rows` must have a top-level column `name`."""
    if name not in rows.columns:
        near = difflib.get_close_matches(name, rows.columns, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "select the column before the guard"
        columns = ", ".join(rows.columns)
        raise MissingColumn(
            explain(f"`{argument}` must name a column of the stream ({columns})", repr(name), hint=hint)
        )


def web_interface(spark: SparkSession) -> str | None:
    """Address of the driver's web interface; `None` where it is switched off or the session is a Connect one."""
    try:
        return spark.sparkContext.uiWebUrl
    except (AttributeError, NotImplementedError):  # Spark Connect has no SparkContext
        return None
