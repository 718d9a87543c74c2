"""Rows with a cost each, landed as files at the time at which they are due, and the function that pays for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jettison.costs.sketch import FloatArray
from jettison.lab.sim.load.workload import IntArray

SCHEMA = "row LONG, key LONG, cost_us LONG, at TIMESTAMP"
RESULT = "row LONG, started DOUBLE"
TICK_S = 0.1
"""Between two files."""
_WARM_UP_FILES = 8


def busy_wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: waits as long as each row costs, and stamps when it got the row."""
    for batch in batches:
        started = []
        for cost_us in batch["cost_us"].to_pylist():
            started.append(time.time())
            ends = time.perf_counter() + cost_us / 1e6
            while time.perf_counter() < ends:
                pass
        yield pa.record_batch({"row": batch["row"], "started": pa.array(started, pa.float64())})


@dataclass(slots=True)
class Feed:
    """Lands rows in a folder, on a thread of its own, each when it is due after the start."""

    folder: Path
    keys: IntArray
    costs_us: IntArray
    offsets_s: FloatArray
    started_s: float = 0.0
    _thread: threading.Thread | None = field(default=None, repr=False)

    def start(self) -> None:
        """Begin; the first rows are due now."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.started_s = time.time()
        self._thread = threading.Thread(target=self._run, name="jettison-feed", daemon=True)
        self._thread.start()

    def join(self) -> None:
        assert self._thread is not None
        self._thread.join()

    def arrivals_s(self) -> FloatArray:
        """When each row was due, in seconds since the epoch."""
        return self.started_s + self.offsets_s

    def warm_up(self) -> None:
        """Land some rows before the start, numbered below zero: with them a query's workers come up."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for number in range(_WARM_UP_FILES):
            few = np.arange(20)
            self._write(f"warm-up-{number}", few - 1000, few % 5, np.full(20, 200), np.full(20, time.time()))

    def land(self, first: int, last: int, number: int) -> None:
        """One file of rows; a reader never sees a part of it."""
        part = slice(first, last)
        self._write(
            f"{number:06d}", np.arange(first, last), self.keys[part], self.costs_us[part], self.arrivals_s()[part]
        )

    def _write(self, name: str, rows: IntArray, keys: IntArray, costs_us: IntArray, arrivals_s: FloatArray) -> None:
        at = pa.array(np.round(arrivals_s * 1e6).astype(np.int64), pa.timestamp("us", "UTC"))
        columns = {"row": pa.array(rows), "key": pa.array(keys), "cost_us": pa.array(costs_us), "at": at}
        hidden = self.folder / f".{name}.parquet"
        pq.write_table(pa.table(columns), hidden)
        hidden.rename(self.folder / f"{name}.parquet")

    def _run(self) -> None:
        first, number = 0, 0
        while first < len(self.keys):
            last = int(np.searchsorted(self.offsets_s, time.time() - self.started_s, side="right"))
            if last > first:
                self.land(first, last, number)
                first, number = last, number + 1
            time.sleep(TICK_S)
