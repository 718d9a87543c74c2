"""An expression's boxes hold exactly the rows that satisfy it, and no row twice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import InvalidSetting, MissingColumn
from jettison.policies.regions.expression import parse
from jettison.policies.regions.queries import RangeQueries
from jettison.source.space import Attribute, Space

SECTORS = ("tech", "food", "steel")
SPACE = Space([Attribute.number("x", 0, 10), Attribute.integer("n", 0, 9), Attribute.category("s", SECTORS)])

operators = st.sampled_from(["<", "<=", ">", ">=", "=", "!="])
numbers = st.sampled_from([-1, 0, 3, 5, 5.5, 9, 10, 11])
comparisons = st.one_of(
    st.builds("x {} {}".format, operators, numbers),
    st.builds("n {} {}".format, operators, numbers),
    st.builds("s {} '{}'".format, st.sampled_from(["=", "!="]), st.sampled_from(SECTORS)),
    st.builds("{} {} x".format, numbers, operators),
    st.builds("n between {} and {}".format, numbers, numbers),
    st.builds("s in ('{}', '{}')".format, st.sampled_from(SECTORS), st.sampled_from(SECTORS)),
)
expressions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or ({})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=6,
)
rows = st.tuples(
    st.sampled_from([0.0, 3.0, math.nextafter(5.0, 0), 5.0, math.nextafter(5.0, 9), 5.5, 9.0, 10.0]),
    st.integers(0, 9),
    st.sampled_from(SECTORS),
)


def satisfied(expression: str, row) -> bool:
    """The same expression, evaluated by Python."""
    text = expression.replace("!=", "≠").replace("<=", "≤").replace(">=", "≥").replace("=", "==")
    text = text.replace("≠", "!=").replace("≤", "<=").replace("≥", ">=")
    while "between" in text:
        head, tail = text.split("n between ", 1)
        low, rest = tail.split(" and ", 1)
        high = rest.split(")")[0].split(" ")[0]
        text = f"{head}({low} <= n <= {high}){rest[len(high) :]}"
    return bool(eval(text, {}, {"x": row[0], "n": row[1], "s": row[2]}))


@given(expressions, st.lists(rows, min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_boxes_hold_each_satisfying_row_once_and_no_other(expression, rows):
    queries = RangeQueries(SPACE, [expression])
    points = SPACE.points({"x": [r[0] for r in rows], "n": [r[1] for r in rows], "s": [r[2] for r in rows]})
    assert queries.hits(points).tolist() == [int(satisfied(expression, row)) for row in rows]


def test_the_readme_expression():
    space = [Attribute.number("price", 0, 100), Attribute.category("sector", SECTORS), Attribute.integer("qty", 0, 50)]
    queries = RangeQueries(space, ["price > 10 and not (sector = 'tech' or qty < 5)"])
    assert queries.hits([[10.5, 1, 5], [10.0, 1, 5], [50, 0, 9], [50, 2, 4]]).tolist() == [1, 0, 0, 0]


def test_and_binds_stronger_than_or_and_words_may_be_capital():
    assert parse("x < 1 OR x > 9 AND n = 3", SPACE) == parse("x < 1 or (x > 9 and n = 3)", SPACE)


def test_an_expression_that_nothing_satisfies_has_no_boxes():
    assert parse("x < 3 and x > 4", SPACE) == []
    assert parse("n = 3.5", SPACE) == []


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("x >", "a number or a quoted text, got 'the end'"),
        ("x > 3 n < 2", "the end of the expression"),
        ("(x > 3", r"`\)`"),
        ("x ~ 3", "'~ 3' at 2"),
        ("x 3", "a comparison"),
        ("", "the name of an attribute"),
        ("s < 'tech'", "the categories of 's' can be compared by = and !="),
        ("s = 'oil'", "'s' must be compared with one of its values"),
        ("x = 'tech'", "'x' must be compared with a number"),
        ("x between 1 or 2", "`and` after `between`"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_place(wrong, complaint):
    with pytest.raises(InvalidSetting, match=complaint):
        parse(wrong, SPACE)


def test_an_unknown_attribute_is_a_missing_column():
    with pytest.raises(MissingColumn, match="one of the attributes x, n, s, got 'y'"):
        parse("y > 3", SPACE)


def test_a_query_that_explodes_is_refused():
    space = [Attribute.integer(f"n{i}", 0, 999) for i in range(4)]
    scattered = [f"n{i} in ({', '.join(map(str, range(0, 999, 2)))})" for i in range(2)]
    with pytest.raises(InvalidSetting, match="at most 4096 boxes"):
        RangeQueries(space, [" and ".join(scattered)])


def test_boxes_given_with_an_owner_may_overlap():
    queries = RangeQueries.from_boxes(
        SPACE, [[0, 0, 0], [2, 0, 0], [1, 0, 0]], [[3, 10, 3], [5, 10, 3], [9, 10, 3]], owner=[0, 0, 1]
    )
    assert queries.hits([[2.5, 1, 1], [4.0, 1, 1], [9.5, 1, 1]]).tolist() == [2, 2, 0]
    assert np.bincount(queries.owner).tolist() == [2, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": [1.0]},
        {"weights": [-1.0, 1.0]},
        {"weights": [0.0, 0.0]},
        {"slopes": [0.5, 1.5]},
        {"slopes": [0.5, float("nan")]},
    ],
)
def test_weights_and_slopes_are_checked(wrong):
    with pytest.raises(InvalidSetting):
        RangeQueries(SPACE, ["x > 1", "x > 2"], **wrong)


def test_names_weights_and_quality():
    queries = RangeQueries(SPACE, {"cheap": "x < 2", "dear": "x > 8"}, weights=[1, 3], slopes=[1.0, 0.5])
    assert queries.names == ("cheap", "dear")
    assert queries.weights.tolist() == [0.25, 0.75]
    assert queries.quality(np.array([0.0, 0.5])) == pytest.approx(0.75 * 0.75)
