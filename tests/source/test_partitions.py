"""Every partitioning, at awkward sizes: each point of the domain lies in exactly one region."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.policies.regions.build import PARTITIONINGS, Sample, partition_by
from jettison.policies.regions.even_regions import equi_depth, uniform_grid
from jettison.policies.regions.qdpart import qdpart
from jettison.policies.regions.queries import RangeQueries
from jettison.source.partition import Leaf, with_missing
from jettison.source.raster import Raster
from jettison.source.space import BELOW, CELLS, Attribute, Space
from sifter_cases import random_queries, random_rows, random_space

PLANE = Space([Attribute.number("x", 0, 1), Attribute.number("y", 0, 1)])


@given(
    seed=st.integers(0, 2**32 - 1),
    partitioning=st.sampled_from(PARTITIONINGS),
    regions=st.integers(1, 70),
    rows=st.integers(0, 80),
    count=st.integers(1, 30),
)
@settings(max_examples=300, deadline=None)
def test_each_point_of_the_domain_lies_in_exactly_one_region(seed, partitioning, regions, rows, count):
    random = np.random.default_rng(seed)
    space = random_space(random)
    queries = random_queries(random, space, count)
    sampled = random_rows(random, space, rows)
    partition = partition_by(partitioning, queries, Sample.of(queries, sampled), regions)
    assert 1 <= partition.regions <= regions
    low, high = partition.bounds()
    assert (low < high).all()
    codes = space.codes(np.concatenate([sampled, random_rows(random, space, 50)]))
    member = ((codes[:, None] >= low[None]) & (codes[:, None] < high[None])).all(axis=2)
    inside = ((codes >= 1) & (codes <= CELLS)).all(axis=1)
    np.testing.assert_array_equal(member.sum(axis=1), inside.astype(int))
    region = partition.region_of(codes)
    np.testing.assert_array_equal(region, np.where(inside, member.argmax(axis=1), partition.regions))
    raster = Raster.of(partition)
    if raster is not None:
        np.testing.assert_array_equal(raster.cells[raster.cell_of(list(np.maximum(codes, BELOW).T))], region)


@given(seed=st.integers(0, 2**32 - 1), most=st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_rows_with_missing_values_lie_in_the_region_of_what_they_miss(seed, most):
    random = np.random.default_rng(seed)
    space = random_space(random, most)
    rows = random_rows(random, space, 80)
    rows[random.random(rows.shape) < 0.3] = np.nan
    partition = with_missing(uniform_grid(space, 4), space.codes(rows[:40]))
    regions = partition.region_of(space.codes(rows))
    of_pattern = partition.of_pattern()
    assert of_pattern[0] == partition.regions
    for row, region in zip(rows, regions, strict=True):
        pattern = sum(1 << axis for axis in np.flatnonzero(np.isnan(row)))
        if pattern:
            assert region == of_pattern[pattern]
            own = pattern in partition.missing
            assert region == partition.boxes + partition.missing.index(pattern if own else 0)
        else:
            assert region < partition.boxes or region == partition.regions


@given(seed=st.integers(0, 2**32 - 1), partitioning=st.sampled_from(PARTITIONINGS), regions=st.integers(2, 40))
@settings(max_examples=100, deadline=None)
def test_equal_rows_and_whole_values_are_never_parted(seed, partitioning, regions):
    random = np.random.default_rng(seed)
    space = Space([Attribute.integer("n", 0, 20), Attribute.category("s", list("abcde"))])
    queries = random_queries(random, space, 10)
    partition = partition_by(partitioning, queries, Sample.of(queries, random_rows(random, space, 60)), regions)
    # All of a value's interval, up to where the next one begins, lies in the region of its left edge.
    for axis, values in enumerate((21, 5)):
        edges = space.codes(np.column_stack([np.arange(values)] * 2))[:, axis]
        cuts = partition.cut[partition.axis == axis]
        assert np.isin(cuts, edges).all()


def test_a_grid_of_a_power_has_equal_regions():
    low, high = uniform_grid(PLANE, 16).bounds()
    assert len(low) == 16
    assert (high - low == CELLS // 4).all()


@pytest.mark.parametrize("regions", [3, 10, 15, 17, 100])
def test_an_approximate_grid_has_no_region_more_than_twice_as_large_as_another(regions):
    low, high = uniform_grid(PLANE, regions).bounds()
    volume = np.prod((high - low) / CELLS, axis=1)
    assert len(low) == regions
    assert volume.max() / volume.min() <= 2.0 + 1e-6


@pytest.mark.parametrize("regions", [4, 16, 64, 10, 37])
def test_data_equi_depth_regions_hold_equally_many_rows(regions):
    rows = np.random.default_rng(1).normal(0.5, 0.1, (1000, 2)).clip(0, 1)
    codes = PLANE.codes(rows)
    partition = equi_depth(PLANE, codes, regions)
    counts = np.bincount(partition.region_of(codes), minlength=regions)
    assert partition.regions == regions
    if round(regions**0.5) ** 2 == regions:
        assert np.ptp(counts) <= 2
    else:
        assert counts.max() <= 2 * counts.min() + 2


def test_query_equi_depth_regions_hold_equally_many_query_centres():
    centres = np.random.default_rng(2).normal(0.5, 0.1, (900, 2)).clip(0.1, 0.9)
    queries = RangeQueries.from_boxes(PLANE, centres - 0.005, centres + 0.005)
    partition = partition_by("query", queries, Sample.of(queries, []), 9)
    assert np.ptp(np.bincount(partition.region_of(PLANE.codes(centres)))) <= 2


def test_qdpart_cuts_where_hits_change():
    # Hits jump at x = 0.3 and nowhere else, so the first cut lies there, across x.
    rows = np.random.default_rng(3).random((500, 2))
    hits = np.where(rows[:, 0] < 0.3, 0, 50)
    partition = qdpart(PLANE, PLANE.codes(rows), hits, 2)
    assert partition.axis.tolist() == [0]
    assert partition.cut[0] / CELLS == pytest.approx(0.3, abs=0.01)


def brute_benefit(position, hits):
    """Eq. 11 along one attribute, from its definition."""

    def diversity(part):
        return ((hits[part] - hits[part].mean()) ** 2).sum() * ((position[part] - position[part].mean()) ** 2).sum()

    order = np.argsort(position)
    floors = [diversity(order[:j]) + diversity(order[j:]) for j in range(1, len(order))]
    return diversity(order) - min(floors), np.argmin(floors) + 1


@pytest.mark.parametrize("seed", range(10))
def test_the_first_cut_of_qdpart_has_the_largest_benefit_of_eq_11(seed):
    random = np.random.default_rng(seed)
    rows, hits = random.random((40, 2)), random.integers(0, 10, 40)
    codes = PLANE.codes(rows)
    options = [brute_benefit(codes[:, axis] / CELLS, hits.astype(float)) for axis in range(2)]
    axis = int(np.argmax([benefit for benefit, _ in options]))
    partition = qdpart(PLANE, codes, hits, 2)
    assert partition.axis.tolist() == [axis]
    assert (codes[:, axis] < partition.cut[0]).sum() == options[axis][1]


def test_qdpart_without_any_benefit_halves_by_data():
    rows = np.random.default_rng(4).random((64, 2))
    codes = PLANE.codes(rows)
    partition = qdpart(PLANE, codes, np.zeros(64, dtype=int), 8)
    assert partition.regions == 8
    assert np.bincount(partition.region_of(codes)).tolist() == [8] * 8


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_many_equal_rows_make_no_empty_cuts(partitioning):
    queries = RangeQueries.from_boxes(PLANE, [[0.2, 0.2]], [[0.3, 0.3]])
    partition = partition_by(partitioning, queries, Sample.of(queries, np.full((100, 2), 0.25)), 16)
    assert partition.regions == (16 if partitioning == "grid" else 1)


def test_a_cut_outside_its_region_and_no_regions_at_all_are_refused():
    with pytest.raises(InvalidSetting):
        Leaf.domain(1).split(0, 1)
    queries = RangeQueries.from_boxes(PLANE, [[0.2, 0.2]], [[0.3, 0.3]])
    with pytest.raises(InvalidSetting):
        partition_by("grid", queries, Sample.of(queries, []), 0)
    with pytest.raises(InvalidSetting):
        partition_by("hexagons", queries, Sample.of(queries, []), 4)
