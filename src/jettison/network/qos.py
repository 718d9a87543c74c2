"""What an answer is worth to its owner: three graphs per output, checked when they are made.

Planners need two things of them. Loss-tolerance and latency graphs are concave, so that each further row lost (or
second waited) costs at least as much as the one before; a planner may then shed by the smallest slope first. And
utilities lie in [0, 1], so that the utilities of outputs can be added.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from jettison.errors import InvalidSetting, explain

Point = tuple[float, float]
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


class _Graph:
    """A piecewise linear function given by its corners."""

    points: tuple[Point, ...]

    def at(self, x: float) -> float:
        """Utility at `x`; beyond the outermost corners the graph is flat."""
        xs = [point[0] for point in self.points]
        position = bisect.bisect_right(xs, x)
        if position == 0:
            return self.points[0][1]
        if position == len(xs):
            return self.points[-1][1]
        (x0, y0), (x1, y1) = self.points[position - 1], self.points[position]
        return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


@dataclass(frozen=True, slots=True)
class LossTolerance(_Graph):
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

    points: tuple[Point, ...]
    output: str = ""

    def __init__(self, points: Sequence[Sequence[float]], output: str = "") -> None:
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "points", _corners(points, "loss_tolerance", output, lowest=0.0, highest=100.0))
        if self.points[0][0] != 0.0 or self.points[-1][0] != 100.0:
            ends = f"{self.points[0][0]:g} % and {self.points[-1][0]:g} %"
            raise InvalidSetting(
                explain(
                    "a loss-tolerance graph must reach from 0 % to 100 %",
                    ends,
                    where=_where("", output),
                    hint="add the points at (0, utility of nothing) and (100, 1.0)",
                )
            )
        _require_direction(self.points, +1, "loss_tolerance", output)
        _require_concave(self.points, "loss_tolerance", output)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Straight pieces from 0 to 100 % delivery, slopes per unit share and never growing."""
        return tuple(
            Piece(x0 / 100, x1 / 100, (y1 - y0) / (x1 - x0) * 100)
            for (x0, y0), (x1, y1) in itertools.pairwise(self.points)
        )


