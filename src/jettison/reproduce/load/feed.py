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
from jettison.sim.load.workload import IntArray

SCHEMA = "row LONG, key LONG, cost_us LONG, at TIMESTAMP"
RESULT = "row LONG, started DOUBLE"
_TICK_S = 0.1


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
    """Lands rows in a folder on a thread of its own.

    Parameters
    ----------
    folder
        Where the files go.
    keys, costs_us, offsets_s
        Key, cost and due time after the start, of each row.
    """

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
        """Wait until all rows have landed."""
        assert self._thread is not None
        self._thread.join()

    def arrivals_s(self) -> FloatArray:
        """When each row was due, in seconds since the epoch."""
        return self.started_s + self.offsets_s

    def land(self, first: int, last: int, number: int) -> None:
        """One file of rows; a reader never sees a part of it."""
        at = np.round(self.arrivals_s()[first:last] * 1e6).astype(np.int64)
        rows = pa.table(
            {
                "row": pa.array(np.arange(first, last)),
                "key": pa.array(self.keys[first:last]),
                "cost_us": pa.array(self.costs_us[first:last]),
                "at": pa.array(at, pa.timestamp("us", "UTC")),
            }
        )
        hidden = self.folder / f".{number:06d}.parquet"
        pq.write_table(rows, hidden)
        hidden.rename(self.folder / f"{number:06d}.parquet")

    def _run(self) -> None:
        first, number = 0, 0
        while first < len(self.keys):
            last = int(np.searchsorted(self.offsets_s, time.time() - self.started_s, side="right"))
            if last > first:
                self.land(first, last, number)
                first, number = last, number + 1
            time.sleep(_TICK_S)
