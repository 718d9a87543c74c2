"""What every policy must satisfy; the tests run each check on each policy.

Statistics are generated from a seed, so that a failure can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from jettison.plan import DropPlan
from jettison.policies.base import ContinuingPolicy, Policy
from jettison.stats import Budget, PointStats, Stats

Check = Callable[[Policy], None]


def check_deterministic(policy: Policy) -> None:
    """The same statistics and budget give the same plan."""
    for stats, budget in _situations():
        _require(policy.plan(stats, budget) == policy.plan(stats, budget), f"two plans differ for {stats} and {budget}")


def check_keeps_everything_when_idle(policy: Policy) -> None:
    """A budget of 1 drops nothing, and a plan covers every drop point."""
    for stats, budget in _situations():
        plan = policy.plan(stats, Budget(1.0, 1.0, budget.late_after_s, "idle"))
        _require(plan.keeps_everything, f"{plan} drops rows although the budget is 1")
        _require(set(plan.points) == set(stats.points), f"{plan} does not cover {sorted(stats.points)}")


def check_round_trips_through_json(policy: Policy) -> None:
    """A plan survives its way through text unchanged."""
    for stats, budget in _situations():
        plan = policy.plan(stats, budget)
        _require(DropPlan.from_json(plan.to_json()) == plan, f"{plan} changed on its way through JSON")


def check_meets_budget(policy: Policy) -> None:
    """The rows expected to be processed do not exceed the budget, unless protected rows alone do.

    A policy that must stand by what it decided before meets a budget only in the long run; its own tests look at that.
    """
    if isinstance(policy, ContinuingPolicy):
        return
    for stats, budget in _situations():
        plan = policy.plan(stats, budget)
        for name, point in stats.points.items():
            sampled = 1.0 - point.protected_share
            expected = point.protected_share + sampled * plan.points[name].keep_fraction
            allowed = max(budget.keep_fraction, point.protected_share)
            _require(expected <= allowed + 1e-9, f"{name} keeps {expected:.4f} of a budget of {allowed:.4f}")


ALL_CHECKS: tuple[Check, ...] = (
    check_deterministic,
    check_keeps_everything_when_idle,
    check_round_trips_through_json,
    check_meets_budget,
)


def _situations(seed: int = 20030909, count: int = 50) -> Iterator[tuple[Stats, Budget]]:
    """Random but replayable statistics and budgets, edges included."""
    random = np.random.default_rng(seed)
    for batch_id in range(count):
        points = {f"point{i}": _point(random) for i in range(int(random.integers(1, 4)))}
        keep = float(random.choice([0.0, 0.01, 1.0, float(random.random())]))
        late = keep * float(random.random())
        yield Stats(batch_id, 1e9 + batch_id, 1.0, points), Budget(keep, late, 3.0, "check")


def _point(random: np.random.Generator) -> PointStats:
    seen = int(random.choice([0, 1, int(random.integers(1, 1_000_000))]))
    protected_share = float(random.choice([0.0, float(random.random()) * 0.5]))
    return PointStats(seen, kept=int(random.integers(0, seen + 1)), protected_share=protected_share)


def _require(condition: bool, complaint: str) -> None:
    # Not `assert`: these checks are part of the product and must hold under `python -O` too.
    if not condition:
        raise AssertionError(complaint)
