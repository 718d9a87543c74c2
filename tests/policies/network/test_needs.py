from __future__ import annotations

import pytest

from jettison.pipeline.document import parse
from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.network_tables import describe

TWO = [Input("l", values=((0.0, 100.0, 1.0),)), Input("r", values=((0.0, 100.0, 1.0),))]


def locations(graph: QueryGraph) -> set[str]:
    return {location.name for location in drop_model(graph).locations}


def joined(*below: Box, output: str = "both", monotone: bool = True) -> QueryGraph:
    """Two inputs, the left of which is also delivered as it is, and a join of them."""
    boxes = [Box("both", ("l", "r"), "join", monotone=monotone), *below]
    return QueryGraph(TWO, boxes, [Output("o", output), Output("raw", "l")])


def test_an_inner_join_may_lose_rows_of_either_side() -> None:
    assert locations(joined()) == {"l", "r", "l__both", "l__raw"}


def test_nothing_is_dropped_above_a_join_that_reports_rows_without_a_partner() -> None:
    assert locations(joined(monotone=False)) == {"l__raw"}


def test_nothing_is_dropped_above_an_aggregate_that_ignores_weights() -> None:
    assert locations(joined(Box("sum", ("both",), "aggregate"), output="sum")) == {"l__raw"}


def test_bounds_over_pairs_need_all_rows_and_values_do_not() -> None:
    bounded = Box("sum", ("both",), "aggregate", weighted=True)
    assert locations(joined(bounded, output="sum")) == {"l__raw"}
    values_only = Box("sum", ("both",), "aggregate", weighted=True, bounds=False)
    assert locations(joined(values_only, output="sum")) == {"l", "r", "l__both", "l__raw"}


def test_branches_that_meet_in_a_join_are_dropped_independently_or_not_at_all() -> None:
    """A drop above the split would decide over both rows of a pair at once where they are the same row."""
    boxes = [
        Box("parse", ("i",), "map"),
        Box("old", ("parse",)),
        Box("new", ("parse",)),
        Box("pairs", ("old", "new"), "join"),
    ]
    graph = QueryGraph([Input("i")], boxes, [Output("o", "pairs"), Output("raw", "parse")])
    assert locations(graph) == {"parse__old", "parse__new", "parse__raw"}
    twice = QueryGraph([Input("i")], [Box("self", ("i", "i"), "join")], [Output("o", "self")])
    assert locations(twice) == {"i__self", "i__self_1"}


def test_drops_above_a_join_are_never_by_value() -> None:
    model = drop_model(joined(), semantic=True)
    assert {location.name: location.semantic for location in model.locations} == {
        "l": False,
        "r": False,
        "l__both": False,
        "l__raw": True,
    }


@pytest.mark.parametrize(
    ("sql", "droppable"),
    [
        ("select * from l join r on l.id = r.id", True),
        ("select * from l LEFT OUTER JOIN r on l.id = r.id", False),
        ("select * from l left  join r on l.id = r.id", False),
        ("select * from l where not exists (select 1 from r where l.id = r.id)", False),
    ],
)
def test_sql_that_looks_for_missing_rows_is_recognised_by_its_words(sql: str, droppable: bool) -> None:
    document = {
        "inputs": {"l": {}, "r": {}},
        "boxes": {"both": {"reads": ["l", "r"], "kind": "join", "sql": sql}},
        "outputs": {"o": {"reads": "both"}},
    }
    assert locations(parse(document).graph) == ({"l", "r"} if droppable else set())


@pytest.mark.parametrize(
    ("sql", "because"),
    [
        ("select count(*) as n from l", "its SQL does not use `jt_weight`"),
        ("select sum(jt_weight) as n from l", ""),
        ("select distinct key from l", "its SQL says `distinct`"),
    ],
)
def test_what_an_aggregate_in_sql_needs_is_said(sql: str, because: str) -> None:
    document = {
        "inputs": {"l": {}},
        "boxes": {"n": {"reads": "l", "kind": "aggregate", "sql": sql}},
        "outputs": {"o": {"reads": "n"}},
    }
    graph = parse(document).graph
    assert graph.boxes["n"].because == because
    assert (f"n: {because}" in describe(graph)) == bool(because)
    assert bool(locations(graph)) != bool(because)
