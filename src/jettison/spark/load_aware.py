"""Protect a function whose cost depends on the row: learn costs in executors, and drop what would come too late."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import Accumulator, TaskContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import ArrayType, MapType, NumericType, StructType

from jettison.core import storage
from jettison.core.durations import Duration, seconds
from jettison.core.storage import Folder
from jettison.costs.accounts import FunctionAccounts
from jettison.costs.batches import Batches
from jettison.costs.cost_book import HASH_SEED, CostBook, costs_folder
from jettison.costs.cost_hashing import SharedHashes
from jettison.costs.function_status import CostStatus
from jettison.costs.partition_settings import PartitionSettings, Rule, Utility, column_of, refuse_no_numbers
from jettison.costs.task_report import TaskReport
from jettison.costs.timed_partition import ArrowFunction, PartitionShedder, WorkerMemory
from jettison.errors import InvalidInput, InvalidSetting, Unsupported, refuse
from jettison.spark import doubts, validate

if TYPE_CHECKING:
    from jettison.spark.shedder import Shedder

Given = TypeVar("Given")
_log = logging.getLogger(__name__)
_WHERE = "load_aware"
_PUBLISH_EVERY_S = 0.2
_BATCH_ID = "streaming.sql.batchId"  # Spark sets it for every job of a micro-batch
LATENCY_OVER_WAIT = 2.5
"""Least ratio of a query's `latency` and a function's `max_wait`. A row's latency is its age when its task starts, up to 0.9
of the wait, and then its batch, which works for up to the wait: close to twice the wait and the fixed cost of a trigger,
where the controller steers for 0.8 of the latency. Less, and the guard sheds in the function's stead."""

_OPEN: dict[str, LoadAware] = {}
"""Functions whose costs this process writes, by folder."""

_MEMORIES: dict[str, WorkerMemory] = {}
"""Of this worker process, by wrapper: Spark reuses its Python workers from task to task."""


def load_aware(
    fn: ArrowFunction,
    *,
    key: str | Column,
    max_wait: Duration,
    arrival: str | Column | None = None,
    value: Utility | Column | None = None,
    checkpoint: str | Path | None = None,
    shedder: Shedder | None = None,
    sketch: tuple[int, int] = (2, 2048),
    rule: Rule = "costliest_first",
    learn: bool = True,
) -> LoadAware:
    """Wrap a function for `mapInArrow` so that the wait of the rows it gets stays under `max_wait`.

    The wait of a row is the time from its arrival until the function gets it: for its micro-batch, and for its
    neighbours in the partition. While the bound holds, every row is passed on. When by the learned costs it would not, the
    fewest rows that suffice are dropped, the costliest first; what a row costs is learned for each value of `key`, with no
    model given. If learned costs are lost or damaged, they are learned again.

    Parameters
    ----------
    fn
        From an iterator of Arrow record batches to another, as `mapInArrow` takes it. It must handle each batch before
        it asks for the next, and take batches of any size: it gets slices, so that they can be timed.
    key
        Column on which the cost depends. With an expression here, for `arrival` or for `value`, give the rows by `map`.
    max_wait
        The bound: `"50 ms"`, `"2 seconds"`. The latency that a `Shedder` bounds is another one: until the commit of the
        batch.
    arrival
        Timestamp column of the arrival at the source; one without a time zone is read in that of the session. Without a
        column only the wait within the partition is bounded.
    value
        Column with the utility of a row, or a value graph (`ValueUtility`) over a column; rows that cost most per unit of
        utility are then dropped first.
    checkpoint
        Where learned costs are kept for a restart and for executors to read, in `jettison/costs/` under it: the query's
        checkpoint location. Without it they live in a temporary folder of this machine, which only a local master sees.
        What was dropped is recorded in the ledger in `jettison/ledger/`. It holds the costs of one function at a time.
    shedder
        Of the query that the function is part of, where there is one: its checkpoint is used, `shedder.status()` shows the
        function, and a bound that would make the two work against each other is refused.
    sketch
        Rows and columns of the sketch of costs.
    rule
        Which rows go: `"costliest_first"`, or `"tail_drop"` for those that come when the time is used up, whatever they
        cost, as in the paper.
    learn
        False keeps to the costs that the checkpoint holds, whatever rows really cost.
    """
    if not callable(fn):
        expected = "`fn` must be a function of an iterator of record batches"
        hint = "pass what you would pass to `mapInArrow`, itself and not its result"
        refuse(expected, repr(fn), where=_WHERE, hint=hint, error=InvalidInput)
    if not (isinstance(sketch, Sequence) and len(sketch) == 2 and all(isinstance(size, int) for size in sketch)):
        hint = "leave it out: (2, 2048) tells some thousand keys apart in 64 KiB"
        refuse("`sketch` must be two whole numbers, rows and columns", repr(sketch), where=_WHERE, hint=hint)
    spark = _active_session()
    made: dict[str, Column] = {}

    def named(argument: str, given: Given | Column) -> Given | str:
        if not isinstance(given, Column):
            return given
        made[f"jt_{argument}"] = given
        return f"jt_{argument}"

    settings = PartitionSettings(
        named("key", key),
        seconds(max_wait, name="max_wait"),
        named("arrival", arrival),
        named("value", value),
        rule,
        learn,
        time_zone=spark.conf.get("spark.sql.session.timeZone") or "UTC",
        hidden=tuple(made),
    )
    if shedder is not None:
        _refuse_tight_latency(shedder.latency_bound_s, settings.bound_s)
        if checkpoint is not None:
            expected, hint = "`checkpoint` is the shedder's own", "pass `shedder` alone"
            refuse(expected, repr(checkpoint), where=_WHERE, hint=hint)
        checkpoint = shedder.checkpoint
    folder = Folder(mkdtemp(prefix="jettison-costs-") if checkpoint is None else checkpoint)
    wrapped = LoadAware(spark, fn, settings, folder, SharedHashes(*sketch, seed=HASH_SEED), made)
    if shedder is not None:
        try:
            shedder.attach(wrapped)
        except InvalidSetting:
            wrapped.close()
            raise
    return wrapped


