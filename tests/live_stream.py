"""Streams whose rate a test sets while they run, queries whose rows cost what it says, and what became of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import jettison as jt

SECOND_US = 1_000_000
KEYS = 5
_SCHEMA = "id long, key string, value double, at timestamp"
_FILE_EVERY_S = 0.2
_PATIENCE_S = 120.0
_SLEEP_MS = 10.0


class Feed:
    """Lands rows at `rows_per_s`, which may be set at any time, in a file every 0.2 s, until it is closed.

    It begins when it is entered. Rows are numbered from 0, and arrive evenly in the time since the file before.
    """

    def __init__(self, folder: Path, rows_per_s: float) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.rows_per_s = rows_per_s
        self.rows_by_window: Counter[tuple[int, str]] = Counter()
        """Rows landed, by second of arrival and by key."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._rows = 0

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join()

    def stream(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.schema(_SCHEMA).parquet(str(self.folder))

    def _run(self) -> None:
        last_s, due = time.time(), 0.0
        while not self._closed.wait(_FILE_EVERY_S):
            now_s = time.time()
            due += self.rows_per_s * (now_s - last_s)
            if rows := int(due):
                self._land(rows, last_s, now_s)
            due, last_s = due - rows, now_s

    def _land(self, rows: int, from_s: float, to_s: float) -> None:
        ids = range(self._rows, self._rows + rows)
        times = [int((from_s + (to_s - from_s) * i / rows) * SECOND_US) for i in range(rows)]
        keys = [f"k{i % KEYS}" for i in ids]
        columns = {
            "id": pa.array(ids),
            "key": pa.array(keys),
            "value": pa.array([float(i % 100) for i in ids]),
            "at": pa.array(times, pa.timestamp("us", "UTC")),
        }
        self.rows_by_window.update((at // SECOND_US, key) for at, key in zip(times, keys, strict=True))
        pq.write_table(pa.table(columns), self.folder / f".{self._rows}")
        (self.folder / f".{self._rows}").rename(self.folder / f"{self._rows:09d}.parquet")
        self._rows += rows


def costly(rows: DataFrame, row_ms: float) -> DataFrame:
    """Let rows take so long on average, one after the other: asleep, so that it costs as much on a busy machine.

    Waking up takes its time there, so few rows sleep for long rather than all for a moment.
    """
    one_in = max(round(_SLEEP_MS / row_ms), 1)
    sleep = f"java_method('java.lang.Thread', 'sleep', {round(one_in * row_ms)}L) is not null"
    return rows.coalesce(1).where(f"pmod(hash(id), {one_in}) != 0 or {sleep}")


class Collected:
    """A sink that remembers the rows of every batch, and takes `pause_s` for each batch."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self.batches: dict[int, list[Any]] = {}
        self._pause_s = pause_s

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = rows.collect()
        time.sleep(self._pause_s)

    @property
    def rows(self) -> list[Any]:
        return [row for batch in self.batches.values() for row in batch]


class Live:
    """A guarded query that runs under its own controller, and its batches as the ledger has them."""

    def __init__(self, shedder: jt.Shedder, query: StreamingQuery) -> None:
        self.shedder = shedder
        self.query = query
        self.books_closed = False

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.books_closed = self.shedder.close("60 seconds")

    def batches(self, since_s: float = 0.0) -> list[dict[str, Any]]:
        """Batches on record that had rows and started after `since_s`."""
        found = [batch for batch in self.shedder.ledger.records("batch") if batch["started_s"] > since_s]
        return [batch for batch in found if any(point["seen"] for point in batch["points"].values())]

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something that must come to pass."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while not holds():
            assert self.query.isActive, self.query.exception()
            assert time.monotonic() < deadline_s, f"{what} did not come to pass\n{self.story()}"
            time.sleep(0.2)

    def story(self) -> str:
        """What happened, for the message of a test that fails: batches, and why plans changed."""
        lines = [
            (plan["at_s"], f"plan {plan['version']}: {plan['cause']}") for plan in self.shedder.ledger.records("plan")
        ]
        for batch in self.shedder.ledger.records("batch"):
            counts = {name: (point["seen"], point["kept"]) for name, point in batch["points"].items()}
            told = f"batch {batch['batch_id']}: {counts}, {batch['duration_s']:.1f} s, latency {batch['latency_s']}"
            lines.append((batch["at_s"], f"{told}, plan {batch['plan_version']}"))
        lines += [(fault["at_s"], f"fault: {fault['detail']}") for fault in self.shedder.ledger.records("fault")]
        return "\n".join(f"{at_s % 1000:8.2f} {line}" for at_s, line in sorted(lines))


def dropped(batch: dict[str, Any]) -> int:
    """Rows of a batch that its drop points dropped."""
    return sum(point["dropped"] for point in batch["points"].values())


def kept_share(batch: dict[str, Any]) -> float:
    """Share of a batch's rows that was kept, at the drop point that kept least."""
    return min((point["kept"] / point["seen"] for point in batch["points"].values() if point["seen"]), default=1.0)


def sheds_fairly(batches: list[dict[str, Any]], least: float, in_a_row: int = 3) -> bool:
    """Whether each of the last batches lost rows and kept at least such a share."""
    last = batches[-in_a_row:]
    return len(last) == in_a_row and all(dropped(batch) and kept_share(batch) >= least for batch in last)
