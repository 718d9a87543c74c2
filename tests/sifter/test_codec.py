"""A filter survives as few bytes, exactly; anything else is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import DamagedPlan, InvalidSetting
from jettison.sifter import codec
from jettison.sifter.build import PARTITIONINGS, Sample, build
from jettison.sifter.grid import uniform_grid
from jettison.sifter.queries import RangeQueries
from jettison.sifter.region_filter import UNIT, RegionFilter
from jettison.sifter.space import Attribute, Space
from sifter_cases import random_queries, random_rows, random_space

# Bounds that need double precision: the larger form.
ORDERS = Space([Attribute.number("price", 0.1, 999.9), Attribute.number("qty", -0.3, 5000.7)])


def order_filter(regions, partitioning="qdpart", seed=0):
    random = np.random.default_rng(seed)
    rows = random_rows(random, ORDERS, 1000, wild=False) * random.random((1000, 2))
    queries = RangeQueries.from_boxes(ORDERS, rows, rows + 20.0)
    return build(queries, Sample.of(queries, rows), partitioning=partitioning, regions=regions).filter(0.5, 0.5)


@given(
    seed=st.integers(0, 2**32 - 1),
    regions=st.integers(1, 60),
    outside=st.sampled_from(["keep", "drop"]),
    every=st.sampled_from([0, 1, 100, 2**28 - 1]),
)
@settings(max_examples=200, deadline=None)
def test_what_is_decoded_equals_what_was_encoded(seed, regions, outside, every):
    random = np.random.default_rng(seed)
    space = random_space(random)
    queries = random_queries(random, space, 10)
    partition = build(
        queries, Sample.of(queries, random_rows(random, space, 60)), partitioning="qdpart", regions=regions
    ).partition
    thresholds = random.choice([0, 1, UNIT // 3, UNIT], partition.regions).astype(np.int32)
    one = RegionFilter(space, partition, thresholds, outside, every)
    again = codec.decode(codec.encode(one))
    assert again == one
    assert hash(again) == hash(one)


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize(("regions", "most"), [(16, 120), (100, 700)])
def test_sixteen_regions_take_at_most_120_bytes_and_a_hundred_at_most_700(partitioning, regions, most):
    for seed in range(5):
        one = order_filter(regions, partitioning, seed)
        assert one.partition.boxes == regions
        assert len(codec.encode(one)) <= most


def test_every_flipped_bit_and_every_missing_end_is_noticed():
    content = codec.encode(order_filter(16))
    for place in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(DamagedPlan):
            codec.decode(bytes(damaged))
    for length in range(len(content)):
        with pytest.raises(DamagedPlan):
            codec.decode(content[:length])


def test_names_that_do_not_fit_are_refused():
    space = Space([Attribute.number("a" * 32, 0, 1)])
    with pytest.raises(InvalidSetting, match="at most 31 bytes"):
        codec.encode(RegionFilter.of(space, uniform_grid(space, 2), [0.0, 1.0]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"thresholds": np.array([0, UNIT + 1], dtype=np.int32)},
        {"thresholds": np.array([0], dtype=np.int32)},
        {"outside": "maybe"},
        {"sample_every": -1},
    ],
)
def test_filters_that_make_no_sense_are_refused(wrong):
    given = {"thresholds": np.array([0, 1], dtype=np.int32)} | wrong
    with pytest.raises(InvalidSetting):
        RegionFilter(ORDERS, uniform_grid(ORDERS, 2), **given)
