"""Keeps a sifter up to date: rebuilt when the throttler drifts, corrected when the pass rate misses it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jettison.errors import refuse
from jettison.policies.regions.build import Built, Sample
from jettison.policies.regions.choose import best, candidates
from jettison.policies.regions.consolidate import consolidate
from jettison.policies.regions.queries import RangeQueries
from jettison.source.region_filter import Outside, RegionFilter
from jettison.source.space import Floats


class Update(NamedTuple):
    """A filter to ship, and why."""

    filter: RegionFilter
    cause: str


class AdaptiveSifter:
    """The server's side of source filtering: sample and counts in, filters out.

    Sources send marked sample rows, which give the distribution of the unfiltered stream, and now and then their
    counts of rows per region. When the throttler drifts, a filter is built from the newest sample. When the counts
    show that more or fewer rows pass than wanted, because a sample is only a sample, the installed regions get new
    thresholds from the counts themselves, so that the pass rate meets the throttler while the stream stays as it is.

    Parameters
    ----------
    queries
        The standing queries.
    regions, fairness
        Granularity l of a filter, and its fairness threshold.
    partitioning
        `"auto"`, or one of `"grid"`, `"data"`, `"query"`, `"qdpart"`.
    sample_size
        How many of the newest sampled rows a filter is built from.
    drift
        Change of the throttler that calls for a new filter.
    tolerance
        Relative miss of the pass rate that calls for new thresholds.
    outside, sample_every
        As in `RegionFilter`.
    """

    def __init__(
        self,
        queries: RangeQueries,
        *,
        regions: int = 16,
        fairness: float = 0.5,
        partitioning: str = "auto",
        sample_size: int = 1000,
        drift: float = 0.05,
        tolerance: float = 0.005,
        outside: Outside = "keep",
        sample_every: int = 100,
    ) -> None:
        if sample_size < 1 or drift <= 0.0 or tolerance <= 0.0:
            refuse(
                "positive `sample_size`, `drift` and `tolerance`",
                f"{sample_size}, {drift} and {tolerance}",
                hint="leave them out for 1000 rows, 0.05 and 0.005",
            )
        self.queries = queries
        self._regions, self._fairness, self._partitioning = regions, fairness, partitioning
        self._drift, self._tolerance = drift, tolerance
        self._outside, self._sample_every = outside, sample_every
        self._sample: Floats = np.empty((0, queries.space.dimensions))
        self._sample_size = sample_size
        self._built: Built | None = None
        self._throttler = 1.0
        self._filter: RegionFilter | None = None
        self._counts: dict[str, Floats] = {}

    def collect(self, points: ArrayLike) -> None:
        """Take in marked sample rows, each once; the newest `sample_size` are remembered."""
        new = np.asarray(points, dtype=np.float64).reshape(-1, self.queries.space.dimensions)
        self._sample = np.concatenate([self._sample, new])[-self._sample_size :]

    def observe(self, produced: ArrayLike, source: str = "") -> None:
        """Take in a source's counts of rows per region and outside, since it installed the filter; the last ones count."""
        counts = np.asarray(produced, dtype=np.float64)
        expected = (0 if self._built is None else self._built.partition.regions) + 1
        if counts.shape != (expected,) or counts.min() < 0:
            refuse(
                f"{expected} counts of the installed filter",
                repr(produced),
                hint="pass `SifterFilter.produced` of a source that has installed the last filter",
            )
        self._counts[source] = counts

    def update(self, throttler: float) -> Update | None:
        """The filter for `throttler`, or `None` where the installed one still serves."""
        if self._filter is None or self._built is None or abs(throttler - self._throttler) > self._drift:
            return self._rebuilt(throttler)
        counts = sum(self._counts.values(), np.zeros(self._built.partition.regions + 1))
        if not counts.any():
            return None
        passed = self._pass_rate(counts)
        if abs(passed - throttler) <= self._tolerance * throttler:
            return None
        cause = f"{passed:.4f} of the rows passed instead of {throttler:.4f}"
        return self._installed(with_counts(self._built, counts), throttler, cause)

    def _rebuilt(self, throttler: float) -> Update:
        sample = Sample.of(self.queries, self._sample)
        made = candidates(self.queries, sample, regions=self._regions, partitioning=self._partitioning)
        built = best(made, throttler, self._fairness).built
        cause = f"built for a throttler of {throttler:.4f} by {built.partitioning} from {len(self._sample)} samples"
        return self._installed(built, throttler, cause)

    def _installed(self, built: Built, throttler: float, cause: str) -> Update:
        share = 1.0 / self._sample_every if self._sample_every else 0.0
        if not built.configured(built.beside_sample(throttler, share, self._outside), self._fairness).feasible:
            cause += "; no thresholds meet it, these come nearest"
        self._filter = built.filter(throttler, self._fairness, outside=self._outside, sample_every=self._sample_every)
        self._built, self._throttler, self._counts = built, throttler, {}
        return Update(self._filter, cause)

    def _pass_rate(self, counts: Floats) -> float:
        """Share of all rows that passed, sampled ones among them."""
        assert self._filter is not None
        kept = counts @ (1.0 - np.append(self._filter.drop, 0.0 if self._outside == "keep" else 1.0))
        sampled = 1.0 / self._sample_every if self._sample_every else 0.0
        return float(sampled + (1.0 - sampled) * kept / counts.sum())


def with_counts(built: Built, counts: ArrayLike) -> Built:
    """The same regions with the rows that sources have counted in them and outside, in place of the sample's."""
    rows = np.asarray(counts, dtype=np.float64)
    frequency = rows[: built.partition.regions] / max(rows.sum(), 1.0)
    return replace(built, statistics=consolidate(built.queries, built.partition, frequency))