@dataclass(frozen=True, slots=True)
class LatencyUtility(_Graph):
    """Utility of an answer by its latency in seconds: never rising, concave.

    The planners do not look at it: shedding is planned for a load, and the load for a latency bound. `bound_s`
    turns the graph into that bound.

    Examples
    --------
    >>> LatencyUtility([(0, 1.0), (2, 1.0), (6, 0.0)]).bound_s(least_utility=0.5)
    4.0
    """

    points: tuple[Point, ...]
    output: str = ""

    def __init__(self, points: Sequence[Sequence[float]], output: str = "") -> None:
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "points", _corners(points, "latency", output, lowest=0.0, highest=math.inf))
        _require_direction(self.points, -1, "latency", output)
        _require_concave(self.points, "latency", output)

    def bound_s(self, least_utility: float) -> float:
        """The longest latency whose utility is at least `least_utility`."""
        if self.points[0][1] < least_utility:
            raise InvalidSetting(
                explain(
                    f"a latency with utility {least_utility:g}",
                    f"at most {self.points[0][1]:g}",
                    where=_where("", self.output),
                    hint="ask for less, or raise the utility of the first point",
                )
            )
        for (x0, y0), (x1, y1) in reversed(list(itertools.pairwise(self.points))):
            if y1 >= least_utility:
                return x1
            if y0 >= least_utility:
                return x0 + (x1 - x0) * (y0 - least_utility) / (y0 - y1)
        return self.points[0][0]


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

    intervals: tuple[tuple[float, float, float], ...]
    column: str = "value"
    output: str = ""

    def __init__(self, intervals: Sequence[Sequence[float]], column: str = "value", output: str = "") -> None:
        rows = sorted((float(low), float(high), float(utility)) for low, high, utility in intervals)
        object.__setattr__(self, "intervals", tuple(rows))
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "output", output)
        if not rows:
            raise InvalidSetting(
                explain(
                    "a value graph needs intervals",
                    "none",
                    where=_where("", output),
                    hint="write (low, high, utility) for each range of values, or leave the value graph out",
                )
            )
        for number, (low, high, utility) in enumerate(rows, start=1):
            where = _where(f"interval {number} of the value graph", output)
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise InvalidSetting(
                    explain(
                        "an interval must be low < high",
                        f"[{low:g}, {high:g}]",
                        where=where,
                        hint="swap the ends; for a single value v take [v - 0.5, v + 0.5] or its like",
                    )
                )
            if not 0.0 <= utility <= 1.0:
                raise InvalidSetting(
                    explain(
                        "a utility must lie in [0, 1]",
                        f"{utility:g}",
                        where=where,
                        hint="1 is worth everything and 0 nothing: divide by the largest",
                    )
                )
            if number > 1 and low < rows[number - 2][1]:
                before = rows[number - 2]
                got = f"[{before[0]:g}, {before[1]:g}] and [{low:g}, {high:g}]"
                raise InvalidSetting(
                    explain(
                        "intervals must not overlap",
                        got,
                        where=where,
                        hint="let one end where the next begins: a shared end belongs to the upper one",
                    )
                )

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
    value, latency
        Utility by a row's value, and by its latency.
    weight
        How much this output counts beside the others.
    """

    loss_tolerance: LossTolerance | None = None
    value: ValueUtility | None = None
    latency: LatencyUtility | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise InvalidSetting(
                explain(
                    "`weight` must not be negative",
                    repr(self.weight),
                    hint="0 for an output that may lose everything, 2 for one that counts twice",
                )
            )


def _corners(
    points: Sequence[Sequence[float]], graph: str, output: str, *, lowest: float, highest: float
) -> tuple[Point, ...]:
    """The points in ascending order, each checked for its range."""
    given = [(float(x), float(y)) for x, y in points]
    if len(given) < 2:
        raise InvalidSetting(
            explain(
                f"a {graph} graph needs two points",
                str(len(given)),
                where=_where("", output),
                hint="two make a straight line: give the utility at each end",
            )
        )
    for number, (x, y) in enumerate(given, start=1):
        where = _where(f"point {number} of the {graph} graph", output)
        if not (math.isfinite(x) and lowest <= x <= highest):
            raise InvalidSetting(
                explain(
                    f"a point must lie in [{lowest:g}, {highest:g}]",
                    f"{x:g}",
                    where=where,
                    hint="the first number is a percentage of rows delivered, or a latency in seconds",
                )
            )
        if not 0.0 <= y <= 1.0:
            raise InvalidSetting(
                explain(
                    "a utility must lie in [0, 1]",
                    f"{y:g}",
                    where=where,
                    hint="1 is worth everything and 0 nothing; points are (position, utility)",
                )
            )
    ordered = sorted(given)
    for (x0, _), (x1, _) in itertools.pairwise(ordered):
        if x0 == x1:
            where = _where(f"the {graph} graph", output)
            raise InvalidSetting(
                explain(
                    "each point needs its own position", f"{x0:g} twice", where=where, hint="leave one of the two out"
                )
            )
    return tuple(ordered)


def _require_direction(points: tuple[Point, ...], sign: int, graph: str, output: str) -> None:
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if sign * (y1 - y0) < -_TOLERANCE:
            word = "rise" if sign > 0 else "fall"
            raise InvalidSetting(
                explain(
                    f"utility must never {'fall' if sign > 0 else 'rise'} from left to right",
                    f"{y0:g} at {x0:g} and {y1:g} at {x1:g}",
                    where=_where(f"the {graph} graph", output),
                    hint=f"utilities {word} with {'delivery' if sign > 0 else 'shorter latency'}",
                )
            )


def _require_concave(points: tuple[Point, ...], graph: str, output: str) -> None:
    for (x0, y0), (x1, y1), (x2, y2) in zip(points, points[1:], points[2:], strict=False):
        before, after = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
        if after > before + _TOLERANCE:
            raise InvalidSetting(
                explain(
                    "the graph must be concave",
                    f"slope {before:g} before and {after:g} after ({x1:g}, {y1:g})",
                    where=_where(f"the {graph} graph", output),
                    hint="raise that point's utility, or leave it out",
                )
            )


def _where(part: str, output: str) -> str:
    return " of ".join(text for text in (part, f"output {output!r}" if output else "") if text)
