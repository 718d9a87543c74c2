from __future__ import annotations

import pytest

from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.network.candidates import drop_model
from networks import figure_4, random_network


def test_the_papers_coefficients_give_its_load() -> None:
    coefficients = figure_4().load_coefficients
    assert coefficients["i1"] == pytest.approx(26.5)
    assert coefficients["i2"] == pytest.approx(18.75)
    assert coefficients["i1"] * 10.0 + coefficients["i2"] * 20.0 == pytest.approx(640.0)


def test_a_flat_query_is_equation_1() -> None:
    costs, selectivities = [3.0, 5.0, 7.0], [0.5, 0.2, 0.9]
    boxes = [
        Box(f"b{n}", ("i" if n == 0 else f"b{n - 1}",), cost=costs[n], selectivity=selectivities[n]) for n in range(3)
    ]
    graph = QueryGraph([Input("i")], boxes, [Output("o", "b2")])
    assert graph.load_coefficients["i"] == pytest.approx(3.0 + 0.5 * 5.0 + 0.5 * 0.2 * 7.0)


def test_the_model_charges_the_same_load_as_the_coefficients() -> None:
    assert drop_model(figure_4()).full_load == pytest.approx(640.0)


@pytest.mark.parametrize("seed", range(5))
def test_random_and_semantic_models_agree_on_what_there_is(seed: int) -> None:
    graph = random_network(seed)
    plain, semantic = drop_model(graph), drop_model(graph, semantic=True)
    assert plain.full_load == pytest.approx(semantic.full_load)
    assert plain.full_utility == pytest.approx(semantic.full_utility)
