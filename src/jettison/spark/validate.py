"""Checks of what users pass to the Spark backend: refused before anything starts, with a way out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, DoubleType, MapType, TimestampNTZType, TimestampType

from jettison.errors import InvalidInput, InvalidSetting, MissingColumn, did_you_mean, explain

Found = TypeVar("Found")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def new_name(name: str, taken: Collection[str]) -> str:
    """Name of a drop point that does not exist yet."""
    if not _NAME.fullmatch(name):
        expected, hint = "`name` must be letters, digits and underscores", "put an underscore in place of the rest"
        raise InvalidSetting(explain(expected, repr(name), hint=hint))
    if name in taken:
        expected, hint = "each drop point needs a `name` of its own", "leave it out to have them numbered"
        raise InvalidSetting(explain(expected, f"{name!r} twice", hint=hint))
    return name


def streaming(rows: object, *, where: str) -> None:
    """`rows` must be a streaming DataFrame."""
    expected = "`rows` must be a streaming DataFrame"
    if not hasattr(rows, "isStreaming"):
        raise InvalidInput(explain(expected, repr(rows), where=where, hint="use spark.readStream"))
    if not rows.isStreaming:
        raise InvalidInput(explain(expected, "a batch DataFrame", where=where, hint="read it with spark.readStream"))


def no_reserved_column(rows: DataFrame, names: Collection[str], *, where: str) -> None:
    """`rows` must not use a name that the guard needs for itself: such a column would be overwritten and dropped."""
    taken = [column for column in rows.columns if column.lower() in names]  # Spark's names ignore case
    if taken:
        expected, hint = f"a stream without the column {taken[0]!r}", "rename that column"
        raise InvalidInput(explain(expected, "one with it", where=where, hint=hint))


def weight(rows: DataFrame, name: str, *, where: str) -> None:
    """A column called like the guard's weight must be one: a number, under that very name, which weights multiply into."""
    for column in rows.columns:
        if column.lower() == name and not (column == name and isinstance(rows.schema[column].dataType, DoubleType)):
            kind = rows.schema[column].dataType.simpleString()
            expected = f"no column of the name {name!r} but the weight that an earlier guard gave the rows"
            raise InvalidInput(explain(expected, f"{column!r} of type {kind}", where=where, hint="rename that column"))


def identity(rows: DataFrame, id: str | Sequence[str], *, where: str) -> tuple[str, ...]:
    """Names of the identity columns: at least one, all present, all of a type that can be hashed."""
    names = tuple(_unquoted(name, rows) for name in ((id,) if isinstance(id, str) else tuple(id or ())))
    if not names:
        expected, hint = "`id` must name the columns that identify a row", "for Kafka pass id=['partition', 'offset']"
        raise InvalidSetting(explain(expected, "none", where=where, hint=hint))
    for name in names:
        present(rows, name, "id", where=where)
        if isinstance(rows.schema[name].dataType, MapType):
            expected, hint = "`id` must name columns that can be hashed", "use one of its values"
            raise InvalidSetting(explain(expected, f"the map {name!r}", where=where, hint=hint))
    return tuple(quoted(name) for name in names)


def quoted(name: str) -> str:
    """A column's name as Spark must be given it: a dot in it would name a field, and a backtick end a quotation."""
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _unquoted(name: str, rows: DataFrame) -> str:
    is_quoted = name not in rows.columns and name[:1] == name[-1:] == "`"
    return name[1:-1].replace("``", "`") if is_quoted else name


def timestamp(rows: DataFrame, name: str, *, where: str, argument: str = "arrival") -> str:
    """Name of a timestamp column of `rows`."""
    present(rows, name, argument, where=where)
    kind = rows.schema[name].dataType
    if not isinstance(kind, (TimestampType, TimestampNTZType)):
        expected, got = f"`{argument}` must name a timestamp column", f"{name!r} of type {kind.simpleString()}"
        hint = "make it one before, by to_timestamp(...) of a text or timestamp_millis(...) of a number"
        raise InvalidSetting(explain(expected, got, where=where, hint=hint))
    if "." in name or "`" in name:
        expected, hint = f"`{argument}` must name a column without dots and backticks", "rename the column before"
        raise InvalidSetting(explain(expected, repr(name), where=where, hint=hint))
    return name


def predicate(rows: DataFrame, protect: Column | str, *, where: str) -> Column:
    """A boolean column over `rows`, from a column or SQL text."""
    column = F.expr(protect) if isinstance(protect, str) else protect
    try:
        kind = rows.select(column.alias("protect")).schema["protect"].dataType
    except AnalysisException as error:
        expected, hint = "`protect` must be a predicate over the stream's columns", _columns_there(rows)
        raise InvalidSetting(explain(expected, f"{protect!r} ({error})", where=where, hint=hint)) from error
    if not isinstance(kind, BooleanType):
        expected, got = "`protect` must be true or false", f"{protect!r} of type {kind.simpleString()}"
        raise InvalidSetting(explain(expected, got, where=where, hint="compare it"))
    return column


def expression(rows: DataFrame, text: str, argument: str, *, where: str) -> DataType:
    """Type of a column of `rows`, or of SQL text over them."""
    try:
        return rows.select(F.expr(text).alias("value")).schema["value"].dataType
    except PySparkException as error:
        expected, hint = f"`{argument}` must be a column of the stream or SQL over it", _columns_there(rows)
        raise InvalidSetting(explain(expected, f"{text!r} ({error})", where=where, hint=hint)) from error


def present(rows: DataFrame, name: str, argument: str, *, where: str) -> None:
    """`rows` must have a top-level column `name`."""
    if name not in rows.columns:
        expected = f"`{argument}` must name a column of the stream ({', '.join(rows.columns)})"
        hint = did_you_mean(name, rows.columns, otherwise="select the column before the guard")
        raise MissingColumn(explain(expected, repr(name), where=where, hint=hint))


def _columns_there(rows: DataFrame) -> str:
    return f"it sees the stream as it is guarded, with the columns {', '.join(rows.columns)}"


def only(known: Mapping[str, Found], name: str | None, argument: str, hint: str) -> tuple[str, Found]:
    """The entry of that name, or the only one there is."""
    if name is None and len(known) == 1:
        return next(iter(known.items()))
    if name is None or name not in known:
        raise InvalidSetting(explain(f"`{argument}` must be one of {sorted(known)}", repr(name), hint=hint))
    return name, known[name]


def web_interface(spark: SparkSession) -> str | None:
    """Address of the driver's web interface; `None` where it is switched off or the session is a Connect one."""
    try:
        return spark.sparkContext.uiWebUrl
    except (AttributeError, NotImplementedError):  # Spark Connect has no SparkContext
        return None
