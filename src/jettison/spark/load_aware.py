"""Protect a function whose cost depends on the row: learn costs in executors, and drop what would come too late."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Literal

from pyspark import Accumulator, TaskContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from jettison import storage
from jettison.costs.accounts import FunctionAccounts
from jettison.costs.batches import Batches
from jettison.costs.book import CostBook
from jettison.costs.hashing import SharedHashes
from jettison.costs.partition import ArrowFunction, PartitionSettings, PartitionShedder, WorkerMemory
from jettison.costs.report import TaskReport
from jettison.costs.status import STATUS_FILE, CostStatus, KeyCost
from jettison.costs.worth import Worth
from jettison.durations import Duration, seconds
from jettison.errors import DamagedPlan, InvalidSetting, explain
from jettison.spark import load_aware_checks as checks
from jettison.storage import Folder

if TYPE_CHECKING:
    from jettison.spark.shedder import Shedder

_log = logging.getLogger(__name__)
_PUBLISH_EVERY_S = 0.2
_FILE, _POINT = "plan.json", "function"
_BATCH_ID = "streaming.sql.batchId"  # Spark sets it for every job of a micro-batch
HASH_SEED = 1
"""Of every sketch, so that costs learned in one run fit the next."""

_OPEN: dict[str, LoadAware] = {}
"""Functions whose costs this process writes, by folder."""

_MEMORIES: dict[str, WorkerMemory] = {}
"""Of this worker process, by wrapper: Spark reuses its Python workers from task to task."""


def load_aware(
    fn: ArrowFunction,
    *,
    key: str,
    latency: Duration,
    arrival: str | None = None,
    value: Worth | None = None,
    checkpoint: str | Path | None = None,
    shedder: Shedder | None = None,
    lookahead_rows: int = 50_000,
    sketch: tuple[int, int] = (2, 2048),
    rule: Literal["fewest", "in turn"] = "fewest",
    learn: bool = True,
) -> LoadAware:
    """Wrap a function for `mapInArrow` so that the queuing latency of the rows it gets stays under `latency`.

    Queuing latency is the time from a row's arrival until the function gets it: the wait for its micro-batch and for
    its neighbours in the partition. While it holds, every row is passed on. When it cannot, the fewest rows that
    suffice are dropped, the costliest first; what a row costs is learned per value of `key`, with no model given.
    If learned costs are lost or damaged, they are learned anew.

    Parameters
    ----------
    fn
        From an iterator of Arrow record batches to another, as `mapInArrow` takes it. It must handle each batch before
        it asks for the next, and take batches of any size: it gets slices, so that they can be timed.
    key
        Column on which the cost depends.
    latency
        The bound: `"32 ms"`, `"2 seconds"`.
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
    lookahead_rows
        Rows of a partition that are read before deciding on them.
    sketch
        Rows and columns of the sketch of costs.
    rule
        `"fewest"`, or `"in turn"` for the paper's CHECK, which never looks at the cost of the row that it judges.
    learn
        False keeps to the costs that the checkpoint holds, whatever rows really cost.
    """
    checks.arguments(fn, rule, value, lookahead_rows, sketch)
    spark = checks.active_session()
    settings = PartitionSettings(
        key,
        seconds(latency, name="latency"),
        arrival,
        value,
        lookahead_rows,
        rule,
        learn,
        time_zone=spark.conf.get("spark.sql.session.timeZone") or "UTC",
    )
    if shedder is not None:
        checks.no_fight(shedder.latency_bound_s, settings.bound_s)
        if checkpoint is not None:
            raise InvalidSetting(
                explain(
                    "`checkpoint` is the shedder's own",
                    repr(checkpoint),
                    where="load_aware",
                    hint="pass `shedder` alone",
                )
            )
        checkpoint = shedder.checkpoint
    folder = Folder(mkdtemp(prefix="jettison-costs-") if checkpoint is None else checkpoint)
    wrapped = LoadAware(spark, fn, settings, folder, SharedHashes(*sketch, seed=HASH_SEED))
    if shedder is not None:
        try:
            shedder.attach(wrapped)
        except InvalidSetting:
            wrapped.close()
            raise
    return wrapped


def _refuse_second(folder: Folder, name: str) -> None:
    if folder.uri in _OPEN:
        raise InvalidSetting(
            explain(
                f"one open function a checkpoint, {_OPEN[folder.uri].__name__!r} in this case",
                f"{name!r} as well",
                where="load_aware",
                hint="call `close()` on the one before if its query has ended, or give each a checkpoint folder of its own",
            )
        )


class LoadAware:
    """A function wrapped by `load_aware`; pass it to `mapInArrow` or give it rows by `map`, and ask it how it is doing.

    What executors learn comes back through an accumulator; a thread adds it up and lays it down as a drop plan, which every
    task reads when it starts. The thread ends with `close`, or with this process.
    """

    def __init__(
        self,
        spark: SparkSession,
        fn: ArrowFunction,
        settings: PartitionSettings,
        checkpoint: Folder,
        hashes: SharedHashes,
    ) -> None:
        self.__name__ = getattr(fn, "__name__", "load_aware")
        self._settings = settings
        home = storage.home(checkpoint.uri)
        self._folder = home / "costs"
        _refuse_second(self._folder, self.__name__)
        self._book = _restored(self._folder, hashes)
        self._before = _costliest_before(self._folder)
        commits = checkpoint / "commits"
        self._accounts = FunctionAccounts(home / "ledger", self.__name__, settings.bound_s, commits)
        self._reports = spark.sparkContext.accumulator(TaskReport.empty(hashes), _Reports(hashes))
        self._task = _Task(uuid.uuid4().hex, fn, settings, self._folder.uri, hashes, self._reports)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._warned = False
        _OPEN[self._folder.uri] = self
        threading.Thread(target=self._publish, name="jettison-costs", daemon=True).start()

    def __call__(self, batches: Batches) -> Batches:
        """Run the function on the rows kept; Spark calls this in executors."""
        return self._task(batches)

    def map(self, rows: DataFrame, schema: StructType | str) -> DataFrame:
        """`rows.mapInArrow(self, schema)`, refused at once where a column is missing or of no use."""
        checks.columns(rows, self._settings)
        return rows.mapInArrow(self, schema)

    def __reduce__(self) -> tuple[Any, ...]:
        # Executors need the task alone: neither the thread nor the session can travel.
        return _Task, self._task.parts

    def status(self) -> CostStatus:
        """Rows, waits, overhead and the costliest keys, over the tasks that have reported."""
        return CostStatus.of(self._reports.value, self._settings.bound_s, self._book.costs.bytes, self._before)

    def close(self) -> None:
        """Lay the last costs down, put the last batch on record, and stop."""
        self._closed.set()
        self._lay_down()
        if _OPEN.get(self._folder.uri) is self:
            del _OPEN[self._folder.uri]

    def _publish(self) -> None:
        while not self._closed.wait(_PUBLISH_EVERY_S):
            self._lay_down()

    def _lay_down(self) -> None:
        try:
            with self._lock:  # `close` may come while the thread is at it
                total = self._reports.value
                if self._book.tell(total):
                    if self._settings.learn:
                        share = total.rows_kept / total.rows_seen if total.rows_seen else 1.0
                        write_costs(self._folder, self._book, self._settings.bound_s, share)
                    self._folder.replace(STATUS_FILE, self.status().to_json().encode())
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

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.id, self.fn, self.settings, self.folder, self.hashes, self.reports

    def __call__(self, batches: Batches) -> Batches:
        report, memory = TaskReport.empty(self.hashes), _MEMORIES.setdefault(self.id, WorkerMemory())
        costs = _restored(Folder(self.folder), self.hashes).costs
        batch_id = _batch_id()
        shedder = PartitionShedder(self.settings, costs, memory, report, _steady_clock(), batch_id)
        try:
            yield from shedder.run(self.fn, checks.arrived(batches, self.settings))
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


def write_costs(folder: Folder, book: CostBook, bound_s: float, keep_fraction: float = 1.0) -> None:
    """Lay the plan down where tasks read it."""
    folder.replace(_FILE, book.encode(_POINT, bound_s, keep_fraction))


def costs_folder(checkpoint: str | Path) -> Folder:
    """Where the plan of a checkpoint's `load_aware` lies."""
    return storage.home(checkpoint) / "costs"


