"""Streams of small groups under budgets that a script sets: what is called exact, and what is repeated, put to the test."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats

WINDOW_S, STEP_S, DELAY_S = 10, 4, 2
LATE_AFTER_S = 1800.0
START_S = 1_767_225_600  # a multiple of the window
_SCHEMA = "id BIGINT, key BIGINT, value BIGINT, vip BOOLEAN, at TIMESTAMP, arrived TIMESTAMP"
VALUES, _ROWS_PER_GROUP = 100, 3
LATE_EVERY = 8

Script = Callable[[int], Budget]
"""The budget after the batch with this number; the number is negative before the first one of a run."""


def keep(share: float, late: float | None = None) -> Budget:
    """A budget that keeps this share of the rows, and of the late ones another."""
    late = share if late is None else late
    return Budget(share, late, LATE_AFTER_S, f"told to keep {share:g}, of late rows {late:g}")


def scripted(kind: type, script: Script, *arguments: Any, **settings: Any) -> Any:
    """A policy of this kind that is given the script's budgets, whatever the controller says."""

    def continued(self: Any, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        return kind.continued(self, previous, stats, script(stats.batch_id))  # type: ignore[attr-defined, no-any-return]

    return type(f"Scripted{kind.__name__}", (kind,), {"continued": continued})(*arguments, **settings)


def land(
    folder: Path, files: range, *, groups: int, seed: int = 0, late_s: Mapping[int, float] = MappingProxyType({})
) -> None:
    """Files of rows in the order of their numbers, each out of order by as much as the watermark waits.

    About three rows a group and window. One row in fifty is protected. Half of the rows arrived an hour ago. `late_s`
    says by how much, and in which files, one row in `LATE_EVERY` is older than that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = groups * _ROWS_PER_GROUP * STEP_S // WINDOW_S
    for file in files:
        random = np.random.default_rng((seed, file))
        at_s = START_S + file * STEP_S + random.uniform(-DELAY_S, STEP_S, count)
        at_s[::LATE_EVERY] -= late_s.get(file, 0.0)
        ids = file * count + np.arange(count)
        _write(folder, file, ids, random.integers(0, groups, count), random.integers(0, VALUES, count), at_s)


def land_end(folder: Path, file: int) -> None:
    """A last row, a day later and protected, which closes all windows."""
    one = np.zeros(1, dtype=np.int64)
    _write(folder, file, one - 1, one - 1, one, np.array([START_S + 86_400.0]))


def _write(folder: Path, file: int, ids: Any, keys: Any, values: Any, at_s: Any) -> None:
    timestamp = pa.timestamp("us", tz="UTC")
    arrived_s = time.time() - np.where(ids % 2, 2 * LATE_AFTER_S, 0.0)
    table = pa.table(
        {
            "id": ids,
            "key": keys,
            "value": values,
            "vip": (ids % 50 == 0) | (ids < 0),
            "at": pa.array((at_s * 1e6).astype(np.int64)).cast(timestamp),
            "arrived": pa.array((arrived_s * 1e6).astype(np.int64)).cast(timestamp),
        }
    )
    hidden, path = folder / f".{file:04d}", folder / f"{file:04d}.parquet"
    pq.write_table(table, hidden)
    os.utime(hidden, (START_S + file, START_S + file))  # files are taken in the order of their age
    hidden.rename(path)


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """The rows, one file a batch."""
    return spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def rows(spark: SparkSession, folder: Path) -> DataFrame:
    """The same rows, all of them."""
    return spark.read.schema(_SCHEMA).parquet(str(folder))
