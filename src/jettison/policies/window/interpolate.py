"""For readers of results: fill in the windows that were dropped, clearly marked as estimates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from jettison.errors import refuse
from jettison.policies.window.window_grid import Grid, Window, grid_of

Start = TypeVar("Start", int, datetime)
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Reading(Generic[Start]):
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

    start: Start
    value: float
    estimated: bool


def interpolate(answers: Mapping[Start, float], windows: Grid | Window) -> list[Reading[Start]]:
    """All windows from the first delivered answer to the last, gaps filled by straight lines.

    Delivered answers are passed on untouched. Nothing is guessed before the first or after the last.

    Parameters
    ----------
    answers
        Value by start of the window: as Spark returns it, or a whole number in the unit of the windows.
    windows
        Size, slide and offset as given to Spark's `window`, or a `Grid`.

    Examples
    --------
    >>> at = datetime.fromisoformat
    >>> delivered = {at("2026-01-01T08:00Z"): 1.0, at("2026-01-01T08:30Z"): 4.0}
    >>> for reading in interpolate(delivered, "10 minutes"):
    ...     print(f"{reading.start:%H:%M}", reading.value, "estimated" if reading.estimated else "exact")
    08:00 1.0 exact
    08:10 2.0 estimated
    08:20 3.0 estimated
    08:30 4.0 exact
    """
    grid = windows if isinstance(windows, Grid) else grid_of(windows)
    known = {_whole(start): start for start in answers}
    if strays := [known[start] for start in sorted(known) if (start - grid.offset) % grid.slide]:
        refuse(
            "every key of `answers` must be the start of a window",
            f"{strays[:3]!r}",
            hint="pass the windows that the answers came from, with their offset and in the same unit",
        )
    starts = sorted(known)
    readings = [Reading(known[start], answers[known[start]], estimated=False) for start in starts[:1]]
    for low, high in itertools.pairwise(starts):
        before, after = answers[known[low]], answers[known[high]]
        slope = (after - before) / (high - low)
        for start in range(low + grid.slide, high, grid.slide):
            readings.append(Reading(_like(known[low], start), before + slope * (start - low), estimated=True))
        readings.append(Reading(known[high], after, estimated=False))
    return readings


def _whole(start: int | datetime) -> int:
    """Times as microseconds since the epoch; one without a zone is local, as those that Spark returns are."""
    return (start.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) if isinstance(start, datetime) else start


def _like(example: Start, start: int) -> Start:
    """A start of the same kind as `example`, in its time zone."""
    if not isinstance(example, datetime):
        return start
    local = (_EPOCH + timedelta(microseconds=start)).astimezone(example.tzinfo)
    return local if example.tzinfo else local.replace(tzinfo=None)
