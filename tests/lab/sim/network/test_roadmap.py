from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.lab.sim.network import survival as survival_of
from jettison.lab.sim.network.roadmap import greedy_road_map, paper_road_map
from jettison.policies.network import Box, Input, LossTolerance, Output, QoS, QueryGraph
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.evaluate import keep_shares
from jettison.policies.network.optimum import frontier
from networks import figure_6, random_network


@pytest.mark.parametrize("build", [greedy_road_map, paper_road_map])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_each_row_saves_more_and_delivers_no_more_than_the_one_before(build, seed: int) -> None:
    model = drop_model(random_network(seed))
    table = build(model, step=0.05)
    assert table.loads[0] == pytest.approx(model.full_load)
    assert np.all(np.diff(table.loads) < 1e-9)
    for earlier, later in zip(table.survivals, table.survivals[1:], strict=False):
        assert np.all(later <= earlier + 1e-9)
        assert np.all(later <= model.reaching(later) + 1e-9)
    assert max(survival_of.delivered(model, table.survivals[-1]).values()) == pytest.approx(0.0, abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_without_sharing_greedy_is_optimal(seed: int) -> None:
    random = np.random.default_rng(seed)
    boxes, inputs, outputs = [], [], []
    for query in range(5):
        inputs.append(Input(f"i{query}", float(random.uniform(1, 9))))
        boxes.append(Box(f"b{query}", (f"i{query}",), cost=float(random.uniform(1, 9))))
        corner = float(random.uniform(5, 95))
        utility = float(random.uniform(corner / 100, 1))
        qos = QoS(LossTolerance([(0, 0), (corner, utility), (100, 1)]))
        outputs.append(Output(f"o{query}", f"b{query}", qos))
    model = drop_model(QueryGraph(inputs, boxes, outputs))
    best, step = frontier(model, tolerance=0.0), 0.01
    # A table has no plan between its rows: it may shed up to a step too much, in the paper's form past a corner too.
    steepest = max(piece.slope for delivery in model.deliveries for piece in delivery.pieces)
    for table, steps in ((greedy_road_map(model, step=step), 1), (paper_road_map(model, step=step), 3)):
        for load in np.linspace(0.05, 1.0, 9) * model.full_load:
            assert survival_of.utility(model, table.at(load)) == pytest.approx(
                survival_of.utility(model, best.at(load)), abs=steps * step * steepest
            )


def test_a_lookup_finds_the_first_plan_that_leaves_little_enough() -> None:
    model = drop_model(random_network(11))
    table = paper_road_map(model, step=0.1)
    random = np.random.default_rng(0)
    for load in random.uniform(0.0, 1.3, 50) * model.full_load:
        first = next((n for n, left in enumerate(table.loads) if left <= load), len(table.loads) - 1)
        assert np.array_equal(table.at(float(load)), table.survivals[first])


def test_a_drop_above_others_makes_them_redundant_or_smaller() -> None:
    model = drop_model(figure_6())
    position = {location.name: location.units[0] for location in model.locations}
    target = np.ones(model.units)
    target[position["one__two"]], target[position["one__three"]] = 0.8, 0.5  # in place: 20 % and 50 % dropped
    target[position["a"]] = 0.7  # new: 30 % dropped above both
    keep = keep_shares(model, survival_of.feasible(model, target))
    assert keep["a"] == pytest.approx(0.7)
    assert keep["one__two"] == pytest.approx(1.0)  # covered by the drop above
    assert keep["one__three"] == pytest.approx(0.5 / 0.7)  # still half in total


def test_similar_drops_behind_a_split_move_above_it() -> None:
    same = QoS(LossTolerance([(100, 1), (50, 0.8), (0, 0)]))
    boxes = [Box("one", ("a",), cost=5.0), Box("two", ("one",)), Box("three", ("one",))]
    graph = QueryGraph([Input("a")], boxes, [Output("o1", "two", same), Output("o2", "three", same)])
    model = drop_model(graph)
    keep = keep_shares(model, frontier(model).at(0.75 * model.full_load))
    assert keep == {"a": pytest.approx(0.75), "one__two": pytest.approx(1.0), "one__three": pytest.approx(1.0)}
