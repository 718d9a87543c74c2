"""A guarded query that is told, batch by batch, whether to keep the rows, and what became of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import jettison as jt
from jettison.core.batch_report import BatchReport
from jettison.lab.bench.streams import KeepShare
from jettison.runtime.pilot import Pilot
from jettison.spark import run as running

DAY = "2026-01-01"
SCHEMA = "id long, key string, at timestamp, other timestamp"
_PATIENCE_S = 120.0
_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


class Told:
    """Runs `query(guarded rows)` under a shedder of its own; each call of `batch` is one micro-batch with rows.

    Answers are written to Parquet, so that a second one on the same folder goes on where the first one ended. Without
    `empty_batches`, which make half of all batches, windows come out with the rows of the next batch.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        query: Callable[[DataFrame], DataFrame],
        *,
        rows: Callable[[DataFrame], DataFrame] = lambda rows: rows,
        prepare: Callable[[jt.Shedder], None] = lambda shedder: None,
        empty_batches: bool = True,
    ) -> None:
        self._spark, self._folder = spark, folder
        (folder / "in").mkdir(parents=True, exist_ok=True)
        self._policy = KeepShare(1.0)
        self.shedder = jt.Shedder(latency="1 hour", checkpoint=folder / "checkpoint", policy=self._policy)
        prepare(self.shedder)
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
        writer = query(self.shedder.guard(rows(stream), row_id="id")).writeStream.format("parquet")
        spark.conf.set(_EMPTY_BATCHES, str(empty_batches).lower())
        try:
            self._query = self.shedder.start(writer.option("path", str(folder / "out")))
        finally:
            spark.conf.unset(_EMPTY_BATCHES)
        self._empty_batches = empty_batches

    def __enter__(self) -> Told:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shedder.close()

    def batch(self, *rows: tuple[str, str], keep: bool = True, other: str = "00:00:00") -> None:
        """Land rows, each a key and a time of the day, and wait until everybody has heard of their batch."""
        self._policy.keep_fraction = 1.0 if keep else 0.0
        run = self.shedder._run
        assert run is not None
        if run.pilot.tally.batches:  # before that, the first plan is in force
            if run.pilot.plan.points["rows"].keep_fraction != self._policy.keep_fraction:
                run.pilot.idle(time.time())  # which the query itself reports after a second without rows
            until(lambda: run.pilot.plan.points["rows"].keep_fraction == self._policy.keep_fraction)
            await_plan(run.pilot)
        number = len(list((self._folder / "in").iterdir()))
        lines = [
            {"id": 1000 * number + i, "key": key, "at": f"{DAY}T{at}Z", "other": f"{DAY}T{other}Z"}
            for i, (key, at) in enumerate(rows)
        ]
        (self._folder / f".{number}").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (self._folder / f".{number}").rename(self._folder / "in" / f"{number:04d}.json")
        self._query.processAllAvailable()
        assert run._listener is not None
        run._listener.catch_up(self._query)
        until(lambda: run.pilot._books.are_complete)

    def answers(self) -> dict[tuple[str, str], tuple[int, str]]:
        """Value and status by key and by the time of the day at which the window begins."""
        if not self._empty_batches:
            self.batch(("end", "23:59:59"))
        found = self._spark.read.parquet(str(self._folder / "out")).collect()
        return {
            (row["key"], f"{row['window']['start']:%H:%M:%S}"): (row["n"]["value"], row["n"]["status"]) for row in found
        }


def await_plan(pilot: Pilot) -> None:
    """Wait until the newest plan counts for a batch that starts now: it does a moment after it was published."""
    until(lambda: time.time() * 1e6 > pilot._board.schedule.entries[-1].from_us)


def until(holds: Callable[[], Any]) -> None:
    """Wait for something that must come to pass."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


class InStep:
    """From now on every report is heard while the next batch is in its sink, which is called by `foreachBatch`.

    A plan then acts exactly two batches after the one that it was made from, however busy the machine.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._in_sink = self._heard = -1
        hear, call = Pilot.batch, DataStreamWriter.foreachBatch

        def batch(pilot: Pilot, report: BatchReport) -> None:
            (run,) = [run for run in running._by_checkpoint.values() if run.pilot is pilot]
            until(lambda: self._in_sink > report.batch_id or run.has_ended)
            hear(pilot, report)
            await_plan(pilot)
            self._heard = report.batch_id

        def sink(one: Callable[[DataFrame, int], None], rows: DataFrame, number: int) -> None:
            self._in_sink = number
            until(lambda: self._heard >= number - 1)
            one(rows, number)

        monkeypatch.setattr(Pilot, "batch", batch)
        monkeypatch.setattr(DataStreamWriter, "foreachBatch", lambda writer, one: call(writer, partial(sink, one)))
