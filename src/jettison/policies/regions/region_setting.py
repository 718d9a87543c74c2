"""Drop by region of the data space: each region keeps its own share of the rows. And what regions a plan can hold."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jettison.core.decision import Candidates, Decision, by_share, everything
from jettison.core.documents import Int32, Seconds, Share
from jettison.core.setting import Setting, check_together
from jettison.core.spec import Spec
from jettison.errors import refuse
from jettison.source.partition import Partition
from jettison.source.raster import Ints, Raster
from jettison.source.space import CELLS, Space

_EDGES = (1,), (CELLS + 1,)  # of the domain


@dataclass(frozen=True, slots=True)
class RegionDrop(Setting):
    """Keep each row with the probability of the region that it lies in, decided by a hash of its identity.

    The regions are laid out as a raster: along each attribute the ascending `cuts` part the codes of the values into
    places, and the places along all attributes, the last one varying fastest, are the number of a cell. A row that is
    kept at some share is kept at every larger one.

    Parameters
    ----------
    keep_fraction
        Share of the rows expected to be kept, as their regions were filled so far.
    space
        Fingerprint of the attributes that the codes belong to. A backend that guards other attributes keeps all rows.
    cuts
        Per attribute the first code of each place but the lowest, the domain's edges first and last.
    cells
        Region of each cell.
    missing
        Region of rows with missing values, by which of them are: entry number n is for rows without the attributes of
        which n has the bits set. The first entry is for rows with all values of which some lie outside the domain.
    keep
        Share kept of each region; the last one belongs to rows outside the domain.
    late_keep_fraction, late_keep
        The same for rows older than `late_after_s` when their micro-batch starts; `None` treats them like all others.
    late_after_s
        Age in seconds from which a row counts as late.

    Examples
    --------
    >>> RegionDrop().keeps_everything
    True
    """

    keep_fraction: Share = 1.0
    space: int = 0
    cuts: tuple[tuple[Int32, ...], ...] = ()
    cells: tuple[Int32, ...] = ()
    missing: tuple[Int32, ...] = ()
    keep: tuple[Share, ...] = ()
    late_keep_fraction: Share | None = None
    late_keep: tuple[Share, ...] | None = None
    late_after_s: Seconds | None = None

    kind: ClassVar[str] = "region"

    @property
    def keep_fraction_of_late(self) -> float:
        return self.keep_fraction if self.late_keep_fraction is None else self.late_keep_fraction

    @property
    def keeps_everything(self) -> bool:
        return all(share >= 1.0 for share in (*self.keep, *(self.late_keep or ())))

    def decide(self, spec: Spec, rows: Candidates) -> Decision:
        """By the hash of the identity, against the share of the region; attributes are columns by their names."""
        assert isinstance(spec, RegionSpec)
        if self.keeps_everything:
            return everything(rows)
        points = spec.space.points(rows.columns)
        codes = spec.space.codes(points)
        places = [np.searchsorted(cuts, codes[:, axis], side="right") for axis, cuts in enumerate(self.cuts)]
        inside = np.array(self.cells)[np.ravel_multi_index(places, [len(cuts) + 1 for cuts in self.cuts])]
        pattern = np.isnan(points) @ (1 << np.arange(spec.space.dimensions))
        region = np.where(pattern > 0, np.array(self.missing)[pattern], inside)
        keep, late = np.array(self.keep), np.array(self.keep if self.late_keep is None else self.late_keep)
        return by_share(rows.in_time(keep[region], late[region]), rows.hashes)

    def check(self) -> None:
        """Cuts, cells and shares make one raster; late rows have all of their settings, or none."""
        check_together(
            late_keep_fraction=self.late_keep_fraction, late_keep=self.late_keep, late_after_s=self.late_after_s
        )
        if not self.keep and not self.cells and not self.cuts and not self.missing:
            return
        ascending = all(one == tuple(sorted(set(one))) and (one[:1], one[-1:]) == _EDGES for one in self.cuts)
        # A region for each pattern of missing values bounds the number of attributes, and so the product.
        complete = len(self.missing) == 1 << len(self.cuts) and len(self.cells) == math.prod(
            len(one) + 1 for one in self.cuts
        )
        if not ascending or not complete:
            refuse(
                f"ascending cuts from 1 to {CELLS + 1}, all cells between them, and a region for each pattern of nulls",
                f"{len(self.cells)} cells, {len(self.missing)} patterns and the cuts {self.cuts}",
                hint="`Raster.of` lays out cuts and cells, `Partition.of_pattern` regions of missing values",
            )
        shares = {len(self.keep), len(self.keep if self.late_keep is None else self.late_keep)}
        if len(shares) != 1 or not all(0 <= region < len(self.keep) for region in (*self.cells, *self.missing)):
            refuse(
                "cells that name a region with a share to keep",
                str(sorted(shares)),
                hint="number regions from 0, with one share each in `keep`, and in `late_keep` where given",
            )


@dataclass(frozen=True, slots=True)
class RegionSpec(Spec):
    """The data space, and which part of the rows is kept everywhere as a sample: one in so many, 0 for none."""

    space: Space
    sample_every: int = 0

    kind: ClassVar[str] = RegionDrop.kind


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
