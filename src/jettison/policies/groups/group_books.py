"""What all policies that plan by group have in common: what the query has shown of its groups, drop point by drop point."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import UNSET, UnsetType

from jettison.core.documents import Amount, Natural, Number, Positive, checked
from jettison.core.ledger_record import LedgerRecord, kind_of
from jettison.core.stats import Budget, beside_protected
from jettison.policies.base import ColumnOrSql, Lesson, Policy, listed
from jettison.policies.groups.allocation import allowed_rows, budget_left
from jettison.policies.groups.concepts import Accuracy
from jettison.policies.groups.group_setting import GroupDrop, GroupSpec, rounded_down
from jettison.policies.groups.pane_book import KeptGroups, PaneBook, SavedBook
from jettison.policies.groups.window_tally import WindowTally
from jettison.policies.window.window_grid import Grid

_MOST_SAVED = 60_000  # groups, all drop points and panes together: at 43 bytes each well below the limit of a state


class ConceptRecord(LedgerRecord, kw_only=True, tag="concept"):
    """The groups of a pane that is over: rows as estimated from those kept, and how the pane differs from the one before.

    `pooled_rows` belong to groups that were not counted by name. For the last five see `ConceptShift`.
    """

    point: str
    start_us: int
    rows: Natural
    groups: Natural
    pooled_rows: Natural
    distance: Number | UnsetType = UNSET
    overlap: Number | UnsetType = UNSET
    top_change: Number | UnsetType = UNSET
    appeared: Natural | UnsetType = UNSET
    vanished: Natural | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class SavedGroups:
    """What is known of the groups of a query, by drop point."""

    books: dict[str, SavedBook]
    variation: dict[str, Amount]


class GroupBooks:
    """One book of open panes for each drop point, and which panes have closed.

    Parameters
    ----------
    pane_us
        Length of a pane in microseconds.
    """

    def __init__(self, pane_us: int) -> None:
        self._pane_us = pane_us
        self._books: dict[str, PaneBook] = {}
        self._variation: dict[str, float] = {}
        self._closed: list[dict[str, Any]] = []

    def book(self, point: str) -> PaneBook:
        """The book of a drop point, at first an empty one."""
        return self._books.setdefault(point, PaneBook(self._pane_us))

    def learn(self, lesson: Lesson) -> None:
        """Take note of what a batch's kept rows were, under the plan that it ran under."""
        for point, seen in lesson.observed.items():
            if isinstance(seen, KeptGroups):
                self._learn(point, seen, lesson)

    def tallies(self, point: str) -> tuple[WindowTally, ...]:
        """What is known of the open panes of a drop point, the oldest first."""
        return self._books[point].tallies if point in self._books else ()

    @property
    def known(self) -> dict[str, int]:
        """Groups of all open panes, by drop points that have shown any: no plan could name more."""
        groups = {point: sum(len(tally.keys) for tally in book.tallies) for point, book in self._books.items()}
        return {point: count for point, count in groups.items() if count}

    def variation(self, point: str) -> float | None:
        """Coefficient of variation of the values that the query aggregates, as last observed."""
        return self._variation.get(point)

    def saved(self) -> SavedGroups:
        """What is known, within a bound."""
        room = _MOST_SAVED // max(len(self._books), 1)
        return SavedGroups({point: book.saved(room) for point, book in self._books.items()}, dict(self._variation))

    def restore(self, saved: SavedGroups) -> None:
        """Know what was saved, in place of all else."""
        self._books = {}
        for point, book in saved.books.items():
            self.book(point).restore(book)
        self._variation = dict(saved.variation)

    def take_records(self) -> list[dict[str, Any]]:
        """For the ledger, the panes that have closed since this was last asked."""
        closed, self._closed = self._closed, []
        return closed

    def _learn(self, point: str, seen: KeptGroups, lesson: Lesson) -> None:
        book, setting = self.book(point), lesson.plan.points.get(point) if lesson.plan else None
        book.learn(seen, setting if isinstance(setting, GroupDrop) else None)
        if seen.variation is not None:
            self._variation[point] = seen.variation
        watermark_us = lesson.event_times.watermark_us if lesson.event_times else None
        ends = [end for end in (book.oldest_open_us, watermark_us) if end is not None]
        for pane in book.close(max(ends)):
            self._closed.append({"record": kind_of(ConceptRecord), "point": point, **pane})


class GroupPolicy(Policy):
    """Plans by group and pane. It learns from kept rows which groups the open panes hold, and records those that close."""

    __slots__ = ()

    state_type: ClassVar[Any] = SavedGroups
    rows: int | None
    error: float | None
    confidence: float
    groups: GroupBooks
    """What the query has shown of its groups."""

    @property
    @abstractmethod
    def spec(self) -> GroupSpec: ...

    def outline(self) -> dict[str, Any]:
        """What tells groups apart, and how long a pane is; a backend's own columns are shown as they name themselves."""
        return {"group": [str(column) for column in self.spec.columns], "pane_us": self.pane_us}

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The windows that `rows` are for, in microseconds; a slide is a pane."""

    @property
    def pane_us(self) -> int:
        return self.grid.slide

    @property
    def accuracy(self) -> Accuracy | None:
        return None if self.error is None else Accuracy(self.error, self.confidence)

    def learn(self, lesson: Lesson) -> None:
        self.groups.learn(lesson)

    def state(self) -> SavedGroups:
        return self.groups.saved()

    def restore(self, state: SavedGroups) -> None:
        self.groups.restore(state)

    def take_records(self) -> list[dict[str, Any]]:
        """The panes that have closed, with how far each lies from the one before."""
        return self.groups.take_records()

    def _begin(self, *amounts: str, **columns: ColumnOrSql) -> None:
        """Check what is given, and open the books."""
        for name, column in columns.items():
            listed(column, name)
        for name in ("rows", *amounts):
            checked(name, getattr(self, name), Positive | None)
        self.accuracy  # noqa: B018  refuses what is none
        object.__setattr__(self, "groups", GroupBooks(self.pane_us))

    def _spend(self, budget: Budget, protected_share: float) -> tuple[float, GroupDrop, bool]:
        """Share of the unprotected rows to keep, a setting that thins late rows alone, and whether it is enough."""
        share, late = (beside_protected(one, protected_share) for one in (budget.share, budget.late_share))
        factor = min(1.0, late / share) if share > 0 else 1.0
        timed = (None, None) if factor >= 1.0 else (rounded_down(factor), budget.late_after_s)
        setting = GroupDrop(late_factor=timed[0], late_after_s=timed[1], whole=self.spec.whole)
        return share, setting, share >= 1.0 and self.rows is None and self.error is None

    def _allowed_rows(self, share: float, kept: float, left: float, rows_left: float) -> tuple[float, bool]:
        """Rows that may be kept of a pane's `rows_left`, `left` of its time to come; whether the row budget binds."""
        budget = None if self._pane_rows is None else budget_left(self._pane_rows, kept, left)
        return allowed_rows(share, rows_left, budget)

    def _new_share(self, share: float, pane_rows: float) -> float:
        """Share for panes of which nothing is known: the budget's, and not more than the row budget allows."""
        return min(share, self._pane_rows / pane_rows) if self._pane_rows is not None and pane_rows > 0 else share

    @property
    def _pane_rows(self) -> float | None:
        """Part of the row budget that one pane has."""
        return None if self.rows is None else self.rows * self.grid.slide / self.grid.size
