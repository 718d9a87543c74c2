"""Numbers of any width, packed without gaps, most significant bit first; as many at once as have the same width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.int64]
Field: TypeAlias = tuple[ArrayLike, int]
"""Numbers, and the bits that each of them takes."""


def packed(fields: Sequence[Field]) -> bytes:
    """The numbers of all fields one after the other, padded with zeros to whole bytes.

    >>> [numbers.tolist() for numbers in unpacked(packed([([5, 1], 3), ([100], 7)]), [(2, 3), (1, 7)])]
    [[5, 1], [100]]
    """
    parts = [np.empty(0, np.uint8)]
    for values, width in fields:
        numbers = np.asarray(values, dtype=np.int64)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < 1 << width:
            raise ValueError(f"{numbers.min()} to {numbers.max()} do not fit into {width} bits")
        parts.append((numbers[:, None] >> _places(width) & 1).astype(np.uint8).ravel())
    return np.packbits(np.concatenate(parts)).tobytes()


def unpacked(content: bytes, sizes: Sequence[tuple[int, int]]) -> list[Numbers]:
    """The numbers of each field, given how many there are and the bits that each takes.

    There must be bits for all of them. The time that it takes depends on their number alone.
    """
    bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8))
    if sum(count * width for count, width in sizes) > len(bits):
        raise ValueError(f"{len(bits)} bits for fields of {sizes}")
    found, place = [], 0
    for count, width in sizes:
        taken = bits[place : place + count * width].reshape(count, width).astype(np.int64)
        found.append(taken @ (1 << _places(width)))
        place += count * width
    return found


def _places(width: int) -> Numbers:
    return np.arange(width - 1, -1, -1, dtype=np.int64)