def _restored(folder: Folder, hashes: SharedHashes) -> CostBook:
    """Costs from the file, or an empty book: what is lost is learned anew."""
    try:
        content = folder.read(_FILE)
        book = CostBook.empty(hashes) if content is None else CostBook.decode(content, _POINT)
    except (DamagedPlan, OSError):
        _log.warning("learned costs in %s cannot be read; learning anew", folder, exc_info=True)
        return CostBook.empty(hashes)
    return book if book.costs.hashes == hashes else CostBook.empty(hashes)


def _costliest_before(folder: Folder) -> tuple[KeyCost, ...]:
    """Names of the costliest keys of the run before: the sketch knows costs by hash alone."""
    try:
        content = folder.read(STATUS_FILE)
        return () if content is None else CostStatus.from_json(content.decode()).costliest
    except (ValueError, OSError):
        _log.warning("the status in %s cannot be read; keys appear as they come", folder, exc_info=True)
        return ()


def _batch_id() -> int | None:
    """Micro-batch of the task that this runs in; `None` where Spark does not say, as in a query that is no stream."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(_BATCH_ID)
    return None if found is None else int(found)


def _steady_clock() -> Any:
    """Time since the epoch that never goes back within a task."""
    epoch_s, start_s = time.time(), time.perf_counter()
    return lambda: epoch_s + time.perf_counter() - start_s
