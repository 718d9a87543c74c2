"""The operator's side of the paper: learn costs, and send them when they have settled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from jettison.costs.hashing import Cells, SharedHashes
from jettison.costs.sketch import CostSketch, FloatArray


class OperatorState(Enum):
    """Where the operator stands between two messages to the shedder."""

    START = "start"
    STABILIZING = "stabilizing"


@dataclass(frozen=True, slots=True)
class StabilitySettings:
    """When learned costs are sent.

    Parameters
    ----------
    rows
        Rows between two looks, `N` in the paper.
    tolerance
        Largest relative change between two snapshots that counts as settled, `mu` in the paper.
    """

    rows: int = 1024
    tolerance: float = 0.05


class SettlingOperator:
    """Learns the cost of each executed row and hands out the sketch once two snapshots `rows` apart agree.

    After a hand-over it starts from an empty sketch, so that costs that changed are not averaged with old ones.

    Parameters
    ----------
    hashes
        Shared with the shedder.
    settings
        When costs count as settled.

    Notes
    -----
    An empty cell counts as cost 0 in a snapshot; the paper leaves 0/0 open. As in Listing III.1 the test comes before
    the row itself is learned. The reply to a synchronisation request is made by whoever holds the clock.
    """

    def __init__(self, hashes: SharedHashes, settings: StabilitySettings | None = None) -> None:
        self.settings = settings or StabilitySettings()
        self.state = OperatorState.START
        self._sketch = CostSketch(hashes)
        self._snapshot: FloatArray = np.zeros_like(self._sketch.counts)
        self._executed = 0

    def execute(self, cells: Cells, cost: float) -> CostSketch | None:
        """Learn one executed row; returns the sketch when it is to be sent to the shedder."""
        self._executed += 1
        settled = self._look() if self._executed % self.settings.rows == 0 else None
        self._sketch.learn_cells(cells.reshape(-1, 1), np.array([cost]))
        return settled

    def _look(self) -> CostSketch | None:
        if self.state is OperatorState.START:
            self._snapshot, self.state = self._sketch.ratios(), OperatorState.STABILIZING
            return None
        change = relative_change(self._snapshot, self._sketch.ratios())
        if change > self.settings.tolerance:
            self._snapshot = self._sketch.ratios()
            return None
        settled, self._sketch = self._sketch, CostSketch(self._sketch.hashes)
        self.state = OperatorState.START
        return settled


def relative_change(before: FloatArray, after: FloatArray) -> float:
    """Sum of absolute differences over the sum before, `eta` of equation 1; infinite where nothing was before."""
    total = float(before.sum())
    return float(np.abs(before - after).sum()) / total if total > 0 else float("inf")
