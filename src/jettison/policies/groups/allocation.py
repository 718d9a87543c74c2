"""How many rows may be kept, and how they are divided among groups.

When latency, rows and accuracy cannot all be kept, promises give way from the last to the first:

1. **Latency and the row budget hold**: the smaller of the two says how many rows may be processed.
2. **Every group appears with its exact count**, whatever was dropped, where dropped rows are counted.
3. **Every group has a value** while there are `min_rows` for each; beyond that, groups without kept rows are flagged, or
   missing where dropped rows are not counted.
4. **Accuracy** is met if rules 1 to 3 leave enough rows. If they leave more, the surplus is dropped; if they leave
   fewer, the plan's cause names the error to be expected instead.

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

_OVERDRAFT = 0.1


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


def allowed_rows(latency_share: float, rows_left: float, row_budget_left: float | None = None) -> tuple[float, bool]:
    """Rows that may be kept of those still to come, and whether the row budget is what binds.

    >>> allowed_rows(0.5, 1000), allowed_rows(0.5, 1000, row_budget_left=200)
    ((500.0, False), (200.0, True))
    """
    by_latency = max(latency_share, 0.0) * rows_left
    if row_budget_left is not None and row_budget_left < by_latency:
        return max(float(row_budget_left), 0.0), True
    return by_latency, False


def budget_left(rows: float, kept: float, left: float) -> float:
    """What is left of a budget of rows; never nothing, because a row without a chance to be kept would bias the answer.

    A budget that was spent early goes on at a tenth of its pace over the share of time that is left.

    >>> budget_left(1000, 400, 0.5), budget_left(1000, 1200, 0.5)
    (600.0, 50.0)
    """
    return float(max(rows - kept, _OVERDRAFT * rows * left))
