from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.lab.sim.network import survival as survival_of
from jettison.lab.sim.network.roadmap import greedy_road_map, load_at, paper_road_map
from jettison.policies.network import Box, Input, LossTolerance, Output, QoS, QueryGraph
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.evaluate import evaluate, keep_shares
from jettison.policies.network.optimum import Program, frontier
from networks import figure_4, figure_6, random_network


@pytest.mark.parametrize("semantic", [False, True])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.0, 1.2))
def test_every_plan_is_feasible_and_within_the_certified_gap(semantic: bool, seed: int, share: float) -> None:
    model = drop_model(random_network(seed), semantic=semantic)
    best = frontier(model, effort=10)
    load = share * model.full_load
    survival = best.at(load)
    assert np.all(survival >= -1e-9)
    assert np.all(survival <= model.reaching(survival) + 1e-7)
    assert load_at(model, survival) <= max(load, Program(model).least_load) * (1 + 1e-7) + 1e-7
    optimum = Program(model).solve(min(load, model.full_load)).utility
    assert survival_of.utility(model, best.at(load)) >= optimum - (best.gap + 1e-6) * model.full_utility
    assert best.gap <= 2.5e-3


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_no_greedy_table_beats_the_optimum(seed: int) -> None:
    model = drop_model(random_network(seed))
    best = frontier(model)
    for table in (greedy_road_map(model), paper_road_map(model, step=0.05)):
        for load in np.linspace(0.1, 1.0, 7) * model.full_load:
            reached, possible = (survival_of.utility(model, planner.at(load)) for planner in (table, best))
            assert reached <= possible + (best.gap + 1e-6) * model.full_utility


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_utility_is_concave_in_load(seed: int) -> None:
    best = frontier(drop_model(random_network(seed)))
    loads, utilities = np.array([(corner.load, corner.utility) for corner in best.corners]).T
    wide = np.diff(loads) > 1e-6 * loads[-1]
    slopes = (np.diff(utilities) / np.maximum(np.diff(loads), 1e-12))[wide]
    assert np.all(np.diff(slopes) <= 1e-4 * max(slopes.max(), 1e-9))


@pytest.mark.parametrize("graph", [figure_4(), figure_6(), random_network(3), random_network(4)])
def test_walking_the_network_confirms_the_linear_model(graph: QueryGraph) -> None:
    model = drop_model(graph, semantic=True)
    survival = frontier(model).at(0.4 * model.full_load)
    real = evaluate(graph, keep_shares(model, survival))
    assert real.load == pytest.approx(load_at(model, survival))
    assert real.delivered == pytest.approx(survival_of.delivered(model, survival))


@pytest.mark.parametrize("seed", range(5))
def test_random_drops_behind_unions_of_unlike_values_are_planned_nearly_right(seed: int) -> None:
    graph = random_network(seed)
    model = drop_model(graph)
    survival = frontier(model).at(0.4 * model.full_load)
    real = evaluate(graph, keep_shares(model, survival))
    assert real.load == pytest.approx(load_at(model, survival), rel=0.05)


def test_with_a_join_real_load_and_delivery_are_at_most_the_planned_ones() -> None:
    boxes = [Box("both", ("l", "r"), "join", cost=2.0), Box("after", ("both",), cost=5.0)]
    graph = QueryGraph([Input("l"), Input("r")], boxes, [Output("o", "after")])
    model = drop_model(graph)
    survival = np.array([0.6, 0.5])
    real = evaluate(graph, keep_shares(model, survival))
    assert real.delivered["o"] == pytest.approx(0.3)
    assert survival_of.delivered(model, survival)["o"] == pytest.approx(0.55)
    assert real.load < load_at(model, survival)


def test_the_owner_who_minds_least_is_shed_first() -> None:
    easy = QoS(LossTolerance([(100, 1), (10, 0.9), (0, 0)]))
    boxes = [Box("a", ("i",), cost=0.0), Box("b", ("a",), cost=1.0), Box("c", ("a",), cost=1.0)]
    graph = QueryGraph([Input("i")], boxes, [Output("easy", "b", easy), Output("strict", "c")])
    model = drop_model(graph)
    delivered = survival_of.delivered(model, frontier(model).at(1.5))
    assert delivered["easy"] == pytest.approx(0.5)
    assert delivered["strict"] == pytest.approx(1.0)


def test_values_that_no_query_wants_go_first_and_cost_nothing() -> None:
    values = ((0.0, 100.0, 1.0),)
    boxes = [Box("b", ("i",), cost=1.0, selectivity=0.6, passes=((40.0, 100.0),))]
    graph = QueryGraph([Input("i", values=values)], boxes, [Output("o", "b")])
    model = drop_model(graph, semantic=True)
    assert survival_of.utility(model, frontier(model).at(0.6)) == pytest.approx(model.full_utility)
    plain = drop_model(graph)
    assert survival_of.utility(plain, frontier(plain).at(0.6)) == pytest.approx(0.6)


def test_a_network_that_may_not_be_shed_keeps_everything() -> None:
    graph = QueryGraph([Input("i")], [Box("mean", ("i",), "aggregate", cost=3.0)], [Output("o", "mean")])
    model = drop_model(graph)
    assert model.locations == ()
    assert frontier(model).at(0.0).tolist() == [1.0]
