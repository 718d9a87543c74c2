"""Coordinates and codes of rows as native columns: the same expressions as in numpy, so the same codes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, FloatType, NumericType, StringType

from jettison.errors import refuse
from jettison.source.space import ABOVE, BELOW, Attribute, Space
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


def unclipped_code(rows: DataFrame, attribute: Attribute) -> Column:
    """The code before it is clipped, for which `has_code` says whether it lies inside; null if it is too large for 64 bits.

    Cheaper on the row path: Spark compares doubles by a function call, and here does so once. It takes a NaN for
    larger than every number.
    """
    exact = (coordinate(rows, attribute) - attribute.low) * attribute.scale + 1.0
    return F.when(F.abs(exact) < 1e18, F.floor(exact))


def has_code(unclipped: Column) -> Column:
    """Whether a row lies inside the domain along an attribute; null counts as false."""
    return (unclipped > BELOW) & (unclipped < ABOVE)
