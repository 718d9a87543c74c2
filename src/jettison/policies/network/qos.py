"""What an answer is worth to its owner: graphs for each output, checked when they are made.

Planners need two things of them. Loss-tolerance graphs are concave, so that each further row lost costs at least as much
as the one before; a planner may then shed by the smallest slope first. And utilities lie in [0, 1], so that the
utilities of outputs can be added.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jettison.errors import refuse

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Piece:
    """One straight piece of a loss-tolerance graph; `low` and `high` are delivered shares in [0, 1]."""

    low: float
    high: float
    slope: float

    @property
    def length(self) -> float:
        """Share of delivery that the piece spans."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class LossTolerance:
    """Utility of an output by the percentage of its rows delivered: never falling, concave, from 0 % to 100 %.

    Parameters
    ----------
    points
        Pairs of percentage delivered and utility, in any order.
    output
        Name of the output, for error messages.

    Examples
    --------
    >>> graph = LossTolerance([(100, 1.0), (50, 0.7), (0, 0.0)])
    >>> graph.at(75), [round(piece.slope, 6) for piece in graph.pieces]
    (0.85, [1.4, 0.6])
    """

    points: Sequence[Sequence[float]]
    output: str = ""

    def __post_init__(self) -> None:
        whole = _where("the loss_tolerance graph", self.output)
        try:
            given = [(float(x), float(y)) for x, y in self.points]
        except (TypeError, ValueError) as error:
            hint = "write [(100, 1.0), (50, 0.7), (0, 0.0)]"
            expected = "`points` must be pairs of percentage delivered and utility"
            refuse(expected, repr(self.points)[:60], where=whole, hint=hint, cause=error)
        if len(given) < 2:
            hint = "two make a straight line: give the utility at each end"
            refuse("there must be at least two points", str(len(given)), where=whole, hint=hint)
        for number, (x, y) in enumerate(given, start=1):
            where = _where(f"point {number} of the loss_tolerance graph", self.output)
            if not 0.0 <= x <= 100.0:
                hint = "the first number is a percentage of rows delivered"
                refuse("a point must lie in [0, 100]", f"{x:g}", where=where, hint=hint)
            _require_utility(y, where)
        points = tuple(sorted(given))
        object.__setattr__(self, "points", points)
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            if x0 == x1:
                got = f"{x0:g} twice"
                refuse("each point needs its own position", got, where=whole, hint="leave one of the two out")
            if y1 < y0 - _TOLERANCE:
                got, hint = f"{y0:g} at {x0:g} and {y1:g} at {x1:g}", "utilities rise with delivery"
                refuse("utility must never fall from left to right", got, where=whole, hint=hint)
        if (points[0][0], points[-1][0]) != (0.0, 100.0):
            got = f"{points[0][0]:g} % and {points[-1][0]:g} %"
            hint = "add the points at (0, utility of nothing) and (100, 1.0)"
            refuse("a loss-tolerance graph must reach from 0 % to 100 %", got, where=whole, hint=hint)
        for (x0, y0), (x1, y1), (x2, y2) in zip(points, points[1:], points[2:], strict=False):
            before, after = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
            if after > before + _TOLERANCE:
                got = f"slope {before:g} before and {after:g} after ({x1:g}, {y1:g})"
                refuse(
                    "the graph must be concave", got, where=whole, hint="raise that point's utility, or leave it out"
                )

    def at(self, percent: float) -> float:
        """Utility when so many percent are delivered."""
        delivered, utility = np.array(self.points).T
        return float(np.interp(percent, delivered, utility))

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Straight pieces from 0 to 100 % delivery, slopes per unit share and never growing."""
        return tuple(
            Piece(x0 / 100, x1 / 100, (y1 - y0) / (x1 - x0) * 100)
            for (x0, y0), (x1, y1) in itertools.pairwise(self.points)
        )


@dataclass(frozen=True, slots=True)
class ValueUtility:
    """Utility of an output row by one of its values: intervals of constant utility that do not overlap.

    Parameters
    ----------
    intervals
        Triples of lowest value, highest value and utility. Where two intervals meet, the value belongs to the upper.
    column
        The column that holds the value.
    output
        Name of the output, for error messages.

    Examples
    --------
    >>> ValueUtility([(0, 50, 0.2), (51, 100, 1.0)]).at(75)
    1.0
    """

    intervals: Sequence[Sequence[float]]
    column: str = "value"
    output: str = ""

    def __post_init__(self) -> None:
        rows = tuple(sorted((float(low), float(high), float(utility)) for low, high, utility in self.intervals))
        object.__setattr__(self, "intervals", rows)
        if not rows:
            hint = "write (low, high, utility) for each range of values, or leave the value graph out"
            refuse("a value graph needs intervals", "none", where=_where("", self.output), hint=hint)
        for number, (low, high, utility) in enumerate(rows, start=1):
            where = _where(f"interval {number} of the value graph", self.output)
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                hint = "swap the ends; for a single value v take [v - 0.5, v + 0.5] or its like"
                refuse("an interval must be low < high", f"[{low:g}, {high:g}]", where=where, hint=hint)
            _require_utility(utility, where)
        for number, (before, after) in enumerate(itertools.pairwise(rows), start=2):
            if after[0] < before[1]:
                got = f"[{before[0]:g}, {before[1]:g}] and [{after[0]:g}, {after[1]:g}]"
                where = _where(f"interval {number} of the value graph", self.output)
                hint = "end one where the next begins: a shared end belongs to the upper one"
                refuse("intervals must not overlap", got, where=where, hint=hint)

    def at(self, value: float) -> float:
        """Utility of a row with this value; 0 outside all intervals."""
        return next((utility for low, high, utility in reversed(self.intervals) if low <= value <= high), 0.0)


@dataclass(frozen=True, slots=True)
class QoS:
    """The graphs of one output, each optional.

    Parameters
    ----------
    loss_tolerance
        Utility by percentage delivered. If it is left out it is derived from `value` and the values that the output
        is expected to see; without either, utility is proportional to the rows delivered.
    value
        Utility by a row's value.
    weight
        How much this output counts beside the others.
    """

    loss_tolerance: LossTolerance | None = None
    value: ValueUtility | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name, kind in (("loss_tolerance", LossTolerance), ("value", ValueUtility)):
            if not isinstance(given := getattr(self, name), kind | None):
                refuse(f"`{name}` must be a {kind.__name__}", repr(given)[:60], hint=f"write jt.{kind.__name__}(...)")
        if not (math.isfinite(self.weight) and self.weight >= 0):
            hint = "0 for an output that may lose everything, 2 for one that counts twice"
            refuse("`weight` must not be negative", repr(self.weight), hint=hint)


def _require_utility(utility: float, where: str) -> None:
    if not 0.0 <= utility <= 1.0:
        hint = "1 is worth everything and 0 nothing: divide by the largest"
        refuse("a utility must lie in [0, 1]", f"{utility:g}", where=where, hint=hint)


def _where(part: str, output: str) -> str:
    return " of ".join(text for text in (part, f"output {output!r}" if output else "") if text)
