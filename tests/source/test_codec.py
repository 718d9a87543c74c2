"""A filter survives as few bytes, exactly; anything else is refused."""

from __future__ import annotations

import struct
import time
import tracemalloc
import zlib
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import DamagedPlan, InvalidSetting
from jettison.policies.regions.build import PARTITIONINGS, Sample, build
from jettison.policies.regions.even_regions import uniform_grid
from jettison.policies.regions.queries import RangeQueries
from jettison.source import SifterFilter, codec
from jettison.source.partition import MOST_REGIONS, Leaf, grown
from jettison.source.region_filter import UNIT, RegionFilter
from jettison.source.space import MOST_ATTRIBUTES, Attribute, Space
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


@contextmanager
def at_most_megabytes(most):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most * 1e6
    finally:
        tracemalloc.stop()


def forged(body: bytes) -> bytes:
    return body + struct.pack(">I", zlib.crc32(body))


def made_up(kind: str) -> bytes:
    """Bytes with a valid checksum that no server has written, 128 kB of them."""
    random = np.random.default_rng(7)
    attribute = bytes([0x20 | 1]) + b"x" + struct.pack(">2f", 0.0, 1.0)
    head = bytes([0xA7, 2, 1])
    noise = random.integers(0, 256, 128_000, dtype=np.uint8).tobytes()
    fitting = int(8 * 128_000 / (2 + 24 + 17 + 15))
    return {
        "more regions than bits": head + b"\xff\xff\x03" + b"\0" + attribute + b"\0" + b"\x02" + noise,
        "as many regions as can be": head + b"\xfe\xff\xff\xff\x0f" + b"\0" + attribute + b"\0" + b"\x02" + noise,
        "a number without end": head + b"\xff" * 128_000,
        "a tree of cuts without leaves": head
        + codec._number(fitting - 1)
        + b"\0"
        + attribute
        + b"\0"
        + codec._number(fitting)
        + b"\xff" * -(-(2 * fitting - 1 + 24 * (fitting - 1) + 17 * fitting + 15 * fitting) // 8),
        "categories without names": head + b"\0\0" + bytes([0x41]) + b"x" + codec._number(127_000) + b"\0" * 128_000,
        "a name beyond the end": head + b"\0\0" + bytes([0x41]) + b"x\x01" + codec._number(2**30) + noise,
        "patterns of other attributes": head + b"\0\0" + attribute + b"\x02\x09\x00" + b"\x01" + b"\0" * 128_000,
        "255 attributes": bytes([0xA7, 2, 255]) + b"\0\0" + attribute * 12_000,
        "a domain without end": head + b"\0\0" + bytes([1]) + b"x" + struct.pack(">2d", 0.0, np.inf) + noise,
    }[kind]


MADE_UP = [
    "more regions than bits",
    "as many regions as can be",
    "a number without end",
    "a tree of cuts without leaves",
    "categories without names",
    "a name beyond the end",
    "patterns of other attributes",
    "255 attributes",
    "a domain without end",
]


@pytest.mark.parametrize("kind", MADE_UP)
def test_bytes_that_were_made_up_are_refused_at_once_whatever_their_checksum(kind):
    content = forged(made_up(kind))
    started = time.process_time()
    with pytest.raises(DamagedPlan):
        SifterFilter.from_bytes(content)
    # Milliseconds, but for the categories, which have to be read one by one; it took minutes.
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("kind", MADE_UP)
def test_bytes_that_were_made_up_take_little_memory_before_they_are_refused(kind):
    content = forged(made_up(kind))
    with at_most_megabytes(10), pytest.raises(DamagedPlan):  # 60 times their own size at most
        SifterFilter.from_bytes(content)


@pytest.mark.long
def test_the_largest_filters_that_there_can_be_take_a_hundred_megabytes_at_most():
    root = Leaf.domain(MOST_ATTRIBUTES)
    root.split_at(0, list(range(100, 100 + 200 * (MOST_REGIONS - 1), 200)))
    space = Space([Attribute.number(f"x{number}", 0.1, 1) for number in range(MOST_ATTRIBUTES)])
    regions = RegionFilter(space, grown(root), np.arange(MOST_REGIONS, dtype=np.int32))
    texts = Space([Attribute.category("x", [str(number) for number in range(150_000)])])
    categories = RegionFilter(texts, grown(Leaf.domain(1)), np.zeros(1, dtype=np.int32))
    for one in (regions, categories):
        content = codec.encode(one)
        with at_most_megabytes(100):
            again = SifterFilter.from_bytes(content)
        assert again.filter == one


def test_more_than_a_megabyte_is_refused_before_it_is_looked_at():
    started = time.process_time()
    with pytest.raises(DamagedPlan, match="at most 1,048,576"):
        codec.decode(bytes(200_000_000))
    assert time.process_time() - started < 0.5


@pytest.mark.long
@given(seed=st.integers(0, 2**32 - 1), flips=st.integers(1, 30))
@settings(max_examples=300, deadline=None)
def test_changed_bytes_with_a_new_checksum_are_a_filter_or_are_refused(seed, flips):
    random = np.random.default_rng(seed)
    body = bytearray(codec.encode(order_filter(9, seed=1))[:-4])
    for place in random.integers(2, len(body), flips):
        body[place] = random.integers(0, 256)
    try:
        again = SifterFilter.from_bytes(forged(bytes(body)))
    except DamagedPlan:
        return
    again.decide(list(random.random((len(again.filter.space.names), 20))))


def test_a_large_filter_travels_in_time_that_grows_with_its_size():
    root = Leaf.domain(1)
    root.split_at(0, list(range(100, 30_000 * 500, 500)))
    space = Space([Attribute.number("x", 0, 1)])
    one = RegionFilter(space, grown(root), np.arange(30_001, dtype=np.int32) * 2)
    started = time.process_time()
    content = codec.encode(one)
    assert codec.decode(content) == one
    assert len(content) > 128_000
    assert time.process_time() - started < 5.0


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
