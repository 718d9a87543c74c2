"""What the controller is asked to hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jettison.errors import InvalidSetting, explain


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """What the controller is asked to hold, and how eagerly.

    Parameters
    ----------
    latency_bound_s
        Highest row latency: commit of the micro-batch minus arrival of the row.
    headroom
        Share of the bound that is aimed at, in (0, 1]; the rest absorbs noise.
    min_keep_fraction
        Least share of fresh rows to keep, however high the load.
    late_keep_fraction
        Share to keep, while shedding, of rows already older than the bound when their batch starts: they miss it
        whatever happens, but losing all of them would leave a hole in the answers.
    trigger_interval_s
        Interval of the trigger; 0 when a batch starts as soon as the one before it has committed.
    row_cap
        Most rows that the source hands to one batch, where it has such a cap; see `row_cap`.
    min_shed_batches
        Batches that shedding lasts at least.
    dead_band
        Relative change of the keep fraction below which the present one stays.
    capacity_rows_per_s
        Rows per second that the query processes once warm, for those who know; used until measurements take over.

    Examples
    --------
    >>> ControlSettings(latency_bound_s=3.0, headroom=1.5)
    Traceback (most recent call last):
    ...
    jettison.errors.InvalidSetting: `headroom` must lie in (0, 1], got 1.5. Hint: 0.8 leaves 20 % for noise.
    """

    latency_bound_s: float
    headroom: float = 0.8
    min_keep_fraction: float = 0.01
    late_keep_fraction: float = 0.05
    trigger_interval_s: float = 0.0
    row_cap: int | None = None
    min_shed_batches: int = 2
    dead_band: float = 0.1
    capacity_rows_per_s: float | None = None

    def __post_init__(self) -> None:
        bound = self.latency_bound_s
        _require(math.isfinite(bound) and bound > 0, "`latency_bound_s` must be positive", bound, "give seconds")
        hint = "0.8 leaves 20 % for noise"
        _require(0 < self.headroom <= 1, "`headroom` must lie in (0, 1]", self.headroom, hint)
        for name in ("min_keep_fraction", "late_keep_fraction"):
            value = getattr(self, name)
            hint = "pass the share kept, not the share dropped"
            _require(0 <= value <= 1, f"`{name}` must lie in [0, 1]", value, hint)
        interval = self.trigger_interval_s
        _require(
            0 <= interval < bound,
            "`trigger_interval_s` must be shorter than the latency bound",
            interval,
            "rows wait up to one interval before their batch even starts",
        )
        cap, shortest = self.row_cap, self.min_shed_batches
        _require(cap is None or cap > 0, "`row_cap` must be positive", cap, "None for no cap")
        _require(shortest >= 0, "`min_shed_batches` must not be negative", shortest, "2 is usual")
        _require(0 <= self.dead_band < 1, "`dead_band` must lie in [0, 1)", self.dead_band, "0.1 is 10 %")
        known = self.capacity_rows_per_s
        sound = known is None or (math.isfinite(known) and known > 0)
        _require(sound, "`capacity_rows_per_s` must be positive", known, "None where it is not known")


def row_cap(peak_rows_per_s: float, latency_bound_s: float) -> int:
    """Rows per batch that let rates up to `peak_rows_per_s` be shed while anything beyond waits in the source.

    As many as arrive at that rate within half the bound, the longest a batch may last. A smaller cap would delay
    rows that could have been dropped; a larger one lets a backlog at the start make the first batch too long. Give it to
    the source (`maxOffsetsPerTrigger`) and, so that it knows why batches end where they do, to the controller
    (`Shedder(..., control={"row_cap": cap})`).

    >>> row_cap(100_000, 3.0)
    150000
    """
    return max(1, math.ceil(peak_rows_per_s * latency_bound_s / 2))


def _require(holds: bool, expected: str, got: object, hint: str) -> None:
    if not holds:
        raise InvalidSetting(explain(expected, repr(got), hint=hint))
