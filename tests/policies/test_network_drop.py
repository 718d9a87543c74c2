from __future__ import annotations

from dataclasses import replace

import pytest

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.errors import PlanTooLarge
from jettison.policies.base import Lesson
from jettison.policies.network import Box, Input, Output, QueryGraph, network_drop
from jettison.policies.network.evaluate import evaluate
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.network.range_setting import RangeDrop
from jettison.policies.uniform.random_setting import RandomDrop
from networks import figure_4, figure_6, random_network

NOTHING = Stats(0, 0.0, 1.0)


def budget(share: float) -> Budget:
    return Budget(share, share, 3.0, "too much")


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1])
def test_the_budget_is_a_share_of_the_load(share: float) -> None:
    policy = NetworkDrop(figure_6())
    plan = policy.plan(NOTHING, budget(share))
    assert policy.load_share(plan) == pytest.approx(share, abs=1e-3)


def test_plans_follow_the_inputs_proportions() -> None:
    graph = figure_6()
    policy = NetworkDrop(graph)
    drifted = Stats(0, 0.0, 1.0, {"a": PointStats(900, 900), "f": PointStats(100, 100)})
    nominal, fitted = policy.plan(NOTHING, budget(0.7)), policy.plan(drifted, budget(0.7))
    assert nominal != fitted
    from jettison.policies.network.network_drop import _at_rates

    now = _at_rates(graph, {"a": 18.0, "f": 2.0})
    loads = [
        evaluate(now, {name: setting.keep_fraction for name, setting in plan.points.items()}).load
        for plan in (nominal, fitted)
    ]
    assert loads[1] == pytest.approx(0.7 * evaluate(now, {}).load, rel=1e-3)
    assert abs(loads[0] - loads[1]) > 1.0  # what the stale table would have left


def test_it_learns_selectivities_from_counts_behind_splits() -> None:
    boxes = [
        Box("parse", ("i",), "map", cost=1.0, selectivity=1.0),
        Box("x", ("parse",), cost=5.0),
        Box("y", ("parse",), cost=5.0),
    ]
    graph = QueryGraph([Input("i", 100.0)], boxes, [Output("o1", "x"), Output("o2", "y")])
    policy = NetworkDrop(graph)
    before = policy.model.full_load
    # Of 1000 rows 500 are kept at the input, and in truth only 200 of these leave `parse`.
    points = {"i": PointStats(1000, 500), "parse__x": PointStats(200, 200), "parse__y": PointStats(200, 100)}
    for batch in range(20):
        policy.learn(Lesson(batch, counted=Stats(batch, 0.0, 1.0, points)))
    assert policy.graph.boxes["parse"].selectivity == pytest.approx(0.4, rel=0.06)
    assert policy.model.full_load == pytest.approx(100 + 0.4 * 1000, rel=0.06) != before


def test_it_knows_which_part_of_the_input_reaches_a_drop_point() -> None:
    policy = NetworkDrop(figure_4())
    shares = {location.name: policy.input_share(location.name) for location in policy.model.locations}
    assert shares == pytest.approx({"i1": 1 / 3, "i2": 2 / 3, "b1__b2": 1 / 6, "b1__b4": 1 / 6})


def test_it_does_not_chase_noise() -> None:
    policy = NetworkDrop(figure_6())
    expected = {"a": PointStats(1000, 1000), "f": PointStats(1000, 1000)}
    noisy = {"one__two": PointStats(1030, 1030), "one__three": PointStats(1030, 1030)}
    graph = policy.graph
    policy.learn(Lesson(0, counted=Stats(0, 0.0, 1.0, expected | noisy)))
    policy.learn(
        Lesson(1, counted=Stats(1, 0.0, 1.0, expected | {"one__two": PointStats(3, 3), "one__three": PointStats(3, 3)}))
    )
    assert policy.graph is graph


@pytest.mark.parametrize("semantic", [False, True])
def test_with_little_room_it_drops_at_fewer_locations_and_never_more_rows(semantic: bool) -> None:
    policy = NetworkDrop(random_network(1), semantic=semantic)
    whole = policy.plan(NOTHING, budget(0.3))
    least = DropPlan(0, dict.fromkeys(policy.points, RandomDrop()), whole.cause).to_json()
    shares = [policy.load_share(whole)]
    for room in range(len(whole.to_json()), len(least), -2):
        plan = policy.plan(replace(NOTHING, plan_bytes=room), budget(0.3))
        assert len(plan.to_json()) <= room
        assert plan.points.keys() == whole.points.keys()
        assert all(one == whole.points[name] or one.keeps_everything for name, one in plan.points.items())
        shares.append(policy.load_share(plan))
    assert shares == sorted(shares)
    assert shares[-1] > 1.25 * shares[0]


def test_rows_that_a_drop_upstream_has_taken_are_not_counted_as_dropped_again() -> None:
    boxes = [Box("parse", ("i",), "map", cost=1.0), Box("x", ("parse",), cost=5.0), Box("y", ("parse",), cost=5.0)]
    graph = QueryGraph([Input("i", 10.0, ((0.0, 10.0, 1.0),))], boxes, [Output("o1", "x"), Output("o2", "y")])
    policy = NetworkDrop(graph, semantic=True)
    points = {
        "i": RangeDrop("value", ((0.0, 4.0),), 0.6),
        "parse__x": RangeDrop("value", ((0.0, 6.0),), 2 / 3),
        "parse__y": RangeDrop("value"),
    }
    assert policy.load_share(DropPlan(0, points)) == pytest.approx((6 * 1.0 + 4 * 5.0 + 6 * 5.0) / 110)


def test_a_network_whose_plans_would_fit_no_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_drop, "MOST_PLAN_BYTES", 1200)
    with pytest.raises(PlanTooLarge, match=r"a network whose plans fit 1,200 bytes, got .* for \d drop points"):
        NetworkDrop(figure_6())


def test_the_room_that_it_asks_for_holds_any_plan_however_long_the_names() -> None:
    name = "an_input_of_a_name_that_is_long_" * 20
    graph = QueryGraph(
        [Input(name + str(n)) for n in range(200)], [], [Output(f"o{n}", name + str(n)) for n in range(200)]
    )
    policy = NetworkDrop(graph)
    assert 64 * 1024 < len(policy.plan(NOTHING, budget(1 / 3)).to_json()) <= policy.plan_bytes