class LoadAware:
    """A function wrapped by `load_aware`; pass it to `mapInArrow` or give it rows by `map`, and ask it how it is doing.

    What executors learn comes back through an accumulator; a thread adds it up and lays it down as a file, which every
    task reads when it starts. The thread ends with `close`, or with this process.
    """

    keeps_answers_exact = False
    """Rows go by cost, for which no weight stands, and by the wall clock, while their batch is being answered."""

    def __init__(
        self,
        spark: SparkSession,
        fn: ArrowFunction,
        settings: PartitionSettings,
        checkpoint: Folder,
        hashes: SharedHashes,
        made: dict[str, Column],
    ) -> None:
        self.name = self.__name__ = getattr(fn, "__name__", _WHERE)
        self.operator = f"MapInArrow {self.name}("
        self.least_latency_s = LATENCY_OVER_WAIT * settings.bound_s
        self._settings, self._made = settings, made
        self._home, self._folder = storage.home(checkpoint.uri), costs_folder(checkpoint.uri)
        if self._folder.uri in _OPEN:
            expected = f"one open function a checkpoint, {_OPEN[self._folder.uri].name!r} in this case"
            hint = (
                "call `close()` on the one before if its query has ended, or give each a checkpoint folder of its own"
            )
            refuse(expected, f"{self.name!r} as well", where=_WHERE, hint=hint)
        self._book = CostBook.load(self._folder, hashes)
        commits = checkpoint / "commits"
        self._accounts = FunctionAccounts(self._home / "ledger", self.name, settings.bound_s, commits)
        self._reports = spark.sparkContext.accumulator(TaskReport.empty(hashes), _Reports(hashes))
        self._task = _Task(uuid.uuid4().hex, fn, settings, self._folder.uri, hashes, self._reports)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._warned = False
        _OPEN[self._folder.uri] = self
        doubts.companion_opened(spark, self)
        threading.Thread(target=self._publish, name="jettison-costs", daemon=True).start()

    def __call__(self, batches: Batches) -> Batches:
        """Run the function on the rows kept; Spark calls this in executors."""
        return self._task(batches)

    def map(self, rows: DataFrame, schema: StructType | str) -> DataFrame:
        """`rows.mapInArrow(self, schema)`, refused at once where a column is missing or of no use."""
        validate.no_reserved_column(rows, self._made, where=_WHERE)
        rows = rows.withColumns(self._made) if self._made else rows
        _check_columns(rows, self._settings)
        return rows.mapInArrow(self, schema)

    def __reduce__(self) -> tuple[Any, ...]:
        # Executors need the task alone: neither the thread nor the session can travel.
        return self._task.__reduce__()

    def status(self) -> CostStatus:
        """Rows, waits, overhead and the costliest keys, over the tasks that have reported; and whether that is all."""
        ended = self._closed.is_set()
        return CostStatus.of(self._reports.value, self._settings.bound_s, self._book.costliest, ended=ended)

    def close(self) -> None:
        """Lay the last costs down, put the last batch on record, and stop."""
        self._closed.set()
        self._lay_down()
        doubts.companion_closed(self)
        if _OPEN.get(self._folder.uri) is self:
            del _OPEN[self._folder.uri]

    def _publish(self) -> None:
        while not self._closed.wait(_PUBLISH_EVERY_S):
            self._lay_down()

    def _lay_down(self) -> None:
        try:
            with self._lock:  # `close` may come while the thread is at it
                total = self._reports.value
                learned, status = self._book.tell(total), self.status()
                if learned and self._settings.learn:
                    self._book.save(self._folder, status.costliest)
                if learned or status.ended:
                    status.report(self.name).lay_down(self._home, _WHERE)
                self._accounts.record(total, self._book.version, time.time(), ended=self._closed.is_set())
                self._warned = False
        except Exception:  # executors go on with the costs that they have
            if not self._warned:  # once, and not five times a second until the disk has room again
                _log.warning("learned costs could not be written to %s", self._folder, exc_info=True)
            self._warned = True


