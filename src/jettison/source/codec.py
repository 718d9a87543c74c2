"""A filter as few bytes: for links and devices where every byte counts, and decoded exactly.

Layout, in this order: a mark, version and flags, the number of attributes, boxes - 1 and the sampling interval as
variable-length numbers, the attributes, the patterns of missing values with a region of their own (their number, and a
byte each), the number of distinct thresholds, the shape of the tree (a bit per node, from the root, 1 for a cut), the
attribute of each cut in as few bits as tell them apart, each cut in 24 bits, the distinct thresholds in 17 bits each
(0 to 2**16), which of them each region has, and a CRC-32 of all that.

A checksum tells what got damaged on its way, not what somebody made up. So sizes and counts are compared with what is
there before anything is built from them, and whatever is refused is refused in a time that grows with its bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.errors import DamagedPlan, JettisonError, refuse
from jettison.source.partition import MOST_REGIONS, Leaf, Partition, grown
from jettison.source.region_filter import Outside, RegionFilter
from jettison.source.space import MOST_ATTRIBUTES, Attribute, Space

MOST_BYTES = 2**20

_MARK = 0xA7
_VERSION = 2
_OUTSIDE_IS_DROPPED = 0x80
_CUT_BITS, _THRESHOLD_BITS = 24, 17
_WHOLE, _NAMED, _SHORT = 0x80, 0x40, 0x20
_LONGEST_NAME = 31
_LONGEST_NUMBER = 5


def encode(one: RegionFilter) -> bytes:
    """Lay out a filter; `decode` restores an equal one."""
    out = bytearray([_MARK, _VERSION | (_OUTSIDE_IS_DROPPED if one.outside == "drop" else 0), one.space.dimensions])
    out += _number(one.partition.boxes - 1) + _number(one.sample_every)
    for attribute in one.space.attributes:
        out += _attribute(attribute)
    levels, level_of_region = np.unique(one.thresholds, return_inverse=True)
    fields = [*_tree(one.partition), (levels, _THRESHOLD_BITS), (level_of_region, _width(len(levels)))]
    missing = one.partition.missing
    out += _number(len(missing)) + bytes(missing) + _number(len(levels)) + _packed(fields)
    if len(out) + 4 > MOST_BYTES:
        refuse(
            f"a filter may take at most {MOST_BYTES:,} bytes",
            f"{len(out) + 4:,}",
            hint="use fewer regions, and fewer or shorter categories",
        )
    return bytes(out) + struct.pack(">I", zlib.crc32(out))


def decode(content: bytes) -> RegionFilter:
    """Restore a filter, or raise `DamagedPlan` if the bytes are not one."""
    whole = 12 <= len(content) <= MOST_BYTES and content[0] == _MARK
    body = content[:-4] if whole else b""
    if not whole or struct.pack(">I", zlib.crc32(body)) != content[-4:]:
        refuse(
            f"`content` must be the bytes of a filter, at most {MOST_BYTES:,}, with their checksum",
            f"{len(content)} bytes",
            hint="send the bytes as they are, without decoding them as text",
            error=DamagedPlan,
        )
    if body[1] & ~_OUTSIDE_IS_DROPPED != _VERSION:
        refuse(
            f"the filter must have version {_VERSION} of the format",
            str(body[1] & ~_OUTSIDE_IS_DROPPED),
            hint="use the same release at server and sources",
            error=DamagedPlan,
        )
    try:
        return _decoded(body)
    except (JettisonError, IndexError, ValueError, struct.error) as error:
        refuse(
            "`content` must be the bytes of a filter",
            f"other bytes, although their checksum fits ({str(error)[:200]})",
            hint="take filters only from the server that runs `Sifter`, on a channel that nobody else writes to",
            error=DamagedPlan,
            cause=error,
        )


def _decoded(body: bytes) -> RegionFilter:
    reader = _Reader(body, 3)
    if not 1 <= body[2] <= MOST_ATTRIBUTES:
        raise ValueError(f"{body[2]} attributes")
    boxes, sample_every = reader.number(MOST_REGIONS - 1) + 1, reader.number(2**28)
    space = Space([reader.attribute() for _ in range(body[2])])
    missing = tuple(reader.bytes(reader.number(MOST_REGIONS)))
    regions = boxes + len(missing)
    count = reader.number(regions)
    # All of them are known now, so a filter that claims more or less than it holds is refused before it is built.
    axis_bits, choice_bits = _width(space.dimensions), _width(count)
    shape = [(2 * boxes - 1, 1), (boxes - 1, axis_bits), (boxes - 1, _CUT_BITS)]
    sizes = [*shape, (count, _THRESHOLD_BITS), (regions, choice_bits)]
    if count < 1 or -(-sum(number * width for number, width in sizes) // 8) != len(body) - reader.place:
        raise ValueError(f"{len(body) - reader.place} bytes for {regions} regions of {count} thresholds")
    has_cut, axes, cuts, levels, level_of_region = _unpacked(body[reader.place :], sizes)
    partition = replace(_grown(has_cut, axes, cuts + 1, space.dimensions), missing=missing)
    thresholds = levels.astype(np.int32)[level_of_region]
    outside: Outside = "drop" if body[1] & _OUTSIDE_IS_DROPPED else "keep"
    return RegionFilter(space, partition, thresholds, outside, sample_every)


def _width(choices: int) -> int:
    """Bits that tell so many things apart."""
    return (choices - 1).bit_length()


def _number(value: int) -> bytes:
    """Seven bits a byte, the highest bit set while more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _attribute(one: Attribute) -> bytes:
    name = one.name.encode()
    if len(name) > _LONGEST_NAME:
        refuse(
            f"the name of an attribute may take at most {_LONGEST_NAME} bytes",
            repr(one.name),
            hint="rename the attribute; its name travels with every filter",
        )
    bounds = np.array([one.low, one.high])
    with np.errstate(over="ignore"):  # bounds that are exact in single precision take four bytes each, others eight
        short = bool((bounds.astype(np.float32) == bounds).all())
    kind = len(name) | (_WHOLE if one.whole else 0) | (_SHORT if short else 0) | (_NAMED if one.values else 0)
    out = bytes([kind]) + name
    if one.values:
        texts = [value.encode() for value in one.values]
        return out + _number(len(texts)) + b"".join(_number(len(text)) + text for text in texts)
    return out + struct.pack(">2f" if short else ">2d", one.low, one.high)


