"""Drop rows by what they would cost: learned costs, and the bound on queuing latency that they serve."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import ClassVar

from jettison.errors import InvalidSetting, explain
from jettison.settings.base import check_fraction, check_positive

_BYTES_PER_CELL = 4


@dataclass(frozen=True, slots=True)
class CostDrop:
    """Keep a row if it can start in time given the rows before it, and drop the costliest ones where not all can.

    Which rows go depends on when they arrive, so the plan holds what is needed to decide, not the decision.

    Parameters
    ----------
    bound_s
        Bound on the queuing latency of a row.
    rows, columns, seed
        Shape and hash functions of the sketch of costs.
    counts, costs
        Its two matrices, row by row, in single precision and base64: rows learned, and their total cost in seconds.
    keep_fraction
        Share of the rows that was kept of late.
    """

    bound_s: float
    rows: int
    columns: int
    seed: int
    counts: str
    costs: str
    keep_fraction: float = 1.0

    kind: ClassVar[str] = "cost"

    def __post_init__(self) -> None:
        check_fraction("keep_fraction", self.keep_fraction)
        check_positive("bound_s", self.bound_s)
        if not (isinstance(self.rows, int) and isinstance(self.columns, int) and self.rows * self.columns > 0):
            raise InvalidSetting(
                explain(
                    "`rows` and `columns` must be positive",
                    f"{self.rows!r} and {self.columns!r}",
                    hint="take the shape of the sketch: `rows` and `columns` of its hashes",
                )
            )
        for name, text in (("counts", self.counts), ("costs", self.costs)):
            size = len(base64.b64decode(text, validate=True))
            if size != _BYTES_PER_CELL * self.rows * self.columns:
                raise InvalidSetting(
                    explain(
                        f"`{name}` must hold {self.rows} times {self.columns} numbers",
                        f"{size} bytes",
                        hint="pass what `CostSketch.to_dict` gives for this shape",
                    )
                )

    @property
    def keeps_everything(self) -> bool:
        """Whether no row was dropped of late."""
        return self.keep_fraction >= 1.0
