"""The shedder's side of the paper: estimate the operator's clock, and drop what would wait too long."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from jettison.costs.check import Check
from jettison.costs.hashing import Cells
from jettison.costs.sketch import CostSketch


class ShedderState(Enum):
    """What the shedder does with the next row."""

    NOP = "nop"
    """No costs are known yet: everything is kept."""
    SEND = "send"
    """The next row kept carries a synchronisation request."""
    RUN = "run"


class SyncForm(Enum):
    """How the estimate of the operator's clock is put right."""

    LITERAL = "literal"
    """As listed: the difference found when the request reaches the head of the queue is added, whatever else was
    corrected meanwhile. Overlapping requests count a correction twice."""
    IN_TURN = "in turn"
    """The request still waits in the queue, but the reply sets the clock instead of shifting it."""
    IMMEDIATE = "immediate"
    """The operator answers at once, out of turn, with its clock and how many rows it has finished."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to a row.

    Parameters
    ----------
    keep
        Whether the operator gets it.
    request
        Whether a synchronisation request travels with it.
    """

    keep: bool
    request: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What the operator answers: its clock when it finished the row, or the last row for an immediate reply.

    Parameters
    ----------
    clock_s
        When the operator finished its row number `finished`; in the literal form the time for which it was busy until then.
    finished
        Rows finished by then.
    """

    clock_s: float
    finished: int


class LatencyShedder:
    """Keeps a row while `check` holds for its estimated waiting time: the paper's load shedder.

    The waiting time of a row is the operator's estimated completion clock minus now. The guarantee is on the
    *estimates*; how far the true waiting times follow depends on the sketch, the margin and the synchronisation.

    Parameters
    ----------
    check
        The condition on waiting times.
    margin
        By how much each estimated cost is raised. The paper uses `epsilon` for both this and the sketch's width.
    sync
        How the clock is put right when new costs arrive.
    clamp_to_now
        An idle operator's clock does not stand still; without this the literal listing believes that it does.

    Notes
    -----
    Departures from the paper, all found by building it: `SyncForm.IN_TURN`, `clamp_to_now`, and the check that looks at
    the new row as well (`AverageCheck`). The paper's forms are one switch each.
    """

    def __init__(
        self, check: Check, margin: float = 0.05, sync: SyncForm = SyncForm.IN_TURN, *, clamp_to_now: bool = True
    ) -> None:
        self.check, self.margin, self.sync, self.clamp_to_now = check, margin, sync, clamp_to_now
        self.state = ShedderState.NOP
        self.clock_s = 0.0
        self._costs: CostSketch | None = None
        self._kept_cells: list[Cells] = []
        self._estimates: list[float] = []
        self._requests: dict[int, float] = {}

    def receive_costs(self, costs: CostSketch) -> None:
        """New costs arrived from the operator."""
        self._costs, self.state = costs, ShedderState.SEND

    def receive_reply(self, reply: Reply) -> None:
        """The operator's clock arrived."""
        if self.sync is SyncForm.LITERAL:
            self.clock_s += reply.clock_s - self._requests.pop(reply.finished - 1)
            return
        self._requests.pop(reply.finished - 1, None)
        if self.sync is SyncForm.IMMEDIATE:
            # What still waits is estimated anew: it was let in under the old costs.
            for row in range(reply.finished, len(self._estimates)):
                self._estimates[row] = self._cost(self._kept_cells[row])
        self.clock_s = reply.clock_s
        for estimate in self._estimates[reply.finished :]:
            self.clock_s += estimate

    def shed(self, cells: Cells, now_s: float) -> Decision:
        """Decide about the row that has just arrived."""
        if self.state is ShedderState.NOP:
            self._keep(cells, 0.0)
            return Decision(keep=True)
        if self.clamp_to_now:
            self.clock_s = max(self.clock_s, now_s)
        wait_s = self.clock_s - now_s
        if self.check.exceeds(wait_s):
            return Decision(keep=False)
        self.check.keep(wait_s)
        self._keep(cells, self._cost(cells))
        if self.state is not ShedderState.SEND:
            return Decision(keep=True)
        self.state = ShedderState.RUN
        self._requests[len(self._estimates) - 1] = self.clock_s
        return Decision(keep=True, request=True)

    def _keep(self, cells: Cells, cost: float) -> None:
        self._kept_cells.append(cells)
        self._estimates.append(cost)
        self.clock_s += cost

    def _cost(self, cells: Cells) -> float:
        assert self._costs is not None  # only NOP has none, and NOP estimates nothing
        return float(self._costs.estimate_cells(np.reshape(cells, (-1, 1))).cost[0]) * (1.0 + self.margin)
