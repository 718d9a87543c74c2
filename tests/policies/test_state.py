"""A policy that is restored from its saved state plans as one that never stopped."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jettison as jt
from jettison.core.documents import encode, packed, parse, restored
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, EventTimes, PointStats, Stats
from jettison.policies.base import STATE_BYTES, Lesson
from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.groups.group_keys import packed as packed_keys
from jettison.policies.groups.group_setting import keep_shares
from jettison.policies.groups.join_drop import JoinDrop
from jettison.policies.groups.pane_book import KeptGroups
from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.regions.sifter import Sifter
from jettison.policies.uniform.uniform_drop import UniformDrop
from jettison.policies.window.window_drop import WindowDrop
from jettison.runtime import restart
from jettison.source.space import Attribute

MINUTE_US = 60_000_000
PANE_US = 10 * MINUTE_US
START_US = 1_800_000_000_000_000


def groups(random, batch, plan):
    """Rows that the plan keeps of groups in the two panes around the batch's time."""
    newest_us = START_US + batch * MINUTE_US // 2
    places = np.unique(random.integers([-50, 0], [50, 2], (60, 2)), axis=0)
    panes = newest_us // PANE_US - places[:, 1]
    rows = random.geometric(0.02, len(places))
    return {name: kept_groups(random, places[:, 0], panes, rows, setting) for name, setting in plan.points.items()}


def kept_groups(random, names, panes, rows, setting):
    kept = random.binomial(rows, keep_shares(setting, panes * PANE_US, names))
    there, keys = kept > 0, packed_keys(names, panes)
    rows, newest_us = int(kept.sum() * random.uniform(1.0, 1.2)), int(panes.max()) * PANE_US + PANE_US // 3
    return KeptGroups(tuple(keys[there].tolist()), tuple(kept[there].tolist()), rows, newest_us, random.random() + 0.1)


def coordinates(random, batch, plan):
    """Sampled rows whose values move, some of them missing."""
    rows = np.column_stack([random.normal(20 + 4 * batch, 15, 150), random.random(150)])
    rows[random.random(150) < 0.05, 1] = np.nan
    return dict.fromkeys(plan.points, rows)


def nothing(random, batch, plan):
    return {}


def sifter(**settings):
    space = [Attribute.number("price", 0, 100), Attribute.number("size", 0, 1)]
    queries = jt.RangeQueries(space, [f"price between {low} and {low + 20}" for low in (0, 30, 35, 70)])
    sample = np.random.default_rng(1).random((400, 2)) * [100, 1]
    return Sifter(queries, sample, regions=8, partitioning="grid", sample_size=400, **settings)


def network(selectivity=0.5):
    boxes = [
        Box("parse", ("i",), "map", cost=1.0, selectivity=selectivity),
        Box("x", ("parse",), cost=5.0),
        Box("y", ("parse",), cost=3.0),
    ]
    return QueryGraph([Input("i", 100.0)], boxes, [Output("o1", "x"), Output("o2", "y")])


POLICIES = {
    "uniform": (UniformDrop, nothing, ("rows",)),
    "window": (lambda: WindowDrop(time="at", window="10 minutes", max_gap=3), nothing, ("rows",)),
    "concept": (
        lambda: ConceptDrop(group="g", time="at", window=("30 minutes", "10 minutes"), rows=5000, error=0.1, value="v"),
        groups,
        ("rows", "others"),
    ),
    "join": (lambda: JoinDrop(key="g", time="at", pane="10 minutes"), groups, ("left", "right")),
    "sifter": (sifter, nothing, ("rows",)),
    "sifter with a sample": (lambda: sifter(sample_every=50), coordinates, ("rows",)),
    "network": (lambda: NetworkDrop(network()), nothing, ("i", "parse__x", "parse__y")),
}


