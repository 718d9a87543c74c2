"""What rows are worth: utilities that a column holds, or that a value graph gives to the values in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from jettison.costs.sketch import FloatArray
from jettison.errors import InvalidInput, JettisonError, refuse

if TYPE_CHECKING:
    from jettison.policies.network.qos import ValueUtility

Utility: TypeAlias = "str | ValueUtility"
"""Name of a column of utilities, or a value graph, which names the column that holds its values."""


def column_of(utility: Utility) -> str:
    """Column that must be there."""
    return utility if isinstance(utility, str) else utility.column


def utilities(rows: pa.Table, utility: Utility) -> FloatArray:
    """Utility of each row; 0 where there is no value, and outside all intervals of a graph.

    >>> from jettison.policies.network.qos import ValueUtility
    >>> graph = ValueUtility([(0, 50, 0.2), (50, 100, 1.0)], column="fare")
    >>> utilities(pa.table({"fare": [49, 50, 101, None]}), graph).tolist()
    [0.2, 1.0, 0.0, 0.0]
    """
    name = column_of(utility)
    column = rows[name].combine_chunks()
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)):
        refuse_no_numbers(name, str(column.type), InvalidInput)
    numbers = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    values = np.asarray(numbers, dtype=np.float64)
    if isinstance(utility, str):
        return np.nan_to_num(values, nan=0.0)
    low, high, worth = np.array(utility.intervals).T
    # Intervals do not overlap, so the last that begins at or below a value is the only one that can hold it.
    last = np.searchsorted(low, values, side="right") - 1
    return np.where((last >= 0) & (values <= high[last]), worth[last], 0.0)


def refuse_no_numbers(name: str, kind: str, error: type[JettisonError]) -> NoReturn:
    """Raise `error`: the column that holds the utilities is not one of numbers."""
    hint = "cast the column to double, or leave `value` out if all rows are worth the same"
    refuse(
        "`value` must name a column of numbers", f"{name!r} of type {kind}", where="load_aware", hint=hint, error=error
    )
