"""The finished sifter: regions with their drop thresholds, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.errors import refuse
from jettison.source.partition import Partition
from jettison.source.space import Floats, Space

# Thresholds are whole multiples of 2**-16: exact in every backend, and two bytes on the wire.
UNIT = 2**16

Outside = Literal["keep", "drop"]


@dataclass(frozen=True)
class RegionFilter:
    """Which share of the rows to drop in each region of the data space.

    Parameters
    ----------
    space, partition
        The attributes and the regions.
    thresholds
        Per region the share to drop, in units of 2**-16.
    outside
        What happens to rows outside the domain, or with a missing value: all are kept, or all dropped.
    sample_every
        One row in so many is marked as a sample of the unfiltered stream and is never dropped; 0 for none.
    """

    space: Space
    partition: Partition
    thresholds: NDArray[np.int32]
    outside: Outside = "keep"
    sample_every: int = 0

    def __post_init__(self) -> None:
        shape = (self.partition.regions,), self.partition.dimensions
        thresholds = self.thresholds.shape == shape[0] and ((self.thresholds >= 0) & (self.thresholds <= UNIT)).all()
        if not thresholds or self.space.dimensions != shape[1]:
            expected = f"each of {shape[0][0]} regions in {shape[1]} dimensions must have one threshold in [0, {UNIT}]"
            got = f"{self.thresholds} in {self.space.dimensions}"
            refuse(expected, got, hint="`RegionFilter.of` takes shares, and must be given this very partition")
        if self.outside not in get_args(Outside) or not 0 <= self.sample_every < 2**28:
            expected = "`outside` must be 'keep' or 'drop', and `sample_every` lie in [0, 2**28)"
            refuse(
                expected, f"{self.outside!r} and {self.sample_every!r}", hint="one row in so many is sampled; 0: none"
            )

    @classmethod
    def of(
        cls,
        space: Space,
        partition: Partition,
        drop: ArrayLike,
        *,
        outside: Outside = "keep",
        sample_every: int = 0,
    ) -> RegionFilter:
        """A filter of real-valued thresholds, rounded up to units of 2**-16, so that no more passes than asked for."""
        units = np.ceil(np.asarray(drop, dtype=np.float64) * UNIT - 1e-6).astype(np.int32)
        return cls(space, partition, units, outside, sample_every)

    @property
    def drop(self) -> Floats:
        return self.thresholds / UNIT

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RegionFilter)
            and (self.space, self.partition, self.outside, self.sample_every)
            == (other.space, other.partition, other.outside, other.sample_every)
            and np.array_equal(self.thresholds, other.thresholds)
        )

    def __hash__(self) -> int:
        return hash((self.space, self.partition, self.thresholds.tobytes(), self.outside, self.sample_every))
