"""The figures behind a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from jettison.control.load_model import Costs
from jettison.control.outlook import Ahead, Outlook
from jettison.core.stats import Budget


@dataclass(frozen=True, slots=True)
class Expected:
    """The next batch as it is foreseen under a budget: its rows, those that it keeps, and the latency of its oldest row."""

    rows: int
    kept_rows: int
    latency_s: float


@dataclass(frozen=True, slots=True)
class BudgetFigures:
    """Why a budget is what it is, in figures; `None` stands for what is not known yet.

    Parameters
    ----------
    share, late_share, late_after_s
        The budget.
    rows_per_s
        Arrival rate.
    waiting_rows
        Backlog: rows that wait in the source by now.
    costs, noise
        What a batch is taken to cost, and the relative scatter of batches' lengths.
    starts_in_s
        Time until the first batch starts that can run under the budget.
    expected
        That batch.
    overridden_by
        The order under which every row is kept whatever the budget says, in words, while there is one.
    capacity_rows_per_s
        Highest arrival rate at which every row can be kept within the bound.
    """

    share: float
    late_share: float
    late_after_s: float
    rows_per_s: float | None = None
    waiting_rows: int | None = None
    costs: Costs | None = None
    noise: float | None = None
    starts_in_s: float | None = None
    expected: Expected | None = None
    overridden_by: str | UnsetType = UNSET
    capacity_rows_per_s: float | UnsetType = UNSET

    @classmethod
    def unmeasured(cls, budget: Budget) -> BudgetFigures:
        """A budget that rests on no figures."""
        return cls(budget.share, budget.late_share, budget.late_after_s)

    @classmethod
    def of(cls, budget: Budget, outlook: Outlook, ahead: Ahead, waiting: float, starts_in_s: float) -> BudgetFigures:
        """A budget made from an outlook, for a batch."""
        kept = budget.share * ahead.fresh + budget.late_share * ahead.late
        latency_s = ahead.wait_s + outlook.costs.predict(ahead.rows, kept)
        figures = ahead.rows, kept, latency_s, waiting, starts_in_s
        if not all(map(math.isfinite, figures)):
            return cls.unmeasured(budget)
        return cls(
            budget.share,
            budget.late_share,
            budget.late_after_s,
            outlook.rate,
            round(waiting),
            outlook.costs,
            outlook.noise,
            starts_in_s,
            Expected(round(ahead.rows), round(kept), latency_s),
            capacity_rows_per_s=outlook.capacity_rows_per_s,
        )
