"""What "latency holds" means: the condition under which a row with an estimated waiting time may be kept."""

from __future__ import annotations

from collections import deque
from typing import Protocol


class Check(Protocol):
    """Remembers the waiting times of the rows kept so far and judges the next one."""

    def exceeds(self, wait_s: float) -> bool:
        """Whether keeping a row that waits `wait_s` would break the bound; remembers nothing."""
        ...

    def keep(self, wait_s: float) -> None:
        """A row that waits `wait_s` was kept."""
        ...


class AverageCheck:
    """The mean waiting time of all rows kept so far stays at most `bound_s`, by the estimates given.

    Notes
    -----
    Listing III.2 of the paper tests the mean *without* the new row: once it is above the bound nothing ever changes and
    all is dropped. `literal=True` keeps that form, to show it.

    Examples
    --------
    >>> check = AverageCheck(bound_s=2.0)
    >>> check.keep(1.0)
    >>> check.exceeds(3.0), check.exceeds(3.1)
    (False, True)
    """

    def __init__(self, bound_s: float, *, literal: bool = False) -> None:
        self.bound_s, self.literal = bound_s, literal
        self._sum_s, self._rows = 0.0, 0

    def exceeds(self, wait_s: float) -> bool:
        """Whether the mean, this row included, would be above the bound."""
        if self.literal:
            return self._rows > 0 and self._sum_s / self._rows > self.bound_s
        return (self._sum_s + wait_s) / (self._rows + 1) > self.bound_s

    def keep(self, wait_s: float) -> None:
        """Count the row in."""
        self._sum_s += wait_s
        self._rows += 1


class RowCheck:
    """No row kept waits longer than `bound_s`, by the estimates given."""

    def __init__(self, bound_s: float) -> None:
        self.bound_s = bound_s

    def exceeds(self, wait_s: float) -> bool:
        """Whether this row alone would wait too long."""
        return wait_s > self.bound_s

    def keep(self, wait_s: float) -> None:
        """Nothing to remember."""


class SlidingAverageCheck:
    """The mean waiting time of the last `rows` rows kept stays at most `bound_s`, by the estimates given.

    Unlike `AverageCheck` it gives no credit for a quiet hour long ago.
    """

    def __init__(self, bound_s: float, rows: int) -> None:
        self.bound_s, self.rows = bound_s, rows
        self._last: deque[float] = deque()
        self._sum_s = 0.0

    def exceeds(self, wait_s: float) -> bool:
        """Whether the mean of the last rows, this one included, would be above the bound."""
        leaving = self._last[0] if len(self._last) == self.rows else 0.0
        return (self._sum_s - leaving + wait_s) / min(len(self._last) + 1, self.rows) > self.bound_s

    def keep(self, wait_s: float) -> None:
        """Count the row in, and the oldest out."""
        if len(self._last) == self.rows:
            self._sum_s -= self._last.popleft()
        self._last.append(wait_s)
        self._sum_s += wait_s
