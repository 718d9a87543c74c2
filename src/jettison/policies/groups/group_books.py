"""What a running query has shown of its groups, drop point by drop point: for policies that plan by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import UNSET, UnsetType

from jettison.core.documents import Amount, Natural, Number
from jettison.core.ledger_record import LedgerRecord, kind_of
from jettison.policies.base import Lesson, Policy
from jettison.policies.groups.group_setting import GroupDrop
from jettison.policies.groups.pane_book import KeptGroups, PaneBook, SavedBook
from jettison.policies.groups.window_tally import WindowTally

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
    """A policy that plans by what the query has shown of its groups."""

    __slots__ = ()

    state_type: ClassVar[Any] = SavedGroups
    groups: GroupBooks

    def learn(self, lesson: Lesson) -> None:
        self.groups.learn(lesson)

    def state(self) -> SavedGroups:
        return self.groups.saved()

    def restore(self, state: SavedGroups) -> None:
        self.groups.restore(state)

    def take_records(self) -> list[dict[str, Any]]:
        """The panes that have closed, with how far each lies from the one before."""
        return self.groups.take_records()
