"""How a number of rows is divided among groups.

Every rule has one form: group g gets `clip(level * share_g, floor_g, rows_g)` rows, and the level is the one at which
the rows add up to the budget. Equal caps are shares of 1: the level is then the cap itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.errors import InvalidSetting, did_you_mean, explain

Floats = NDArray[np.float64]

MIN_ROWS = 10.0
"""Rows below which a group is not thinned while the budget allows: at 4 expected rows one group in 55 has none."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Rows to keep of each group.

    Parameters
    ----------
    rows
        Expected rows to keep, at most the rows that there are. They add up to the budget, or to all rows.
    level
        What the rule multiplied its shares with; for equal caps the cap. Infinite where everything is kept.
    crowded
        Whether the budget was too small for `min_rows` of every group, so that some groups may stay without a row.
    """

    rows: Floats
    level: float
    crowded: bool


Rule = Callable[[Floats, Floats], Floats]
"""From rows and standard deviations by group to shares."""


def _equal(rows: Floats, spread: Floats) -> Floats:
    return np.ones_like(rows)


def _proportional(rows: Floats, spread: Floats) -> Floats:
    return rows


def _square_root(rows: Floats, spread: Floats) -> Floats:
    return np.sqrt(rows)


def _neyman(rows: Floats, spread: Floats) -> Floats:
    return rows * spread


RULES: dict[str, Rule] = {
    "equal": _equal,
    "proportional": _proportional,
    "square_root": _square_root,
    "neyman": _neyman,
}
"""The rules by name: equal caps, the paper's proportional rule, its square root, and Neyman's."""


def check_rule(rule: str) -> None:
    """Refuse a rule that there is not."""
    if rule not in RULES:
        raise InvalidSetting(
            explain(
                f"`allocation` must be one of {', '.join(RULES)}",
                repr(rule),
                hint=did_you_mean(rule, RULES, otherwise="leave it out for the usual one"),
            )
        )


def allocate(
    rows: ArrayLike,
    budget: float,
    *,
    rule: str = "equal",
    spread: ArrayLike | None = None,
    min_rows: float = MIN_ROWS,
    least_share: float = 0.0,
) -> Allocation:
    """Divide `budget` rows among groups of the given sizes.

    The rows kept never add up to more than the budget. Each group gets `min_rows` (or all it has) unless that alone
    exceeds the budget; then the allocation is *crowded*, and what there is is divided by equal caps, whatever the rule.

    Parameters
    ----------
    rows
        Rows expected of each group.
    budget
        Rows to keep in total.
    rule
        One of `RULES`. Equal caps give the smallest mean relative error over groups; the proportional rule [1]_ and
        Neyman's serve totals over all groups.
    spread
        Standard deviation of the values of each group, which only Neyman's rule reads.
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
    Departure from [1]_: the proportional rule alone leaves small groups without a row, which the paper says cannot
    happen; the floor makes it so.

    References
    ----------
    .. [1] Katsipoulakis, Labrinidis, Chrysanthis: Concept-Driven Load Shedding. IEEE Big Data, 2018.
    """
    check_rule(rule)
    size = np.maximum(np.asarray(rows, float), 0.0)
    budget = max(float(budget), 0.0)
    if size.sum() <= budget:
        return Allocation(size, float("inf"), crowded=False)
    least = size * min(least_share, budget / float(size.sum()))
    floor = np.minimum(size, min_rows)
    if np.maximum(floor, least).sum() <= budget:
        floor = np.maximum(floor, least)
    elif floor.sum() > budget:
        level = _level(np.ones_like(size), least, size, budget)
        return Allocation(np.clip(level, least, size), level, crowded=True)
    deviation = np.ones_like(size) if spread is None else np.nan_to_num(np.asarray(spread, float), nan=0.0)
    share = np.maximum(RULES[rule](size, deviation), 0.0)
    level = _level(share, floor, size, budget)
    return Allocation(np.clip(level * share, floor, size), level, crowded=False)


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
