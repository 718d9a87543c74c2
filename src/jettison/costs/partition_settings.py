"""How the rows of a partition are shed, what they must have for it, and what each is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jettison.costs.batches import Batches
from jettison.costs.sketch import FloatArray
from jettison.errors import InvalidInput, JettisonError, MissingColumn, refuse

if TYPE_CHECKING:
    from jettison.policies.network.qos import ValueUtility

Rule = Literal["costliest_first", "tail_drop"]
Utility: TypeAlias = "str | ValueUtility"
"""Name of a column of utilities, or a value graph, which names the column that holds its values."""
_WHERE = "load_aware"


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """The arguments of `load_aware` that executors need.

    Parameters
    ----------
    key, arrival, value, rule, learn
        As there.
    bound_s
        Longest wait of a row.
    time_zone
        In which times of arrival without a zone of their own are to be read.
    hidden
        Columns that the user's function does not get.
    """

    key: str
    bound_s: float
    arrival: str | None = None
    value: Utility | None = None
    rule: Rule = "costliest_first"
    learn: bool = True
    time_zone: str = "UTC"
    hidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rule not in ("costliest_first", "tail_drop"):
            expected, hint = "`rule` must be 'costliest_first' or 'tail_drop'", "'costliest_first' drops fewer rows"
            refuse(expected, repr(self.rule), where=_WHERE, hint=hint)
        if self.rule == "tail_drop" and self.value is not None:
            expected = "no `value` under the rule 'tail_drop', which judges a row by the work before it alone"
            hint = "leave `rule` out to drop by cost per unit of utility"
            refuse(expected, repr(self.value), where=_WHERE, hint=hint)

    def checked(self, batches: Batches) -> Batches:
        """The batches, if they are Arrow's and have the columns."""
        needed = (self.key, self.arrival, None if self.value is None else column_of(self.value))
        for batch in batches:
            if not isinstance(batch, pa.RecordBatch):
                hint = "pass the wrapped function to `mapInArrow`; `batch.to_pandas()` gives it frames to work on"
                refuse("Arrow record batches", type(batch).__name__, where=_WHERE, hint=hint, error=InvalidInput)
            for name in needed:
                if name is not None and name not in batch.schema.names:
                    expected = f"a column of the stream ({', '.join(batch.schema.names)})"
                    hint = "select it before the function, or give the rows by `LoadAware.map`, which tells before the start"
                    refuse(expected, repr(name), where=_WHERE, hint=hint, error=MissingColumn)
            yield batch

    def arrivals_s(self, rows: pa.Table, now_s: float) -> FloatArray:
        """When each row arrived, and now for those that do not say or that lie in the future."""
        times = rows[self.arrival].combine_chunks()
        if not pa.types.is_timestamp(times.type):
            got, hint = f"{self.arrival!r} of type {times.type}", "make it one first by `to_timestamp`"
            refuse("`arrival` must be a timestamp", got, where=_WHERE, hint=hint, error=InvalidInput)
        if times.type.tz is None:
            # The later reading of an hour that comes twice: rows then pass for younger, and none is dropped for it.
            times = pc.assume_timezone(times, self.time_zone, ambiguous="latest", nonexistent="latest")
        micros = times.cast(pa.timestamp("us", "UTC"), safe=False)
        seconds = micros.cast(pa.int64()).fill_null(round(now_s * 1e6)).to_numpy(zero_copy_only=False) / 1e6
        return np.asarray(np.minimum(seconds, now_s), dtype=np.float64)


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
    low, high, utility_of = np.array(utility.intervals).T
    # Intervals do not overlap, so the last that begins at or below a value is the only one that can hold it.
    last = np.searchsorted(low, values, side="right") - 1
    return np.where((last >= 0) & (values <= high[last]), utility_of[last], 0.0)


def refuse_no_numbers(name: str, kind: str, error: type[JettisonError]) -> NoReturn:
    """Raise `error`: the column that holds the utilities is not one of numbers."""
    hint = "cast the column to double, or leave `value` out if all rows are worth the same"
    refuse("`value` must name a column of numbers", f"{name!r} of type {kind}", where=_WHERE, hint=hint, error=error)
