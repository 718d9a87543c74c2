"""A name for a column inside an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F


def with_name(value: Column, body: Callable[[Column], Column]) -> Column:
    """Apply `body` to a name for `value`, so that it is planned and computed once however often `body` uses it.

    Columns are trees: an expression that uses another ten times holds it ten times. A lambda over an array of one names it.
    """
    return F.get(F.transform(F.array(value), body), F.lit(0))


def with_names(values: Sequence[Column], *steps: Callable[..., Any]) -> Column:
    """The same for several values at once: each step gets a name for each value, and returns the values of the next.

    The last one returns the column that is wanted. The lambda of one step does not stand within that of another, which
    keeps the expression flat: Spark Connect sends no plan in which more than about 50 functions stand within each other.
    """
    rows, count = F.array(_together(values)), len(values)
    for step in steps[:-1]:
        rows, count = _after(rows, count, step)
    return F.get(F.transform(rows, lambda row: steps[-1](*_apart(row, count))), F.lit(0))


def _after(rows: Column, count: int, step: Callable[..., Sequence[Column]]) -> tuple[Column, int]:
    """What a step makes of the values of a row, and how many these are."""
    found: list[Column] = []

    def made(row: Column) -> Column:
        found.extend(step(*_apart(row, count)))
        return _together(found)

    return F.transform(rows, made), len(found)


def _together(values: Sequence[Column]) -> Column:
    if len(values) == 1:
        return values[0]
    return F.struct(*[value.alias(f"_{place}") for place, value in enumerate(values)])


def _apart(row: Column, count: int) -> list[Column]:
    return [row] if count == 1 else [row[f"_{place}"] for place in range(count)]
