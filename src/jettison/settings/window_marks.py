"""Keep or drop whole windows: one mark for each, decided once and never changed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

from jettison.errors import InvalidSetting, explain

KEEP, DROP, VOID = "k", "d", "v"


@dataclass(frozen=True, slots=True)
class WindowMarks:
    """Marks for every window that is open or near, for each query that shares the input.

    A window without a mark that lies behind the marked ones is kept until it gets one; one that lies before them has
    closed. A row is dropped exactly when all answers that it takes part in are marked as dropped. A mark never
    changes: a window that was dropped in part can never be whole again.

    Parameters
    ----------
    first
        For each query, the number of the first marked window.
    marks
        For each query, one letter a window: k for keep, d for drop, v for void (it can never have an answer).
    opens_us
        For each query and marked window, the first time that the next kept window after it needs, in microseconds
        since the epoch; `None` where the window itself is kept.
    next_unit
        The first unit of time that is not decided yet; `None` while nothing is.
    run, owed, batch, coin
        What the decider remembers.
    drop_share
        Share of windows that the last decisions aimed at.
    row_share
        Share of rows that this keeps in the long run.
    shut
        Queries that admission control has shut down: all their windows are dropped, whatever their largest gap.

    Examples
    --------
    >>> WindowMarks().keeps_everything
    True
    >>> WindowMarks((7,), ("kdk",), ((None, 90, None),), next_unit=10, row_share=0.6).dropped(0, 8)
    True
    """

    first: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    opens_us: tuple[tuple[int | None, ...], ...] = ()
    next_unit: int | None = None
    run: int = 0
    owed: float = 1.0
    batch: int | None = None
    coin: bool = False
    drop_share: float = 0.0
    row_share: float = 1.0
    shut: tuple[str, ...] = ()

    kind: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        # JSON knows lists only.
        object.__setattr__(self, "first", tuple(self.first))
        object.__setattr__(self, "marks", tuple(self.marks))
        object.__setattr__(self, "opens_us", tuple(map(tuple, self.opens_us)))
        object.__setattr__(self, "shut", tuple(self.shut))
        lengths = [len(marks) for marks in self.marks]
        if not (len(self.first) == len(self.marks) and [len(opens) for opens in self.opens_us] == lengths):
            raise InvalidSetting(
                explain(
                    "`first`, `marks` and `opens_us` must agree in length",
                    repr(self),
                    hint="give each query its first unit, one mark a unit and one opening time a unit",
                )
            )
        if unknown := set().union(*self.marks) - {KEEP, DROP, VOID}:
            raise InvalidSetting(
                explain("marks must be k, d or v", repr(sorted(unknown)), hint="they stand for keep, drop and void")
            )
        for name in ("drop_share", "row_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InvalidSetting(
                    explain(
                        f"`{name}` must lie in [0, 1]",
                        repr(getattr(self, name)),
                        hint="pass a share of 1, not a percentage",
                    )
                )

    @property
    def whole_answers(self) -> bool:
        """A window that has lost a row is not delivered."""
        return True

    @property
    def keeps_everything(self) -> bool:
        """Whether no marked window is dropped."""
        return not any(DROP in marks for marks in self.marks)

    @property
    def keep_fraction(self) -> float:
        """Share of rows expected to be kept in the long run; any one micro-batch keeps all or none, more or less."""
        return 1.0 if self.keeps_everything else self.row_share

    @property
    def when_released(self) -> WindowMarks:
        """What must stay in force when everything is to be kept: marks cannot be taken back, others are not made."""
        return self

    def dropped(self, query: int, window: int) -> bool:
        """Whether a window of the query with that position is marked as dropped."""
        place = window - self.first[query] if self.first else -1
        return 0 <= place < len(self.marks[query]) and self.marks[query][place] == DROP

    def longest_gap(self, query: int) -> int:
        """Most marked windows dropped in a row, void ones left out."""
        marks = self.marks[query].replace(VOID, "") if self.marks else ""
        return max((len(list(run)) for mark, run in itertools.groupby(marks) if mark == DROP), default=0)
