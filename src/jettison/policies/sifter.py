"""Sifter: drop region by region, where the standing queries lose the least."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import ArrayLike

from jettison.errors import InvalidSetting, explain
from jettison.plan import DropPlan
from jettison.policies.uniform_drop import beside_protected
from jettison.settings import RegionDrop
from jettison.sifter import codec
from jettison.sifter.build import Built, Sample
from jettison.sifter.choose import best, candidates
from jettison.sifter.queries import RangeQueries
from jettison.sifter.raster import ZOOMED_MOST_CUTS, Raster, zoomed_crowd
from jettison.sifter.region_filter import Outside, RegionFilter
from jettison.sifter.space import Space
from jettison.stats import Budget, Stats

# A plan's file holds 64 KiB by default, and a cell takes up to four characters of it.
MOST_CELLS = 12_000


class Sifter:
    """Spends the budget on the regions of the data space that many queries want and few rows fill.

    For a server of many standing range queries over one stream. The expected share of rows processed equals the
    budget, and the thresholds are the best that the regions allow: those that lose the least overall QoS while no two
    regions with queries differ by more than `fairness`.

    Parameters
    ----------
    queries
        The standing queries.
    sample
        Rows of the unfiltered stream: a mapping of columns, or an array of coordinates. Some thousands are enough.
    regions
        Granularity of a filter.
    fairness
        Largest difference between the shares dropped in two regions with queries, in [0, 1].
    partitioning
        `"auto"` compares all four by the QoS that the model expects; or one of `"grid"`, `"data"`, `"query"`,
        `"qdpart"`.
    outside
        What happens to rows outside the domain while shedding: all are kept, or all dropped.
    sample_every
        One row in so many is kept in every region, as a sample of the unfiltered stream for the next filter; 0: none.

    Examples
    --------
    >>> from jettison.sifter.space import Attribute
    >>> space = [Attribute.number("price", 0, 100)]
    >>> queries = RangeQueries(space, ["price > 75"])
    >>> sifter = Sifter(queries, {"price": np.linspace(0, 100, 1001)}, regions=4, partitioning="grid")
    >>> sifter.filter(throttler=0.5).drop.round(2)
    array([0.67, 0.67, 0.67, 0.  ])

    Notes
    -----
    On Spark a row's decision is a hash against its region's threshold; at a source it is a pair of counters, see
    `jettison.source`. Where the raster of the regions is too large for a plan, as with many attributes, fewer regions
    are used there.

    References
    ----------
    .. [1] Gedik, Wu, Yu: Efficient Construction of Compact Shedding Filters for Data Stream Processing. ICDE 2007.
    """

    def __init__(
        self,
        queries: RangeQueries,
        sample: ArrayLike | dict[str, ArrayLike],
        *,
        regions: int = 16,
        fairness: float = 0.5,
        partitioning: str = "auto",
        outside: Outside = "keep",
        sample_every: int = 0,
    ) -> None:
        if not 0.0 <= fairness <= 1.0:
            raise InvalidSetting(explain("`fairness` must lie in [0, 1]", repr(fairness)))
        if sample_every < 0 or sample_every == 1:
            raise InvalidSetting(explain("`sample_every` must be 0, or 2 and more", repr(sample_every)))
        self.queries = queries
        self.fairness = fairness
        self._regions, self._partitioning = regions, partitioning
        self._outside, self._sample_every = outside, sample_every
        self._candidates: tuple[Built, ...] = ()
        self.learn(sample)

    def learn(self, sample: ArrayLike | dict[str, ArrayLike]) -> None:
        """Rebuild all regions from a new sample of the unfiltered stream; the next plan uses them."""
        space = self.queries.space
        points = space.points(sample) if isinstance(sample, dict) else np.asarray(sample, dtype=np.float64)
        known = Sample.of(self.queries, points)
        self._candidates = candidates(self.queries, known, regions=self._regions, partitioning=self._partitioning)
        self._on_plan = tuple(self._fitting(one, known) for one in self._candidates)

    def filter(self, throttler: float) -> RegionFilter:
        """The filter that lets a share of `throttler` of the rows pass."""
        chosen = best(self._candidates, throttler, self.fairness)
        return chosen.filter(throttler, self.fairness, outside=self._outside, sample_every=self._sample_every)

    def to_bytes(self, throttler: float) -> bytes:
        """The same as bytes, for `jettison.source.SifterFilter.from_bytes`."""
        return codec.encode(self.filter(throttler))

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """Give every drop point the regional shares that spend the budget."""
        points = {name: self._setting(point.protected_share, budget) for name, point in stats.points.items()}
        return DropPlan(version=0, points=points, cause=budget.cause)

    def _setting(self, protected_share: float, budget: Budget) -> RegionDrop:
        if budget.keep_fraction >= 1.0 and budget.late_keep_fraction >= 1.0:
            return RegionDrop()
        fresh = beside_protected(budget.keep_fraction, protected_share)
        late = beside_protected(budget.late_keep_fraction, protected_share)
        # One raster serves both: regions are chosen for the rows that are in time.
        built = best(self._on_plan, fresh, self.fairness)
        raster = Raster.of(built.partition)
        assert raster is not None  # `_fitting` saw to it
        keep, late_keep = self._shares(built, fresh), self._shares(built, late)
        return RegionDrop(
            keep_fraction=_expected(built, keep),
            space=fingerprint(self.queries.space),
            cuts=tuple(tuple(axis.cuts.tolist()) for axis in raster.axes),
            cells=tuple(raster.cells.tolist()),
            keep=keep,
            late_keep_fraction=_expected(built, late_keep),
            late_keep=late_keep,
            late_after_s=budget.late_after_s,
        )

    def _shares(self, built: Built, throttler: float) -> tuple[float, ...]:
        """Share kept of each region and of rows outside, with the sample that is kept everywhere."""
        if throttler >= 1.0:
            return (1.0,) * (built.partition.regions + 1)
        sampled = 1.0 / self._sample_every if self._sample_every else 0.0
        made = built.filter(throttler, self.fairness, outside=self._outside, sample_every=self._sample_every)
        kept = np.append(1.0 - made.drop, 1.0 if self._outside == "keep" else 0.0)
        return tuple((sampled + (1.0 - sampled) * kept).tolist())

    def _fitting(self, built: Built, sample: Sample) -> Built:
        """`built`, or the finest of its kind whose raster fits a plan."""
        regions = built.partition.regions
        while not _fits(Raster.of(built.partition)):
            regions = max(regions * 3 // 4, 1)
            built = candidates(self.queries, sample, regions=regions, partitioning=built.partitioning)[0]
        return built


def fingerprint(space: Space) -> int:
    """A number that tells spaces apart, the same in every process."""
    return zlib.crc32(repr(space.attributes).encode())


def _fits(raster: Raster | None) -> bool:
    if raster is None or len(raster.cells) > MOST_CELLS:
        return False
    return all(zoomed_crowd(axis.cuts) <= ZOOMED_MOST_CUTS for axis in raster.axes)


def _expected(built: Built, keep: tuple[float, ...]) -> float:
    """Share of all rows kept, by the sample."""
    frequency = built.statistics.frequency
    every = np.append(frequency, max(1.0 - float(frequency.sum()), 0.0))
    return min(float(every @ np.array(keep)), 1.0)
