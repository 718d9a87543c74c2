"""The driver's book of costs: adds up what tasks have learned, lets old rows fade, and lays it down for tasks to read."""

from __future__ import annotations

import logging
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn

import msgspec
import numpy as np

from jettison.core import storage
from jettison.core.storage import Folder
from jettison.costs.cost_hashing import SharedHashes
from jettison.costs.function_status import KeyCost
from jettison.costs.sketch import CostSketch, FloatArray
from jettison.costs.task_report import TaskReport
from jettison.errors import DamagedPlan, InvalidSetting, refuse

_log = logging.getLogger(__name__)
FILE = "costs.json"
HASH_SEED = 1
"""Of every sketch, so that costs learned in one run fit the next."""
FORGET = 0.2
"""Share of the weight of older rows that goes each time that enough new ones came."""
FORGET_EVERY = 1024


class _CostFile(msgspec.Struct, frozen=True):
    """Learned costs on file: a sketch, row by row in little-endian single precision, and names of the costliest keys."""

    version: int
    rows: int
    columns: int
    seed: int
    counts: bytes
    costs: bytes
    checksum: int
    costliest: tuple[KeyCost, ...] = ()
    format: Literal[1] = 1


@dataclass(slots=True)
class CostBook:
    """Costs of all executors, one version after the other.

    Reports come as a running total, as an accumulator gives it; what is new in it is added once.

    Parameters
    ----------
    costs
        What is known, handed to every task.
    version
        Grows with every change, across restarts.
    costliest
        Keys by name with the largest costs, of the run that wrote the file: the sketch knows keys by hash alone.
    """

    costs: CostSketch
    version: int = 0
    costliest: tuple[KeyCost, ...] = ()
    _told: TaskReport = field(init=False)
    _new_rows: float = 0.0

    def __post_init__(self) -> None:
        self._told = TaskReport.empty(self.costs.hashes)

    @classmethod
    def empty(cls, hashes: SharedHashes) -> CostBook:
        return cls(CostSketch(hashes))

    def tell(self, total: TaskReport) -> bool:
        """Take in what is new in a running total; returns whether anything was."""
        if total.tasks == self._told.tasks:
            return False
        fresh = CostSketch(self.costs.hashes)
        fresh.counts = total.costs.counts - self._told.costs.counts
        fresh.costs = total.costs.costs - self._told.costs.costs
        self._new_rows += fresh.rows_learned
        if self._new_rows >= FORGET_EVERY:
            self.costs.forget(FORGET)
            self._new_rows = 0.0
        self.costs.merge(fresh)
        self._told = total
        self.version += 1
        return True

    def encode(self, costliest: tuple[KeyCost, ...] = ()) -> bytes:
        """The book as a file. Costs do not expire: a dead driver leaves executors what they know."""
        hashes, counts, costs = self.costs.hashes, _packed(self.costs.counts), _packed(self.costs.costs)
        shape, checksum = (hashes.rows, hashes.columns, hashes.seed), zlib.crc32(counts + costs)
        return msgspec.json.encode(_CostFile(self.version, *shape, counts, costs, checksum, costliest))

    @classmethod
    def decode(cls, content: bytes) -> CostBook:
        """Restore a book from its file, or raise `DamagedPlan`."""
        try:
            file = msgspec.json.decode(content, type=_CostFile)
            sketch = CostSketch(SharedHashes(file.rows, file.columns, file.seed))
            counts, costs = _unpacked(file.counts), _unpacked(file.costs)
        except (msgspec.DecodeError, ValueError, InvalidSetting) as error:
            _refuse_damaged(str(error), error)
        both = np.concatenate([counts, costs])
        whole = file.checksum == zlib.crc32(file.counts + file.costs) and len(counts) == len(costs)
        if not (whole and len(counts) == len(sketch.counts) and np.isfinite(both).all() and (both >= 0).all()):
            _refuse_damaged(f"{len(counts)} and {len(costs)} numbers, checksum {file.checksum}")
        sketch.counts, sketch.costs = counts, costs
        return cls(sketch, file.version, file.costliest)

    def save(self, folder: Folder, costliest: tuple[KeyCost, ...] = ()) -> None:
        """Lay the book down where tasks read it."""
        folder.replace(FILE, self.encode(costliest))

    @classmethod
    def load(cls, folder: Folder, hashes: SharedHashes) -> CostBook:
        """The book on file, or an empty one: what is lost, or was learned under other hashes, is learned again."""
        try:
            content = folder.read(FILE)
            book = cls.empty(hashes) if content is None else cls.decode(content)
        except (DamagedPlan, OSError):
            _log.warning("learned costs in %s cannot be read; they are learned again", folder, exc_info=True)
            return cls.empty(hashes)
        return book if book.costs.hashes == hashes else cls.empty(hashes)


def costs_folder(checkpoint: str | Path) -> Folder:
    """Where the book of a checkpoint's function lies."""
    return storage.home(checkpoint) / "costs"


def _packed(values: FloatArray) -> bytes:
    # Single precision halves the size of the file that every task reads, and is finer than any timing.
    return values.astype("<f4").tobytes()


def _unpacked(content: bytes) -> FloatArray:
    return np.frombuffer(content, dtype="<f4").astype(np.float64)


def _refuse_damaged(got: str, cause: Exception | None = None) -> NoReturn:
    hint = "costs are learned again; nothing has to be done"
    refuse("learned costs as they were written", got, hint=hint, error=DamagedPlan, cause=cause)
