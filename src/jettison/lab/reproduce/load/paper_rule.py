"""The paper's own shedder and operator around a function on Spark: one pair in each worker, row by row.

`load_aware` paces a micro-batch as a whole. The paper decides about each row when it arrives, by the operator's estimated
clock. Here the rows of a task are decided in turn before the first of them is executed, and then executed in turn.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jettison.costs.cost_hashing import Cells, SharedHashes, fingerprints
from jettison.costs.sketch import CostSketch, FloatArray
from jettison.lab.sim.load.workload import IntArray

Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_SHAPE = (4, 55)  # epsilon = 0.05, delta = 0.1
_SEED = 1
_LONGEST_PAST = 50_000


class PaperPair:
    """The paper's two state machines in their corrected form: the kernel of the simulator decides about every row alike.

    The operator learns the cost of each executed row and hands its sketch over once two looks at it, `look_every` rows
    apart, agree up to the relative `tolerance`. The shedder keeps a row while the mean wait, by its estimates raised by
    `margin`, stays at most the bound; the first row that it keeps after new costs came asks for the operator's clock.
    """

    def __init__(
        self,
        bound: float,
        hashes: SharedHashes,
        *,
        margin: float = 0.05,
        look_every: int = 1024,
        tolerance: float = 0.05,
    ) -> None:
        self.bound, self.hashes, self.margin = bound, hashes, margin
        self.look_every, self.tolerance = look_every, tolerance
        self.clock = 0.0
        self.known: CostSketch | None = None
        self._learning = CostSketch(hashes)
        self._snapshot: FloatArray | None = None
        self._executed = 0
        self._due = False
        self._asked: set[int] = set()
        self._estimates: list[float] = []
        self._finished = 0
        self._wait_sum, self._checked = 0.0, 0

    def keeps(self, cells: Cells, now: float) -> bool:
        """Decide about the row that has just arrived. Before costs are known, all are kept and none is counted."""
        estimate = 0.0
        if self.known is not None:
            self.clock = max(self.clock, now)
            wait = self.clock - now
            if (self._wait_sum + wait) / (self._checked + 1) > self.bound:
                return False
            self._wait_sum += wait
            self._checked += 1
            estimate = float(self.known.estimate_cells(cells.reshape(-1, 1)).cost[0]) * (1.0 + self.margin)
            if self._due:
                self._asked.add(len(self._estimates))
                self._due = False
        self._estimates.append(estimate)
        self.clock += estimate
        return True

    def learn(self, cells: Cells, cost: float) -> bool:
        """The operator's side of a row: look first, as in Listing III.1, then learn; whether costs were handed over."""
        self._executed += 1
        settled = self._executed % self.look_every == 0 and self._settled()
        if settled:
            self.known, self._learning, self._snapshot, self._due = self._learning, CostSketch(self.hashes), None, True
        self._learning.learn_cells(cells.reshape(-1, 1), np.array([cost]))
        return settled

    def executed(self, cells: Cells, cost: float, ended: float) -> None:
        """The next row that was kept is through; if it asked, the clock is set, and what still waits comes on top."""
        self.learn(cells, cost)
        self._finished += 1
        if self._finished - 1 in self._asked:
            self.clock = ended
            for estimate in self._estimates[self._finished :]:
                self.clock += estimate

    def _settled(self) -> bool:
        counts, costs, before = self._learning.counts, self._learning.costs, self._snapshot
        self._snapshot = np.divide(costs, counts, out=np.zeros_like(costs), where=counts > 0)
        if before is None or before.sum() <= 0.0:
            return False
        return bool(np.abs(before - self._snapshot).sum() <= self.tolerance * before.sum())


def taught(bound_s: float, keys: IntArray, costs_s: FloatArray) -> PaperPair:
    """A pair that has seen these rows, over and over until their costs had settled: the corrected start."""
    pair = PaperPair(bound_s, SharedHashes(*_SHAPE, seed=_SEED))
    past = zip(pair.hashes.cells(fingerprints(keys)).T, costs_s.tolist(), strict=True)
    any(pair.learn(cells, cost) for cells, cost in itertools.islice(itertools.cycle(past), _LONGEST_PAST))
    return pair


_PAIRS: dict[str, PaperPair] = {}
"""Of this worker, which Spark uses again from micro-batch to micro-batch; by run."""


@dataclass(frozen=True, slots=True)
class PaperRule:
    """For `mapInArrow`: the function behind the paper's shedder, which has seen these keys and costs before the start.

    `run` tells runs apart in a worker that serves several.
    """

    function: Function
    bound_s: float
    keys: tuple[int, ...]
    costs_s: tuple[float, ...]
    run: str = ""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide about the rows of each batch in turn, then execute those that are kept."""
        if self.run not in _PAIRS:
            _PAIRS[self.run] = taught(self.bound_s, np.array(self.keys), np.array(self.costs_s))
        pair = _PAIRS[self.run]
        for batch in batches:
            arrivals_s = batch["at"].cast(pa.int64()).to_numpy() / 1e6
            order = np.argsort(arrivals_s, kind="stable")
            cells = pair.hashes.cells(fingerprints(batch["key"].take(pa.array(order)))).T
            for place in np.flatnonzero(chosen(pair, cells, arrivals_s[order], time.time())):
                started = time.perf_counter()
                yield from self.function(iter([batch.slice(int(order[place]), 1)]))
                pair.executed(cells[place], time.perf_counter() - started, time.time())


def chosen(pair: PaperPair, cells: IntArray, arrivals_s: FloatArray, now_s: float) -> NDArray[np.bool_]:
    """Which rows of a task are kept, each judged as of its arrival by an operator that gets to them from now on."""
    pair.clock = max(pair.clock, now_s)
    return np.array([pair.keeps(of_row, arrival) for of_row, arrival in zip(cells, arrivals_s, strict=True)], bool)
