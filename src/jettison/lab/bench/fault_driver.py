"""The driver that `jettison bench faults` kills: it runs legs of queries that it reads from its input, one a line.

What its sinks get goes line by line to its output, a pipe: what was written there before a kill is not lost.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.core.storage import home
from jettison.lab.bench.driver_process import children, jvm_of
from jettison.lab.bench.fault_rows import SCHEMA
from jettison.lab.bench.fault_scenario import DISK_FULL, EXECUTOR_KILLED, INTERRUPTED, KILLED, KILLED_AT_START
from jettison.lab.bench.replay import Interrupted, budgets, ended_well
from jettison.lab.bench.scripted_queries import Order
from jettison.spark.session import LOCAL

_UNLIMITED = resource.getrlimit(resource.RLIMIT_FSIZE)
_ROOM_BYTES = 40  # until the disk is full: less than a record, so that it is cut
_FULL_CALLS = 2
_LINGER_S = 0.4
_EXECUTOR = "CoarseGrainedExecutorBackend"
_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "1",
    "spark.log.level": "OFF",
    # Batches are small: to compile them takes longer than to run them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass
class LegSink:
    """Says what each batch brought, and does what a leg is in for: at which call of it is in `leg`."""

    folder: Path
    leg: dict[str, Any]
    answers: bool
    calls: int = field(default=0)
    full_at: int | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        if self.leg["end"] == KILLED_AT_START:
            _kill()
        call, self.calls = self.calls, self.calls + 1
        last = self.leg["end"] if call == self.leg["call"] else ""
        if last == KILLED:
            threading.Timer(self.leg["delay_s"], _kill).start()
        if DISK_FULL in self.leg["during"] and call in (0, _FULL_CALLS):
            self._fill_disk() if call == 0 else self.free_disk()
        if EXECUTOR_KILLED in self.leg["during"] and call == 0:
            _kill_executor()
            tell(happened=EXECUTOR_KILLED)
        shown = _of_answers(batch) if self.answers else batch.select("id", "jt_weight")
        tell(batch=number, items=[list(row) for row in shown.collect()])
        if last == KILLED:
            time.sleep(_LINGER_S)  # what is delivered is not yet committed: a moment that kills should not miss
        if last == INTERRUPTED:
            raise Interrupted(f"batch {number}")

    def _fill_disk(self) -> None:
        """From now on no file of this process grows beyond what the ledger's newest one has: a write stops half-way."""
        self.full_at = self._written()[-1] + _ROOM_BYTES
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.full_at, _UNLIMITED[1]))

    def free_disk(self) -> None:
        """From now on there is room. That the disk was full, a record shows that was cut there."""
        if self.full_at in self._written():
            tell(happened=DISK_FULL)
        resource.setrlimit(resource.RLIMIT_FSIZE, _UNLIMITED)
        self.full_at = None

    def _written(self) -> list[int]:
        sizes = (home(self.folder / "checkpoint") / "ledger").sizes()
        return [size for name, size in sizes.items() if name.endswith(".jsonl")]


def _kill() -> None:
    os.killpg(0, signal.SIGKILL)


def _kill_executor() -> None:
    """One that this driver's own JVM has started."""
    executor = next(pid for pid, command in children(jvm_of(os.getpid())).items() if _EXECUTOR in command)
    os.kill(executor, signal.SIGKILL)


def _of_answers(batch: DataFrame) -> DataFrame:
    """Window and key of each answer, short ones, and what it says."""
    window = F.floor(F.unix_seconds("window.start") / F.lit(10)).alias("window")
    return batch.select(window, F.md5("key"), "rows.value", "rows.kept", "rows.status", "total.value", "total.status")


def tell(**facts: Any) -> None:
    """A line of output in one piece."""
    os.write(_OUT, (json.dumps(facts) + "\n").encode())


def _text_files(spark: SparkSession, folder: Path) -> DataFrame:
    return _parsed(spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder)))


def _topic(options: dict[str, str], spark: SparkSession, folder: Path) -> DataFrame:
    return _parsed(spark.readStream.format("kafka").options(**options).load())


def _parsed(lines: DataFrame) -> DataFrame:
    return lines.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row")).select("row.*")


def _run(spark: SparkSession, leg: dict[str, Any]) -> None:
    folder = Path(leg["folder"])
    source = _text_files if leg["topic"] is None else lambda spark, _: _topic(leg["topic"], spark, folder)
    sink = LegSink(folder, leg, leg["answers"])
    order = Order(spark, folder, budgets(leg["number"]), sink, answers=leg["answers"], source=source)
    if leg["end"] == KILLED_AT_START:
        threading.Timer(leg["delay_s"], _kill).start()
    try:
        ended = ended_well(leg["policy"], order)
        outcome = "ended" if ended else INTERRUPTED
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"
    finally:
        if sink.full_at is not None:
            sink.free_disk()
    if leg["end"] == KILLED_AT_START or (leg["end"] == KILLED and sink.calls > leg["call"]):
        time.sleep(60.0)  # it comes after the end of the query
    tell(outcome=outcome)


def main(master: str, jars: str) -> None:
    """Run legs until the input ends."""
    settings: dict[str, Any] = {**LOCAL, **_SETTINGS, **({"spark.jars": jars} if jars else {})}
    spark = SparkSession.builder.master(master).appName("jettison faults").config(map=settings).getOrCreate()
    tell(outcome="ready")
    for line in sys.stdin:
        _run(spark, json.loads(line))
    spark.stop()


_OUT = os.dup(1)  # what others print goes where errors go
if __name__ == "__main__":
    os.dup2(2, 1)
    main(*sys.argv[1:])
