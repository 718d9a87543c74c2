"""Half-open windows of a fixed size, one every slide, aligned with an offset: those of Spark's `window`.

People describe them as there: by a size, (size, slide) or (size, slide, offset).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jettison.core.durations import Duration, microseconds, signed_microseconds, written
from jettison.errors import refuse


@dataclass(frozen=True, slots=True)
class Grid:
    """Window `n` is `[offset + n * slide, offset + n * slide + size)`, for every integer `n`.

    Consecutive windows touch or overlap, so together they cover all of time. Everything is integer arithmetic: no
    edge is ever off by a rounding.

    Parameters
    ----------
    size, slide
        Length of a window and distance between two starts; `0 < slide <= size`. Equal means tumbling.
    offset
        Start of window 0, counted from the epoch.

    Examples
    --------
    >>> grid = Grid(size=10, slide=5)
    >>> list(grid.holding(12)), grid.start(2), grid.end(2)
    ([1, 2], 10, 20)
    """

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        whole = all(isinstance(value, int) for value in (self.size, self.slide, self.offset))
        if not (whole and 0 < self.slide <= self.size):
            refuse(
                "a window's size and slide must be whole numbers with 0 < slide <= size",
                f"size {self.size!r}, slide {self.slide!r}, offset {self.offset!r}",
                hint="a slide beyond the size would leave rows in no window; Spark refuses it too",
            )

    def __str__(self) -> str:
        """In durations, for people: the windows of a query on Spark count microseconds."""
        shifted = f", offset {written(self.offset)}" if self.offset else ""
        return f"{written(self.size)} every {written(self.slide)}{shifted}"

    @property
    def overlaps(self) -> bool:
        """Whether a time can lie in more than one window."""
        return self.slide < self.size

    def start(self, n: int) -> int:
        return self.offset + n * self.slide

    def end(self, n: int) -> int:
        return self.start(n) + self.size

    def first_ending_after(self, time: int) -> int:
        """The earliest window that ends after `time`; it is the earliest that can hold it."""
        return (time - self.size - self.offset) // self.slide + 1

    def last_ending_by(self, time: int) -> int:
        return self.first_ending_after(time) - 1

    def last_starting_by(self, time: int) -> int:
        """The latest window that starts at or before `time`; it is the latest that can hold it."""
        return (time - self.offset) // self.slide

    def holding(self, time: int) -> range:
        """All windows that hold `time`; at least one. Its length is the paper's window count function."""
        return range(self.first_ending_after(time), self.last_starting_by(time) + 1)


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
    if slide > size:
        hint = "a slide beyond the size would leave rows in no window; Spark refuses it too"
        refuse("a window's slide must be at most its size", f"{written(size)} every {written(slide)}", hint=hint)
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
