"""Filtering at the source: what a producer runs before it sends. Needs numpy and nothing else.

from jettison.source import SifterFilter

sifter = SifterFilter.from_bytes(received)
for batch in batches:                       # a mapping of columns
    decision = sifter.decide(batch)
    send(batch, decision.keep, marked=decision.sampled)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.errors import InvalidInput, refuse
from jettison.source import codec
from jettison.source.partition import patterns
from jettison.source.raster import Raster, codes_of
from jettison.source.region_filter import UNIT, RegionFilter

__all__ = ["Decision", "SifterFilter"]

# Rows handled at once: their intermediate results stay in the processor's second cache.
_AT_ONCE = 2**14

Marks = NDArray[np.bool_]
Counts = NDArray[np.int64]
SmallInts = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with each row of a batch.

    Parameters
    ----------
    keep
        Whether to send the row. Sampled rows are always kept.
    sampled
        Whether the row belongs to the sample of the unfiltered stream; send the mark along with it.
    """

    keep: Marks
    sampled: Marks


class SifterFilter:
    """Drops each region's share of the rows, by counting: no random numbers, and the share is met at every moment.

    Per region a pair of counters holds the rows produced and dropped. A row is dropped if sending it would make the
    dropped share fall below the region's threshold; so after k rows of a region, exactly `ceil(k * threshold)` are
    dropped. Sampled rows pass beside the counters: they are neither dropped nor counted.

    Parameters
    ----------
    one
        The filter to apply.

    Examples
    --------
    >>> from jettison.policies.regions.even_regions import uniform_grid
    >>> from jettison.source.space import Attribute, Space
    >>> space = Space([Attribute.number("price", 0, 100)])
    >>> sifter = SifterFilter(RegionFilter.of(space, uniform_grid(space, 2), [0.5, 0.0]))
    >>> sifter.decide({"price": [10, 20, 30, 40, 90, 95]}).keep.tolist()
    [False, True, False, True, True, True]
    >>> SifterFilter.from_bytes(sifter.to_bytes()).filter == sifter.filter
    True
    """

    def __init__(self, one: RegionFilter) -> None:
        self._rows = 0
        self.install(one)

    @classmethod
    def from_bytes(cls, content: bytes) -> SifterFilter:
        """The filter that was shipped as `content`; raises `DamagedPlan` if it did not arrive whole."""
        return cls(codec.decode(content))

    def to_bytes(self) -> bytes:
        return codec.encode(self.filter)

    def install(self, one: RegionFilter | bytes) -> None:
        """Replace the filter; its counters start at zero, and sampling goes on where it was."""
        self.filter = codec.decode(one) if isinstance(one, bytes) else one
        self._raster = Raster.of(self.filter.partition)
        beyond = 0 if self.filter.outside == "keep" else UNIT
        self._thresholds = np.append(self.filter.thresholds, beyond).astype(np.uint32)
        # Small region numbers, because numpy sorts bytes and pairs of bytes by radix.
        self._small: type[np.unsignedinteger[Any]] = np.uint8 if len(self._thresholds) <= 2**8 else np.uint16
        self._of_pattern: SmallInts = self.filter.partition.of_pattern().astype(self._small)
        if self._raster is not None:
            self._region_of_cell: SmallInts = self._raster.cells.astype(self._small)
        self._produced = np.zeros(len(self._thresholds), dtype=np.int64)

    @property
    def produced(self) -> Counts:
        """Rows seen per region, sampled ones apart; the last count is of rows outside the domain."""
        return self._produced.copy()

    @property
    def dropped(self) -> Counts:
        """Rows dropped per region, in the same order."""
        return -(-self._produced * self._thresholds.astype(np.int64) // UNIT)

    def decide(self, columns: Mapping[str, ArrayLike] | Sequence[ArrayLike]) -> Decision:
        """Decide on a batch of rows, given by its columns: by name, or in the order of the filter's attributes."""
        given = self._columns(columns)
        count = len(given[0])
        keep, sampled, every = np.empty(count, dtype=bool), np.zeros(count, dtype=bool), self.filter.sample_every
        if every:
            sampled[-self._rows % every :: every] = True
        for start in range(0, count, _AT_ONCE):
            block = slice(start, start + _AT_ONCE)
            keep[block] = self._decide(self._regions([column[block] for column in given]), sampled[block])
        self._rows += count
        return Decision(keep, sampled)

    def regions(self, columns: Mapping[str, ArrayLike] | Sequence[ArrayLike]) -> NDArray[np.int64]:
        """Region of each row; the number of regions for rows outside the domain. Rows with missing values have their own."""
        return self._regions(self._columns(columns)).astype(np.int64)

    def _columns(self, columns: Mapping[str, ArrayLike] | Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
        space = self.filter.space
        if isinstance(columns, Mapping):
            missing = [name for name in space.names if name not in columns]
            given = [columns[name] for name in space.names if name in columns]
        else:
            missing, given = list(space.names[len(columns) :]), list(columns)
        if missing or len(given) != space.dimensions:
            refuse(
                f"there must be a column for each of {', '.join(space.names)}",
                f"{len(given)} of them",
                hint="a mapping may hold others besides",
                error=InvalidInput,
            )
        places = [one.coordinates(column) for one, column in zip(space.attributes, given, strict=True)]
        if len({len(place) for place in places}) != 1:
            refuse(
                "all columns must have the same length",
                str([len(place) for place in places]),
                hint="pass the columns of one batch of rows",
                error=InvalidInput,
            )
        return places

    def _regions(self, columns: list[NDArray[np.float64]]) -> SmallInts:
        space, raster = self.filter.space, self._raster
        scratch = np.empty(len(columns[0]))
        codes = [codes_of(space, axis, column, scratch) for axis, column in enumerate(columns)]
        if raster is None:
            regions: SmallInts = self.filter.partition.region_of(np.column_stack(codes)).astype(self._small)
        else:
            regions = self._region_of_cell.take(raster.cell_of(codes))
        # Missing values have the code of what lies below the domain: few rows, so only these are looked at again.
        beyond = np.flatnonzero(regions == self.filter.partition.regions)
        if len(beyond) and self.filter.partition.missing:
            missing = np.column_stack([np.isnan(column[beyond]) for column in columns])
            regions[beyond] = self._of_pattern[patterns(missing)]
        return regions

    def _decide(self, regions: SmallInts, sampled: Marks) -> Marks:
        keep = np.ones(len(regions), dtype=bool)
        filtered: NDArray[np.int64] | None = None
        if self.filter.sample_every:
            filtered = np.flatnonzero(~sampled)
            regions = regions[filtered]
        order = regions.argsort(kind="stable")
        count = np.bincount(regions, minlength=len(self._thresholds))
        # How many rows of its region came before each row, modulo the unit of the thresholds, in sorted order.
        first = (self._produced - np.cumsum(count) + count) % UNIT
        earlier = np.repeat(first.astype(np.uint32), count) + np.arange(len(regions), dtype=np.uint32)
        threshold = np.repeat(self._thresholds, count)
        # After k rows ceil(k * threshold) are dropped, so the next row is if what was dropped in excess, less than one
        # row, is below the threshold; unsigned numbers wrap around as this needs.
        excess = np.negative(earlier * threshold) & np.uint32(UNIT - 1)
        sorted_keep = excess >= threshold
        self._produced += count
        if filtered is None:
            keep[order] = sorted_keep
        else:
            keep[filtered[order]] = sorted_keep
        return keep
