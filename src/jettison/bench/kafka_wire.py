"""As much of Kafka's protocol as it takes to make a topic and to fill it fast, with numpy alone.

A client library would do, but takes microseconds of CPU for each record. Here records of one width are laid out as a
matrix of bytes, so that a feed of some 100,000 records a second leaves the machine to the query that is measured.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping
from functools import cache
from types import TracebackType

import numpy as np
import numpy.typing as npt

from jettison.errors import JettisonError, explain

Uint8Array = npt.NDArray[np.uint8]
Uint32Array = npt.NDArray[np.uint32]
Int64Array = npt.NDArray[np.int64]

_PRODUCE, _VERSIONS, _CREATE_TOPICS = 0, 18, 19
_RETRIABLE = (3, 5, 6)  # a topic just made is not known everywhere, or has no leader yet
_PATIENCE_S = 30.0
_POLYNOMIAL = 0x82F63B78  # Castagnoli's, reflected


class Connection:
    """A connection to one broker; one request at a time.

    Parameters
    ----------
    address
        `host:port` of the broker.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_PATIENCE_S)
        self._sent = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def versions(self) -> int:
        """How many requests the broker understands: a sign of life."""
        reply = self._ask(_VERSIONS, 0, b"")
        error, count = struct.unpack_from(">hi", reply)
        _refuse(error, "versions")
        return int(count)

    def make_topic(self, topic: str, partitions: int) -> None:
        """Make a topic of one replica."""
        body = struct.pack(">i", 1) + _text(topic) + struct.pack(">ihiiib", partitions, 1, 0, 0, 10_000, 0)
        reply = self._ask(_CREATE_TOPICS, 4, body)
        (length,) = struct.unpack_from(">h", reply, 8)
        (error,) = struct.unpack_from(">h", reply, 10 + length)
        _refuse(error, f"topic {topic!r}")

    def produce(self, topic: str, batches: Mapping[int, bytes]) -> None:
        """Append one record batch to each of some partitions, and wait until the broker has them."""
        parts = b"".join(
            struct.pack(">ii", partition, len(records)) + records for partition, records in batches.items()
        )
        body = struct.pack(">hhii", -1, 1, 30_000, 1) + _text(topic) + struct.pack(">i", len(batches)) + parts
        deadline = time.monotonic() + _PATIENCE_S
        while error := _first_error(self._ask(_PRODUCE, 8, body)):
            if error not in _RETRIABLE or time.monotonic() > deadline:
                _refuse(error, f"topic {topic!r}")
            time.sleep(0.05)

    def _ask(self, key: int, version: int, body: bytes) -> bytes:
        self._sent += 1
        head = struct.pack(">hhi", key, version, self._sent) + _text("jettison")
        self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        (length,) = struct.unpack(">i", self._receive(4))
        return self._receive(length)[4:]

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            some = self._socket.recv(count - len(received))
            if not some:
                raise ConnectionError("the broker closed the connection")
            received += some
        return bytes(received)


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _first_error(reply: bytes) -> int:
    """The first error among the partitions of a reply to `produce`, 0 if there is none."""
    (length,) = struct.unpack_from(">h", reply, 4)
    (partitions,) = struct.unpack_from(">i", reply, 6 + length)
    place = 10 + length
    for _ in range(partitions):
        (error,) = struct.unpack_from(">h", reply, place + 4)
        if error:
            return int(error)
        place += 4 + 2 + 3 * 8  # number, error, three offsets and times
        (faults,) = struct.unpack_from(">i", reply, place)
        assert faults <= 0, "no error, but faulty records"
        (length,) = struct.unpack_from(">h", reply, place + 4)
        place += 6 + max(length, 0)
    return 0


def _refuse(error: int, what: str) -> None:
    if error:
        hint = "Kafka's protocol guide lists the codes of errors"
        raise JettisonError(explain(f"the broker to accept {what}", f"error {error}", hint=hint))


def record_batch(values: Uint8Array, timestamp_ms: Int64Array) -> bytes:
    """One batch of records without keys: a row of `values` each, with these times of creation.

    Lengths are written with more bytes than they need, which readers accept, so that all records have one width.
    """
    count, width = values.shape
    base_ms = int(timestamp_ms.min())
    value_length = _padded(np.full(count, width), 3)
    head = [np.zeros((count, 1), np.uint8), _padded(timestamp_ms - base_ms, 5), _padded(np.arange(count), 4)]
    body = [*head, np.ones((count, 1), np.uint8), value_length, values, np.zeros((count, 1), np.uint8)]
    length = sum(part.shape[1] for part in body)
    records = np.hstack([_padded(np.full(count, length), 3), *body])
    covered = struct.pack(
        ">hiqqqhii", 0, count - 1, base_ms, int(timestamp_ms.max()), -1, -1, -1, count
    )  # attributes, last offset, times, no producer id, epoch or sequence, records
    checksum = crc32c(covered, records)
    after_length = struct.pack(">ibI", -1, 2, checksum) + covered + records.tobytes()
    return struct.pack(">qi", 0, len(after_length)) + after_length


def _padded(numbers: npt.NDArray[np.int64], width: int) -> Uint8Array:
    """Non-negative numbers as zigzag varints of `width` bytes each."""
    if numbers.size and int(numbers.max()) >= 1 << (7 * width - 1):
        raise ValueError(f"{int(numbers.max())} does not fit into {width} bytes")
    shifts = np.arange(width) * 7
    groups = (2 * numbers[:, None].astype(np.int64)) >> shifts & 0x7F
    groups[:, :-1] |= 0x80
    return groups.astype(np.uint8)


def crc32c(head: bytes, rows: Uint8Array) -> int:
    """CRC-32C of `head` followed by the rows of a matrix.

    All rows are gone through at once, and their checksums joined in pairs: a loop over every byte takes too long.

    >>> hex(crc32c(b"123456789", np.zeros((0, 1), np.uint8)))
    '0xe3069283'
    """
    state = 0xFFFFFFFF
    for byte in head:
        state = int(_TABLE[(state ^ byte) & 0xFF]) ^ state >> 8
    count, width = rows.shape
    # Zero rows in front do not change a checksum that starts from zero; the head's state enters as one more row.
    lanes = np.zeros(1 << int(count).bit_length(), np.uint32)
    lanes[-count - 1] = state
    own = np.zeros(count, np.uint32)
    for column in np.ascontiguousarray(rows.T):
        own = _TABLE[(own ^ column) & 0xFF] ^ own >> 8
    if count:
        lanes[-count:] = own
    passing = _past_zeros(width)
    while len(lanes) > 1:
        lanes = _apply(passing, lanes[0::2]) ^ lanes[1::2]
        passing = np.stack([_apply(passing, part) for part in passing])
    return int(lanes[0]) ^ 0xFFFFFFFF


def _table() -> Uint32Array:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


_TABLE = _table()


@cache
def _past_zeros(count: int) -> Uint32Array:
    """What a state becomes by `count` zero bytes, for each of its four bytes alone: the operation is linear."""
    states = np.stack([np.arange(256, dtype=np.uint32) << np.uint32(8 * place) for place in range(4)])
    for _ in range(count):
        states = _TABLE[states & 0xFF] ^ states >> 8
    return states


def _apply(operation: Uint32Array, states: Uint32Array) -> Uint32Array:
    result = np.zeros_like(states)
    for place in range(4):
        result ^= operation[place][states >> np.uint32(8 * place) & 0xFF]
    return result
