"""Cost per key in fixed memory: two Count-Min matrices under the same hashes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jettison.costs.cost_hashing import Cells, Fingerprints, SharedHashes
from jettison.errors import refuse

FloatArray = NDArray[np.float64]

FORGOTTEN_BELOW = 0.25
"""Count under which a cell counts as empty: with forgetting, a key's last visit fades and its cost is asked for again."""


class CostEstimates(NamedTuple):
    """Estimated costs of some keys, in the order asked.

    Parameters
    ----------
    cost
        In the unit in which costs were learned. The mean cost where a key was never seen.
    known
        False where no row that was learned can have had the key.
    """

    cost: FloatArray
    known: NDArray[np.bool_]


class CostSketch:
    """How often keys came (`F`) and what they cost in total (`W`), mergeable and without a list of keys.

    The estimate of a key's mean cost is a mean over that key and those that share its cell, so it lies between the
    smallest and the largest cost learned [1]_; the cell taken is the one that the fewest rows share. A key that was
    certainly never seen gets the mean cost of all rows. Merging the sketches of disjoint sets of rows gives the sketch of
    all rows, whatever the order.

    Parameters
    ----------
    hashes
        Shape and hash functions, shared by every sketch that is to be merged with this one.

    Examples
    --------
    >>> from jettison.costs.cost_hashing import SharedHashes, fingerprints
    >>> sketch = CostSketch(SharedHashes(rows=2, columns=64))
    >>> sketch.learn(fingerprints(["cat", "dog", "cat"]), [1.0, 5.0, 3.0])
    >>> sketch.estimate(fingerprints(["cat", "dog", "fish"])).cost.tolist()
    [2.0, 5.0, 3.0]

    Notes
    -----
    Departures from [1]_: an empty cell gives the mean cost instead of 0/0; rows can be forgotten (`forget`) instead
    of resetting the matrices, so that keys that are dropped at present keep their last known cost for a while.

    References
    ----------
    .. [1] Rivetti, Anceaume, Busnel, Querzoni, Sericola, "Load-Aware Shedding in Stream Processing Systems", 2016.
    """

    def __init__(self, hashes: SharedHashes) -> None:
        self.hashes = hashes
        self.counts: FloatArray = np.zeros(hashes.rows * hashes.columns)
        self.costs: FloatArray = np.zeros(hashes.rows * hashes.columns)

    @property
    def rows_learned(self) -> float:
        """Rows in the sketch, less what was forgotten."""
        return float(self.counts[: self.hashes.columns].sum())

    @property
    def mean_cost(self) -> float:
        """Mean cost of the rows learned; 0 before the first."""
        rows = self.rows_learned
        return float(self.costs[: self.hashes.columns].sum()) / rows if rows > 0 else 0.0

    def learn(self, keys: Fingerprints, costs: FloatArray | Iterable[float]) -> None:
        """Add one row for each key, with its cost."""
        self.learn_cells(self.hashes.cells(keys), np.asarray(costs, dtype=np.float64))

    def learn_cells(self, cells: Cells, costs: FloatArray) -> None:
        """The same where the cells are already at hand, so that deciding and learning hash once."""
        flat, size = cells.ravel(), len(self.counts)
        self.counts += np.bincount(flat, minlength=size)
        self.costs += np.bincount(flat, weights=np.tile(costs, self.hashes.rows), minlength=size)

    def estimate(self, keys: Fingerprints) -> CostEstimates:
        """Mean cost of each key, as far as its cells tell."""
        return self.estimate_cells(self.hashes.cells(keys))

    def estimate_cells(self, cells: Cells) -> CostEstimates:
        """The same where the cells are already at hand."""
        best, lowest_count = cells[0], self.counts[cells[0]]
        for row in cells[1:]:
            count = self.counts[row]
            fewer = count < lowest_count
            best, lowest_count = np.where(fewer, row, best), np.where(fewer, count, lowest_count)
        known = lowest_count >= FORGOTTEN_BELOW
        cost = np.full(len(best), self.mean_cost)
        np.divide(self.costs[best], lowest_count, out=cost, where=known)
        return CostEstimates(cost, known)

    def forget(self, share: float) -> None:
        """Take `share` of the weight from all rows learned so far; ratios stay as they are."""
        self.counts *= 1.0 - share
        self.costs *= 1.0 - share

    def merge(self, other: CostSketch) -> None:
        """Add the rows of another sketch."""
        if self.hashes != other.hashes:
            refuse(
                "sketches to merge must share shape and seed",
                f"{self.hashes} and {other.hashes}",
                hint="make both with the same rows, columns and seed",
            )
        self.counts += other.counts
        self.costs += other.costs

    def __reduce__(self) -> tuple[Any, ...]:
        # A task touches few cells, and its report travels on a path on which the next task waits.
        filled = np.flatnonzero(self.counts)
        return _of_filled_cells, (self.hashes, filled.astype(np.int32), self.counts[filled], self.costs[filled])


def _of_filled_cells(
    hashes: SharedHashes, filled: NDArray[np.int32], counts: FloatArray, costs: FloatArray
) -> CostSketch:
    sketch = CostSketch(hashes)
    sketch.counts[filled], sketch.costs[filled] = counts, costs
    return sketch
