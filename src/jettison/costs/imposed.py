"""Drop rows by the load that they would impose: the costliest first, and only as many as the bound needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jettison.costs.hashing import Cells
from jettison.costs.residuals import Residuals
from jettison.costs.sketch import CostSketch

DEAREST_FADES = 0.9
"""What is left of the dearest cost, the yardstick of the price, each time that new costs arrive."""


@dataclass(frozen=True, slots=True)
class ImposedLoadSettings:
    """The bound, and how the queue is steered to it: one set of values for every workload of the reproduction.

    Parameters
    ----------
    bound_s
        Mean waiting time of the rows kept must stay at most this.
    aim
        Share of the bound that the queue is steered to.
    slope
        How far the price falls when the queue is longer than its aim by one bound, as a share of the dearest cost.
    patience
        The same for each row that finds it so, and lasting. Much smaller than `slope`.
    opening_rows
        Rows that must have finished before the price refuses any.
    mercy
        Share of the bound under which a waiting time is fine even while the mean is above the bound: such a row brings
        the mean down, and refusing it would only stop the operator.
    """

    bound_s: float
    aim: float = 0.95
    slope: float = 0.25
    patience: float = 0.0025
    opening_rows: int = 100
    mercy: float = 0.5


class ImposedLoadShedder:
    """Keeps a row when its cost is at most a price that falls as the queue grows; nothing is dropped while idle.

    A row delays all rows behind it by its own cost, so fewest rows are dropped when the costliest go first. The price
    is steered so that the mean wait of the rows kept stays just under the bound. Beside it the bound itself is checked,
    on the real waiting times that the operator reports: an estimate that is wrong costs rows, not latency.

    Parameters
    ----------
    settings
        The bound and how it is steered to.
    residuals
        Learns the margin.

    Notes
    -----
    The paper announces shedding "on the basis of the load they impose", but its CHECK never looks at the cost of the
    row that it judges, so theorem 4.1, which calls it optimal, does not hold. With values, a row's cost is divided by
    its value: what is dropped is what costs most per unit of utility.
    """

    def __init__(self, settings: ImposedLoadSettings, residuals: Residuals | None = None) -> None:
        self.settings = settings
        self.residuals = residuals or Residuals()
        self.clock_s = 0.0
        self.price = 0.0
        self._dearest = 0.0
        self._costs: CostSketch | None = None
        self._estimates: list[tuple[float, bool]] = []
        self._waits_s: list[float] = []
        self._wait_sum_s = 0.0
        self._finished = 0

    def receive_costs(self, costs: CostSketch) -> None:
        """Learned costs arrived from the operator."""
        self._costs = costs
        self._dearest *= DEAREST_FADES

    def receive_reply(self, clock_s: float, costs: list[float], waits_s: list[float]) -> None:
        """The operator's clock after the rows finished since the last reply, with their real costs and waiting times."""
        for cost, wait_s in zip(costs, waits_s, strict=True):
            estimate, known = self._estimates[self._finished]
            self.residuals.learn(estimate, cost, known=known)
            surprise_s = wait_s - self._waits_s[self._finished]
            self._wait_sum_s += surprise_s
            # The price was moved by the estimated wait; it follows the real one.
            self.price -= self.settings.patience * self._dearest * surprise_s / self.settings.bound_s
            self._finished += 1
        self.clock_s = clock_s
        for estimate, known in self._estimates[self._finished :]:
            self.clock_s += estimate * self.residuals.factor(known=known)

    def keeps(self, cells: Cells, now_s: float, value: float = 1.0) -> bool:
        """Decide about the row that has just arrived; `value` is its utility relative to the mean row's."""
        self.clock_s = max(self.clock_s, now_s)
        wait_s = self.clock_s - now_s
        estimate, known = self._estimate(cells)
        cost = estimate * self.residuals.factor(known=known)
        if not self._admits(wait_s, cost / value if value > 0.0 else math.inf):
            return False
        self._wait_sum_s += wait_s
        self._waits_s.append(wait_s)
        self._estimates.append((estimate, known))
        self.clock_s += cost
        return True

    def _admits(self, wait_s: float, per_value: float) -> bool:
        rules, kept = self.settings, len(self._estimates)
        if math.isfinite(per_value):
            self._dearest = max(self._dearest, per_value)
        excess, ceiling = wait_s / rules.bound_s - rules.aim, self._dearest * (1.0 + rules.slope)
        if self._finished < rules.opening_rows:
            self.price = ceiling
        if math.isinf(per_value):
            too_dear = self.price < self._dearest  # a row worth nothing goes as soon as anything must
        else:
            too_dear = per_value > self.price - rules.slope * self._dearest * excess
        over_bound = (self._wait_sum_s + wait_s) / (kept + 1) > rules.bound_s and wait_s > rules.mercy * rules.bound_s
        # Before the first row has finished nothing is known: one at a time.
        refused = too_dear or over_bound or (kept > 0 and self._finished == 0)
        if over_bound:
            excess = max(excess, 1.0 - rules.aim)  # the price must fall until it, and not the bound, refuses rows
        if not refused or over_bound or wait_s == 0.0:
            # Waits of rows that the price refuses do not count: the bound is on the rows kept.
            self.price = min(max(self.price - rules.patience * self._dearest * excess, 0.0), ceiling)
        return not refused

    def _estimate(self, cells: Cells) -> tuple[float, bool]:
        if self._costs is None:
            return 0.0, False
        estimates = self._costs.estimate_cells(np.reshape(cells, (-1, 1)))
        return float(estimates.cost[0]), bool(estimates.known[0])
