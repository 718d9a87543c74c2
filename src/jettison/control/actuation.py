"""Which budget a micro-batch runs under."""

from __future__ import annotations

from dataclasses import dataclass, field

from jettison.core.documents import Moment, Natural
from jettison.core.stats import Budget

_REMEMBERED = 64


@dataclass
class PlanHistory:
    """The budgets that became plans, each with the time from which it counts."""

    plans: list[tuple[Moment, Natural, Budget]] = field(default_factory=list)

    def add(self, version: int, from_s: float, budget: Budget) -> None:
        """Note that `budget` is plan `version`; a known version changes nothing."""
        if all(version != known for _, known, _ in self.plans):
            self.plans = [*self.plans[1 - _REMEMBERED :], (from_s, version, budget)]

    def at(self, start_s: float) -> Budget | None:
        """The budget of a batch that starts then: of the plans that count by that time, the newest; `None` if unknown."""
        return next((budget for from_s, _, budget in reversed(self.plans) if from_s <= start_s), None)
