"""Checksums and record batches as Kafka defines them. Starts no broker."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.bench.kafka_wire import _padded, crc32c, record_batch


def plain_crc32c(data: bytes) -> int:
    """Bit by bit, as the standard defines it."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), place


def test_the_check_value_of_the_standard() -> None:
    assert plain_crc32c(b"123456789") == crc32c(b"123456789", np.zeros((0, 1), np.uint8)) == 0xE3069283


@given(head=st.binary(max_size=20), count=st.integers(0, 9), width=st.integers(1, 7), seed=st.integers(0, 99))
def test_the_checksum_of_a_matrix_is_that_of_its_bytes(head: bytes, count: int, width: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 256, (count, width), dtype=np.uint8)
    assert crc32c(head, rows) == plain_crc32c(head + rows.tobytes())


@given(st.lists(st.integers(0, 2**19), min_size=1, max_size=5))
def test_padded_numbers_read_as_what_they_are(numbers: list[int]) -> None:
    assert [varint(row.tobytes(), 0) for row in _padded(np.array(numbers), 3)] == [(n, 3) for n in numbers]


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit into 1 bytes"):
        _padded(np.array([64]), 1)


def test_a_batch_holds_its_records_with_their_times() -> None:
    values = np.frombuffer(b"abcdefghi", np.uint8).reshape(3, 3)
    batch = record_batch(values, np.array([1_700_000_000_005, 1_700_000_000_000, 1_700_000_000_009]))
    _, length, _, magic, checksum = struct.unpack_from(">qiibI", batch)
    assert (length, magic, checksum) == (len(batch) - 12, 2, plain_crc32c(batch[21:]))
    _, last, base_ms, newest_ms, _, _, _, count = struct.unpack_from(">hiqqqhii", batch, 21)
    assert (last, base_ms, newest_ms, count) == (2, 1_700_000_000_000, 1_700_000_000_009, 3)
    place, records = 61, []
    for _ in range(count):
        size, place = varint(batch, place)
        end = place + size
        after_ms, place = varint(batch, place + 1)
        offset, place = varint(batch, place)
        key, place = varint(batch, place)
        width, place = varint(batch, place)
        records.append((offset, after_ms, key, batch[place : place + width]))
        assert batch[place + width : end] == b"\0"  # no headers
        place = end
    assert records == [(0, 5, -1, b"abc"), (1, 0, -1, b"def"), (2, 9, -1, b"ghi")]
    assert place == len(batch)
