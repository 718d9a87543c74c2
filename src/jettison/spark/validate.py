"""Checks of what users pass to the Spark backend: refused before anything starts, with a way out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from jettison.core.redact import redacted
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, MissingColumn, Unsupported, did_you_mean, refuse

Found = TypeVar("Found")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ROW_ID, _ARRIVAL = "jt_row_id", "jt_arrived_at"


def checkpoint(given: object) -> Folder:
    """The folder of a query's checkpoint, which need not exist yet."""
    expected, hint = "`checkpoint` must be the path of a folder", "choose one for this query alone, 'checkpoints/rides'"
    if not isinstance(given, (str, Path)) or not str(given).strip():
        refuse(expected, repr(given), hint=hint, error=InvalidInput)
    if (folder := Folder(given)).is_blocked:
        refuse(expected, f"{str(given)!r}, where a file lies", hint=hint)
    return folder


@contextmanager
def writable(home: Folder) -> Iterator[None]:
    """Say of what fails to be written beside the checkpoint where that is, and what to do."""
    try:
        yield
    except OSError as error:
        hint = "choose another, or see that this user may write there and that there is room"
        expected = "`checkpoint` must be a folder that this process can write"
        refuse(expected, f"{redacted(home.parent.uri)!r} ({error})", hint=hint, error=Unsupported, cause=error)


def new_name(name: str | None, taken: Collection[str]) -> str:
    """Name of a drop point that does not exist yet, numbered where none is given."""
    if name is None:
        return f"rows{len(taken) + 1}" if taken else "rows"
    if not _NAME.fullmatch(name):
        expected, hint = "`name` must be letters, digits and underscores", "put an underscore in place of the rest"
        refuse(expected, repr(name), hint=hint)
    if name in taken:
        expected, hint = "each drop point needs a `name` of its own", "leave it out to have them numbered"
        refuse(expected, f"{name!r} twice", hint=hint)
    return name


def streaming(rows: object, *, where: str) -> None:
    """`rows` must be a streaming DataFrame."""
    expected = "`rows` must be a streaming DataFrame"
    if not hasattr(rows, "isStreaming"):
        refuse(expected, repr(rows), where=where, hint="use spark.readStream", error=InvalidInput)
    if not rows.isStreaming:
        refuse(expected, "a batch DataFrame", where=where, hint="read it with spark.readStream", error=InvalidInput)


def no_reserved_column(rows: DataFrame, names: Collection[str], *, where: str) -> None:
    """`rows` must not use a name that the guard needs for itself: such a column would be overwritten and dropped."""
    taken = [column for column in rows.columns if column.lower() in names]  # Spark's names ignore case
    if taken:
        expected, hint = f"the stream must not have a column {taken[0]!r}", "rename that column"
        refuse(expected, "one that has it", where=where, hint=hint, error=InvalidInput)


def weight(rows: DataFrame, name: str, *, where: str) -> None:
    """A column called like the guard's weight must be one: a number, under that very name, which weights multiply into."""
    for column in rows.columns:
        if column.lower() == name and not (column == name and isinstance(rows.schema[column].dataType, DoubleType)):
            kind = rows.schema[column].dataType.simpleString()
            expected = f"`{name}` must be the weight that an earlier guard gave the rows"
            refuse(expected, f"{column!r} of type {kind}", where=where, hint="rename that column", error=InvalidInput)


def named(
    rows: DataFrame, given: Sequence[Column | str], prefix: str, argument: str, *, where: str
) -> tuple[DataFrame, tuple[str, ...]]:
    """Names for columns that are given by name or as expressions, and `rows` with those of the expressions added."""
    names: list[str] = []
    for place, column in enumerate(given):
        if isinstance(column, str):
            names.append(column)
            continue
        if not isinstance(column, Column):
            expected = f"`{argument}` must be given by names of columns, or columns"
            refuse(expected, repr(column), where=where, hint="pass 'offset' or F.col('offset')", error=InvalidInput)
        names.append(f"{prefix}{place}")
        no_reserved_column(rows, names[-1:], where=where)
        try:
            rows = rows.withColumn(names[-1], column)
        except AnalysisException as error:
            refuse(
                f"`{argument}` must be a column over the stream",
                f"{column!r} ({in_short(error)})",
                where=where,
                hint=_columns_there(rows),
                cause=error,
            )
    return rows, tuple(names)


