"""Real streams, where the folder that `JETTISON_DATA` names holds them; without it the generators stand alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jettison.lab.reproduce.concept.streams import Floats, Keys, Stream, Window

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
