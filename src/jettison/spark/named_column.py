"""A name for a column inside an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F


def with_name(value: Column, body: Callable[[Column], Column]) -> Column:
    """Apply `body` to a name for `value`, so that it is planned and computed once however often `body` uses it.

    Columns are trees: an expression that uses another ten times holds it ten times. A lambda over an array of one names it.
    """
    return F.get(F.transform(F.array(value), body), F.lit(0))


def with_names(values: Sequence[Column], body: Callable[..., Column]) -> Column:
    """The same for several values at once: `body` gets a name for each."""
    if len(values) == 1:
        return with_name(values[0], body)
    names = [f"_{place}" for place in range(len(values))]
    known = F.struct(*[value.alias(name) for value, name in zip(values, names, strict=True)])
    return with_name(known, lambda each: body(*[each[name] for name in names]))
