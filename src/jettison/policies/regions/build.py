"""Construction of a sifter from queries and a sample: partition, consolidate, configure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.errors import did_you_mean, refuse
from jettison.policies.regions.configure import Configuration, configure
from jettison.policies.regions.consolidate import RegionStatistics, consolidate, frequencies
from jettison.policies.regions.even_regions import equi_depth, uniform_grid
from jettison.policies.regions.qdpart import qdpart
from jettison.policies.regions.queries import RangeQueries
from jettison.source.partition import MOST_PATTERNS, MOST_REGIONS, OTHER_PATTERNS, Partition, with_missing
from jettison.source.region_filter import UNIT, Outside, RegionFilter
from jettison.source.space import Codes, Floats

Partitioning = Literal["grid", "data", "query", "qdpart"]
PARTITIONINGS: tuple[Partitioning, ...] = get_args(Partitioning)


@dataclass(frozen=True, slots=True)
class Sample:
    """Unfiltered rows, with what construction needs of them, computed once.

    Parameters
    ----------
    codes
        Codes of the rows.
    hits
        Number of queries that each row satisfies.
    at_stake, unseen
        What is lost with each row, and what is lost with the rest of each query, of which no row was sampled: the
        QoS at stake in a query is shared alike by its sampled rows and one more, wherever in the query that may lie.
    """

    codes: Codes
    hits: NDArray[np.int64]
    at_stake: Floats
    unseen: Floats

    @classmethod
    def of(cls, queries: RangeQueries, points: ArrayLike) -> Sample:
        """The sampled `points`, shape (rows, attributes)."""
        given = np.asarray(points, dtype=np.float64).reshape(-1, queries.space.dimensions)
        sharing, hits, at_stake = np.ones(len(queries)), np.zeros(len(given), dtype=np.int64), np.zeros(len(given))
        for query, _ in queries.matching_blocks(given):
            sharing += np.bincount(query, minlength=len(queries))
        unseen = queries.weights * queries.slopes / sharing
        for query, row in queries.matching_blocks(given):
            hits += np.bincount(row, minlength=len(given))
            at_stake += np.bincount(row, weights=unseen[query], minlength=len(given))
        return cls(queries.space.codes(given), hits, at_stake, unseen)


@dataclass(frozen=True, slots=True)
class Built:
    """A partition with its statistics; configured for every throttler without looking at the queries again."""

    queries: RangeQueries
    partitioning: Partitioning
    partition: Partition
    statistics: RegionStatistics

    def configured(self, throttler: float, fairness: float) -> Configuration:
        """The best thresholds for a throttler.

        Rows with missing values of a kind that the sample does not show are dropped like all others on average: nothing
        is known of them, and the throttler is met however many there are.
        """
        known = self.statistics
        made = configure(known.qos, known.frequency, known.has_queries, throttler=throttler, fairness=fairness)
        if OTHER_PATTERNS in self.partition.missing:
            unknown = self.partition.boxes + self.partition.missing.index(OTHER_PATTERNS)
            if known.frequency[unknown] == 0.0:
                made.drop[unknown] = min(max(1.0 - throttler, 0.0), 1.0)
        return made

    def filter(
        self,
        throttler: float,
        fairness: float,
        *,
        outside: Outside = "keep",
        sample_every: int = 0,
        reserve: float = 0.0,
    ) -> RegionFilter:
        """The finished filter. Sampled rows are paid for: they and the filtered ones together meet the throttler.

        So is the reserve, a share of what passes that is spread over all rows alike, the sample included: with one,
        every region keeps some of its rows.
        """
        sampled = 1.0 / sample_every if sample_every else 0.0
        always = max(sampled, reserve * throttler)
        spared = (always - sampled) / (1.0 - sampled) if sampled < 1.0 else 0.0
        drop = (1.0 - spared) * self.configured(self.beside_sample(throttler, always, outside), fairness).drop
        if spared > 0.0:
            drop = np.minimum(drop, 1.0 - 1.0 / UNIT)  # what is rounded up must not become all
        return RegionFilter.of(self.queries.space, self.partition, drop, outside=outside, sample_every=sample_every)

    def beside_sample(self, throttler: float, sampled: float, outside: Outside) -> float:
        """Share to let pass of the rows that are not sampled; rows outside the domain count as passing."""
        rest = (throttler - sampled) / (1.0 - sampled) if sampled < 1.0 else 1.0
        beyond = 1.0 - float(self.statistics.frequency.sum())
        return rest + beyond if outside == "drop" else rest


def partition_by(partitioning: Partitioning, queries: RangeQueries, sample: Sample, regions: int) -> Partition:
    """Partition the space of `queries` by one of the four methods."""
    if not 1 <= regions <= MOST_REGIONS - MOST_PATTERNS - 1:
        refuse(
            f"`regions` must lie between 1 and {MOST_REGIONS - MOST_PATTERNS - 1:,}",
            repr(regions),
            hint="16 are enough for most streams, 100 for most gains",
        )
    space = queries.space
    if partitioning == "grid":
        return uniform_grid(space, regions)
    if partitioning == "data":
        return equi_depth(space, sample.codes, regions)
    if partitioning == "query":
        lowest, highest = space.low, np.array([one.end for one in space.attributes])
        centres = (np.clip(queries.low, lowest, highest) + np.clip(queries.high, lowest, highest)) / 2.0
        centres = np.where([one.whole for one in space.attributes], np.floor(centres), centres)
        return equi_depth(space, space.codes(centres), regions)
    if partitioning == "qdpart":
        return qdpart(space, sample.codes, sample.hits, regions)
    hint = did_you_mean(partitioning, PARTITIONINGS, otherwise='"auto" compares them')
    refuse(f"`partitioning` must be one of auto, {', '.join(PARTITIONINGS)}", repr(partitioning), hint=hint)


def build(queries: RangeQueries, sample: Sample, *, partitioning: Partitioning, regions: int) -> Built:
    """Partition, with regions for rows with missing values, and consolidate."""
    partition = with_missing(partition_by(partitioning, queries, sample, regions), sample.codes)
    frequency = frequencies(partition, partition.region_of(sample.codes))
    return Built(queries, partitioning, partition, consolidate(queries, partition, frequency))
