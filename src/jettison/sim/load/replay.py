"""One stream through one shedder and one operator, row by row: the plain form that the compiled loops are tested against."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jettison.costs.hashing import Cells, SharedHashes, fingerprints
from jettison.costs.imposed import ImposedLoadShedder
from jettison.costs.operator import SettlingOperator
from jettison.costs.shedder import LatencyShedder, Reply, SyncForm
from jettison.costs.sketch import CostSketch, FloatArray
from jettison.sim.load.workload import Stream


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to each row of a stream.

    Parameters
    ----------
    kept
        Whether the row reached the operator.
    waits_ms
        How long it waited in the operator's queue; 0 for dropped rows.
    """

    kept: NDArray[np.bool_]
    waits_ms: FloatArray

    @property
    def mean_wait_ms(self) -> float:
        """Mean waiting time of the rows kept; 0 when none was."""
        return float(self.waits_ms.sum() / max(1, int(self.kept.sum())))

    @property
    def drop_share(self) -> float:
        """Share of the rows that were dropped."""
        return 1.0 - float(self.kept.mean())


@dataclass(frozen=True, slots=True)
class Finished:
    """A row that the operator has finished."""

    number: int
    cells: Cells
    cost_ms: float
    wait_ms: float
    clock_ms: float
    busy_ms: float
    request: bool


@dataclass(slots=True)
class Queue:
    """A first-in first-out operator: knows when each row starts and ends, and tells only once it has ended."""

    clock_ms: float = 0.0
    busy_ms: float = 0.0
    _accepted: int = 0
    _pending: deque[Finished] = field(default_factory=deque)

    def accept(self, now_ms: float, cells: Cells, cost_ms: float, *, request: bool = False) -> float:
        """Take a row in; returns how long it will wait."""
        wait_ms = max(0.0, self.clock_ms - now_ms)
        self.clock_ms = max(self.clock_ms, now_ms) + cost_ms
        self.busy_ms += cost_ms
        row = Finished(self._accepted, cells, cost_ms, wait_ms, self.clock_ms, self.busy_ms, request)
        self._pending.append(row)
        self._accepted += 1
        return wait_ms

    def finished_by(self, now_ms: float) -> list[Finished]:
        """Rows that ended since the last call."""
        ended = []
        while self._pending and self._pending[0].clock_ms <= now_ms:
            ended.append(self._pending.popleft())
        return ended


class _Party(Protocol):
    def learn(self, row: Finished) -> None: ...

    def decide(self, cells: Cells, now_ms: float, value: float) -> tuple[bool, bool]: ...


def replay_paper(stream: Stream, hashes: SharedHashes, shedder: LatencyShedder, operator: SettlingOperator) -> Outcome:
    """The paper's pair of state machines."""
    return _replay(stream, hashes, _PaperPair(shedder, operator))


def replay_imposed(
    stream: Stream,
    hashes: SharedHashes,
    shedder: ImposedLoadShedder,
    costs_every: int,
    sync_every: int,
    forget: float,
    values: FloatArray | None = None,
) -> Outcome:
    """Ours: costs travel every `costs_every` rows, clock and real waiting times every `sync_every`."""
    return _replay(stream, hashes, _ImposedPair(shedder, CostSketch(hashes), costs_every, sync_every, forget), values)


def warmed_up(stream: Stream, hashes: SharedHashes, operator: SettlingOperator) -> CostSketch | None:
    """Run past rows through an idle operator until it sends its first costs."""
    cells = hashes.cells(fingerprints(np.arange(stream.distinct)))
    for key, cost in zip(stream.rest_keys, stream.rest_costs_ms, strict=True):
        if (settled := operator.execute(cells[:, key], float(cost))) is not None:
            return settled
    return None


def _replay(stream: Stream, hashes: SharedHashes, party: _Party, values: FloatArray | None = None) -> Outcome:
    cells = hashes.cells(fingerprints(np.arange(stream.distinct)))
    queue = Queue()
    kept, waits = np.zeros(len(stream.keys), dtype=bool), np.zeros(len(stream.keys))
    for number, (key, cost, now) in enumerate(zip(stream.keys, stream.costs_ms, stream.arrivals_ms, strict=True)):
        for row in queue.finished_by(now):
            party.learn(row)
        kept[number], request = party.decide(
            cells[:, key], float(now), 1.0 if values is None else float(values[number])
        )
        if kept[number]:
            waits[number] = queue.accept(float(now), cells[:, key], float(cost), request=request)
    return Outcome(kept, waits)


@dataclass(slots=True)
class _PaperPair:
    shedder: LatencyShedder
    operator: SettlingOperator

    def learn(self, row: Finished) -> None:
        settled = self.operator.execute(row.cells, row.cost_ms)
        if settled is not None:
            self.shedder.receive_costs(settled)
        if self.shedder.sync is SyncForm.IMMEDIATE:
            if settled is not None:
                self.shedder.receive_reply(Reply(row.clock_ms, row.number + 1))
        elif row.request:
            clock = row.busy_ms if self.shedder.sync is SyncForm.LITERAL else row.clock_ms
            self.shedder.receive_reply(Reply(clock, row.number + 1))

    def decide(self, cells: Cells, now_ms: float, value: float) -> tuple[bool, bool]:
        decision = self.shedder.shed(cells, now_ms)
        return decision.keep, decision.request


@dataclass(slots=True)
class _ImposedPair:
    shedder: ImposedLoadShedder
    costs: CostSketch
    costs_every: int
    sync_every: int
    forget: float
    _executed: int = 0
    _unsent: list[Finished] = field(default_factory=list)

    def learn(self, row: Finished) -> None:
        self.costs.learn_cells(row.cells.reshape(-1, 1), np.array([row.cost_ms]))
        self._executed += 1
        self._unsent.append(row)
        full = self._executed % self.costs_every == 0
        if full or (self._executed < self.costs_every and self._executed & (self._executed - 1) == 0):
            # Early on after 1, 2, 4, 8 ... rows: the first rows teach most.
            self.shedder.receive_costs(self.costs.copy())
        if full:
            self.costs.forget(self.forget)
        if len(self._unsent) >= self.sync_every or self._executed < self.sync_every:
            self.shedder.receive_reply(
                row.clock_ms, [one.cost_ms for one in self._unsent], [one.wait_ms for one in self._unsent]
            )
            self._unsent.clear()

    def decide(self, cells: Cells, now_ms: float, value: float) -> tuple[bool, bool]:
        return self.shedder.keeps(cells, now_ms, value), False
