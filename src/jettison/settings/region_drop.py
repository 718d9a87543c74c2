"""Drop by region of the data space: each region keeps its own share of the rows."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

from jettison.errors import InvalidSetting, explain
from jettison.settings.base import check_fraction, check_late

CODES = 2**24
"""Codes of a domain are 1 to this."""


@dataclass(frozen=True, slots=True)
class RegionDrop:
    """Keep each row with the probability of the region that it lies in, decided by a hash of its identity.

    The regions are laid out as a raster: along each attribute the ascending `cuts` part the codes of the values into
    places, and the places along all attributes, the last one varying fastest, are the number of a cell. A row that is
    kept at some share is kept at every larger one.

    Parameters
    ----------
    keep_fraction
        Share of all rows expected to be kept.
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

    keep_fraction: float = 1.0
    space: int = 0
    cuts: tuple[tuple[int, ...], ...] = ()
    cells: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    keep: tuple[float, ...] = ()
    late_keep_fraction: float | None = None
    late_keep: tuple[float, ...] | None = None
    late_after_s: float | None = None

    kind: ClassVar[str] = "region"

    def __post_init__(self) -> None:
        # Lists come back from JSON where tuples went in.
        object.__setattr__(self, "cuts", tuple(tuple(one) for one in self.cuts))
        object.__setattr__(self, "cells", tuple(self.cells))
        object.__setattr__(self, "missing", tuple(self.missing))
        object.__setattr__(self, "keep", tuple(self.keep))
        if self.late_keep is not None:
            object.__setattr__(self, "late_keep", tuple(self.late_keep))
        check_fraction("keep_fraction", self.keep_fraction)
        for share in self.keep:
            check_fraction("keep", share)
        check_late(self.late_after_s, late_keep_fraction=self.late_keep_fraction, late_keep=self.late_keep)
        self._check_raster()

    @property
    def keeps_everything(self) -> bool:
        """Whether no row at all is dropped, late or not."""
        return all(share >= 1.0 for share in (*self.keep, *(self.late_keep or ())))

    def _check_raster(self) -> None:
        if not self.keep and not self.cells and not self.cuts and not self.missing:
            return
        numbers = (*self.cells, *self.missing, *itertools.chain(*self.cuts))
        if not all(type(number) is int for number in numbers):
            raise InvalidSetting(
                explain(
                    "whole numbers as cuts, cells and regions",
                    str(next(number for number in numbers if type(number) is not int)),
                    hint="cuts are codes, cells and patterns of missing values name a region",
                )
            )
        if any(not one or one[0] != 1 or one[-1] != CODES + 1 for one in self.cuts):
            raise InvalidSetting(
                explain(
                    f"cuts that begin with 1 and end with {CODES + 1}, the edges of the domain",
                    str(self.cuts),
                    hint="`Raster.of` lays them out so",
                )
            )
        if len(self.missing) != 1 << len(self.cuts):
            raise InvalidSetting(
                explain(
                    f"a region for each of {1 << len(self.cuts)} patterns of missing values",
                    str(len(self.missing)),
                    hint="`Partition.of_pattern` gives them",
                )
            )
        expected = math.prod(len(one) + 1 for one in self.cuts)
        if len(self.cells) != expected:
            raise InvalidSetting(
                explain(
                    f"{expected} cells between the cuts",
                    str(len(self.cells)),
                    hint="n cuts of an attribute make n + 1 cells along it: pass the product over all attributes",
                )
            )
        if any(a >= b for one in self.cuts for a, b in itertools.pairwise(one)):
            raise InvalidSetting(
                explain(
                    "cuts in ascending order",
                    str(self.cuts),
                    hint="sort the cuts of each attribute, and name each once",
                )
            )
        shares = {len(self.keep), len(self.keep if self.late_keep is None else self.late_keep)}
        if len(shares) != 1 or not all(0 <= region < len(self.keep) for region in (*self.cells, *self.missing)):
            raise InvalidSetting(
                explain(
                    "cells that name a region with a share to keep",
                    str(sorted(shares)),
                    hint="number regions from 0, with one share each in `keep`, and in `late_keep` where given",
                )
            )
