"""Drop thresholds of given regions: the linear program of the paper, solved in closed form.

Maximise the overall QoS, that is minimise `sum(A * d)`, such that `sum(d * f) = 1 - z` and the thresholds `d` of any
two regions with queries differ by at most the fairness threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jettison.errors import refuse
from jettison.source.space import Floats

_ROUNDING = 1e-12
_SMALLEST = 1e-200


@dataclass(frozen=True, slots=True)
class Configuration:
    """Thresholds, and whether they meet the throttler.

    Parameters
    ----------
    drop
        Share to drop of each region's rows.
    pass_rate
        Share of all rows expected to pass.
    feasible
        False where no thresholds meet the throttler; `drop` is then as near to it as can be.
    """

    drop: Floats
    pass_rate: float
    feasible: bool


def configure(
    region_qos: ArrayLike, frequency: ArrayLike, has_queries: ArrayLike, *, throttler: float, fairness: float
) -> Configuration:
    """Thresholds that lose the least QoS, exactly.

    Regions without queries are outside the fairness constraint and are dropped first. The others lie between two
    levels, m and m + fairness: regions whose QoS per row is below the average take the upper level, the others the
    lower one, and one region makes up for rounding. Regions that no sampled row fell into take the lower level; if none
    has any, all are dropped alike.

    Parameters
    ----------
    region_qos
        A of each region: the QoS that is lost when all its rows are dropped.
    frequency
        f of each region: its share of the rows. The shares may sum to less than 1; the rest passes always.
    has_queries
        Whether any query meets the region.
    throttler
        z, the share of the rows that can be processed.
    fairness
        Largest difference between the thresholds of two regions with queries, in [0, 1].

    Examples
    --------
    Half of the rows must go; the region that earns less per row gives more:

    >>> configure([0.1, 0.9], [0.5, 0.5], [True, True], throttler=0.5, fairness=0.4).drop
    array([0.7, 0.3])

    Notes
    -----
    Departure from [1]_, which orders regions by A: the order is by A / f, the QoS lost per row dropped. With the
    lower level m fixed, the rest is a fractional knapsack whose cost is convex in m, and its slope is zero where the
    knapsack's marginal loss per row is the average loss per row. So m = (1 - z - fairness * t) / F, clipped to
    [0, 1 - fairness], where F is the frequency of all regions with queries and t of those below the average.
    """
    check_fairness(fairness)
    qos, rows = (np.asarray(given, dtype=np.float64) for given in (region_qos, frequency))
    wanted = np.asarray(has_queries, dtype=bool) | (qos > 0.0)
    target = 1.0 - throttler
    total = float(rows.sum())
    if total == 0.0:
        return Configuration(np.full(len(qos), min(max(target, 0.0), 1.0)), throttler, feasible=0.0 <= target <= 1.0)
    # Shares from counts may miss 1 by rounding; that is no infeasibility.
    if not -_ROUNDING <= target <= total + _ROUNDING:
        drop = np.zeros(len(qos)) if target < 0.0 else np.ones(len(qos))
        return Configuration(drop, 1.0 - float(rows @ drop), feasible=False)
    target = min(max(target, 0.0), total)
    drop = np.zeros(len(qos))
    unwanted = float(rows[~wanted].sum())
    if target <= unwanted:
        drop[~wanted] = target / unwanted if unwanted > 0.0 else 0.0
    else:
        drop[~wanted] = 1.0
        drop[wanted] = _two_levels(qos[wanted], rows[wanted], target - unwanted, fairness)
    return Configuration(drop, 1.0 - float(rows @ drop), feasible=True)


def check_fairness(fairness: float) -> None:
    """Raise `InvalidSetting` unless `fairness` is a difference between two thresholds."""
    if not 0.0 <= fairness <= 1.0:
        refuse(
            "`fairness` must lie in [0, 1]",
            repr(fairness),
            hint="0 treats all regions alike, 1 lets any be dropped whole",
        )


def _two_levels(qos: Floats, rows: Floats, target: float, fairness: float) -> Floats:
    """Thresholds of the regions with queries, of which `target` in rows must be dropped."""
    total = float(rows.sum())
    cheap = float(rows[qos * total < qos.sum() * rows].sum())
    lower = min(max((target - fairness * cheap) / total, 0.0), 1.0 - fairness)
    # The knapsack above the lower level: fill the regions up to the upper one, cheapest rows first.
    per_row = qos / np.maximum(rows, _SMALLEST)
    per_row[rows <= 0.0] = np.inf  # those without rows come last, where nothing is left to fill
    order = per_row.argsort(kind="stable")
    capacity = fairness * rows[order]
    before = capacity.cumsum() - capacity
    fill = np.minimum(np.maximum(target - lower * total - before, 0.0), capacity)
    drop = np.full(len(qos), lower)
    drop[order] += fill / np.maximum(rows[order], _SMALLEST)
    capped: Floats = np.minimum(drop, 1.0)
    return capped
