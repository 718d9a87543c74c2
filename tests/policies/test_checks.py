"""Every policy passes every check, and every check fails for a policy that breaks its promise."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

import jettison.policies
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats
from jettison.policies import Policy, UniformDrop, checks
from jettison.policies.network.range_setting import RangeDrop
from jettison.policies.uniform.random_setting import RandomDrop

# Whatever the package exports besides the protocol itself: a new policy is checked without touching this file.
# One that cannot do without arguments gets some here.
ARGUMENTS = {
    "ConceptDrop": {"group": "route", "time": "at", "window": ("30 minutes", "10 minutes")},
    "WindowDrop": {"time": "at", "window": "10 seconds", "max_gap": 3},
}
POLICIES = [
    getattr(jettison.policies, name)(**ARGUMENTS.get(name, {}))
    for name in jettison.policies.__all__
    if name != "Policy" and hasattr(getattr(jettison.policies, name), "plan")
]


@pytest.mark.parametrize("check", checks.ALL_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_every_policy_passes_every_check(policy, check):
    check(policy)


class Wrong(UniformDrop):
    """A good policy with one fault, put in by a subclass."""

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        return self.spoil(UniformDrop().plan(stats, budget), stats)

    def spoil(self, plan: DropPlan, stats: Stats) -> DropPlan:
        raise NotImplementedError


class Fickle(Wrong):
    counter = itertools.count()

    def spoil(self, plan, stats):
        return replace(plan, cause=f"plan number {next(self.counter)}")


class Greedy(Wrong):
    """Drops a little always, even when idle."""

    def spoil(self, plan, stats):
        return replace(plan, points={n: RandomDrop(min(s.keep_fraction, 0.999)) for n, s in plan.points.items()})


class LateWhenIdle(Wrong):
    """Keeps fresh rows, but thins late ones when idle."""

    def spoil(self, plan, stats):
        return replace(plan, points={n: RandomDrop(s.keep_fraction, 0.5, 3.0) for n, s in plan.points.items()})


class Forgetful(Wrong):
    """Leaves the last drop point out."""

    def spoil(self, plan, stats):
        return replace(plan, points=dict(list(plan.points.items())[:-1]))


class Changeable(Wrong):
    """Makes settings that its query was not compiled for."""

    def spoil(self, plan, stats):
        return replace(plan, points={n: RangeDrop("value") for n in plan.points})


class Unspeakable(Wrong):
    """Its cause is no text, so it comes back from JSON as something else."""

    def spoil(self, plan, stats):
        return replace(plan, cause=42)


class Talkative(Wrong):
    """Explains itself at length."""

    def spoil(self, plan, stats):
        return replace(plan, cause="because " * 10_000)


class Spendthrift(Wrong):
    """Keeps a little more than the budget."""

    def spoil(self, plan, stats):
        return replace(plan, points={n: RandomDrop(min(1.0, s.keep_fraction + 0.001)) for n, s in plan.points.items()})


class BlindToProtected(UniformDrop):
    """Spends the whole budget on unprotected rows, so that protected ones come on top."""

    def plan(self, stats, budget):
        points = {name: RandomDrop(min(1.0, budget.share)) for name in stats.points}
        return DropPlan(0, points, budget.cause)


class Absent(UniformDrop):
    """Forgets what it had learned when it is told of it."""

    state_type = float
    share = 0.5

    def plan(self, stats, budget):
        return replace(UniformDrop().plan(stats, budget), cause=f"a share of {self.share}")

    def state(self):
        return self.share

    def restore(self, state):
        object.__setattr__(self, "share", 1.0)


@pytest.mark.parametrize(
    ("policy", "check", "complaint"),
    [
        (Fickle(), checks.check_deterministic, "two plans differ"),
        (Greedy(), checks.check_keeps_everything_when_idle, "although the budget is 1"),
        (LateWhenIdle(), checks.check_keeps_everything_when_idle, "although the budget is 1"),
        (Forgetful(), checks.check_keeps_everything_when_idle, "does not cover"),
        (Changeable(), checks.check_holds_settings_of_its_kind, "settings of the kind .'range'."),
        (Unspeakable(), checks.check_round_trips_through_json, "changed on its way"),
        (Talkative(), checks.check_fits_its_bytes, "bytes are more than 65536"),
        (Spendthrift(), checks.check_meets_budget, "of a budget of"),
        (BlindToProtected(), checks.check_meets_budget, "of a budget of"),
        (Absent(), checks.check_goes_on_from_its_state, "makes another plan"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or type(value).__name__,
)
def test_a_check_catches_the_policy_that_breaks_it(policy, check, complaint):
    assert isinstance(policy, Policy)
    with pytest.raises(AssertionError, match=complaint):
        check(policy)


def test_no_check_goes_without_a_policy_that_breaks_it():
    marks = test_a_check_catches_the_policy_that_breaks_it.pytestmark
    broken = {check for mark in marks for _, check, _ in mark.args[1]}
    assert broken == set(checks.ALL_CHECKS)


def test_all_checks_are_listed():
    assert set(checks.ALL_CHECKS) == {value for name, value in vars(checks).items() if name.startswith("check_")}


def test_situations_are_replayable_and_hold_the_edges():
    first, again = (list(checks._situations(UniformDrop())) for _ in range(2))
    assert first == again
    assert {0.0, 1.0} <= {budget.share for _, budget in first}
    points = [point for stats, _ in first for point in stats.points.values()]
    assert any(point.seen == 0 for point in points)
    assert any(point.protected_share == 0 for point in points)
    assert any(point.protected_share > budget.share for stats, budget in first for point in stats.points.values())
    assert {len(stats.points) for stats, _ in first} == {1, 2, 3}
