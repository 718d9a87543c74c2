"""What a running query tells about its stream: the newest sampled rows, and how many rows passed for each expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray

from jettison.core.documents import Amount, Natural
from jettison.source.space import Floats

# A batch's counts lose this share of their weight with every later batch.
_FORGOTTEN = 0.1
# Fewer rows than this say more about chance than about the stream.
_ENOUGH_ROWS = 1000
# A ratio that moves by less makes no new plan.
_TOLERANCE = 0.003
# A model that is further off than this is rebuilt sooner or later; until then a correction must not run away.
_MOST = 2.0


@dataclass(frozen=True, slots=True)
class SavedRows:
    """Rows one after the other, how many of them are new, and the last batch of each drop point that they are from."""

    rows: Floats
    new: Natural
    last_batch: dict[str, int]


class NewestRows:
    """The newest rows of the unfiltered stream, a fixed number of them, each batch taken in once.

    Parameters
    ----------
    rows
        The first ones, shape (rows, attributes). As many are remembered as are given here, but at least `at_least`.
    at_least
        How many rows to remember.
    """

    def __init__(self, rows: Floats, at_least: int) -> None:
        # In an order of chance: a sample that came sorted would otherwise lose one end of the stream first.
        self._rows: Floats = np.random.default_rng(0).permutation(rows)
        self.capacity = max(len(rows), at_least)
        self._last_batch: dict[str, int] = {}
        self.new = 0

    def add(self, batch_id: int, point: str, rows: ArrayLike) -> None:
        """Take in the sampled rows of one micro-batch at one drop point; a batch that is told again is ignored."""
        if batch_id <= self._last_batch.get(point, -1):
            return
        self._last_batch[point] = batch_id
        given = np.asarray(rows, dtype=np.float64).reshape(-1, self._rows.shape[1])
        self._rows = np.concatenate([self._rows, given])[-self.capacity :]
        self.new += len(given)

    def take(self) -> Floats:
        """All remembered rows; from now on none of them is new."""
        self.new = 0
        return self._rows

    def saved(self) -> SavedRows:
        return SavedRows(self._rows.ravel(), self.new, dict(self._last_batch))

    def restore(self, saved: SavedRows) -> None:
        self._rows = saved.rows.reshape(-1, self._rows.shape[1])
        self.new, self._last_batch = saved.new, dict(saved.last_batch)


@dataclass(slots=True)
class PassRate:
    """Rows that passed for each that was expected to, so that the next thresholds can make up for the difference.

    Sums over the batches, the newest weighing most: chance averages out, and a stream that changes is followed.
    """

    passed: Amount = 0.0
    expected: Amount = 0.0
    ratio: Annotated[float, Meta(ge=1.0 / _MOST, le=_MOST)] = 1.0
    """Passed over expected; 1 until enough rows have been counted, and then as it was unless it has moved."""

    def add(self, passed: float, expected: float) -> None:
        self.passed = (1.0 - _FORGOTTEN) * self.passed + passed
        self.expected = (1.0 - _FORGOTTEN) * self.expected + expected
        if self.expected < _ENOUGH_ROWS:
            return
        ratio = float(np.clip(self.passed / self.expected, 1.0 / _MOST, _MOST))
        if abs(ratio - self.ratio) > _TOLERANCE * self.ratio:
            self.ratio = ratio


def share_passing(frequency: Floats, keep: ArrayLike) -> float:
    """Share of all rows that pass where `keep` is the share of each region and, last, of rows outside all of them."""
    every: NDArray[np.float64] = np.append(frequency, max(1.0 - float(frequency.sum()), 0.0))
    return min(float(every @ np.asarray(keep)), 1.0)
