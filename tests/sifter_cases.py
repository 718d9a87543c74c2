"""Awkward spaces, rows and queries, drawn from a seed: ties, duplicates, constants, points outside, missing values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from jettison.policies.regions.queries import RangeQueries
from jettison.policies.regions.region_setting import RegionDrop, fingerprint
from jettison.source.partition import Partition
from jettison.source.raster import Raster
from jettison.source.region_filter import RegionFilter
from jettison.source.space import Attribute, Floats, Space


def random_space(random: np.random.Generator, most: int = 8) -> Space:
    kinds = [
        lambda name: Attribute.number(name, -5.0, 7.5),
        lambda name: Attribute.number(name, 1e9, 1e9 + 100),
        lambda name: Attribute.integer(name, -3, 12),
        lambda name: Attribute.category(name, ["a", "b", "c"]),
        lambda name: Attribute.category(name, ["only"]),
    ]
    count = int(random.integers(1, most + 1))
    return Space([kinds[int(random.integers(len(kinds)))](f"x{i}") for i in range(count)])


def random_rows(random: np.random.Generator, space: Space, count: int, *, wild: bool = True) -> np.ndarray:
    columns = []
    for one in space.attributes:
        column = random.uniform(one.low, one.high, count)
        if random.random() < 0.3:
            column = np.full(count, column[0] if count else 0.0)
        if one.whole or random.random() < 0.3:
            column = np.clip(np.rint(column), one.low, one.high)
        if wild:
            column[random.random(count) < 0.05] = random.choice([one.low, one.high, np.nan, one.low - 1, one.high + 2])
        columns.append(column)
    return np.column_stack(columns)


def random_queries(random: np.random.Generator, space: Space, count: int) -> RangeQueries:
    low = random_rows(random, space, count, wild=False)
    width = np.array([one.end - one.low for one in space.attributes])
    high = low + width * random.choice([0.0, 0.05, 0.3, 1.0], (count, space.dimensions))
    high = np.where([one.whole for one in space.attributes], np.floor(high) + 1, high)
    weights = random.random(count) + 0.01
    return RangeQueries.from_boxes(space, low, high, weights=weights, slopes=random.random(count))


def setting_of(space: Space, partition: Partition, shares, *, late=None, late_after_s=None) -> RegionDrop:
    raster = Raster.of(partition)
    assert raster is not None
    return RegionDrop(
        keep_fraction=float(np.mean(shares)),
        space=fingerprint(space),
        cuts=tuple(tuple(axis.cuts.tolist()) for axis in raster.axes),
        cells=tuple(raster.cells.tolist()),
        missing=tuple(partition.of_pattern().tolist()),
        keep=tuple(np.asarray(shares, dtype=float).tolist()),
        late_keep_fraction=None if late is None else float(np.mean(late)),
        late_keep=None if late is None else tuple(late),
        late_after_s=late_after_s,
    )


def drop_of(made: RegionFilter, points: ArrayLike) -> Floats:
    """Share to drop at each point, shape (points, attributes)."""
    beyond = 0.0 if made.outside == "keep" else 1.0
    codes = made.space.codes(np.asarray(points, dtype=np.float64))
    return np.append(made.drop, beyond)[made.partition.region_of(codes)]
