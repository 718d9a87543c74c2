"""For readers of results: fill in the windows that were dropped, clearly marked as estimates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from jettison.errors import InvalidSetting, explain
from jettison.windows.grid import Grid


@dataclass(frozen=True, slots=True)
class Reading:
    """One window of a filled series.

    Parameters
    ----------
    start
        Start of the window.
    value
        The delivered answer, or a straight line between the two delivered answers around it.
    estimated
        True where no answer was delivered and `value` is a guess, about which nothing is promised.
    """

    start: int
    value: float
    estimated: bool


def interpolate(answers: Mapping[int, float], grid: Grid) -> list[Reading]:
    """All windows of `grid` from the first delivered answer to the last, gaps filled by straight lines.

    Delivered answers are passed on untouched. Nothing is guessed before the first or after the last.

    Parameters
    ----------
    answers
        Value by start of the window, in the unit of `grid`.
    grid
        The windows of the query.

    Examples
    --------
    >>> for reading in interpolate({0: 1.0, 30: 4.0}, Grid(10, 10)):
    ...     print(reading.start, reading.value, "estimated" if reading.estimated else "exact")
    0 1.0 exact
    10 2.0 estimated
    20 3.0 estimated
    30 4.0 exact
    """
    starts = sorted(answers)
    if strays := [start for start in starts if (start - grid.offset) % grid.slide]:
        raise InvalidSetting(
            explain(
                "`answers` must start where windows of the grid do",
                f"{strays[:3]!r}",
                hint="pass the grid that the answers came from, with its offset and in the same unit",
            )
        )
    readings = [Reading(start, answers[start], estimated=False) for start in starts[:1]]
    for before, after in itertools.pairwise(starts):
        slope = (answers[after] - answers[before]) / (after - before)
        for start in range(before + grid.slide, after, grid.slide):
            readings.append(Reading(start, answers[before] + slope * (start - before), estimated=True))
        readings.append(Reading(after, answers[after], estimated=False))
    return readings
