"""Which budget a micro-batch runs under."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jettison.stats import Budget

_REMEMBERED = 64


class PlanHistory:
    """The budgets that became plans, each with the time from which it counts."""

    def __init__(self) -> None:
        self._plans: list[tuple[float, int, Budget]] = []

    def add(self, version: int, from_s: float, budget: Budget) -> None:
        """Note that `budget` is plan `version`; a known version changes nothing."""
        if all(version != known for _, known, _ in self._plans):
            self._plans = [*self._plans[-_REMEMBERED + 1 :], (from_s, version, budget)]

    def at(self, start_s: float) -> Budget | None:
        """The budget of a batch that starts then: of the plans that count by that time, the newest; `None` if unknown."""
        return next((budget for from_s, _, budget in reversed(self._plans) if from_s <= start_s), None)

    def to_dict(self) -> dict[str, Any]:
        """All state, fit for JSON; of budgets that are long out of force nothing is kept."""
        return {"plans": [[from_s, version, *budget_to_list(one)] for from_s, version, one in self._plans[-8:]]}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PlanHistory:
        """Restore what `to_dict` gave."""
        history = cls()
        for from_s, version, *budget in document["plans"]:
            history._plans.append((finite(from_s), int(version), budget_from_list(budget)))
        return history


def budget_to_list(budget: Budget) -> list[Any]:
    """A budget as JSON."""
    return [budget.keep_fraction, budget.late_keep_fraction, budget.late_after_s, budget.cause]


def budget_from_list(parts: list[Any]) -> Budget:
    """A budget from JSON; raises `ValueError` or `TypeError` where a part is unsound."""
    keep, late, after_s, cause = parts
    if not isinstance(cause, str):
        raise TypeError(f"a cause is a text, not {cause!r}")
    return Budget(finite(keep, 0.0, 1.0), finite(late, 0.0, 1.0), finite(after_s, 0.0), cause)


def finite(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """A number from JSON within limits; raises `ValueError` or `TypeError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"expected a number, got {value!r}")
    if not (math.isfinite(value) and low <= value <= high):
        raise ValueError(f"expected a number in [{low}, {high}], got {value!r}")
    return float(value)
