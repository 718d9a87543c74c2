"""Region QoS equals its definition, query by query and region by region."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.policies.regions import matching
from jettison.policies.regions.build import PARTITIONINGS, Sample, build, partition_by
from jettison.policies.regions.consolidate import consolidate, frequencies, shared_by_volume
from jettison.policies.regions.even_regions import uniform_grid
from jettison.policies.regions.queries import RangeQueries
from jettison.source.partition import with_missing
from jettison.source.space import CELLS, Attribute, Space
from sifter_cases import random_queries, random_rows, random_space

LINE = Space([Attribute.number("x", 0, 8)])


def by_definition(queries, partition, frequency, drop):
    """Overall QoS of eq. 2 and 5, one query and one region at a time; real volumes."""
    low, high = (side.astype(float) for side in partition.bounds())
    start, stop = queries.space.positions(queries.low), queries.space.positions(queries.high)
    overall = 0.0
    for query in range(len(queries)):
        rows = passed = 0.0
        for box in np.flatnonzero(queries.owner == query):
            for region in range(partition.regions):
                share, pattern = 1.0, 0 if region < partition.boxes else partition.missing[region - partition.boxes]
                for axis in range(queries.space.dimensions):
                    begin, end = (low[region, axis], high[region, axis]) if region < partition.boxes else (1, CELLS + 1)
                    met = min(stop[box, axis], end) - max(start[box, axis], begin)
                    if pattern >> axis & 1:
                        share *= queries.low[box, axis] == -np.inf
                    else:
                        share *= max(met, 0.0) / (end - begin)
                rows += frequency[region] * share
                passed += frequency[region] * share * (1.0 - drop[region])
        complete = passed / rows if rows > 0 else 1.0
        overall += queries.weights[query] * (1.0 - queries.slopes[query] * (1.0 - complete))
    return overall


@pytest.mark.parametrize("seed", range(20))
def test_the_consolidated_qos_is_the_qos_of_all_queries(seed, monkeypatch):
    monkeypatch.setattr(matching, "_PAIRS_AT_ONCE", 50)  # several blocks
    random = np.random.default_rng(seed)
    space = random_space(random, most=3)
    low = random_rows(random, space, 24, wild=False)
    width = np.array([one.end - one.low for one in space.attributes])
    # Several boxes a query, and none thinner than a cell, whose volume would be a convention.
    high = low + width * random.choice([0.1, 0.5], (24, space.dimensions))
    anything = random.random((24, space.dimensions)) < 0.3
    low, high = np.where(anything, -np.inf, low), np.where(anything, np.inf, high)
    queries = RangeQueries.from_boxes(
        space, low, high, owner=random.integers(0, 12, 24), weights=random.random(12), slopes=random.random(12)
    )
    sample = Sample.of(queries, random_rows(random, space, 40))
    for partitioning in PARTITIONINGS:
        partition = with_missing(partition_by(partitioning, queries, sample, 9), sample.codes)
        frequency = frequencies(partition, partition.region_of(sample.codes))
        drop = random.random(partition.regions)
        known = consolidate(queries, partition, frequency)
        assert known.overall(drop) == pytest.approx(by_definition(queries, partition, frequency, drop), abs=1e-9)
        kept = consolidate(queries, partition, frequency * (1.0 - drop)).wanted
        complete = np.where(known.wanted > 0.0, kept / np.where(known.wanted > 0.0, known.wanted, 1.0), 1.0)
        assert queries.quality(complete) == pytest.approx(known.overall(drop))


def test_regions_without_queries_without_rows_and_queries_without_rows():
    queries = RangeQueries(LINE, ["x < 1", "x >= 5 and x < 6"], weights=[1, 3], slopes=[0.8, 0.5])
    known = consolidate(queries, uniform_grid(LINE, 4), np.array([0.5, 0.5, 0.0, 0.0]))
    assert known.has_queries.tolist() == [True, False, True, False]
    assert known.qos == pytest.approx([0.25 * 0.8, 0.0, 0.0, 0.0])
    assert known.overall(np.ones(4)) == pytest.approx(1 - 0.25 * 0.8)


def test_a_row_wanted_twice_by_one_query_counts_once():
    once = RangeQueries(LINE, ["x < 4", "x >= 4"])
    twice = RangeQueries(LINE, ["x < 4 or x < 3 or x < 2", "x >= 4"])
    partition, frequency = uniform_grid(LINE, 4), np.full(4, 0.25)
    expected = consolidate(once, partition, frequency)
    np.testing.assert_allclose(consolidate(twice, partition, frequency).qos, expected.qos)


def test_a_query_for_one_value_belongs_to_the_region_of_that_value():
    queries = RangeQueries(LINE, ["x = 5"])
    known = consolidate(queries, uniform_grid(LINE, 4), np.full(4, 0.25))
    assert known.has_queries.tolist() == [False, False, True, False]
    assert known.qos == pytest.approx([0.0, 0.0, 1.0, 0.0])


def test_rows_outside_the_domain_have_a_share_but_no_region_and_missing_values_have_one():
    queries = random_queries(np.random.default_rng(0), LINE, 5)
    built = build(queries, Sample.of(queries, [[1.0], [3.0], [9.0], [np.nan]]), partitioning="grid", regions=4)
    assert built.statistics.frequency.tolist() == [0.25, 0.25, 0.0, 0.0, 0.25, 0.0]


def test_by_volume_a_query_falls_to_regions_as_its_boxes_lie_in_them_whatever_the_rows():
    quarters = uniform_grid(LINE, 4)
    # One query across a cut, one of two boxes, one inside a region.
    queries = RangeQueries.from_boxes(
        LINE, [[1.5], [0.0], [5.0], [6.5]], [[3.5], [1.0], [6.0], [7.0]], owner=[0, 1, 1, 2]
    )
    np.testing.assert_allclose(
        shared_by_volume(queries, quarters, np.array([4.0, 2.0, 3.0])), [1.0 + 1.0, 3.0, 1.0, 3.0], rtol=1e-6
    )
