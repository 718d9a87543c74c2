"""Numbers of any width, packed without gaps, most significant bit first."""

from __future__ import annotations

from jettison.errors import DamagedPlan, explain


class BitWriter:
    """Collects numbers of given widths.

    >>> bits = BitWriter()
    >>> bits.write(5, 3)
    >>> bits.write(1, 7)
    >>> BitReader(bits.content()).read(3)
    5
    """

    def __init__(self) -> None:
        self._value = 0
        self._length = 0

    def write(self, value: int, width: int) -> None:
        """Append `value`, which must fit into `width` bits."""
        if not 0 <= value < 1 << width:
            raise ValueError(f"{value} does not fit into {width} bits")
        self._value = self._value << width | value
        self._length += width

    def content(self) -> bytes:
        """All that was written, padded with zeros to whole bytes."""
        padding = -self._length % 8
        return (self._value << padding).to_bytes((self._length + padding) // 8, "big")


class BitReader:
    """Reads numbers in the order in which they were written."""

    def __init__(self, content: bytes) -> None:
        self._value = int.from_bytes(content, "big")
        self._left = 8 * len(content)

    def read(self, width: int) -> int:
        """The next `width` bits."""
        self._left -= width
        if self._left < 0:
            raise DamagedPlan(
                explain(
                    "more bits of a sifter",
                    "its end",
                    hint="the text was cut short: take the whole of what `Sifter` published, or let it publish anew",
                )
            )
        return self._value >> self._left & ((1 << width) - 1)
