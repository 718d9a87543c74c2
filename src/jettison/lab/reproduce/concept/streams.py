"""Streams, one window after the other: made from a seed with the shapes that the paper states, and real ones.

Real ones are read where the folder that `JETTISON_DATA` names holds them; without it the generators stand alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]
_SPREAD, _VARIATION = 0.62, 0.37  # of the logarithm of group means; of values within a group, relative to their mean


@dataclass(frozen=True, eq=False)
class Window:
    """Group, a number from 0, and value of each row of one window, in order of arrival."""

    groups: Keys
    values: Floats

    @property
    def rows(self) -> int:
        return len(self.groups)


@dataclass(frozen=True, eq=False)
class Stream:
    """Consecutive windows of one stream, with groups below `group_count`.

    The first window only warms up methods that remember; it is not measured.
    """

    name: str
    windows: Sequence[Window]
    group_count: int

    def scatter(self) -> tuple[float, float]:
        """Standard deviation of values within their group and window over its mean, and the part of their variance that
        comes from the hundredth of the rows that are furthest from their mean.
        """
        squares, relative = [], []
        for window in self.windows:
            rows = np.maximum(np.bincount(window.groups), 1)
            mean = np.bincount(window.groups, window.values) / rows
            squares.append((window.values - mean[window.groups]) ** 2)
            deviation = np.sqrt(np.bincount(window.groups, squares[-1]) / rows)
            there = mean[window.groups] > 0
            relative.append(deviation[window.groups][there] / mean[window.groups][there])
        furthest = np.sort(np.concatenate(squares))[::-1]
        return float(np.mean(np.concatenate(relative))), float(furthest[: len(furthest) // 100].sum() / furthest.sum())


def grouped(name: str, popularity: Floats, *, rows: int, windows: int, drift: float, seed: int) -> Stream:
    """Groups that trade places: in every window a share `drift` of all groups changes its popularity.

    Of those that change, half swap popularity with each other (heavy ones turn rare and rare ones heavy) and half make
    room for groups that were never there. Group means are log-normal, values within a group gamma distributed, with the
    spread that fares by route have in New York's taxi records.
    """
    random = np.random.default_rng([seed, len(popularity)])
    identity, born = np.arange(len(popularity)), len(popularity)
    share = popularity / popularity.sum()
    drawn = []
    for number in range(windows):
        if number:
            changed = random.permutation(len(identity))[: round(drift * len(identity))]
            swapped, replaced = np.array_split(changed, 2)
            identity[swapped] = random.permutation(identity[swapped])
            identity[replaced] = np.arange(born, born + len(replaced))
            born += len(replaced)
        drawn.append(identity[random.choice(len(identity), rows, p=share)])
    mean = random.lognormal(2.5, _SPREAD, born)
    shape = 1.0 / _VARIATION**2
    made = [Window(groups, mean[groups] * random.gamma(shape, 1.0 / shape, rows)) for groups in drawn]
    return Stream(name, made, born)


def taxi_like(seed: int, windows: int, *, rows: int = 100_000) -> Stream:
    """About 100,000 rides a window on some 8,300 routes with a heavy tail, 30 % drift."""
    popularity = np.asarray((np.arange(16_000) + 40.0) ** -1.45, float)
    return grouped("taxi-like", popularity, rows=rows, windows=windows, drift=0.3, seed=seed)


def zipf(seed: int, windows: int, *, rows: int = 100_000, groups: int = 500) -> Stream:
    """500 groups by Zipf's law, 40 % drift: a heavy tail with a budget of several rows for every group."""
    popularity = np.asarray(np.arange(1, groups + 1.0) ** -1.5, float)
    return grouped("zipf", popularity, rows=rows, windows=windows, drift=0.4, seed=seed)


def cluster_like(seed: int, windows: int) -> Stream:
    """Twelve classes, as many as the cluster trace has priorities, of which most are rare, in windows of 320,000 rows.

    The paper gives no class sizes. That Uniform loses more than 40 % at 2 % of the rows says that about half of the
    classes hold only some rows out of 320,000: Zipf's law with exponent 5 is such a skew.
    """
    popularity = np.asarray(np.arange(1, 13.0) ** -5, float)
    return grouped("cluster-like", popularity, rows=320_000, windows=windows, drift=0.0, seed=seed)


