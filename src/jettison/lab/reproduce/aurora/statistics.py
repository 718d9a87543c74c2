"""Means and ratios over seeds with 95 % confidence intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.lab.intervals import Interval, Samples

Cell = tuple[int, int]


def bootstrap(statistic: Callable[[NDArray[np.intp]], float], count: int, seed: int, draws: int = 1000) -> Interval:
    """Any figure computed from a choice of `count` seeds, by the percentile bootstrap over seeds."""
    random = np.random.default_rng([seed, 11])
    values = [statistic(random.integers(0, count, count)) for _ in range(draws)]
    lower, upper = np.percentile(values, [2.5, 97.5])
    return Interval(statistic(np.arange(count)), float(lower), float(upper))


@dataclass(frozen=True, slots=True, eq=False)
class LossRatios:
    """Ratios of mean losses in each cell of a grid. A mean of ratios would be ruled by seeds that hardly lose anything.

    What the two shedders lose is given by seed, row and column of the grid; `seed` is that of the bootstrap over seeds.

    Examples
    --------
    >>> ratios = LossRatios(np.full((4, 1, 2), 6.0), np.array([[[3.0, 2.0]]] * 4), seed=1)
    >>> str(ratios.cell((0, 1))), ratios.change((0, 0), (0, 1)).value
    ('3.00 (3.00 to 3.00)', 1.0)
    """

    above: Samples
    below: Samples
    seed: int

    def cell(self, cell: Cell) -> Interval:
        return bootstrap(lambda chosen: float(self._of(chosen)[cell]), len(self.above), self.seed, draws=400)

    def change(self, start: Cell, end: Cell) -> Interval:
        """How much the ratio at `end` exceeds that at `start`, the seeds being the same for both."""

        def difference(chosen: NDArray[np.intp]) -> float:
            grid = self._of(chosen)
            return float(grid[end] - grid[start])

        return bootstrap(difference, len(self.above), self.seed)

    def _of(self, chosen: NDArray[np.intp]) -> Samples:
        return np.asarray(self.above[chosen].mean(axis=0) / self.below[chosen].mean(axis=0))
