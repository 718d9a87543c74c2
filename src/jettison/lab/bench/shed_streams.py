"""Streams that `jettison bench audit` and `jettison bench predictions` shed: the demo's rides, taxi fares and flights.

The real ones are read where the folder that `JETTISON_DATA` names holds them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.console import Console

import jettison as jt
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.scripted import keep, scripted
from jettison.lab.demo.landing import SPARK_SCHEMA, land_all
from jettison.lab.demo.pipeline import shed_fares
from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.uniform.uniform_drop import UniformDrop

_SHARES = (0.5, 0.2, 0.1)
_SCHEMA = "id BIGINT, key BIGINT, value DOUBLE, at TIMESTAMP"
WEEK_US = 7 * 86_400 * 10**6
FLIGHTS = "flights_2001_3m/flights_2001h1.parquet"
TAXI = "nyc_yellow_taxi_samples/yellow_tripdata_10k_per_month_2018_2020.parquet"

Rows = tuple[Any, Any, Any]
"""Keys, values, and event times in microseconds, in their order."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows that are landed in a folder, the query over them, and the policies that shed them."""

    land: Callable[[Path], object]
    schema: str
    row_id: Sequence[str]
    answers: Callable[[DataFrame], DataFrame]
    policies: Mapping[str, Callable[..., Any]]
    key: str = "key"
    runs: int = 1

    def source(self, reader: Any) -> Any:
        """For the live query and for settling it."""
        return reader.format("parquet").schema(self.schema).option("maxFilesPerTrigger", 1)

    def policy(self, name: str) -> Any:
        """Its shares kept change from batch to batch."""
        return self.policies[name](lambda batch: keep(_SHARES[batch % len(_SHARES)]))


@dataclass(frozen=True, slots=True)
class Landed:
    """A stream whose rows lie in the folder `in`, and one of the policies that shed it."""

    folder: Path
    stream: Stream
    policy: str
    name: str


def landed(console: Console, only: str | None = None) -> Iterator[Landed]:
    """Stream by stream and policy by policy; a stream that is not there is named and left out."""
    for name, stream in chosen(streams(), only).items():
        with tempfile.TemporaryDirectory(prefix="jettison-bench-") as scratch:
            try:
                stream.land(Path(scratch) / "in")
            except FileNotFoundError:
                console.print(f"  {name}: not there, JETTISON_DATA names no folder with it", highlight=False)
                continue
            for policy in stream.policies:
                console.print(f"  {name}, {policy} ...", highlight=False)
                yield Landed(Path(scratch), stream, policy, f"{name}, {policy}")


def streams() -> dict[str, Stream]:
    """By name; those of files may not be there."""
    data = Path(os.environ.get("JETTISON_DATA", "../shared/data"))
    demo = partial(land_all, rows=3_000_000, event_speed=20.0)
    by_share = {"UniformDrop": partial(scripted, UniformDrop)}
    return {
        "demo": Stream(demo, SPARK_SCHEMA, ("partition", "offset"), shed_fares, by_share, "zone"),
        "taxi": real(data / TAXI, taxi, "6 hours", runs=5),
        "flights": real(data / FLIGHTS, flights, "1 day"),
    }


def real(file: Path, read: Callable[[pa.Table], Rows], window: str, runs: int = 1) -> Stream:
    """Every answer that has a bound, and a median, by key and window over the rows of a file."""

    def answers(rows: DataFrame) -> DataFrame:
        by_window = rows.withWatermark("at", "1 second").groupBy(F.window("at", window), "key")
        bounded: dict[str, Callable[..., Any]] = {"avg": jt.avg, "sum": jt.sum, "stddev": jt.stddev}
        made = [of("value", window="window").alias(name) for name, of in bounded.items()]
        median = jt.percentile("value", 0.5, window="window").alias("median")
        return by_window.agg(jt.count(window="window").alias("count"), *made, median)

    def concept(script: Any) -> Any:
        return scripted(ConceptDrop, script, group="key", time="at", window=window)

    policies: dict[str, Callable[..., Any]] = {"UniformDrop": partial(scripted, UniformDrop), "ConceptDrop": concept}
    return Stream(
        lambda folder: land(folder, read(pq.read_table(file))), _SCHEMA, ("id",), answers, policies, runs=runs
    )


def land(folder: Path, rows: Rows, files: int = 30) -> None:
    """The rows in files of equal size, in the order of their times."""
    folder.mkdir(parents=True)
    keys, values, at_us = rows
    for number, part in enumerate(np.array_split(np.arange(len(keys)), files)):
        at = pa.array(at_us[part]).cast(pa.timestamp("us", tz="UTC"))
        path = folder / f"{number:03d}.parquet"
        pq.write_table(pa.table({"id": part, "key": keys[part], "value": values[part], "at": at}), path)
        os.utime(path, (number, number))  # files are taken in the order of their age


def taxi(table: pa.Table) -> Rows:
    """Fares by pickup zone; three years folded onto one week."""
    at_us = _times_us(table, "pickup_datetime") % WEEK_US
    order = np.argsort(at_us, kind="stable")
    order = order[table["in_month"].to_numpy(zero_copy_only=False)[order]]
    fare = np.clip(table["fare_amount"].to_numpy().astype(float), 0, 500)
    return table["pickup_location_id"].to_numpy().astype(np.int64)[order], fare[order], at_us[order]


def flights(table: pa.Table) -> Rows:
    """Minutes late by origin."""
    origin = table["origin"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return origin, table["delay"].to_numpy().astype(float), _times_us(table, "date")


def _times_us(table: pa.Table, column: str) -> Any:
    return table[column].to_numpy().astype("datetime64[us]").astype(np.int64)
