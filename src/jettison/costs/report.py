"""What one task has learned and done, small enough to travel with its result and made to be added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from jettison.costs.hashing import SharedHashes
from jettison.costs.sketch import CostSketch

TOP_KEYS = 50
"""Keys by name that a report holds at most: those with the largest cost in total."""


@dataclass(slots=True)
class TaskReport:
    """Learned costs, and an account of rows and time. Reports of disjoint rows add up, in any order.

    Parameters
    ----------
    costs
        Sketch of the rows executed.
    rows_seen, rows_kept
        Rows in, rows that reached the user's function.
    rows_late
        Rows seen that were already over the bound when they were first looked at, kept or not.
    rows_over
        Rows kept that started after the bound.
    wait_s, longest_wait_s
        Queuing latency of the rows kept: sum, and largest.
    busy_s
        Time in the user's function.
    own_s
        Time spent on deciding, slicing and learning.
    tasks
        Tasks that reported.
    top
        Rows and cost in total by key, for the costliest keys.
    """

    costs: CostSketch
    rows_seen: int = 0
    rows_kept: int = 0
    rows_late: int = 0
    rows_over: int = 0
    wait_s: float = 0.0
    longest_wait_s: float = 0.0
    busy_s: float = 0.0
    own_s: float = 0.0
    tasks: int = 0
    top: dict[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def empty(cls, hashes: SharedHashes) -> TaskReport:
        """A report of nothing."""
        return cls(CostSketch(hashes))

    def add(self, other: TaskReport) -> TaskReport:
        """Take another report in; returns this one."""
        self.costs.merge(other.costs)
        for name in _COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.longest_wait_s = max(self.longest_wait_s, other.longest_wait_s)
        self.add_keys(other.top)
        return self

    def add_keys(self, totals: Mapping[str, tuple[float, float]]) -> None:
        """Count rows and cost of keys in, and forget the cheapest beyond the limit."""
        for key, (rows, cost) in totals.items():
            own_rows, own_cost = self.top.get(key, (0.0, 0.0))
            self.top[key] = (own_rows + rows, own_cost + cost)
        if len(self.top) > TOP_KEYS:
            dearest: Iterable[str] = sorted(self.top, key=lambda key: self.top[key][1], reverse=True)[:TOP_KEYS]
            self.top = {key: self.top[key] for key in dearest}

    @property
    def mean_wait_s(self) -> float:
        """Mean queuing latency of the rows kept; 0 when there was none."""
        return self.wait_s / self.rows_kept if self.rows_kept else 0.0

    @property
    def overhead(self) -> float:
        """Own time over the user's."""
        return self.own_s / self.busy_s if self.busy_s > 0 else 0.0


_COUNTERS = tuple(one.name for one in fields(TaskReport) if one.name not in ("costs", "top", "longest_wait_s"))
