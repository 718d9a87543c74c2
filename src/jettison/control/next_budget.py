"""The next budget, of what is foreseen: small changes are not worth a plan."""

from __future__ import annotations

import math
from typing import NamedTuple

from jettison.control.arrivals import Arrivals
from jettison.control.causes import about_the_clock, why_keep_all, why_shed
from jettison.control.control_settings import ControlSettings
from jettison.control.outlook import Ahead, Outlook
from jettison.core.stats import Budget

_AT_STAKE = 0.9  # of the latency bound: a latency foreseen past this lets smaller cuts through
_STEADY = 0.05  # of the bound: by how much the age from which rows are late must change to be changed


def late_after_s(settings: ControlSettings, arrivals: Arrivals, present: Budget, more_s: float = 0.0) -> float:
    """Age from which rows are late by their stamps, as in the present budget where that is near."""
    wanted_s = max(settings.latency_bound_s + arrivals.offset_s + more_s, 1e-3)
    is_near = abs(wanted_s - present.late_after_s) <= _STEADY * settings.latency_bound_s
    return present.late_after_s if is_near else wanted_s


class NextBudget(NamedTuple):
    """Makes the budget that follows the present one."""

    settings: ControlSettings
    arrivals: Arrivals
    present: Budget
    outlook: Outlook
    ahead: Ahead

    def keep_all(self, *, young: bool = False) -> Budget:
        """Every row is kept; `young` says that the process is, and only catches up."""
        cause = self._with_the_clock(why_keep_all(self.outlook, self.ahead, young=young))
        return Budget(1.0, 1.0, late_after_s(self.settings, self.arrivals, self.present), cause)

    def catch_up(self, start_s: float) -> Budget:
        """Keep all that has come since the process started; of a backlog from before that, as little as of late rows."""
        everything, bound_s = self.keep_all(young=True), self.settings.latency_bound_s
        if not self.arrivals.observed or self.arrivals.served_until_s >= start_s - bound_s:
            return everything
        behind_s = self.arrivals.served_until_s + self.ahead.wait_s - start_s
        # In steps of the bound, so that the age makes few plans; a little too high spares rows.
        more_s = bound_s * math.ceil(max(behind_s, 0.0) / bound_s)
        age_s = late_after_s(self.settings, self.arrivals, everything, more_s)
        cause = f"{everything.cause}; rows that waited before the start are late already and are thinned"
        return Budget(1.0, self.settings.late_share, age_s, cause)

    def shed(self, at_least: float) -> Budget:
        """The largest steady share that holds the bound, but `at_least` this."""
        keep, late = self.outlook.shares(self.ahead)
        keep = self._steadied(max(keep, at_least))
        late, before = min(late, keep), self.present.late_share
        if abs(late - before) <= self.settings.dead_band * before and before <= keep:
            late = before
        cause = self._with_the_clock(why_shed(self.outlook, self.ahead, keep))
        return Budget(keep, late, late_after_s(self.settings, self.arrivals, self.present), cause)

    def _steadied(self, keep: float) -> float:
        """The present share where the wanted one is near it and the bound is not at stake."""
        before, dead_band = self.present.share, self.settings.dead_band
        change = abs(keep - before) / max(before, 1e-9)
        if before >= 1.0 or change > dead_band:
            return keep
        if change <= dead_band / 2:
            return before
        duration_s = self.ahead.duration_s(self.outlook.costs, before, before)
        in_time = self.ahead.wait_s + duration_s <= _AT_STAKE * self.outlook.limit_s
        return before if in_time or keep >= before else keep

    def _with_the_clock(self, cause: str) -> str:
        return "; ".join(filter(None, (cause, about_the_clock(self.arrivals, self.settings.latency_bound_s))))