def identified(
    rows: DataFrame,
    row_id: Column | str | Sequence[Column | str],
    arrival: Column | str | None,
    *,
    where: str,
) -> tuple[DataFrame, tuple[str, ...], str | None]:
    """Names of the columns that identify a row and tell its arrival, and `rows` with those added that are expressions."""
    ids = [row_id] if isinstance(row_id, (str, Column)) else list(row_id or ())
    rows, id_names = named(rows, ids, _ROW_ID, "row_id", where=where)
    rows, arrivals = named(rows, [] if arrival is None else [arrival], _ARRIVAL, "arrival", where=where)
    arrived = timestamp(rows, arrivals[0], where=where) if arrivals else None
    return rows, identity(rows, id_names, where=where), arrived


def identity(rows: DataFrame, row_id: str | Sequence[str], *, where: str) -> tuple[str, ...]:
    """Names of the identity columns: at least one, all present, all of a type that can be hashed."""
    given = (row_id,) if isinstance(row_id, str) else tuple(row_id or ())
    names = tuple(resolved(rows, _unquoted(name, rows), "row_id", where=where) for name in given)
    if not names:
        expected, hint = (
            "`row_id` must name the columns that identify a row",
            "for Kafka pass row_id=['partition', 'offset']",
        )
        refuse(expected, "none", where=where, hint=hint)
    for name in names:
        if not can_be_hashed(kind := rows.schema[name].dataType):
            expected, hint = "`row_id` must name columns that can be hashed", "use one of its values"
            refuse(expected, f"{name!r} of type {kind.simpleString()}", where=where, hint=hint)
    return tuple(quoted(name) for name in names)


def can_be_hashed(kind: DataType) -> bool:
    """Whether Spark has a hash for values of this type."""
    if isinstance(kind, ArrayType):
        return can_be_hashed(kind.elementType)
    if isinstance(kind, StructType):
        return all(can_be_hashed(field.dataType) for field in kind.fields)
    return not isinstance(kind, (MapType, VariantType))


def quoted(name: str) -> str:
    """A column's name as Spark must be given it: a dot in it would name a field, and a backtick end a quotation."""
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _unquoted(name: str, rows: DataFrame) -> str:
    is_quoted = name not in rows.columns and name[:1] == name[-1:] == "`"
    return name[1:-1].replace("``", "`") if is_quoted else name


def timestamp(rows: DataFrame, name: str, *, where: str, argument: str = "arrival") -> str:
    """Name of a timestamp column of `rows`."""
    name = resolved(rows, name, argument, where=where)
    kind = rows.schema[name].dataType
    if not isinstance(kind, (TimestampType, TimestampNTZType)):
        expected, got = f"`{argument}` must name a timestamp column", f"{name!r} of type {kind.simpleString()}"
        hint = "make it one before, by to_timestamp(...) of a text or timestamp_millis(...) of a number"
        refuse(expected, got, where=where, hint=hint)
    if "." in name or "`" in name:
        expected, hint = f"`{argument}` must name a column without dots and backticks", "rename the column before"
        refuse(expected, repr(name), where=where, hint=hint)
    return name


def zoned(kind: DataType, given: object, *, where: str) -> None:
    """An event time must be a timestamp with a time zone."""
    if not isinstance(kind, TimestampType):
        expected, got = "`time` must be a timestamp with a time zone", f"{given!r} of type {kind.simpleString()}"
        hint = "make it one by to_timestamp(...) of a text or timestamp_millis(...) of a number, before the watermark"
        refuse(expected, got, where=where, hint=hint)


def predicate(rows: DataFrame, given: Column | str, *, where: str, argument: str = "protect") -> Column:
    """A boolean column over `rows`, from a column or SQL text."""
    column = as_column(given)
    try:
        kind = rows.select(column.alias("value")).schema["value"].dataType
    except AnalysisException as error:
        expected, hint = f"`{argument}` must be a predicate over the stream's columns", _columns_there(rows)
        refuse(expected, f"{given!r} ({in_short(error)})", where=where, hint=hint, cause=error)
    if not isinstance(kind, BooleanType):
        expected, got = f"`{argument}` must be true or false", f"{given!r} of type {kind.simpleString()}"
        refuse(expected, got, where=where, hint="compare it")
    return column


