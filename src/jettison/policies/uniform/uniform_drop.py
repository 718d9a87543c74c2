"""Drop rows uniformly at random: the policy that needs to know nothing about the data."""

from __future__ import annotations

from dataclasses import dataclass

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats, beside_protected
from jettison.policies.base import Policy
from jettison.policies.uniform.random_setting import RandomDrop, RandomSpec


@dataclass(frozen=True)
class UniformDrop(Policy):
    """Keep every row with the same probability, so that every answer stays unbiased.

    The expected share of rows processed equals the budget, protected rows included. When protected rows alone
    exceed the budget, all others are dropped and the plan's cause says so.

    Examples
    --------
    >>> from jettison.core.stats import Budget, PointStats, Stats
    >>> seen = Stats(batch_id=4, started_s=0.0, duration_s=1.0, points={"rides": PointStats(1000, 1000)})
    >>> budget = Budget(share=0.4, late_share=0.1, late_after_s=3.0, cause="twice too many rows")
    >>> UniformDrop().plan(seen, budget).points["rides"].keep_fraction
    0.4
    """

    @property
    def spec(self) -> RandomSpec:
        return RandomSpec()

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """Give every drop point the keep fraction that spends the budget."""
        points = {name: _setting(point, budget) for name, point in stats.points.items()}
        crowded = [name for name, point in stats.points.items() if point.protected_share > budget.share]
        cause = budget.cause
        if crowded:
            cause += f"; protected rows alone exceed the budget at {', '.join(sorted(crowded))}"
        return DropPlan(version=0, points=points, cause=cause)


def _setting(point: PointStats, budget: Budget) -> RandomDrop:
    if budget.share >= 1.0 and budget.late_share >= 1.0:
        return RandomDrop()
    return RandomDrop(
        keep_fraction=beside_protected(budget.share, point.protected_share),
        late_keep_fraction=beside_protected(budget.late_share, point.protected_share),
        late_after_s=budget.late_after_s,
    )