def situation(random, batch, points):
    """Statistics of a batch, and what may be kept of the next."""
    seen = {name: int(random.integers(500, 5000)) for name in points}
    counts = {name: PointStats(rows, int(rows * random.uniform(0.2, 1.0))) for name, rows in seen.items()}
    times = EventTimes(START_US + batch * MINUTE_US // 2, MINUTE_US // 2, START_US + (batch - 8) * MINUTE_US // 2)
    share = float(random.uniform(0.05, 0.95))
    return Stats(batch, 1e9 + batch, 1.0, counts, event_times=times), Budget(share, share / 2, 3.0, "too many rows")


def course(policy, observe, points, seed, batches, plan):
    """Run batches under the plans that the policy makes; yields the policy's plans, one by one."""
    for batch in batches:
        random = np.random.default_rng([seed, batch])
        stats, budget = situation(random, batch, points)
        policy.learn(Lesson(batch, plan, observe(random, batch, plan), stats.event_times))
        plan = replace(policy.continued(plan, stats, budget), version=batch + 1)
        policy.learn(Lesson(batch, plan, {}, stats.event_times, stats))
        yield plan


def again(policy, make):
    """What a restart makes of a policy: another one, and what was saved as text."""
    text = encode(packed(policy.state()))
    assert len(text) <= STATE_BYTES
    other = make()
    if other.state_type is not None:
        other.restore(restored(parse(text), other.state_type, of=packed))
    return other


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.long] * (one == "network")) for one in POLICIES])
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), stops=st.integers(0, 12))
def test_a_restored_policy_plans_as_one_that_never_stopped(name, seed, stops):
    make, observe, points = POLICIES[name]
    policy = make()
    *_, plan = DropPlan(0), *course(policy, observe, points, seed, range(stops), DropPlan(0))
    other = again(policy, make)
    later = range(stops, stops + 3)
    plans = zip(
        course(policy, observe, points, seed, later, plan),
        course(other, observe, points, seed, later, plan),
        strict=True,
    )
    for never_stopped, after_a_restart in plans:
        assert after_a_restart == never_stopped


@pytest.mark.parametrize("name", ["concept", "join", "sifter", "sifter with a sample", "network"])
def test_what_is_learned_matters_for_plans(name):
    """Else the property above would say nothing."""
    make, observe, points = POLICIES[name]
    policy = make()
    *_, plan = course(policy, observe, points, 7, range(6), DropPlan(0))
    stats, budget = situation(np.random.default_rng(8), 6, points)
    assert make().continued(plan, stats, budget) != policy.continued(plan, stats, budget)


def spoilt(document):
    """The document with something wrong in one place, for all places and several things."""
    wrong = (None, "x", "AAAAAAAA", [], {}, -1, 10**18, 0.5, -1e300)
    if isinstance(document, dict):
        for key, part in document.items():
            yield from ({**document, key: other} for other in (*wrong, *spoilt(part)))
            yield {name: value for name, value in document.items() if name != key}
    elif isinstance(document, list):
        for place, part in enumerate(document):
            yield from ([*document[:place], other, *document[place + 1 :]] for other in (*wrong, *spoilt(part)))


@pytest.mark.parametrize(
    "name", ["concept", "join", "sifter", "sifter with a sample", pytest.param("network", marks=pytest.mark.long)]
)
def test_whatever_a_state_says_there_is_a_plan_and_at_most_one_fault(name, monkeypatch):
    """Even if its checksum fits, and the place that is wrong is any."""
    monkeypatch.setattr(restart, "_checksum", lambda text: 0)
    make, observe, points = POLICIES[name]
    policy = make()
    *_, before = course(policy, observe, points, 7, range(6), DropPlan(0))
    stats, budget = situation(np.random.default_rng(8), 6, points)
    fresh, state = make().continued(before, stats, budget), parse(encode(packed(policy.state())))
    for wrong in spoilt(state):
        other, faults = make(), []
        plan = restart.first_plan(
            other,
            {"of": f"{type(other).__name__} 0", "crc": 0, "state": json.dumps(wrong)},
            lambda: other.continued(before, stats, budget),  # noqa: B023
            lambda kind, detail: faults.append(kind),  # noqa: B023
        )
        assert faults in ([], ["state"])
        assert not faults or plan == fresh
        DropPlan.from_json(plan.to_json())


def test_of_very_many_groups_the_newest_panes_are_saved():
    policy = ConceptDrop(group="g", time="at", window=("30 minutes", "10 minutes"))
    pane_us = policy.pane_us
    for point in ("a", "b"):
        for pane in range(3):
            policy.groups.book(point).add(
                [pane * pane_us] * 20_000, np.arange(20_000), np.ones(20_000), newest_us=pane * pane_us + 1
            )
    other = again(policy, lambda: ConceptDrop(group="g", time="at", window=("30 minutes", "10 minutes")))
    assert [tally.start_us for tally in other.groups.tallies("b")] == [2 * pane_us]
    assert len(other.groups.tallies("b")[0].keys) == 20_000


def test_selectivities_that_are_stated_otherwise_now_are_not_restored():
    policy = NetworkDrop(network())
    list(course(policy, nothing, POLICIES["network"][2], 7, range(6), DropPlan(0)))
    changed = NetworkDrop(network(selectivity=0.3))
    changed.restore(policy.state())
    assert policy.graph.boxes["parse"].selectivity != 0.5
    assert changed.graph.boxes["parse"].selectivity == 0.3
