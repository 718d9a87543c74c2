"""What rows are worth: utilities that a column holds, or that a value graph gives to the values in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from jettison.costs.sketch import FloatArray
from jettison.errors import InvalidInput, explain

if TYPE_CHECKING:
    from jettison.network.qos import ValueUtility

Worth: TypeAlias = "str | ValueUtility"
"""Name of a column of utilities, or a value graph, which names the column that holds its values."""


def column_of(worth: Worth) -> str:
    """Column that must be there."""
    return worth if isinstance(worth, str) else worth.column


def utilities(rows: pa.Table, worth: Worth) -> FloatArray:
    """Utility of each row; 0 where there is no value, and outside all intervals of a graph.

    >>> from jettison.network.qos import ValueUtility
    >>> graph = ValueUtility([(0, 50, 0.2), (50, 100, 1.0)], column="fare")
    >>> utilities(pa.table({"fare": [49, 50, 101, None]}), graph).tolist()
    [0.2, 1.0, 0.0, 0.0]
    """
    values = _numbers(rows, column_of(worth))
    if isinstance(worth, str):
        return np.nan_to_num(values, nan=0.0)
    low, high, utility = np.array(worth.intervals).T
    # Intervals do not overlap, so the last that begins at or below a value is the only one that can hold it.
    last = np.searchsorted(low, values, side="right") - 1
    return np.where((last >= 0) & (values <= high[last]), utility[last], 0.0)


def no_numbers(name: str, kind: str) -> str:
    """What to say where the column that holds the worth is of a type that is none of numbers."""
    return explain(
        "`value` must name a column of numbers",
        f"{name!r} of type {kind}",
        where="load_aware",
        hint="cast the column to double, or leave `value` out if all rows are worth the same",
    )


def _numbers(rows: pa.Table, name: str) -> FloatArray:
    column = rows[name].combine_chunks()
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)):
        raise InvalidInput(no_numbers(name, str(column.type)))
    numbers = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, dtype=np.float64)
