"""How a number of rows is divided among groups.

Every rule has one form: group g gets `clip(level * share_g, floor_g, rows_g)` rows, and the level is the one at which
the rows add up to the budget. Equal caps are shares of 1: the level is then the cap itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

MIN_ROWS = 10.0
"""Rows below which a group is not thinned while the budget allows: at 4 expected rows one group in 55 has none."""


class Allocation(NamedTuple):
    """Rows to keep of each group, and the level that shares were multiplied with: infinite where everything is kept."""

    rows: Floats
    level: float


def allocate(
    rows: ArrayLike,
    budget: float,
    *,
    shares: ArrayLike | None = None,
    min_rows: float = MIN_ROWS,
    least_share: float = 0.0,
) -> Allocation:
    """Divide `budget` rows among groups of the given sizes.

    The rows kept never add up to more than the budget. Each group gets `min_rows` (or all it has) unless that alone
    exceeds the budget; then what there is is divided by equal caps, whatever the shares.

    Parameters
    ----------
    rows
        Rows expected of each group.
    budget
        Rows to keep in total.
    shares
        What each group gets is proportional to its share. Equal caps, unless given: they have the smallest mean relative
        error over groups.
    min_rows
        Floor for each group.
    least_share
        Floor for the share kept of each group, unless `min_rows` of each leave no room for it.

    Examples
    --------
    >>> allocate([1000, 100, 5], 65, min_rows=10).rows.tolist()
    [30.0, 30.0, 5.0]

    Notes
    -----
    Departures from [1]_: equal caps are the default, and not shares proportional to the rows. Those alone leave small
    groups without a row, which the paper says cannot happen; the floor makes it so.

    References
    ----------
    .. [1] Katsipoulakis, Labrinidis, Chrysanthis: Concept-Driven Load Shedding. IEEE Big Data, 2018.
    """
    size = np.maximum(np.asarray(rows, float), 0.0)
    budget = max(float(budget), 0.0)
    if size.sum() <= budget:
        return Allocation(size, float("inf"))
    share = np.ones_like(size) if shares is None else np.asarray(shares, float)
    least = size * min(least_share, budget / float(size.sum()))
    floor = np.minimum(size, min_rows)
    if np.maximum(floor, least).sum() <= budget:
        floor = np.maximum(floor, least)
    elif floor.sum() > budget:
        share, floor = np.ones_like(size), least
    level = _level(share, floor, size, budget)
    return Allocation(np.clip(level * share, floor, size), level)


def _level(share: Floats, floor: Floats, size: Floats, budget: float) -> float:
    """The level at which `clip(level * share, floor, size)` adds up to the budget.

    The total is piecewise linear in the level and never falls: a group starts to grow at floor / share and stops at
    size / share. So the level is found exactly, by walking over the sorted corners.
    """
    grows = (share > 0) & (size > floor)
    if not grows.any():
        return 0.0
    share, low, high = share[grows], floor[grows] / share[grows], size[grows] / share[grows]
    corner = np.concatenate([low, high])
    slope_change = np.concatenate([share, -share])
    order = np.argsort(corner, kind="stable")
    corner, slope = corner[order], np.cumsum(slope_change[order])
    total = floor.sum() + np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(corner))])
    last = int(np.searchsorted(total, budget, side="right")) - 1
    # Beyond the last corner only rounding is left over.
    steep = slope[last] if last < len(slope) - 1 else np.inf
    return float(corner[last] + max(budget - total[last], 0.0) / steep)
