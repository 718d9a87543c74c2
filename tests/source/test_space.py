"""Codes grow with values, cover the domain, and set apart what lies outside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import InvalidSetting, MissingColumn
from jettison.source.space import ABOVE, BELOW, CELLS, MISSING, Attribute, Space

bounds = st.tuples(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12)).filter(lambda pair: pair[1] - pair[0] > 1e-3)


@given(bounds, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=50))
def test_codes_are_inside_for_all_of_the_domain_and_never_fall(pair, shares):
    low, high = pair
    values = np.sort(np.clip(low + (high - low) * np.array([0.0, *shares, 1.0]), low, high))
    codes = Space([Attribute.number("x", low, high)]).codes(values[:, None])[:, 0]
    assert codes[0] == 1
    assert codes[-1] == CELLS
    assert (np.diff(codes) >= 0).all()


def test_what_lies_outside_or_is_missing_has_no_code_of_the_domain():
    space = Space([Attribute.number("x", 0.0, 1.0)])
    codes = space.codes(np.array([[-0.001], [1.001], [np.nan], [-np.inf], [np.inf]]))[:, 0]
    assert codes.tolist() == [BELOW, ABOVE, MISSING, BELOW, ABOVE]


def test_categories_have_places_unknown_ones_lie_below_and_missing_ones_have_none():
    sector = Attribute.category("sector", ["tech", "food", "steel"])
    places = sector.coordinates(np.array(["steel", "tech", "oil", "food"]))
    np.testing.assert_array_equal(places, [2.0, 0.0, -1.0, 1.0])
    places = sector.coordinates(["steel", None, "nan", float("nan"), "None"])
    np.testing.assert_array_equal(places, [2.0, np.nan, -1.0, np.nan, -1.0])
    np.testing.assert_array_equal(sector.coordinates(np.full(2, np.nan)), [np.nan, np.nan])


def test_columns_become_points_in_the_order_of_the_attributes():
    space = Space([Attribute.integer("qty", 0, 9), Attribute.category("sector", ["tech", "food"])])
    points = space.points({"sector": ["food", "tech"], "qty": [3, 4], "other": [0, 0]})
    assert points.tolist() == [[3.0, 1.0], [4.0, 0.0]]
    with pytest.raises(MissingColumn, match="none for 'sector'"):
        space.points({"qty": [1]})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Attribute.number("x", 1.0, 1.0),
        lambda: Attribute.number("x", 0.0, float("inf")),
        lambda: Attribute.number("x", -1.7e308, 1.7e308),
        lambda: Attribute.integer("x", 0, 2**25),
        lambda: Attribute.category("x", []),
        lambda: Attribute.category("x", ["a", "a"]),
        lambda: Space([]),
        lambda: Space([Attribute.number("x", 0, 1)] * 2),
        lambda: Space([Attribute.number(f"x{i}", 0, 1) for i in range(9)]),
    ],
)
def test_domains_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidSetting):
        wrong()
