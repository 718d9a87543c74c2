"""How the rows of a partition are shed, and what they must have for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jettison.costs.batches import Batches
from jettison.costs.row_utility import Utility, column_of
from jettison.costs.sketch import FloatArray
from jettison.errors import InvalidInput, MissingColumn, refuse

Rule = Literal["costliest_first", "tail_drop"]
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
