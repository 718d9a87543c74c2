"""Windows as people describe them, in the words of Spark's `window`: a size, (size, slide) or (size, slide, offset)."""

from __future__ import annotations

from collections.abc import Sequence

from jettison.core.durations import Duration, microseconds, signed_microseconds
from jettison.errors import refuse
from jettison.policies.window.window_grid import Grid

Window = Duration | tuple[Duration, Duration] | tuple[Duration, Duration, Duration]
"""Size; size and slide; or size, slide and offset, as in Spark's `window`."""


def grid_of(window: Window) -> Grid:
    """The windows described, in microseconds.

    >>> grid_of(("10 minutes", "5 minutes", "-15 seconds"))
    Grid(size=600000000, slide=300000000, offset=-15000000)
    """
    parts = window if isinstance(window, tuple | list) else (window,)
    if not 1 <= len(parts) <= 3 or any(isinstance(part, str) and "session" in part for part in parts):
        refuse(
            "a window must be a size, (size, slide) or (size, slide, offset)",
            repr(window),
            hint="session windows end where rows are missing, so none of them can be dropped ahead of its rows",
        )
    size = microseconds(parts[0], name="window size")
    slide = microseconds(parts[1], name="window slide") if len(parts) > 1 else size
    return Grid(size, slide, signed_microseconds(parts[2], name="window offset") if len(parts) == 3 else 0)


def grids_of(levels: Sequence[Window], *, query: str) -> tuple[Grid, ...]:
    """The windows of each level of a query, from the input to the answers.

    Only a list will do: a tuple is one window, and `("1 hour", "1 minute")` taken for two levels would be another query.
    """
    if not isinstance(levels, list) or not levels:
        refuse(
            "`windows` must be a list with the window of each level, from the input to the answers",
            repr(levels),
            where=f"query {query!r}",
            hint="for a single level write [size] or [(size, slide)]",
        )
    return tuple(map(grid_of, levels))
