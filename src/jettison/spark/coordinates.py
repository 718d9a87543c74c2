"""Coordinates and codes of rows as native columns: the same expressions as in numpy, so the same codes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, NumericType, StringType

from jettison.errors import InvalidSetting, explain
from jettison.sifter.space import ABOVE, BELOW, Attribute, Space
from jettison.spark import validate


def check_attributes(rows: DataFrame, space: Space) -> None:
    """Raise unless `rows` has a column of the right kind for every attribute."""
    for attribute in space.attributes:
        validate.present(rows, attribute.name, "attributes")
        kind = rows.schema[attribute.name].dataType
        fits = isinstance(kind, StringType) if attribute.values else isinstance(kind, (NumericType, BooleanType))
        if not fits:
            wanted = "text" if attribute.values else "a number"
            raise InvalidSetting(
                explain(f"the attribute {attribute.name!r} must be {wanted}", f"a column of type {kind.simpleString()}")
            )


def coordinate(rows: DataFrame, attribute: Attribute) -> Column:
    """Place of each row on the attribute's axis; unknown categories lie before the first one."""
    column = rows[attribute.name]
    if attribute.values:
        known = F.array(*[F.lit(value) for value in attribute.values])
        return (F.array_position(known, column) - 1).cast("double")
    return column.cast("double")


def code(rows: DataFrame, attribute: Attribute) -> Column:
    """Code of each row along the attribute, 0 or 2**24 + 1 outside the domain; a missing value lies outside."""
    cells = (coordinate(rows, attribute) - attribute.low) * attribute.scale + 1.0
    inside = F.least(F.greatest(cells, F.lit(float(BELOW))), F.lit(float(ABOVE)))
    return F.coalesce(inside.cast("int"), F.lit(BELOW))