def four_classes(seed: int, windows: int) -> Stream:
    """Four classes with the shares of the scheduling classes in a slice of the cluster trace."""
    popularity = np.array([0.813, 0.149, 0.035, 0.003])
    return grouped("four classes", popularity, rows=320_000, windows=windows, drift=0.0, seed=seed)


def packets(seed: int, windows: int, *, rows: int = 46_000) -> Stream:
    """Packet sizes, one group: small ones, full ones and some in between."""
    random = np.random.default_rng([seed, 3])
    made = []
    for _ in range(windows):
        kind = random.choice(3, rows, p=[0.5, 0.2, 0.3])
        size = np.choose(kind, [random.integers(40, 64, rows), np.full(rows, 1500), random.integers(64, 1500, rows)])
        made.append(Window(np.zeros(rows, np.int64), size.astype(float)))
    return Stream("packets", made, 1)


Rows = tuple[Keys, Floats]
"""Group and value of every row, in order of time."""
_WEEK_MS = 7 * 24 * 3600 * 1000
_ROWS = 100_000  # a window


def _taxi_rides(table: pa.Table) -> Rows:
    """Fare by route; three years folded onto one week, in order of time of week."""
    time = table["dropoff_datetime"].to_numpy().astype("datetime64[ms]").astype(np.int64)
    order = np.argsort((time - np.datetime64("2018-01-01", "ms").astype(np.int64)) % _WEEK_MS, kind="stable")
    order = order[table["in_month"].to_numpy(zero_copy_only=False)[order]]
    route = _numbers(table, "pickup_location_id") * 1000 + _numbers(table, "dropoff_location_id")
    return route[order], np.clip(table["fare_amount"].to_numpy().astype(float), 0, 500)[order]


def _flights(table: pa.Table) -> Rows:
    return _codes(table, "origin"), table["distance"].to_numpy().astype(float)


def _flights_by_route(table: pa.Table) -> Rows:
    """Minutes late, where early is 0: values with a heavy tail."""
    late = np.maximum(table["delay"].to_numpy().astype(float), 0.0)
    return _codes(table, "origin") * 1000 + _codes(table, "destination"), late


def _cluster_jobs(table: pa.Table) -> Rows:
    """Run time of ended jobs by scheduling class, which has a very heavy tail."""
    values = table["runtime_s"].to_numpy(zero_copy_only=False).astype(float)
    ended = np.flatnonzero(np.isfinite(values))
    ended = ended[np.argsort(table["time_us"].to_numpy()[ended], kind="stable")]
    return _numbers(table, "sched_class")[ended], values[ended]


_FLIGHTS = "flights_2001_3m/flights_2001h1.parquet"
_STREAMS: dict[str, tuple[str, Callable[[pa.Table], Rows]]] = {
    "taxi rides": ("nyc_yellow_taxi_samples/yellow_tripdata_10k_per_month_2018_2020.parquet", _taxi_rides),
    "flights": (_FLIGHTS, _flights),
    "routes": (_FLIGHTS, _flights_by_route),
    "cluster jobs": ("google_cluster_2011/job_events_full.parquet", _cluster_jobs),
}


def real_streams(windows: int) -> list[Stream]:
    """Those of the known streams whose files are there, with up to `windows` windows of 100,000 rows each."""
    folder = os.environ.get("JETTISON_DATA")
    if not folder:
        return []
    there = {name: (Path(folder) / file, read) for name, (file, read) in _STREAMS.items()}
    return [_stream(name, read(pq.read_table(path)), windows) for name, (path, read) in there.items() if path.exists()]


def _stream(name: str, rows: Rows, windows: int) -> Stream:
    groups, values = rows
    distinct, number = np.unique(groups, return_inverse=True)
    cuts = np.arange(0, len(groups) + 1, _ROWS)[: windows + 1]
    made = [Window(number[a:b].astype(np.int64), values[a:b].astype(float)) for a, b in pairwise(cuts)]
    return Stream(name, made, len(distinct))


def _numbers(table: pa.Table, column: str) -> Keys:
    return np.asarray(table[column].to_numpy(), np.int64)


def _codes(table: pa.Table, column: str) -> Keys:
    return np.asarray(table[column].combine_chunks().dictionary_encode().indices.to_numpy(), np.int64)
