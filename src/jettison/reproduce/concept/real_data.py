"""Real streams, where the folder that `JETTISON_DATA` names holds them; without it the generators stand alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from jettison.reproduce.concept.streams import Stream, Window

_WEEK_MS = 7 * 24 * 3600 * 1000


def real_streams(windows: int) -> list[Stream]:
    """Those of the known streams whose files are there, with up to `windows` windows each."""
    folder = os.environ.get("JETTISON_DATA")
    if not folder:
        return []
    loaders: list[tuple[str, Callable[[Path, int], Stream]]] = [
        ("nyc_yellow_taxi_samples/yellow_tripdata_10k_per_month_2018_2020.parquet", taxi_rides),
        ("flights_2001_3m/flights_2001h1.parquet", flights),
        ("flights_2001_3m/flights_2001h1.parquet", flights_by_route),
        ("google_cluster_2011/job_events_full.parquet", cluster_jobs),
        ("google_cluster_2011/task_events_sample_16k.parquet", cluster_tasks),
    ]
    return [load(Path(folder) / name, windows) for name, load in loaders if (Path(folder) / name).exists()]


def taxi_rides(path: Path, windows: int) -> Stream:
    """Fare by route; three years folded onto one week, cut into windows of 100,000 rows in order of time of week."""
    table = pq.read_table(path)
    time = table["dropoff_datetime"].to_numpy().astype("datetime64[ms]").astype(np.int64)
    order = np.argsort((time - np.datetime64("2018-01-01", "ms").astype(np.int64)) % _WEEK_MS, kind="stable")
    zones = [table[f"{end}_location_id"].to_numpy().astype(np.int64) for end in ("pickup", "dropoff")]
    fare = np.clip(table["fare_amount"].to_numpy().astype(float), 0, 500)
    whole = table["in_month"].to_numpy(zero_copy_only=False)[order]
    route = (zones[0] * 1000 + zones[1])[order][whole]
    cuts = np.arange(0, len(route) - 99_999, 100_000)[:windows]
    return _stream(
        "taxi rides", "real taxi rides by route", route, fare[order][whole], [(c, c + 100_000) for c in cuts]
    )


def flights(path: Path, windows: int) -> Stream:
    """Distance flown by origin, in windows of 100,000 flights."""
    table = pq.read_table(path, columns=["origin", "distance"])
    origin = table["origin"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    cuts = np.arange(0, len(origin) - 99_999, 100_000)[:windows]
    values = table["distance"].to_numpy().astype(float)
    return _stream("flights", "real flights by origin, distance", origin, values, [(c, c + 100_000) for c in cuts])


def flights_by_route(path: Path, windows: int) -> Stream:
    """Minutes late by route, where early is 0: values with a heavy tail; in windows of 100,000 flights."""
    table = pq.read_table(path, columns=["origin", "destination", "delay"])
    ends = [table[end].combine_chunks().dictionary_encode().indices.to_numpy() for end in ("origin", "destination")]
    route = ends[0].astype(np.int64) * 1000 + ends[1].astype(np.int64)
    cuts = np.arange(0, len(route) - 99_999, 100_000)[:windows]
    late = np.maximum(table["delay"].to_numpy().astype(float), 0.0)
    return _stream("routes", "real flights by route, minutes late", route, late, [(c, c + 100_000) for c in cuts])


def cluster_jobs(path: Path, windows: int) -> Stream:
    """Run time by scheduling class, which has a very heavy tail, in windows of 100,000 ended jobs."""
    table = pq.read_table(path, columns=["time_us", "sched_class", "runtime_s"])
    values = table["runtime_s"].to_numpy(zero_copy_only=False).astype(float)
    ended = np.flatnonzero(np.isfinite(values))
    ended = ended[np.argsort(table["time_us"].to_numpy()[ended], kind="stable")]
    cuts = np.arange(0, len(ended) - 99_999, 100_000)[:windows]
    group = table["sched_class"].to_numpy().astype(np.int64)[ended]
    return _stream(
        "cluster jobs", "real jobs by class, run time", group, values[ended], [(c, c + 100_000) for c in cuts]
    )


def cluster_tasks(path: Path, windows: int) -> Stream:
    """CPU request by scheduling class in windows of 60 s: the paper's query on eleven minutes of its data."""
    table = pq.read_table(path, columns=["ts", "sched_class", "cpu"])
    time = table["ts"].to_numpy()
    edges = np.searchsorted(time, np.arange(time[0], time[-1] + 60, 60))
    spans = [(int(a), int(b)) for a, b in pairwise(edges) if b - a >= 200][:windows]
    group = table["sched_class"].to_numpy().astype(np.int64)
    return _stream("cluster tasks", "real tasks by class, CPU request", group, table["cpu"].to_numpy(), spans)


def _stream(
    name: str, about: str, groups: NDArray[np.int64], values: NDArray[np.float64], spans: list[tuple[int, int]]
) -> Stream:
    distinct, number = np.unique(groups, return_inverse=True)
    made = [Window(number[a:b].astype(np.int64), values[a:b].astype(float)) for a, b in spans]
    return Stream(name, about, made, len(distinct))
