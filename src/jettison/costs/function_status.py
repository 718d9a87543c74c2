"""A snapshot of a function under load-aware shedding, for people and dashboards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jettison.costs.task_report import TOP_KEYS, TaskReport, Totals, largest
from jettison.runtime.companion import CompanionReport

_KEYS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class KeyCost:
    """What one key has cost."""

    key: str
    rows: float
    mean_s: float


@dataclass(frozen=True, slots=True)
class CostStatus:
    """How a function under load-aware shedding is doing, over the tasks that have reported.

    Parameters
    ----------
    rows_seen, rows_kept, rows_late, rows_over
        Rows in; rows passed on; rows that came over the bound already; rows passed on that started over it.
    mean_wait_s, longest_wait_s, max_wait_s
        How long the rows passed on waited, and how long they may.
    mean_cost_s
        What a row cost.
    overhead
        Time for deciding, slicing and learning over the function's own.
    costliest
        Keys with the largest cost in total, costliest first; those of the run before among them.
    most_dropped
        Keys of which most work was dropped, with the cost that they were estimated at.
    unlearned_s
        Time in the function after it had asked for the last rows of a partition. No row is charged with it: a function that
        takes all rows first and works then seems to cost nothing, and is not protected.
    ended
        Whether its query has ended: no more rows will come.
    """

    rows_seen: int
    rows_kept: int
    rows_late: int
    rows_over: int
    mean_wait_s: float
    longest_wait_s: float
    max_wait_s: float
    mean_cost_s: float
    overhead: float
    costliest: tuple[KeyCost, ...]
    most_dropped: tuple[KeyCost, ...]
    unlearned_s: float = 0.0
    ended: bool = False

    @classmethod
    def of(
        cls, report: TaskReport, max_wait_s: float, before: Iterable[KeyCost] = (), *, ended: bool = False
    ) -> CostStatus:
        """From the sum of all reports, and the costliest keys of the run before."""
        earlier: Totals = {one.key: (one.rows, one.rows * one.mean_s) for one in before}
        return cls(
            report.seen,
            report.kept,
            report.late,
            report.over,
            report.mean_wait_s,
            report.longest_wait_s,
            max_wait_s,
            report.busy_s / report.kept if report.kept else 0.0,
            report.overhead,
            _by_key(largest(earlier, report.top, TOP_KEYS)),
            _by_key(report.dropped_keys),
            report.unlearned_s,
            ended,
        )

    @property
    def rows_dropped(self) -> int:
        """Rows that the function never saw."""
        return self.rows_seen - self.rows_kept

    def __str__(self) -> str:
        keys = ", ".join(f"{one.key} ({1e3 * one.mean_s:.3g} ms)" for one in self.costliest[:3])
        return ("ended, " if self.ended else "") + (
            f"{self.rows_kept:,} of {self.rows_seen:,} rows kept, which waited {self.mean_wait_s:.3g} s on average "
            f"and {self.longest_wait_s:.3g} s at most of {self.max_wait_s:g} s, {1e3 * self.mean_cost_s:.3g} ms a row, "
            f"overhead {self.overhead:.1%}, costliest: {keys or 'none yet'}{self._warning}"
        )

    def report(self, name: str) -> CompanionReport:
        """The same for `jettison top`, with a table of the costliest keys."""
        dropped = {one.key: one.rows for one in self.most_dropped}
        header = ("costliest keys", "rows", "ms a row", "seconds in all", "rows dropped")
        rows = (
            (one.key, f"{one.rows:,.0f}", f"{1e3 * one.mean_s:.3g}", f"{one.rows * one.mean_s:.3g}",
             f"{dropped.get(one.key, 0):,.0f}")
            for one in self.costliest[:_KEYS_SHOWN]
        )  # fmt: skip
        return CompanionReport(name, str(self), header, tuple(rows))

    @property
    def _warning(self) -> str:
        busy_s = self.rows_kept * self.mean_cost_s
        if self.unlearned_s <= max(busy_s, 0.1 * self.max_wait_s):
            return ""
        return (
            f"; not protected: {self.unlearned_s:.3g} s of work came after the function had asked for all rows. "
            "Let it handle each batch before it asks for the next"
        )


def _by_key(totals: Totals) -> tuple[KeyCost, ...]:
    return tuple(KeyCost(key, rows, cost_s / rows) for key, (rows, cost_s) in totals.items() if rows)
