"""Semantic drops: which values to give up first, and what that makes of the loss-tolerance graph (section 4.3.4).

If rows must go, those of the least useful values go first. So a graph of utility by value, together with how often
each value occurs, *is* a graph of utility by share delivered: each interval of values becomes a piece of it, in
ascending order of utility, which makes it concave.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jettison.errors import InvalidSetting, explain
from jettison.network.qos import LossTolerance, ValueUtility


@dataclass(frozen=True, slots=True)
class ValueInterval:
    """A row of the paper's table 1; symbols as there.

    Parameters
    ----------
    low, high
        Closed bounds of the values.
    utility
        u: worth of a row in the interval.
    frequency
        f: share of the output's rows that lie in it.
    weighted
        w = u * f.
    normalised
        n: share of the output's whole utility that the interval holds.
    """

    low: float
    high: float
    utility: float
    frequency: float
    weighted: float
    normalised: float


@dataclass(frozen=True, slots=True)
class ValueTable:
    """The value intervals of one output in the order in which they are given up.

    Examples
    --------
    >>> table = ValueTable.of(ValueUtility([(0, 50, 0.2), (51, 100, 1.0)]), frequencies=[0.4, 0.6])
    >>> [round(row.normalised, 2) for row in table.rows]
    [0.12, 0.88]
    >>> [(x, round(y, 2)) for x, y in table.loss_tolerance().points]
    [(0.0, 0.0), (60.0, 0.88), (100.0, 1.0)]
    >>> table.predicate(drop=0.2), table.predicate(drop=0.7)
    ('value >= 25', 'value > 75')
    """

    rows: tuple[ValueInterval, ...]
    column: str = "value"

    @classmethod
    def of(cls, qos: ValueUtility, frequencies: Sequence[float]) -> ValueTable:
        """Combine a value graph with the relative frequency of its intervals, in the order of their values."""
        if len(frequencies) != len(qos.intervals) or min(frequencies) < 0 or not math.isclose(sum(frequencies), 1.0):
            got = f"{list(frequencies)} for {len(qos.intervals)} intervals"
            raise InvalidSetting(
                explain(
                    "one frequency an interval, adding up to 1",
                    got,
                    where=qos.output,
                    hint="divide how many rows fall into each interval by how many fall into any",
                )
            )
        weighted = [interval[2] * f for interval, f in zip(qos.intervals, frequencies, strict=True)]
        whole = sum(weighted)
        rows = [
            ValueInterval(low, high, utility, f, w, w / whole if whole > 0 else 0.0)
            for (low, high, utility), f, w in zip(qos.intervals, frequencies, weighted, strict=True)
        ]
        return cls(tuple(sorted(rows, key=lambda row: (row.utility, row.low))), qos.column)

    def loss_tolerance(self, output: str = "") -> LossTolerance:
        """Utility by percentage delivered when the least useful values are dropped first; concave by construction."""
        delivered, utility = 100.0, 1.0
        points = [(delivered, utility)]
        for row in self.rows:
            delivered, utility = max(0.0, delivered - 100.0 * row.frequency), max(0.0, utility - row.normalised)
            if row.frequency > 0:
                points.append((delivered, utility))
        points[-1] = (0.0, 0.0) if len(points) > 1 else points[-1]
        return LossTolerance(points, output)

    def dropped_ranges(self, drop: float) -> tuple[tuple[float, float], ...]:
        """Half-open ranges of values whose rows make up the share `drop`, least useful first.

        Within an interval the rows are given up from its low end, values being taken as evenly spread.
        """
        ranges, left = [], drop
        for row in self.rows:
            if left <= 1e-12:
                break
            part = 1.0 if row.frequency <= left + 1e-12 else left / row.frequency
            end = math.nextafter(row.high, math.inf) if part >= 1.0 else row.low + part * (row.high - row.low)
            ranges.append((row.low, end))
            left -= row.frequency
        return tuple(sorted(ranges))

    def predicate(self, drop: float) -> str:
        """The rows that stay, as a condition to read. A cut between two whole numbers is written as `>`."""
        gaps: list[tuple[float, float]] = []
        for low, end in self.dropped_ranges(drop):
            if gaps and not any(row.low < low and row.high > gaps[-1][1] for row in self.rows):
                gaps[-1] = (gaps[-1][0], end)  # no value lies between the two: one range
            else:
                gaps.append((low, end))
        lowest = min(row.low for row in self.rows)
        parts = [
            self._from(end) if low == lowest else f"({self.column} < {low:g} or {self._from(end)})" for low, end in gaps
        ]
        return " and ".join(parts) or "true"

    def _from(self, end: float) -> str:
        return f"{self.column} >= {end:g}" if float(end).is_integer() else f"{self.column} > {math.floor(end):g}"
