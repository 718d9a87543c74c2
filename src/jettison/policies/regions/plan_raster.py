"""What raster of regions a plan can hold, and a backend can look up rows in."""

from __future__ import annotations

import json
import zlib

import numpy as np

from jettison.source.partition import Partition
from jettison.source.raster import Ints, Raster
from jettison.source.space import Space

PLAN_MOST_CELLS = 12_000
"""Cells of a plan's raster; each takes up to four characters of the plan."""

# A backend that cannot make its tables as deep as the fullest bucket uses finer buckets, between the first and the
# last inner cut only, and takes no more cuts in one of them than this.
ZOOMED_BITS = 11
ZOOMED_BUCKETS = 1 << ZOOMED_BITS
ZOOMED_MOST_CUTS = 3

_SHARE_BYTES = 24  # the longest text of a share, with its comma


def fits(raster: Raster | None, partition: Partition, room: float) -> bool:
    """Whether a raster takes at most `room` bytes of a plan, and a backend can look up rows in it."""
    if raster is None or len(raster.cells) > PLAN_MOST_CELLS:
        return False
    numbers = [*(axis.cuts.tolist() for axis in raster.axes), raster.cells.tolist(), partition.of_pattern().tolist()]
    filled = len(json.dumps(numbers, separators=(",", ":"))) + 2 * (partition.regions + 1) * _SHARE_BYTES
    return filled <= room and all(_crowd(axis.cuts) <= ZOOMED_MOST_CUTS for axis in raster.axes)


def fingerprint(space: Space) -> int:
    """A number that tells spaces apart, the same in every process."""
    return zlib.crc32(repr(space.attributes).encode())


def _crowd(cuts: Ints) -> int:
    """Most inner cuts in one bucket, where the buckets divide the range of the inner cuts."""
    inner = cuts[1:-1]
    if not len(inner):
        return 0
    shift = max(int(inner[-1] - inner[0]).bit_length() - ZOOMED_BITS, 0)
    return int(np.bincount(inner - inner[0] >> shift).max())
