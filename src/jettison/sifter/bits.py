"""Numbers of any width, packed without gaps, most significant bit first; as many at once as have the same width."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.errors import DamagedPlan, explain


class BitWriter:
    """Collects numbers of given widths.

    >>> bits = BitWriter()
    >>> bits.write([5, 1], 3)
    >>> bits.write([100], 7)
    >>> BitReader(bits.content()).read(2, 3).tolist()
    [5, 1]
    """

    def __init__(self) -> None:
        self._parts: list[NDArray[np.uint8]] = []

    def write(self, values: ArrayLike, width: int) -> None:
        """Append `values`, each of which must fit into `width` bits."""
        numbers = np.asarray(values, dtype=np.int64)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < 1 << width:
            raise ValueError(f"{numbers.min()} to {numbers.max()} do not fit into {width} bits")
        self._parts.append((numbers[:, None] >> _places(width) & 1).astype(np.uint8).ravel())

    def content(self) -> bytes:
        """All that was written, padded with zeros to whole bytes."""
        return np.packbits(np.concatenate(self._parts)).tobytes() if self._parts else b""


class BitReader:
    """Reads numbers in the order in which they were written, in time that depends on their number alone."""

    def __init__(self, content: bytes) -> None:
        self._bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8))
        self._place = 0

    def read(self, count: int, width: int) -> NDArray[np.int64]:
        """The next `count` numbers of `width` bits; refused before anything is read if there are not as many."""
        taken = self._bits[self._place : self._place + count * width]
        if len(taken) < count * width:
            raise DamagedPlan(
                explain(
                    "more bits of a sifter",
                    "its end",
                    hint="the text was cut short: take the whole of what `Sifter` published, or let it publish anew",
                )
            )
        self._place += count * width
        numbers: NDArray[np.int64] = taken.reshape(count, width).astype(np.int64) @ (1 << _places(width))
        return numbers


def _places(width: int) -> NDArray[np.int64]:
    return np.arange(width - 1, -1, -1, dtype=np.int64)
