"""Drop rows uniformly at random: the policy that needs to know nothing about the data."""

from __future__ import annotations

from dataclasses import dataclass

from jettison.plan import DropPlan
from jettison.settings import RandomDrop
from jettison.stats import Budget, PointStats, Stats


@dataclass(frozen=True, slots=True)
class UniformDrop:
    """Keep every row with the same probability, so that every answer stays unbiased.

    The expected share of rows processed equals the budget, protected rows included. When protected rows alone
    exceed the budget, all others are dropped and the plan's cause says so.

    Examples
    --------
    >>> from jettison.stats import Budget, PointStats, Stats
    >>> seen = Stats(batch_id=4, started_s=0.0, duration_s=1.0, points={"rides": PointStats(1000, 1000)})
    >>> budget = Budget(keep_fraction=0.4, late_keep_fraction=0.1, late_after_s=3.0, cause="twice too many rows")
    >>> UniformDrop().plan(seen, budget).points["rides"].keep_fraction
    0.4
    """

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """Give every drop point the keep fraction that spends the budget."""
        points = {name: _setting(point, budget) for name, point in stats.points.items()}
        crowded = [name for name, point in stats.points.items() if point.protected_share > budget.keep_fraction]
        cause = budget.cause
        if crowded:
            cause += f"; protected rows alone exceed the budget at {', '.join(sorted(crowded))}"
        return DropPlan(version=0, points=points, cause=cause)


def _setting(point: PointStats, budget: Budget) -> RandomDrop:
    if budget.keep_fraction >= 1.0 and budget.late_keep_fraction >= 1.0:
        return RandomDrop()
    return RandomDrop(
        keep_fraction=beside_protected(budget.keep_fraction, point.protected_share),
        late_keep_fraction=beside_protected(budget.late_keep_fraction, point.protected_share),
        late_after_s=budget.late_after_s,
    )


def beside_protected(share_of_all: float, protected_share: float) -> float:
    """Share to keep of the unprotected rows, so that `share_of_all` of all rows is processed."""
    if share_of_all >= 1.0 or protected_share <= 0.0:
        return min(share_of_all, 1.0)
    if protected_share >= share_of_all:
        return 0.0
    return (share_of_all - protected_share) / (1.0 - protected_share)
