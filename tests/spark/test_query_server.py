"""Matching on Spark finds the same pairs as in numpy, and completeness is what the guard let through."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.query_server import matched
from jettison.source.space import Attribute, Space
from sifter_cases import random_queries, random_rows

pytestmark = pytest.mark.spark


def frame(spark, space, points):
    columns = [points[:, axis].tolist() for axis in range(space.dimensions)]
    rows = [(i, *[None if v != v else v for v in row]) for i, row in enumerate(zip(*columns, strict=True))]
    return spark.createDataFrame(rows, "id long, " + ", ".join(f"{name} double" for name in space.names))


@pytest.mark.parametrize("dimensions", [1, 2, 4])
@pytest.mark.parametrize("count", [1, 300])
def test_pairs_are_those_of_numpy(spark, dimensions, count):
    random = np.random.default_rng(10 * dimensions + count)
    kinds = [Attribute.number("a", -5, 7.5), Attribute.integer("b", 0, 30), Attribute.number("c", 1e9, 1e9 + 100)]
    space = Space([*kinds, Attribute.number("d", 0, 1)][:dimensions])
    queries = random_queries(random, space, count)
    points = random_rows(random, space, 400)
    found = matched(frame(spark, space, points), queries).select("jt_query", "id").collect()
    query, point = queries.matches(points)
    assert sorted((row.jt_query, row.id) for row in found) == sorted(zip(query.tolist(), point.tolist(), strict=True))


def test_expressions_with_categories_and_several_boxes_match_each_row_once(spark):
    space = Space([Attribute.number("price", 0, 100), Attribute.category("sector", ["tech", "food", "steel"])])
    queries = jt.RangeQueries(space, ["price > 10 and not (sector = 'tech' or price < 20)", "price < 50 or price < 60"])
    rows = spark.createDataFrame(
        [(1, 30.0, "food"), (2, 30.0, "tech"), (3, 55.0, "oil"), (4, 80.0, "steel"), (5, None, "food")],
        "id long, price double, sector string",
    )
    pairs = matched(rows, queries).select("id", "jt_query").collect()
    # As in SQL: an unknown sector is not 'tech', and does not matter where the sector is not asked for.
    assert sorted((row.id, row.jt_query) for row in pairs) == [(1, 0), (1, 1), (2, 1), (3, 0), (3, 1), (4, 0)]


def test_matching_is_a_broadcast_join_without_python(spark):
    space = Space([Attribute.number("x", 0, 1), Attribute.number("y", 0, 1)])
    random = np.random.default_rng(1)
    low = random.random((1000, 2)) * 0.99
    text = io.StringIO()
    rows = spark.range(10).select(F.rand(1).alias("x"), F.rand(2).alias("y"))
    with contextlib.redirect_stdout(text):
        matched(rows, jt.RangeQueries.from_boxes(space, low, low + 0.01)).explain("formatted")
    assert "BroadcastHashJoin" in text.getvalue()
    assert "Python" not in text.getvalue()
