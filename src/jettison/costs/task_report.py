"""What one task has learned and done, small enough to travel with its result and made to be added up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

from jettison.costs.cost_hashing import SharedHashes
from jettison.costs.sketch import CostSketch

TOP_KEYS = 50
"""Keys by name that a report holds at most: those with the largest cost in total."""
NAMED_DROPS = 10
"""Keys by name that the account of a batch holds at most: those of which most work was dropped."""
BATCHES_HELD = 64
"""Accounts that a running total holds at most; whoever reads it must come more often than that many batches."""

Totals = dict[str, tuple[float, float]]
"""Rows and seconds by key."""


@dataclass
class Account:
    """What some tasks did with their rows; `seen` is always kept plus dropped. Accounts of disjoint rows add up.

    Parameters
    ----------
    seen, kept, late, over
        Rows in; rows that reached the function; rows that came over the bound already, kept or not; rows kept that started
        over it.
    wait_s, longest_wait_s
        How long the rows kept waited: sum, and largest.
    busy_s, spared_s
        Time in the function, and the time that the rows dropped were estimated at.
    dropped_keys
        Rows dropped and their estimated time by key, for the keys of which most was dropped.
    """

    named_keys: ClassVar[int] = NAMED_DROPS

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

    @property
    def mean_wait_s(self) -> float:
        """Mean wait of the rows kept; 0 when there was none."""
        return self.wait_s / self.kept if self.kept else 0.0

    def add(self, other: Account) -> Self:
        """Take another account in; returns this one."""
        for name in ("seen", "kept", "late", "over", "wait_s", "busy_s", "spared_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.longest_wait_s = max(self.longest_wait_s, other.longest_wait_s)
        self.dropped_keys = largest(self.dropped_keys, other.dropped_keys, self.named_keys)
        return self

    def cause(self, bound_s: float) -> str:
        """In words, why rows were dropped, or that none was."""
        if not self.dropped:
            return "every row could start in time"
        late = f", {self.late:,} of them over it when they came" if self.late else ""
        return (
            f"{self.dropped:,} of {self.seen:,} rows were dropped so that the others start within {bound_s:g} s{late}; "
            f"they were estimated at {self.spared_s:.3g} s of work, those kept took {self.busy_s:.3g} s"
        )


@dataclass
class TaskReport(Account):
    """An account with the costs learned.

    Parameters
    ----------
    costs
        Sketch of the rows executed.
    own_s
        Time spent on deciding, slicing and learning.
    unlearned_s
        Time in the user's function after it had asked for the last rows, with which no row can be charged.
    tasks
        Tasks that reported.
    top
        Rows and cost in total by key, for the costliest keys.
    batches
        What was done in each micro-batch, the last ones only.
    """

    named_keys: ClassVar[int] = TOP_KEYS

    costs: CostSketch = field(kw_only=True)
    own_s: float = 0.0
    unlearned_s: float = 0.0
    tasks: int = 0
    top: Totals = field(default_factory=dict)
    batches: dict[int, Account] = field(default_factory=dict)

    @classmethod
    def empty(cls, hashes: SharedHashes) -> TaskReport:
        return cls(costs=CostSketch(hashes))

    def add(self, other: Account) -> Self:
        """Take another report in; returns this one."""
        assert isinstance(other, TaskReport)
        super().add(other)
        self.costs.merge(other.costs)
        self.own_s += other.own_s
        self.unlearned_s += other.unlearned_s
        self.tasks += other.tasks
        self.top = largest(self.top, other.top, TOP_KEYS)
        for batch_id, account in other.batches.items():  # in a new account: whoever reads the old one is not disturbed
            self.batches[batch_id] = Account().add(self.batches.get(batch_id, Account())).add(account)
        for old in sorted(self.batches)[:-BATCHES_HELD]:
            del self.batches[old]
        return self

    def of_batch(self, batch_id: int) -> TaskReport:
        """State that all of this happened in one micro-batch; returns this report."""
        self.batches = {batch_id: Account().add(self)}
        return self

    @property
    def overhead(self) -> float:
        """Own time over the user's."""
        return self.own_s / self.busy_s if self.busy_s > 0 else 0.0


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
