from __future__ import annotations

import pytest

from jettison.errors import InvalidSetting
from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.evaluate import evaluate
from networks import figure_6


def build(*boxes: Box, inputs: tuple[str, ...] = ("i",), outputs: tuple[str, ...] = ("b",)) -> QueryGraph:
    return QueryGraph(map(Input, inputs), boxes, [Output(f"o{n}", name) for n, name in enumerate(outputs)])


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ([Box("b", ("nowhere",))], "must be an input or a box.*'nowhere'.*box 'b'"),
        ([Box("b", ("c",)), Box("c", ("i", "b"), "union")], "no cycle.*b, c"),
        ([Box("b", ("i",)), Box("idle", ("i",))], "lead to an output.*'idle'"),
        ([Box("b", ("i",)), Box("b", ("i",))], "'b' twice"),
        ([Box("b", ("i",), cost=-1.0)], "cost.*box 'b'"),
        ([Box("b", ("i",), selectivity=1.5)], "at most what enters.*box 'b'"),
        ([Box("b", ("i",), "join")], "join needs two sources.*box 'b'"),
        ([Box("b", ("i",), "sort")], "`kind` must be one of.*box 'b'"),
        ([Box("b__c", ("i",))], "letters, digits and underscores"),
    ],
)
def test_a_wrong_topology_is_refused(boxes: list[Box], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        build(*boxes)


def test_boxes_may_be_given_in_any_order() -> None:
    graph = build(Box("b", ("a",)), Box("a", ("i",)))
    assert list(graph.boxes) == ["a", "b"]


def test_candidates_are_inputs_and_arcs_behind_splits() -> None:
    names = [location.name for location in drop_model(figure_6()).locations]
    assert names == ["a", "f", "one__two", "one__three"]


def test_an_input_may_be_split_itself() -> None:
    graph = build(Box("b", ("i",)), Box("c", ("i",)), outputs=("b", "c"))
    assert [location.name for location in drop_model(graph).locations] == ["i", "i__b", "i__c"]


def test_nothing_is_dropped_above_an_aggregate_that_ignores_weights() -> None:
    boxes = [Box("parse", ("i",), "map"), Box("mean", ("parse",), "aggregate"), Box("b", ("parse",))]
    locations = drop_model(build(*boxes, outputs=("mean", "b"))).locations
    assert [location.name for location in locations] == ["parse__b"]
    weighted = [boxes[0], Box("mean", ("parse",), "aggregate", weighted=True), boxes[2]]
    locations = drop_model(build(*weighted, outputs=("mean", "b"))).locations
    assert [location.name for location in locations] == ["i", "parse__mean", "parse__b"]


def test_work_behind_an_aggregate_is_not_saved_by_drops_above_it() -> None:
    boxes = [
        Box("mean", ("i",), "aggregate", cost=2.0, selectivity=0.5, weighted=True),
        Box("b", ("mean",), cost=10.0),
    ]
    graph = build(*boxes)
    model = drop_model(graph)
    assert (model.fixed_load, model.full_load) == (5.0, 7.0)
    half = evaluate(graph, {"i": 0.5})
    assert half.load == pytest.approx(6.0)
    assert half.delivered == {"o0": 0.5}


def test_a_join_emits_the_product_of_what_survives() -> None:
    graph = build(Box("b", ("l", "r"), "join", cost=1.0), inputs=("l", "r"))
    result = evaluate(graph, {"l": 0.5, "r": 0.4})
    assert result.delivered == {"o0": pytest.approx(0.2)}
    assert result.load == pytest.approx(0.9)


def test_a_semantic_location_needs_a_value_that_survives() -> None:
    values = ((0.0, 100.0, 1.0),)
    boxes = [
        Box("a", ("i",), "map"),
        Box("changed", ("a",), "map", keeps_value=False, values=((0.0, 10.0, 1.0),)),
        Box("b", ("a",)),
    ]
    graph = QueryGraph([Input("i", values=values)], boxes, [Output("o0", "changed"), Output("o1", "b")])
    semantic = {location.name: location.semantic for location in drop_model(graph, semantic=True).locations}
    assert semantic == {"i": False, "a__changed": False, "a__b": True}
