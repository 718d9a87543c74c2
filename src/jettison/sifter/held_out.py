"""What a partitioning is worth on rows that it was not cut from, by cross-fitting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jettison.sifter.build import Built, Partitioning, Sample, partition_by, recounted
from jettison.sifter.partition import Ints
from jettison.sifter.queries import RangeQueries
from jettison.sifter.space import Floats

# Halves: each is cut from as many rows as it is counted on, and a choice costs three constructions of a partitioning.
_FOLDS = 2


class _Fold(NamedTuple):
    """Regions that were cut from the other rows and counted on these, and where these lie in them."""

    built: Built
    region_of: Ints


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A partitioning cut anew from one half of a sample and counted on the other, and the reverse.

    That is how a sifter works: regions are cut from a sample, and thresholds then come from the rows that fall into
    them. Rows are dealt out to the halves in turn, so that a sample in any order gives halves that are alike.
    """

    folds: tuple[_Fold, ...]

    @classmethod
    def of(cls, queries: RangeQueries, sample: Sample, *, partitioning: Partitioning, regions: int) -> HeldOut:
        """Cut, count and consolidate, once for each half; thresholds come later."""
        number = np.arange(len(sample.codes)) % _FOLDS
        folds = []
        for fold in range(_FOLDS):
            partition = partition_by(partitioning, queries, sample.part(number != fold), regions)
            region_of = partition.region_of(sample.part(number == fold).codes)
            folds.append(_Fold(recounted(queries, partitioning, partition, region_of), region_of))
        return cls(tuple(folds))

    def qos_by_row(self, throttler: float, fairness: float) -> Floats:
        """What each row says of the overall QoS under the throttler: their mean is the estimate, their spread its error.

        The error is that of the rows counted. Where more rows pass than were counted, so many others must go, at the
        average price of a row: what all regions earn together, over all their rows.
        """
        return np.concatenate([_qos_by_row(fold, throttler, fairness) for fold in self.folds])


def _qos_by_row(fold: _Fold, throttler: float, fairness: float) -> Floats:
    known = fold.built.statistics
    made = fold.built.configured(throttler, fairness)
    passes = 1.0 - np.append(made.drop, 0.0)[fold.region_of]
    rows = float(known.frequency.sum())
    price = float(known.qos.sum()) / rows if rows > 0.0 else 0.0
    by_row: Floats = known.overall(made.drop) - price * (passes - made.pass_rate)
    return by_row
