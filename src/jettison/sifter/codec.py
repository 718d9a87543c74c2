"""A filter as few bytes: for links and devices where every byte counts, and decoded exactly.

Layout, in this order: a mark, version and flags, the number of attributes, regions - 1 and the sampling interval as
variable-length numbers, the attributes, the shape of the tree (a bit per node, from the root, 1 for a cut), the
attribute of each cut in as few bits as tell them apart, each cut in 24 bits, the distinct thresholds in 17 bits each
(0 to 2**16), which of them each region has, and a CRC-32 of all that.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from jettison.errors import DamagedPlan, InvalidSetting, explain
from jettison.sifter.bits import BitReader, BitWriter
from jettison.sifter.partition import Leaf, Partition, grown
from jettison.sifter.region_filter import Outside, RegionFilter
from jettison.sifter.space import Attribute, Space

_MARK = 0xA7
_VERSION = 1
_OUTSIDE_IS_DROPPED = 0x80
_CUT_BITS, _THRESHOLD_BITS = 24, 17
_WHOLE, _NAMED, _SHORT = 0x80, 0x40, 0x20
_LONGEST_NAME = 31


def encode(one: RegionFilter) -> bytes:
    """Lay out a filter; `decode` restores an equal one."""
    out = bytearray([_MARK, _VERSION | (_OUTSIDE_IS_DROPPED if one.outside == "drop" else 0), one.space.dimensions])
    out += _number(one.partition.regions - 1) + _number(one.sample_every)
    for attribute in one.space.attributes:
        out += _attribute(attribute)
    bits = BitWriter()
    _write_tree(bits, one.partition)
    levels, level_of_region = np.unique(one.thresholds, return_inverse=True)
    for level in levels.tolist():
        bits.write(level, _THRESHOLD_BITS)
    width = _width(len(levels))
    for index in level_of_region.tolist():
        bits.write(index, width)
    out += _number(len(levels)) + bits.content()
    return bytes(out) + struct.pack(">I", zlib.crc32(out))


def decode(content: bytes) -> RegionFilter:
    """Restore a filter, or raise `DamagedPlan` if the bytes are not one."""
    body, checksum = content[:-4], content[-4:]
    if len(content) < 12 or struct.pack(">I", zlib.crc32(body)) != checksum or body[0] != _MARK:
        raise DamagedPlan(
            explain(
                "the bytes of a sifter with a checksum that fits",
                f"{len(content)} bytes",
                hint="send the bytes as they are, without decoding them as text",
            )
        )
    if body[1] & ~_OUTSIDE_IS_DROPPED != _VERSION:
        raise DamagedPlan(
            explain(
                f"a sifter of version {_VERSION}",
                str(body[1] & ~_OUTSIDE_IS_DROPPED),
                hint="use the same release at server and sources",
            )
        )
    reader = _Reader(body, 3)
    regions, sample_every = reader.number() + 1, reader.number()
    space = Space([reader.attribute() for _ in range(body[2])])
    count = reader.number()
    bits = BitReader(body[reader.place :])
    partition = _read_tree(bits, space.dimensions, regions)
    levels = np.array([bits.read(_THRESHOLD_BITS) for _ in range(count)], dtype=np.int32)
    thresholds = levels[[bits.read(_width(count)) for _ in range(regions)]]
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
        raise InvalidSetting(
            explain(
                f"an attribute name of at most {_LONGEST_NAME} bytes",
                repr(one.name),
                hint="rename the attribute; its name travels with every filter",
            )
        )
    # Bounds that are exact in single precision take four bytes each, others eight.
    short = all(struct.unpack(">f", struct.pack(">f", bound))[0] == bound for bound in _singles(one.low, one.high))
    kind = len(name) | (_WHOLE if one.whole else 0) | (_SHORT if short else 0) | (_NAMED if one.values else 0)
    out = bytes([kind]) + name
    if one.values:
        texts = [value.encode() for value in one.values]
        return out + _number(len(texts)) + b"".join(_number(len(text)) + text for text in texts)
    return out + struct.pack(">2f" if short else ">2d", one.low, one.high)


def _singles(*bounds: float) -> list[float]:
    """The bounds, or NaN (equal to nothing) in place of those beyond single precision."""
    return [bound if abs(bound) < 3e38 else float("nan") for bound in bounds]


def _write_tree(bits: BitWriter, partition: Partition) -> None:
    stack = [0 if partition.regions > 1 else -1]
    while stack:
        node = stack.pop()
        bits.write(int(node >= 0), 1)
        if node >= 0:
            stack += [int(partition.right[node]), int(partition.left[node])]
    for axis in partition.axis.tolist():
        bits.write(axis, _width(partition.dimensions))
    for cut in partition.cut.tolist():
        bits.write(cut - 1, _CUT_BITS)


def _read_tree(bits: BitReader, dimensions: int, regions: int) -> Partition:
    root = Leaf.domain(dimensions)
    has_cut = [bool(bits.read(1)) for _ in range(2 * regions - 1)]
    axes = [bits.read(_width(dimensions)) for _ in range(regions - 1)]
    cuts = [bits.read(_CUT_BITS) + 1 for _ in range(regions - 1)]
    stack, node = [root], 0
    for cut in has_cut:
        leaf = stack.pop()
        if cut:
            before, after = leaf.split(axes[node], cuts[node])
            stack += [after, before]
            node += 1
    return grown(root)


class _Reader:
    """Reads whole bytes from a place onwards."""

    def __init__(self, content: bytes, place: int) -> None:
        self._content = content
        self.place = place

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self._content[self.place]
            self.place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def attribute(self) -> Attribute:
        kind = self._content[self.place]
        self.place += 1
        name = self._text(kind & _LONGEST_NAME)
        if kind & _NAMED:
            return Attribute.category(name, [self._text(self.number()) for _ in range(self.number())])
        form = ">2f" if kind & _SHORT else ">2d"
        low, high = struct.unpack_from(form, self._content, self.place)
        self.place += struct.calcsize(form)
        return Attribute(name, low, high, whole=bool(kind & _WHOLE))

    def _text(self, length: int) -> str:
        text = self._content[self.place : self.place + length].decode()
        self.place += length
        return text
