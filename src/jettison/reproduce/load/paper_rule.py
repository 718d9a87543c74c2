"""The paper's own shedder and operator around a function on Spark: one pair in each worker, row by row.

`load_aware` paces a micro-batch as a whole. The paper decides about each row when it arrives, by the operator's estimated
clock. Here the rows of a task are decided in turn before the first of them is executed, and then executed in turn.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jettison.costs.check import AverageCheck
from jettison.costs.hashing import SharedHashes, fingerprints
from jettison.costs.operator import SettlingOperator
from jettison.costs.shedder import LatencyShedder, Reply
from jettison.costs.sketch import FloatArray
from jettison.sim.load.workload import IntArray

Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_SHAPE = (4, 55)  # epsilon = 0.05, delta = 0.1
_SEED = 1
_LONGEST_PAST = 50_000


@dataclass
class Pair:
    """Shedder and operator of one worker; `clock` tells the time in seconds."""

    shedder: LatencyShedder
    operator: SettlingOperator
    hashes: SharedHashes
    clock: Callable[[], float] = time.time
    _finished: int = 0
    _asked: set[int] = field(default_factory=set)
    _kept: int = 0

    @classmethod
    def taught(cls, bound_s: float, keys: IntArray, costs_s: FloatArray) -> Pair:
        """A pair that has seen these rows, over and over until their costs had settled: the corrected start."""
        hashes = SharedHashes(*_SHAPE, seed=_SEED)
        pair = cls(LatencyShedder(AverageCheck(bound_s)), SettlingOperator(hashes), hashes)
        past = zip(hashes.cells(fingerprints(keys)).T, costs_s.tolist(), strict=True)
        for cells, cost in itertools.islice(itertools.cycle(past), _LONGEST_PAST):
            if (settled := pair.operator.execute(cells, cost)) is not None:
                pair.shedder.receive_costs(settled)
                break
        return pair

    def choose(self, keys: IntArray, arrivals_s: FloatArray) -> NDArray[np.bool_]:
        """Which rows of a task are kept, each judged as of its arrival by an operator that gets to them from now on."""
        self.shedder.clock_s = max(self.shedder.clock_s, self.clock())
        keep = np.zeros(len(keys), bool)
        for row, cells in enumerate(self.hashes.cells(fingerprints(keys)).T):
            decision = self.shedder.shed(cells, float(arrivals_s[row]))
            keep[row] = decision.keep
            if decision.request:
                self._asked.add(self._kept)
            self._kept += decision.keep
        return keep

    def executed(self, key: int, cost_s: float) -> None:
        """A kept row is through: learn its cost, and answer the shedder if it asked with that row."""
        (cells,) = self.hashes.cells(fingerprints(np.array([key]))).T
        if (settled := self.operator.execute(cells, cost_s)) is not None:
            self.shedder.receive_costs(settled)
        self._finished += 1
        if self._finished - 1 in self._asked:
            self._asked.discard(self._finished - 1)
            self.shedder.receive_reply(Reply(self.clock(), self._finished))


_PAIRS: dict[str, Pair] = {}
"""Of this worker, which Spark uses again from micro-batch to micro-batch; by run."""


@dataclass(frozen=True, slots=True)
class PaperRule:
    """For `mapInArrow`: the function behind the paper's shedder.

    Parameters
    ----------
    function
        What the rows cost.
    bound_s
        On the mean wait.
    run
        Tells runs apart in a worker that serves several.
    keys, costs_s
        Rows seen before the start.
    """

    function: Function
    bound_s: float
    run: str
    keys: tuple[int, ...]
    costs_s: tuple[float, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide about the rows of each batch in turn, then execute those that are kept."""
        pair = _PAIRS.get(self.run)
        if pair is None:
            pair = _PAIRS[self.run] = Pair.taught(self.bound_s, np.array(self.keys), np.array(self.costs_s))
        for batch in batches:
            keys = batch["key"].to_numpy()
            arrivals_s = batch["at"].cast(pa.int64()).to_numpy() / 1e6
            order = np.argsort(arrivals_s, kind="stable")
            keep = np.zeros(len(keys), bool)
            keep[order] = pair.choose(keys[order], arrivals_s[order])
            for row in order[keep[order]].tolist():
                started = time.perf_counter()
                yield from self.function(iter([batch.slice(row, 1)]))
                pair.executed(int(keys[row]), time.perf_counter() - started)
