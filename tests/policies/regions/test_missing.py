"""Missing values mean to queries what they mean in SQL, and rows that have some are thinned like all others."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jettison as jt
from jettison.policies.regions.build import Sample, build
from jettison.policies.regions.queries import RangeQueries
from jettison.policies.regions.sifter import Sifter
from jettison.source import SifterFilter, codec
from jettison.source.partition import MOST_PATTERNS
from jettison.source.space import Attribute, Space
from sifter_cases import drop_of

SECTORS = ("tech", "food", "steel")
SPACE = Space([Attribute.number("x", 0, 10), Attribute.integer("n", 0, 9), Attribute.category("s", SECTORS)])

operators = st.sampled_from(["<", "<=", ">", ">=", "=", "!="])
numbers = st.sampled_from([-1, 0, 3, 5, 5.5, 9, 10, 11])
comparisons = st.one_of(
    st.builds("x {} {}".format, operators, numbers),
    st.builds("n {} {}".format, operators, numbers.filter(lambda one: one != 5.5)),
    st.builds("s {} '{}'".format, st.sampled_from(["=", "!="]), st.sampled_from(SECTORS)),
    st.builds("{} {} x".format, numbers, operators),
    st.builds("x {}between {} and {}".format, st.sampled_from(["", "not "]), numbers, numbers),
    st.builds(
        "s {}in ('{}', '{}')".format,
        st.sampled_from(["", "not "]),
        st.sampled_from(SECTORS),
        st.sampled_from(SECTORS),
    ),
    st.builds("{} is {}null".format, st.sampled_from(["x", "n", "s"]), st.sampled_from(["", "not "])),
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
# Values inside the domain, outside of it, and none.
rows = st.tuples(
    st.sampled_from([None, -1e300, -2.0, 0.0, 3.0, 5.0, 5.5, 10.0, 11.5, 1e300]),
    st.sampled_from([None, -4, 0, 3, 5, 9, 10, 99]),
    st.sampled_from([None, *SECTORS, "oil"]),
)


def columns(rows) -> dict[str, list[object]]:
    return {name: [row[axis] for row in rows] for axis, name in enumerate(SPACE.names)}


@given(expressions, st.lists(rows, min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_a_query_finds_the_rows_that_a_database_finds(expression, rows):
    with sqlite3.connect(":memory:") as database:
        database.execute("create table rows (i integer, x real, n integer, s text)")
        database.executemany("insert into rows values (?, ?, ?, ?)", [(i, *row) for i, row in enumerate(rows)])
        expected = {i for (i,) in database.execute(f"select i from rows where {expression}")}
    hits = RangeQueries(SPACE, [expression]).hits(SPACE.points(columns(rows)))
    assert hits.tolist() == [int(i in expected) for i in range(len(rows))]


def test_boxes_that_span_the_domain_of_an_attribute_do_not_care_about_it():
    nan = float("nan")
    points = [[5.0, nan, 0.0], [nan, 5.0, 0.0], [5.0, 99.0, 0.0], [-3.0, 5.0, 0.0], [5.0, 5.0, 0.0]]
    low, high = [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]], [[10.0, 10.0, 3.0], [10.0, 10.0, 3.0]]
    for fewest, most in ((low, high), (np.where(np.array(low) <= 0.0, -np.inf, low), np.full((2, 3), np.inf))):
        queries = RangeQueries.from_boxes(SPACE, fewest, most)
        assert queries.hits(points).tolist() == [2, 1, 2, 1, 2]


def stream(count: int, seed: int, missing: float) -> np.ndarray:
    """Rows of which a share has no x, and which are wanted where they are rare."""
    random = np.random.default_rng(seed)
    points = np.column_stack(
        [random.random(count) ** 2 * 10, random.integers(0, 10, count), random.integers(0, 3, count)]
    )
    points[random.random(count) < missing, 0] = np.nan
    return points


def sifted(sample: np.ndarray, throttler: float, points: np.ndarray) -> np.ndarray:
    queries = jt.RangeQueries(SPACE, [f"x between {6 + i / 10} and {6.3 + i / 10}" for i in range(30)])
    source = SifterFilter.from_bytes(Sifter(queries, sample).to_bytes(throttler))
    x, n, s = points.T
    return source.decide({"x": x, "n": n, "s": np.array(SECTORS)[s.astype(int)]}).keep


@pytest.mark.parametrize("in_sample", [True, False])
@pytest.mark.parametrize("throttler", [0.1, 0.2, 0.5])
def test_rows_with_missing_values_are_thinned_like_others_whether_the_sample_shows_them_or_not(throttler, in_sample):
    """They were always kept: 18 % of a stream became 79 % of what was kept."""
    points = stream(40_000, seed=1, missing=0.18)
    keep = sifted(stream(3000, seed=2, missing=0.18 if in_sample else 0.0), throttler, points)
    missing = np.isnan(points[:, 0])
    assert keep.mean() == pytest.approx(throttler, rel=0.05)
    assert keep[missing].sum() / keep.sum() < 0.2
    if in_sample:  # and as no query wants them, they go first, like all that no query wants
        unwanted = ~missing & (points[:, 0] < 5.0)
        assert keep[missing].mean() == pytest.approx(keep[unwanted].mean(), abs=0.01)
        assert keep[missing].mean() < throttler


def test_queries_that_do_not_mention_an_attribute_keep_the_rows_that_miss_it():
    space = Space([Attribute.number("x", 0, 1), Attribute.number("y", 0, 1)])
    random = np.random.default_rng(3)
    sample = random.random((4000, 2))
    sample[:1000, 0] = np.nan
    sample[1000:2000, 1] = np.nan
    queries = jt.RangeQueries(space, ["y > 0.5", "y < 0.2"])
    made = Sifter(queries, sample, regions=4, fairness=1.0, reserve=0.01).filter(0.4)
    without_x, without_y, inside = (
        drop_of(made, [point]).item() for point in ([np.nan, 0.6], [0.6, np.nan], [0.6, 0.6])
    )
    assert without_x < 0.6
    assert inside < 0.6
    assert without_y > 0.98


def test_many_patterns_share_the_last_region():
    space = Space([Attribute.number(f"x{i}", 0, 1) for i in range(8)])
    random = np.random.default_rng(4)
    rows = random.random((5000, 8))
    rows[random.random(rows.shape) < 0.2] = np.nan
    queries = RangeQueries.from_boxes(space, np.zeros((1, 8)), np.full((1, 8), 0.5))
    built = build(queries, Sample.of(queries, rows), partitioning="grid", regions=4)
    assert len(built.partition.missing) == MOST_PATTERNS + 1
    assert built.statistics.frequency.sum() == pytest.approx(1.0)
    made = built.filter(0.3, 0.5)
    source = SifterFilter.from_bytes(codec.encode(made))
    regions = source.regions(list(rows.T))
    np.testing.assert_array_equal(regions, built.partition.region_of(space.codes(rows)))
    assert source.decide(list(rows.T)).keep.mean() == pytest.approx(0.3, abs=0.01)