@dataclass(slots=True)
class _Task:
    """What travels to the executors."""

    id: str
    fn: ArrowFunction
    settings: PartitionSettings
    folder: str
    hashes: SharedHashes
    reports: Accumulator[TaskReport]

    def __reduce__(self) -> tuple[Any, ...]:
        return _Task, (self.id, self.fn, self.settings, self.folder, self.hashes, self.reports)

    def __call__(self, batches: Batches) -> Batches:
        report, memory = TaskReport.empty(self.hashes), _MEMORIES.setdefault(self.id, WorkerMemory())
        costs, batch_id = CostBook.load(Folder(self.folder), self.hashes).costs, _batch_id()
        shedder = PartitionShedder(self.settings, costs, memory, report, _steady_clock(), batch_id)
        try:
            yield from shedder.run(self.fn, batches)
        finally:
            self.reports.add(report.of_batch(-1 if batch_id is None else batch_id))


class _Reports(AccumulatorParam[TaskReport]):
    """Adds reports up. The sum is a new object each time, so that the driver can read it while tasks end."""

    def __init__(self, hashes: SharedHashes) -> None:
        self._hashes = hashes

    def zero(self, value: TaskReport) -> TaskReport:
        return TaskReport.empty(self._hashes)

    def addInPlace(self, value1: TaskReport, value2: TaskReport) -> TaskReport:
        return TaskReport.empty(self._hashes).add(value1).add(value2)


def _active_session() -> SparkSession:
    """The session, with a SparkContext: what is learned travels in an accumulator."""
    spark = SparkSession.getActiveSession()
    if spark is None or not hasattr(spark, "sparkContext"):
        expected = "an active Spark session with a SparkContext, to collect what is learned"
        hint = "call it after `SparkSession.builder.getOrCreate()` on a session that is not Spark Connect"
        refuse(expected, "none" if spark is None else "Spark Connect", where=_WHERE, hint=hint, error=Unsupported)
    return spark


def _refuse_tight_latency(latency_s: float, max_wait_s: float) -> None:
    if latency_s < LATENCY_OVER_WAIT * max_wait_s:
        least = f"{LATENCY_OVER_WAIT:g} times the function's `max_wait`, {LATENCY_OVER_WAIT * max_wait_s:g} s"
        hint = (
            "a row may wait for `max_wait` and its batch may work as long again; with less the guard would drop rows at "
            "random that the function had room for"
        )
        refuse(f"the query's `latency` must be at least {least}", f"{latency_s:g} s", where=_WHERE, hint=hint)


def _check_columns(rows: DataFrame, settings: PartitionSettings) -> None:
    """Key, arrival and value must be there, and of a type that serves."""
    validate.present(rows, settings.key, "key", where=_WHERE)
    kind = rows.schema[settings.key].dataType
    if isinstance(kind, (ArrayType, MapType, StructType)):
        hint = "take the part that the cost depends on; for several take concat_ws of them"
        got = f"{settings.key!r} of type {kind.simpleString()}"
        refuse("`key` must name a column of single values", got, where=_WHERE, hint=hint)
    if settings.arrival is not None:
        validate.present(rows, settings.arrival, "arrival", where=_WHERE)  # by that very name: functions see batches
        validate.timestamp(rows, settings.arrival, where=_WHERE)
    if settings.value is not None:
        name = column_of(settings.value)
        validate.present(rows, name, "value", where=_WHERE)
        kind = rows.schema[name].dataType
        if not isinstance(kind, NumericType):
            refuse_no_numbers(name, kind.simpleString(), InvalidSetting)


def _batch_id() -> int | None:
    """Micro-batch of the task that this runs in; `None` where Spark does not say, as in a query that is no stream."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(_BATCH_ID)
    return None if found is None else int(found)


def _steady_clock() -> Callable[[], float]:
    """Time since the epoch that never goes back within a task."""
    epoch_s, start_s = time.time(), time.perf_counter()
    return lambda: epoch_s + time.perf_counter() - start_s
