"""What one shedder loses over what another loses, in every cell of a grid of settings, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.reproduce.aurora.statistics import Interval, Samples, bootstrap

Cell = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class LossRatios:
    """Ratios of mean losses. A mean of ratios would be ruled by seeds that hardly lose anything.

    Parameters
    ----------
    above, below
        Percent lost by the two shedders: by seed, row and column of the grid.
    seed
        Of the bootstrap over seeds.

    Examples
    --------
    >>> ratios = LossRatios(np.full((4, 1, 2), 6.0), np.array([[[3.0, 2.0]]] * 4), seed=1)
    >>> str(ratios.cell((0, 1))), ratios.change((0, 0), (0, 1)).value
    ('3.00 (3.00 to 3.00)', 1.0)
    """

    above: Samples
    below: Samples
    seed: int

    def of(self, chosen: NDArray[np.intp] | slice = slice(None)) -> Samples:
        """The grid of ratios over the seeds in these places, over all of them by default."""
        return np.asarray(self.above[chosen].mean(axis=0) / self.below[chosen].mean(axis=0))

    def cell(self, cell: Cell) -> Interval:
        """One ratio."""
        return bootstrap(lambda chosen: float(self.of(chosen)[cell]), len(self.above), self.seed, draws=400)

    def change(self, start: Cell, end: Cell) -> Interval:
        """How much the ratio at `end` exceeds that at `start`, the seeds being the same for both."""

        def difference(chosen: NDArray[np.intp]) -> float:
            grid = self.of(chosen)
            return float(grid[end] - grid[start])

        return bootstrap(difference, len(self.above), self.seed)

    def rows(self, names: Sequence[str]) -> dict[str, list[Interval]]:
        """Every cell, row by row under the given names."""
        columns = range(self.above.shape[2])
        return {name: [self.cell((row, column)) for column in columns] for row, name in enumerate(names)}
