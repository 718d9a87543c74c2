"""What one task has learned and done, small enough to travel with its result and made to be added up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from jettison.costs.hashing import SharedHashes
from jettison.costs.sketch import CostSketch

TOP_KEYS = 50
"""Keys by name that a report holds at most: those with the largest cost in total."""
NAMED_DROPS = 10
"""Keys by name that the account of a batch holds at most: those of which most work was dropped."""
BATCHES_HELD = 64
"""Accounts that a running total holds at most; whoever reads it must come more often than that many batches."""

Totals = dict[str, tuple[float, float]]
"""Rows and seconds by key."""


@dataclass(slots=True)
class BatchAccount:
    """What the tasks of one micro-batch did with their rows; `seen` is always kept plus dropped.

    Parameters
    ----------
    seen, kept, late, over
        Rows in; rows that reached the function; rows that came over the bound already; rows kept that started over it.
    wait_s, longest_wait_s
        Queuing latency of the rows kept: sum, and largest.
    busy_s, spared_s
        Time in the function, and the time that the rows dropped were estimated at.
    dropped_keys
        Rows dropped and their estimated time by key, for the keys of which most was dropped.
    """

    seen: int = 0
    kept: int = 0
    late: int = 0
    over: int = 0
    wait_s: float = 0.0
    longest_wait_s: float = 0.0
    busy_s: float = 0.0
    spared_s: float = 0.0
    dropped_keys: Totals = field(default_factory=dict)

    @property
    def dropped(self) -> int:
        """Rows that the function never saw."""
        return self.seen - self.kept

    def add(self, other: BatchAccount) -> BatchAccount:
        """Both together; neither is changed."""
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name)
            for one in fields(self)
            if one.name not in ("longest_wait_s", "dropped_keys")
        }
        return BatchAccount(
            **sums,
            longest_wait_s=max(self.longest_wait_s, other.longest_wait_s),
            dropped_keys=largest(self.dropped_keys, other.dropped_keys, NAMED_DROPS),
        )

    def cause(self, bound_s: float) -> str:
        """In words, why rows were dropped, or that none was."""
        if not self.dropped:
            return "every row could start in time"
        late = f", {self.late:,} of them over it when they came" if self.late else ""
        return (
            f"{self.dropped:,} of {self.seen:,} rows were dropped so that the others start within {bound_s:g} s{late}; "
            f"they were estimated at {self.spared_s:.3g} s of work, those kept took {self.busy_s:.3g} s"
        )


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
    unlearned_s
        Time in the user's function after it had asked for the last rows, with which no row can be charged.
    tasks
        Tasks that reported.
    spared_s
        Estimated time of the rows dropped.
    top, dropped_keys
        Rows and cost in total by key, for the costliest keys; the same for rows dropped, with estimated costs.
    batches
        What was done in each micro-batch, the last ones only.
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
    unlearned_s: float = 0.0
    tasks: int = 0
    spared_s: float = 0.0
    top: Totals = field(default_factory=dict)
    dropped_keys: Totals = field(default_factory=dict)
    batches: dict[int, BatchAccount] = field(default_factory=dict)

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
        self.top = largest(self.top, other.top, TOP_KEYS)
        self.dropped_keys = largest(self.dropped_keys, other.dropped_keys, TOP_KEYS)
        for batch_id, account in other.batches.items():
            self.batches[batch_id] = self.batches.get(batch_id, BatchAccount()).add(account)
        for old in sorted(self.batches)[:-BATCHES_HELD]:
            del self.batches[old]
        return self

    def of_batch(self, batch_id: int) -> TaskReport:
        """State that all of this happened in one micro-batch; returns this report."""
        account = BatchAccount(
            self.rows_seen, self.rows_kept, self.rows_late, self.rows_over, self.wait_s, self.longest_wait_s,
            self.busy_s, self.spared_s, largest(self.dropped_keys, {}, NAMED_DROPS),
        )  # fmt: skip
        self.batches = {batch_id: account}
        return self

    @property
    def mean_wait_s(self) -> float:
        """Mean queuing latency of the rows kept; 0 when there was none."""
        return self.wait_s / self.rows_kept if self.rows_kept else 0.0

    @property
    def overhead(self) -> float:
        """Own time over the user's."""
        return self.own_s / self.busy_s if self.busy_s > 0 else 0.0


_NO_COUNTERS = ("costs", "top", "dropped_keys", "batches", "longest_wait_s")
_COUNTERS = tuple(one.name for one in fields(TaskReport) if one.name not in _NO_COUNTERS)


def largest(one: Mapping[str, tuple[float, float]], other: Mapping[str, tuple[float, float]], most: int) -> Totals:
    """Totals by key of both together, the largest `most` of them by seconds.

    >>> largest({"a": (1, 0.5), "b": (1, 0.2)}, {"b": (2, 0.4), "c": (1, 0.1)}, most=2)
    {'b': (3, 0.6000000000000001), 'a': (1, 0.5)}
    """
    both = dict(one)
    for key, (rows, cost_s) in other.items():
        own_rows, own_cost_s = both.get(key, (0, 0.0))
        both[key] = (own_rows + rows, own_cost_s + cost_s)
    return dict(sorted(both.items(), key=lambda item: item[1][1], reverse=True)[:most])
