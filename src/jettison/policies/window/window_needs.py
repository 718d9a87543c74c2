"""Which input times an answer needs, derived exactly for nested windows as Spark evaluates them.

On Spark a nested aggregate sees its child window at `window_time`, its end minus one microsecond. A child that ends
at `e` therefore falls into the window `[s, s + size)` exactly when `e` lies in `(s, s + size]`, so what an answer
needs extends *backward* in time. Aurora stamps the start instead, and needs extend forward:
`tests/paper_rules.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jettison.errors import refuse
from jettison.policies.window.window_grid import Grid


@dataclass(frozen=True)
class Pipeline:
    """Windows over windows: `levels[0]` groups the rows, each further level the answers of the one before.

    `holds(n, time)` is true exactly when a row at `time` takes part in the answer of the last level's window `n`.
    The rows of an answer form one interval, `need(n)`, whose edges never move back as `n` grows.

    Parameters
    ----------
    levels
        Grids from the input to the output; at least one.

    Examples
    --------
    Five-minute sums every minute, and their maximum over ten minutes. The answer for [10, 20) needs the sums that
    end in (10, 20], and so the rows from minute 6 on:

    >>> Pipeline((Grid(5, 1), Grid(10, 10))).need(1)
    (6, 20)
    """

    levels: tuple[Grid, ...]

    def __post_init__(self) -> None:
        if not self.levels or not all(isinstance(level, Grid) for level in self.levels):
            refuse(
                "`levels` must hold one window or more",
                repr(self.levels),
                hint="pass levels=(Grid(size, slide), ...), the innermost window first",
            )

    @cached_property
    def final(self) -> Grid:
        return self.levels[-1]

    def need(self, n: int) -> tuple[int, int] | None:
        """Input times from (inclusive) and to (exclusive) that answer `n` is made of.

        `None` where the window is void: no child window ever ends inside it, so it never has an answer. That
        happens only where a window is shorter than the slide of the level below.
        """
        low, high = self.final.start(n), self.final.end(n)
        for level in reversed(self.levels[:-1]):
            first, last = level.first_ending_after(low), level.last_ending_by(high)
            if first > last:
                return None
            low, high = level.start(first), level.end(last)
        return low, high

    def need_near(self, n: int, step: int) -> tuple[int, int]:
        """What the nearest window in that direction needs, void ones passed over."""
        while (need := self.need(n)) is None:
            n += step
        return need

    def void(self, n: int) -> bool:
        """Whether window `n` can never have an answer, whatever arrives."""
        return self.need(n) is None

    def first_holding(self, time: int) -> int:
        """The earliest answer that a row at `time` takes part in."""
        for level in self.levels[:-1]:
            time = level.end(level.first_ending_after(time)) - 1
        return self.final.first_ending_after(time)

    def last_holding(self, time: int) -> int:
        """The latest answer that a row at `time` takes part in: every later window can still be decided."""
        for level in self.levels[:-1]:
            time = level.end(level.last_starting_by(time)) - 1
        return self.final.last_starting_by(time)

    def holds(self, n: int, time: int) -> bool:
        need = self.need(n)
        return need is not None and need[0] <= time < need[1]

    @cached_property
    def reach(self) -> int:
        """No answer needs rows from further back than this before its window's start."""
        return sum(level.size for level in self.levels[:-1])

    @cached_property
    def has_overlap(self) -> bool:
        """Whether a row can take part in more than one answer.

        Tumbling levels whose edges coincide pass each row to one answer alone.
        """
        if any(level.overlaps for level in self.levels):
            return True
        pairs = zip(self.levels, self.levels[1:], strict=False)
        return not all(
            above.size % below.size == 0 and (above.offset - below.offset) % below.size == 0 for below, above in pairs
        )
