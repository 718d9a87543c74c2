"""Which plan a micro-batch runs under: a function of the batch's own time, so that a repeated batch drops the same rows.

The plan file holds a schedule: the last plans, each with the time from which it counts. A batch takes the newest one
that is not younger than the batch. Its time stands in Spark's offset log and comes back when the batch is repeated, so
whatever was published in between, the batch finds the plan that it had. A batch that is older than all of them keeps
everything, at every attempt: plans are only ever forgotten at the old end, so the oldest one may be another by then.
Beside the plans the schedule says in which answers rows may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jettison.core.plan import DropPlan

NEVER_US = -(2**80)
"""Before every time that 64 bits hold: nothing was dropped so far."""
UNKNOWN_US = 2**80
"""After every time that 64 bits hold: rows may be dropped now."""
DEPENDENT_US = 2**81
"""The same, and rows that share one decision can meet in one answer, whose bounds are then too short."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """In which answers rows may be missing.

    Parameters
    ----------
    until_us
        Rows before this event time may have been dropped: an answer that is judged by its window is whole if its window
        begins later.
    otherwise_us
        The same for all other answers, which cannot be known to be whole once a row was dropped: `NEVER_US`,
        `UNKNOWN_US` or `DEPENDENT_US`.
    margins_us
        The answers of the query itself, by the mark of their aggregate: how long before its window a row may lie that
        takes part in it, 0 for windows that do not depend on their rows. `None` for one that is not judged by its window.

    Examples
    --------
    >>> Doubts(until_us=100, otherwise_us=900, margins_us={"ab": 0, "cd": 50, "ef": None}).text()
    '900;ab:100;cd:150;ef:900;'
    """

    until_us: int = NEVER_US
    otherwise_us: int = NEVER_US
    margins_us: Mapping[str, int | None] = field(default_factory=dict)

    def text(self) -> str:
        """The time up to which rows may be missing, first for all answers and then for those that have their own."""
        own = (
            f"{mark}:{self.otherwise_us if margin_us is None else self.until_us + margin_us};"
            for mark, margin_us in self.margins_us.items()
        )
        return f"{self.otherwise_us};" + "".join(own)


NOWHERE = Doubts()
"""Nothing was dropped so far."""
EVERYWHERE = Doubts(UNKNOWN_US, UNKNOWN_US)
"""Nobody knows in which answers rows are missing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A plan and the batch time, in microseconds, from which it counts."""

    from_us: int
    plan: DropPlan


@dataclass(frozen=True, slots=True)
class Schedule:
    """The last plans in the order in which they count, and in which answers rows may be missing.

    Parameters
    ----------
    entries
        At least one.
    doubts
        What speaks against calling an answer exact.

    Examples
    --------
    >>> from jettison.policies.uniform.random_setting import RandomDrop
    >>> schedule = Schedule.of(DropPlan(1)).followed_by(DropPlan(2, {"rows": RandomDrop(0.5)}), 1_000)
    >>> schedule.at(999).version, schedule.at(1_000).version, schedule.newest.version
    (1, 2, 2)
    """

    entries: tuple[Entry, ...]
    doubts: Doubts = NOWHERE

    @classmethod
    def of(cls, plan: DropPlan, doubts: Doubts = NOWHERE) -> Schedule:
        """One plan for all times."""
        return cls((Entry(0, plan),), doubts)

    @property
    def newest(self) -> DropPlan:
        """The plan that was added last, whether it counts already or not."""
        return self.entries[-1].plan

    def at(self, time_us: int) -> DropPlan | None:
        """The plan of a batch with this time; `None` where the schedule no longer reaches back so far."""
        return next((entry.plan for entry in reversed(self.entries) if entry.from_us <= time_us), None)

    def followed_by(self, plan: DropPlan, from_us: int) -> Schedule:
        """The schedule with one more plan, which counts from `from_us` or, if that is later, from when the last one does."""
        from_us = max(from_us, self.entries[-1].from_us)
        return replace(self, entries=(*self.entries, Entry(from_us, plan)))

    def forgetting(self, before_us: int) -> Schedule:
        """The schedule without the plans that no batch with a time from `before_us` on can have."""
        counting = [place for place, entry in enumerate(self.entries) if entry.from_us <= before_us]
        return replace(self, entries=self.entries[counting[-1] if counting else 0 :])

    def lapsed(self, at_us: int) -> Schedule:
        """The schedule as batches find it whose lease ended then: from there on they keep everything, under version 0."""
        before = tuple(entry for entry in self.entries if entry.from_us < at_us)
        released = self.newest.released(0, "the lease had run out")
        if before and before[-1].plan == released:
            return replace(self, entries=before)
        return replace(self, entries=(*before, Entry(at_us, released)))

    def known_by(self, time_us: int) -> Schedule:
        """The schedule without the plans that count only later; where all do, the newest one, from then on."""
        known = tuple(entry for entry in self.entries if entry.from_us <= time_us)
        return replace(self, entries=known or (Entry(time_us, self.newest),))
