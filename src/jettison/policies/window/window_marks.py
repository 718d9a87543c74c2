"""Keep or drop whole windows: one mark for each, decided once and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from jettison.core.decision import Candidates, Decision
from jettison.core.documents import Number, Share, rule
from jettison.core.setting import Setting
from jettison.core.spec import Spec
from jettison.errors import refuse
from jettison.policies.base import ColumnOrSql
from jettison.policies.window.query_fan import Fan

KEEP, DROP, VOID = "k", "d", "v"
Marks = Annotated[
    str, rule("must be texts of k, d and v", "they stand for keep, drop and void", pattern=f"^[{KEEP}{DROP}{VOID}]*$")
]


@dataclass(frozen=True, slots=True)
class WindowMarks(Setting):
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
    run, owed
        What decisions go on from, see `window_choice.py`.
    window_share
        Share of windows that the last decisions aimed to keep.
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
    marks: tuple[Marks, ...] = ()
    opens_us: tuple[tuple[int | None, ...], ...] = ()
    next_unit: int | None = None
    run: int = 0
    owed: Number = 1.0
    window_share: Share = 1.0
    row_share: Share = 1.0
    shut: tuple[str, ...] = ()

    kind: ClassVar[str] = "window"

    def check(self) -> None:
        """Each query has a first window, and as many marks as opening times."""
        lengths = [len(marks) for marks in self.marks]
        if not (len(self.first) == len(self.marks) and [len(opens) for opens in self.opens_us] == lengths):
            refuse(
                "`first`, `marks` and `opens_us` must agree in length",
                repr(self),
                hint="give each query its first unit, one mark a unit and one opening time a unit",
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
        """Share of the rows expected to be kept in the long run; any one micro-batch keeps all or none, more or less."""
        return 1.0 if self.keeps_everything else self.row_share

    @property
    def when_released(self) -> WindowMarks:
        """What must stay in force when everything is to be kept: marks cannot be taken back, others are not made."""
        return self

    def decide(self, spec: Spec, rows: Candidates) -> Decision:
        """Keep a row that any kept answer needs. It weighs 1: all rows of its window are there. Column: `time_us`."""
        assert isinstance(spec, WindowSpec)
        keep = np.array([self.needs(spec.fan, time) for time in np.asarray(rows.columns["time_us"]).tolist()], bool)
        return Decision(keep, np.ones(len(rows)))

    def needs(self, fan: Fan, time: int) -> bool:
        """Whether a row at `time` takes part in an answer of the fan's queries that is kept.

        For each query: the earliest answer that the row takes part in, then whether the next kept answer has begun.
        """
        for place, branch in enumerate(fan.branches):
            at = branch.pipeline.first_holding(time) - self.first[place] if self.first else -1
            opens = self.opens_us[place][at] if 0 <= at < len(self.marks[place]) else None
            if opens is None or opens <= time:
                return True
        return False

    def dropped(self, query: int, window: int) -> bool:
        """Whether a window of the query with that position is marked as dropped."""
        place = window - self.first[query] if self.first else -1
        return 0 <= place < len(self.marks[query]) and self.marks[query][place] == DROP


@dataclass(frozen=True, slots=True)
class WindowSpec(Spec):
    """The column that windows are over, and the queries behind the guard with their windows."""

    time: ColumnOrSql
    fan: Fan

    kind: ClassVar[str] = WindowMarks.kind
