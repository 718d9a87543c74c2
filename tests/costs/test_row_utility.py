from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.costs.partition_settings import utilities
from jettison.errors import InvalidInput
from jettison.policies.network.qos import ValueUtility

graphs = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=6)
"""Gap before each interval, its length, and its utility in quarters."""


@settings(deadline=None)
@given(graphs, st.lists(st.one_of(st.none(), st.floats(-2, 50), st.integers(-2, 50)), max_size=30))
def test_a_value_graph_gives_every_row_what_it_gives_a_single_value(
    parts: list[tuple[int, int, int]], values: list[float | None]
) -> None:
    intervals, end = [], 0
    for gap, length, quarters in parts:
        intervals.append((end + gap, end + gap + length, quarters / 4))
        end += gap + length
    graph = ValueUtility(intervals, column="fare")
    found = utilities(pa.table({"fare": pa.array(values, pa.float64())}), graph)
    assert found.tolist() == [0.0 if value is None else graph.at(value) for value in values]


def test_a_column_of_utilities_is_taken_as_it_is_and_what_is_missing_is_worth_nothing() -> None:
    rows = pa.table({"worth": [3.0, None, float("nan")], "exact": pa.array([Decimal("0.50"), Decimal(2), None])})
    assert utilities(rows, "worth").tolist() == [3.0, 0.0, 0.0]
    assert utilities(rows, "exact").tolist() == [0.5, 2.0, 0.0]


@pytest.mark.parametrize("worth", ["name", ValueUtility([(0, 1, 1.0)], column="name")])
def test_what_is_no_number_is_refused_by_name(worth: str | ValueUtility) -> None:
    with pytest.raises(InvalidInput, match=r"column of numbers, got 'name' of type string .* cast the column"):
        utilities(pa.table({"name": ["a"]}), worth)