def _tree(partition: Partition) -> list[Field]:
    """Which nodes have a cut, and attribute and place of each cut."""
    stack, has_cut = [0 if partition.boxes > 1 else -1], []
    while stack:
        node = stack.pop()
        has_cut.append(int(node >= 0))
        if node >= 0:
            stack += [int(partition.right[node]), int(partition.left[node])]
    return [(has_cut, 1), (partition.axis, _width(partition.dimensions)), (partition.cut - 1, _CUT_BITS)]


def _grown(has_cut: Numbers, axes: Numbers, cuts: Numbers, dimensions: int) -> Partition:
    # Nodes that are still to come, after each node: none only after the last one.
    open_nodes = 1 + np.cumsum(2 * has_cut - 1)
    if open_nodes[-1] != 0 or (open_nodes[:-1] <= 0).any() or (axes >= dimensions).any():
        raise ValueError("no tree of cuts")
    root = Leaf.domain(dimensions)
    stack = [root]
    of_node = iter(zip(axes.tolist(), cuts.tolist(), strict=True))
    for cut in has_cut.tolist():
        leaf = stack.pop()
        if cut:
            before, after = leaf.split(*next(of_node))
            stack += [after, before]
    return grown(root)


class _Reader:
    """Reads whole bytes from a place onwards."""

    def __init__(self, content: bytes, place: int) -> None:
        self._content = content
        self.place = place

    def number(self, most: int) -> int:
        value = 0
        for place in range(_LONGEST_NUMBER):
            byte = self._content[self.place]
            self.place += 1
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                break
        if byte >= 0x80 or value > most:
            raise ValueError(f"a number above {most}")
        return value

    def bytes(self, count: int) -> bytes:
        if count > len(self._content) - self.place:
            raise ValueError(f"{count} bytes where {len(self._content) - self.place} are left")
        self.place += count
        return self._content[self.place - count : self.place]

    def attribute(self) -> Attribute:
        kind = self.bytes(1)[0]
        name = self.bytes(kind & _LONGEST_NAME).decode()
        if kind & _NAMED:
            count = self.number(len(self._content) - self.place)
            return Attribute.category(name, [self.bytes(self.number(MOST_BYTES)).decode() for _ in range(count)])
        form = ">2f" if kind & _SHORT else ">2d"
        low, high = struct.unpack(form, self.bytes(struct.calcsize(form)))
        return Attribute(name, low, high, whole=bool(kind & _WHOLE))


Numbers = NDArray[np.int64]
Field: TypeAlias = tuple[ArrayLike, int]
"""Numbers, and the bits that each of them takes."""


def _packed(fields: Sequence[Field]) -> bytes:
    """The numbers of all fields one after the other, padded with zeros to whole bytes.

    >>> [numbers.tolist() for numbers in _unpacked(_packed([([5, 1], 3), ([100], 7)]), [(2, 3), (1, 7)])]
    [[5, 1], [100]]
    """
    parts = [np.empty(0, np.uint8)]
    for values, width in fields:
        numbers = np.asarray(values, dtype=np.int64)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < 1 << width:
            raise ValueError(f"{numbers.min()} to {numbers.max()} do not fit into {width} bits")
        parts.append((numbers[:, None] >> _places(width) & 1).astype(np.uint8).ravel())
    return np.packbits(np.concatenate(parts)).tobytes()


def _unpacked(content: bytes, sizes: Sequence[tuple[int, int]]) -> list[Numbers]:
    """The numbers of each field, given how many there are and the bits that each takes.

    There must be bits for all of them. The time that it takes depends on their number alone.
    """
    bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8))
    found, place = [], 0
    for count, width in sizes:
        taken = bits[place : place + count * width].reshape(count, width).astype(np.int64)
        found.append(taken @ (1 << _places(width)))
        place += count * width
    return found


def _places(width: int) -> Numbers:
    return np.arange(width - 1, -1, -1, dtype=np.int64)
