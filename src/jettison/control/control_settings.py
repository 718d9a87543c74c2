"""What the controller is asked to hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from jettison.core.documents import Number, Positive, Seconds, Share, check_fields, rule
from jettison.errors import refuse

Headroom = Annotated[float, rule("must lie in (0, 1]", "0.8 leaves 20 % for noise", gt=0.0, le=1.0)]
DeadBand = Annotated[float, rule("must lie in [0, 1)", "0.1 is 10 %", ge=0.0, lt=1.0)]
Cap = Annotated[int, rule("must be positive", "None for no cap", gt=0)]
LATE_SHARE = 0.05
"""Of late rows, where nothing else is said."""


def rows_per_batch(peak_rows_per_s: float, latency_bound_s: float) -> int:
    """Rows that one batch should take at most: as many as come within half the bound, the longest that it may last."""
    return max(1, math.ceil(peak_rows_per_s * latency_bound_s / 2))


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """What the controller is asked to hold, and how eagerly.

    Parameters
    ----------
    latency_bound_s
        Highest row latency: commit of the micro-batch minus arrival of the row.
    headroom
        Share of the bound that is aimed at, in (0, 1]; the rest absorbs noise.
    least_share
        Least share of fresh rows to keep, however high the load.
    late_share
        Share to keep, while shedding, of rows already older than the bound when their batch starts: they miss it
        whatever happens, but losing all of them would leave a hole in the answers.
    trigger_interval_s
        Interval of the trigger; 0 when a batch starts as soon as the one before it has committed.
    row_cap
        Most rows that the source hands to one batch, where it has such a cap.
    dead_band
        Relative change of the share below which the present one stays.
    capacity_rows_per_s
        Rows per second that the query processes once warm, for those who know; used until measurements take over.

    Examples
    --------
    >>> ControlSettings(latency_bound_s=3.0, headroom=1.5)
    Traceback (most recent call last):
    ...
    jettison.errors.InvalidSetting: `headroom` must lie in (0, 1], got 1.5. Hint: 0.8 leaves 20 % for noise.
    """

    latency_bound_s: Seconds
    headroom: Headroom = 0.8
    least_share: Share = 0.01
    late_share: Share = LATE_SHARE
    trigger_interval_s: Number = 0.0
    row_cap: Cap | None = None
    dead_band: DeadBand = 0.1
    capacity_rows_per_s: Positive | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.trigger_interval_s < self.latency_bound_s:
            expected = "`trigger_interval_s` must be shorter than the latency bound"
            hint = "rows wait up to one interval before their batch even starts"
            refuse(expected, repr(self.trigger_interval_s), hint=hint)
