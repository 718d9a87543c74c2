"""What every policy must satisfy; the tests run each check on each policy.

Statistics are generated from a seed, so that a failure can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from jettison.core.documents import encode, packed, parse, restored
from jettison.core.plan import PLAN_BYTES, DropPlan
from jettison.core.stats import Budget, EventTimes, PointStats, Stats, with_protected
from jettison.errors import DamagedPlan
from jettison.policies.base import STATE_BYTES, Policy

Check = Callable[[Policy], None]

_COURSE, _START_US, _BATCH_US = 60, 1_800_000_000_000_000, 60_000_000
_LITTLE_ROOM = PLAN_BYTES // 8
_SLACK = 0.02  # of a course whose plans do not come to rest


def check_deterministic(policy: Policy) -> None:
    """The same statistics and budget give the same plan."""
    for stats, budget in _situations(policy):
        _require(policy.plan(stats, budget) == policy.plan(stats, budget), f"two plans differ for {stats} and {budget}")


def check_keeps_everything_when_idle(policy: Policy) -> None:
    """A budget of 1 drops nothing, and a plan covers every drop point."""
    for stats, budget in _situations(policy):
        plan = policy.plan(stats, Budget(1.0, 1.0, budget.late_after_s, "idle"))
        _require(plan.keeps_everything, f"{plan} drops rows although the budget is 1")
        _require(set(plan.points) == set(stats.points), f"{plan} does not cover {sorted(stats.points)}")


def check_holds_settings_of_its_kind(policy: Policy) -> None:
    """Every setting is of a kind that the policy's spec states, so that the query can execute it."""
    for stats, budget in _situations(policy):
        kinds = {setting.kind for setting in policy.plan(stats, budget).points.values()}
        others = kinds - set(policy.spec.kinds)
        _require(not others, f"settings of the kind {sorted(others)} under a spec that states {policy.spec.kinds}")


def check_round_trips_through_json(policy: Policy) -> None:
    """A plan survives its way through text unchanged."""
    for stats, budget in _situations(policy):
        plan = policy.plan(stats, budget)
        try:
            restored = DropPlan.from_json(plan.to_json())
        except DamagedPlan as error:
            raise AssertionError(f"{plan} changed on its way through JSON: {error}") from error
        _require(restored == plan, f"{plan} changed on its way through JSON")


def check_fits_its_bytes(policy: Policy) -> None:
    """No plan takes more bytes than the policy is given: all that it asks for, or far less."""
    for stats, budget in _situations(policy):
        for room in (policy.plan_bytes, _LITTLE_ROOM):
            size = len(policy.plan(replace(stats, plan_bytes=room), budget).to_json())
            _require(size <= room, f"{size} bytes are more than {room}, for {stats} and {budget}")


def check_meets_budget(policy: Policy) -> None:
    """The work expected stays within the budget, unless protected rows and what the policy must keep are more.

    Over a course of batches, because plans may build on each other; where they come to rest, in every one of them.
    """
    for stats, budget in _situations(policy, count=20):
        plan, course = DropPlan(0), []
        for batch in range(_COURSE):
            times = _times(batch)
            plan = policy.continued(plan, replace(stats, event_times=times), budget)
            course.append((plan, times))
        later = course[_COURSE // 2 :]
        at_rest = all(one.same_settings(later[0][0]) for one, _ in later)
        expected = sum(_expected_share(policy, stats, *one) for one in later) / len(later)
        points = [(one.seen, one.protected_share) for one in stats.points.values()]
        least = policy.unavoidable_share
        rows = sum(seen * max(budget.share, with_protected(least, safe)) for seen, safe in points)
        allowed = rows / stats.seen if stats.seen else 1.0
        slack = (1e-9 if at_rest else _SLACK) + 1.0 / max(stats.seen, 1)  # rows are whole
        _require(expected <= allowed + slack, f"{expected:.4f} is kept of a budget of {allowed:.4f} for {stats}")


def check_goes_on_from_its_state(policy: Policy) -> None:
    """What it has learned survives its way through text, in bounded size, and plans are then what they were."""
    for stats, budget in _situations(policy, count=5):
        plan, state = policy.plan(stats, budget), packed(policy.state())
        size = len(encode(state))
        _require(size <= STATE_BYTES, f"{size} bytes of state are more than {STATE_BYTES}")
        if policy.state_type is not None:
            policy.restore(restored(parse(encode(state)), policy.state_type, of=packed))
        _require(policy.plan(stats, budget) == plan, f"its own state makes another plan for {stats} and {budget}")
        _require(packed(policy.state()) == state, "its own state makes another state")


ALL_CHECKS: tuple[Check, ...] = (
    check_deterministic,
    check_keeps_everything_when_idle,
    check_holds_settings_of_its_kind,
    check_round_trips_through_json,
    check_fits_its_bytes,
    check_meets_budget,
    check_goes_on_from_its_state,
)


def _expected_share(policy: Policy, stats: Stats, plan: DropPlan, times: EventTimes) -> float:
    """Share of the full load that a batch is expected to take under a plan."""

    def kept(name: str, point: PointStats) -> PointStats:
        share = policy.expected_share(plan.points[name], times)
        return replace(point, kept=round(point.seen * with_protected(share, point.protected_share)))

    load = policy.workload(replace(stats, points={n: kept(n, p) for n, p in stats.points.items()}), plan)
    return load.kept / load.seen if load.seen else 0.0


def _situations(policy: Policy, *, seed: int = 20030909, count: int = 50) -> Iterator[tuple[Stats, Budget]]:
    """Random but replayable statistics and budgets, edges included."""
    random = np.random.default_rng(seed)
    for batch_id in range(count):
        names = policy.points or [f"point{i}" for i in range(int(random.integers(1, 4)))]
        points = {name: _point(random, protected=policy.takes_protected) for name in names}
        keep = float(random.choice([0.0, 0.01, 1.0, float(random.random())]))
        late = keep * float(random.random())
        # With times: a policy that decides ahead of the rows would else have nothing to decide, and nothing to be checked.
        stats = Stats(batch_id, 1e9 + batch_id, 1.0, points, event_times=_times(batch_id))
        yield stats, Budget(keep, late, 3.0, "check")


def _times(batch: int) -> EventTimes:
    return EventTimes(_START_US + batch * _BATCH_US, _BATCH_US, _START_US + (batch - 1) * _BATCH_US)


def _point(random: np.random.Generator, *, protected: bool) -> PointStats:
    seen = int(random.choice([0, 1, int(random.integers(1, 1_000_000))]))
    protected_share = float(random.choice([0.0, float(random.random()) * 0.5])) if protected else 0.0
    return PointStats(seen, kept=int(random.integers(0, seen + 1)), protected_share=protected_share)


def _require(condition: bool, complaint: str) -> None:
    # Not `assert`: these checks are part of the product and must hold under `python -O` too.
    if not condition:
        raise AssertionError(complaint)
