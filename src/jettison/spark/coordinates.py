"""Coordinates and codes of rows as native columns: the same expressions as in numpy, so the same codes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, FloatType, NumericType, StringType

from jettison.errors import refuse
from jettison.source.space import ABOVE, BELOW, HIGHEST, LOWEST, Attribute, Space
from jettison.spark import validate


def check_attributes(rows: DataFrame, space: Space, *, where: str) -> None:
    """Raise unless `rows` has a column of the right kind for every attribute."""
    for attribute in space.attributes:
        validate.present(rows, attribute.name, "attributes", where=where)
        kind = rows.schema[attribute.name].dataType
        fits = isinstance(kind, StringType) if attribute.values else isinstance(kind, (NumericType, BooleanType))
        if not fits:
            wanted = "text" if attribute.values else "a number"
            refuse(
                f"the attribute {attribute.name!r} must be {wanted}",
                f"a column of type {kind.simpleString()}",
                where=where,
                hint="cast the column, or declare the attribute by its kind",
            )


def coordinate(rows: DataFrame, attribute: Attribute) -> Column:
    """Place of each row on the attribute's axis; unknown categories lie before the first one."""
    column = rows[attribute.name]
    if attribute.values:
        known = F.array(*[F.lit(value) for value in attribute.values])
        return (F.array_position(known, column) - 1).cast("double")
    return column.cast("double")


def is_missing(rows: DataFrame, attribute: Attribute) -> Column:
    """Whether the attribute has no value: null, or NaN."""
    column = rows[attribute.name]
    if isinstance(rows.schema[attribute.name].dataType, (DoubleType, FloatType)):
        return column.isNull() | F.isnan(column)
    return column.isNull()


def comparable(rows: DataFrame, attribute: Attribute) -> Column:
    """The coordinate as boxes of queries hold it: minus infinity where it is missing, else a finite number."""
    finite = F.least(F.greatest(coordinate(rows, attribute), F.lit(LOWEST)), F.lit(HIGHEST))
    return F.when(is_missing(rows, attribute), F.lit(float("-inf"))).otherwise(finite)


def code(coordinate: Column, attribute: Attribute) -> Column:
    """Code of a `comparable` coordinate, 0 or 2**24 + 1 outside the domain; missing values lie below it."""
    exact = _exact_code(coordinate, attribute)
    return F.least(F.greatest(exact, F.lit(float(BELOW))), F.lit(float(ABOVE))).cast("int")


def unclipped_code(rows: DataFrame, attribute: Attribute) -> Column:
    """The same as a 64-bit number, for which `has_code` says whether it lies inside; null if it is too large for one.

    Cheaper on the row path: Spark compares doubles by a function call, and here does so once. It takes a NaN for
    larger than every number.
    """
    exact = _exact_code(coordinate(rows, attribute), attribute)
    return F.when(F.abs(exact) < 1e18, F.floor(exact))


def has_code(unclipped: Column) -> Column:
    """Whether a row lies inside the domain along an attribute; null counts as false."""
    return (unclipped > BELOW) & (unclipped < ABOVE)


def _exact_code(coordinate: Column, attribute: Attribute) -> Column:
    """The code before it is rounded down and clipped."""
    return (coordinate - attribute.low) * attribute.scale + 1.0