def as_column(given: Column | str) -> Column:
    """The column itself, or what SQL text says."""
    return F.expr(given) if isinstance(given, str) else given


def expression(rows: DataFrame, given: Column | str, argument: str, *, where: str) -> DataType:
    """Type of a column of `rows`, or of SQL text over them."""
    try:
        return rows.select(as_column(given).alias("value")).schema["value"].dataType
    except PySparkException as error:
        expected, hint = f"`{argument}` must be a column of the stream or SQL over it", _columns_there(rows)
        refuse(expected, f"{given!r} ({in_short(error)})", where=where, hint=hint, cause=error)


def columns_read(rows: DataFrame, given: Column | str, argument: str, *, where: str) -> list[str]:
    """The columns of `rows` that a column, or SQL text over them, is made of: those without which Spark cannot read it."""
    expression(rows, given, argument, where=where)
    if isinstance(given, str) and given in rows.columns:
        return [given]
    return [name for name in rows.columns if not _can_read(rows.select(*_all_but(rows, name)), given)]


def _all_but(rows: DataFrame, name: str) -> list[Column]:
    return [F.col(quoted(other)) for other in rows.columns if other != name]


def _can_read(rows: DataFrame, given: Column | str) -> bool:
    try:
        return bool(rows.select(as_column(given).alias("value")).schema)
    except PySparkException:
        return False


def present(rows: DataFrame, name: str, argument: str, *, where: str) -> None:
    """`rows` must have a top-level column `name`."""
    if name not in rows.columns:
        expected = f"`{argument}` must name a column of the stream ({', '.join(rows.columns)})"
        hint = did_you_mean(name, rows.columns, otherwise="select the column before the guard")
        refuse(expected, repr(name), where=where, hint=hint, error=MissingColumn)


def resolved(rows: DataFrame, name: str, argument: str, *, where: str) -> str:
    """What a column that must be there is called: Spark ignores case, unless the session says otherwise."""
    alike = [column for column in rows.columns if column.lower() == name.lower()]
    if name not in rows.columns and len(alike) == 1 and _ignores_case(rows.sparkSession):
        return alike[0]
    present(rows, name, argument, where=where)
    return name


def _ignores_case(spark: SparkSession) -> bool:
    return spark.conf.get("spark.sql.caseSensitive", "false") == "false"


def in_short(error: PySparkException) -> str:
    """What Spark says, without the plan that it prints below."""
    return str(error).strip().partition("\n")[0].rstrip(";")


def _columns_there(rows: DataFrame) -> str:
    return f"it sees the stream as it is guarded, with the columns {', '.join(rows.columns)}"


def only(known: Mapping[str, Found], name: str | None, argument: str, hint: str) -> tuple[str, Found]:
    """The entry of that name, or the only one there is."""
    if name is None and len(known) == 1:
        return next(iter(known.items()))
    if name is None or name not in known:
        refuse(f"`{argument}` must be one of {sorted(known)}", repr(name), hint=hint)
    return name, known[name]


def version(spark: SparkSession) -> tuple[int, int]:
    """Major and minor number of the Spark that runs a session."""
    major, minor = re.findall(r"\d+", spark.version)[:2]
    return int(major), int(minor)


def since(spark: SparkSession, oldest: tuple[int, int], what: str, *, where: str = "") -> None:
    """Refuse by name what an older Spark cannot do."""
    if version(spark) < oldest:
        hint = "install a newer PySpark"
        refuse(
            f"{what} needs Spark {oldest[0]}.{oldest[1]} or newer",
            spark.version,
            where=where,
            hint=hint,
            error=Unsupported,
        )


def web_interface(spark: SparkSession) -> str | None:
    """Address of the driver's web interface; `None` where it is switched off or the session is a Connect one."""
    try:
        return spark.sparkContext.uiWebUrl
    except (AttributeError, NotImplementedError):  # Spark Connect has no SparkContext
        return None
