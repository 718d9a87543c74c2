"""Query consolidation: what all queries together lose when a region is dropped, in one pass over the queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.policies.regions import matching
from jettison.policies.regions.queries import RangeQueries
from jettison.source.partition import Partition
from jettison.source.space import CELLS, Floats

# A box thinner than this share of a region counts as this thick: `x = 5` has no volume, but rows can match it.
_THINNEST = 1e-9


@dataclass(frozen=True, slots=True)
class RegionStatistics:
    """All that the configuration of thresholds needs to know of queries and data.

    Parameters
    ----------
    qos
        A of each region: the QoS that is lost when all its rows are dropped.
    frequency
        f of each region: its share of the sampled rows.
    has_queries
        Whether any query meets the region.
    constant
        The part of the overall QoS that no threshold changes: queries that no sampled row reaches among it.
    wanted
        Share of the rows that each query is expected to match.
    """

    qos: Floats
    frequency: Floats
    has_queries: NDArray[np.bool_]
    constant: float
    wanted: Floats

    def overall(self, drop: Floats) -> float:
        """Overall QoS that the model expects under given thresholds, eq. 9."""
        return self.constant + float(self.qos @ (1.0 - drop))


def frequencies(partition: Partition, regions_of_sample: NDArray[np.int32]) -> Floats:
    """Share of the sampled rows in each region; rows outside the domain have their share but no region."""
    counts = np.bincount(regions_of_sample, minlength=partition.regions + 1)
    return counts[: partition.regions] / max(len(regions_of_sample), 1)


def consolidate(queries: RangeQueries, partition: Partition, frequency: Floats) -> RegionStatistics:
    """Region QoS of every region.

    Rows are taken to be spread evenly within a region. A query without rows under that model counts as complete
    whatever is dropped. A region of frequency 0 has QoS 0.

    Notes
    -----
    Departure from [1]_: eq. 8 puts completeness, with its factor (1 - d), into the region QoS, which then stands for
    itself in eq. 9; here the region QoS does not contain the threshold.
    """
    matters = queries.weights * queries.slopes
    qos, has_queries, wanted = _shared_out(queries, partition, frequency, matters)
    constant = float(queries.weights.sum() - matters.sum()) + float(matters[wanted <= 0.0].sum())
    return RegionStatistics(qos, frequency, has_queries, constant, wanted)


def shared_by_volume(queries: RangeQueries, partition: Partition, value: Floats) -> Floats:
    """What falls to each region of `value`, one number for each query, if rows are spread evenly within each query.

    That is about right for queries so small that the density of rows hardly changes inside them, wherever cuts lie.
    """
    starts, ends, _ = _region_positions(partition)
    volume = np.prod((ends - starts) / CELLS, axis=0)
    volume[partition.boxes :] = 0.0
    return _shared_out(queries, partition, volume, value)[0]


def _shared_out(
    queries: RangeQueries, partition: Partition, rows_of_region: Floats, value: Floats
) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Share the value of each query out to regions, by its rows in them: per region the sum, and whether it is met.

    Last, per query, its rows in all regions; without any, its value falls to no region.
    """
    edges = np.searchsorted(queries.owner, np.arange(len(queries) + 1))
    per_row = np.zeros(partition.regions)
    has_queries = np.zeros(partition.regions, dtype=bool)
    wanted = np.zeros(len(queries))
    for query, after in matching.blocks(np.diff(edges) * partition.regions):
        boxes = slice(edges[query], edges[after])
        share = _overlap(queries, boxes, partition)
        has_queries |= share.any(axis=0)
        owner = queries.owner[boxes] - query
        rows = np.bincount(owner, weights=share @ rows_of_region, minlength=after - query)
        known = rows > 0.0
        wanted[query:after] = rows
        of_each_row = np.where(known, value[query:after] / np.where(known, rows, 1.0), 0.0)
        per_row += of_each_row[owner] @ share
    return per_row * rows_of_region, has_queries, wanted


def _region_positions(partition: Partition) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Where regions start and end along each attribute, and where that attribute's values are missing, per attribute.

    Rows with missing values may lie anywhere along the other attributes.
    """
    low, high = partition.bounds()
    beside = len(partition.missing)
    starts = np.pad(low.T.astype(np.float64), ((0, 0), (0, beside)), constant_values=1.0)
    ends = np.pad(high.T.astype(np.float64), ((0, 0), (0, beside)), constant_values=CELLS + 1.0)
    missing = np.array([0] * partition.boxes + list(partition.missing))
    return starts, ends, (missing >> np.arange(partition.dimensions)[:, None] & 1).astype(bool)


def _overlap(queries: RangeQueries, boxes: slice, partition: Partition) -> Floats:
    """Share of each region's volume that each of the queries' boxes covers, shape (boxes, regions).

    A box thinner than a cell lies in the cell of its lower edge. Missing values are covered by boxes that hold them.
    """
    space, lowest = queries.space, queries.low[boxes]
    low, high, cells = space.positions(lowest), space.positions(queries.high[boxes]), space.codes(lowest)
    share = np.ones((len(low), partition.regions))
    for axis, (starts, ends, missing) in enumerate(zip(*_region_positions(partition), strict=True)):
        covered = np.minimum(high[:, axis, None], ends)
        covered -= np.maximum(low[:, axis, None], starts)
        covered /= ends - starts
        thin = high[:, axis] <= low[:, axis]
        if thin.any():
            cell = cells[thin, axis, None]
            covered[thin] = np.where((cell >= starts) & (cell < ends), _THINNEST, 0.0)
        np.maximum(covered, 0.0, out=covered)
        if missing.any():
            covered[:, missing] = np.isneginf(lowest[:, axis, None])
        share *= covered
    return share
