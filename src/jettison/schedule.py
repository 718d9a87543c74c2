"""Which plan a micro-batch runs under: a function of the batch's own time, so that a repeated batch drops the same rows.

The plan file holds a schedule: the last plans, each with the time from which it counts. A batch takes the newest one
that is not younger than the batch. Its time stands in Spark's offset log and comes back when the batch is repeated, so
whatever was published in between, the batch finds the plan that it had. A batch that is older than all of them keeps
everything, at every attempt: plans are only ever forgotten at the old end, so the oldest one may be another by then.
Beside the plans the schedule says up to which event time answers may miss rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from jettison.plan import DropPlan

NEVER_US = -(2**50)
"""Before every time that a row can carry: nothing was dropped so far."""
UNKNOWN_US = 2**52
"""After every time that a row can carry: rows may be dropped now."""
DEPENDENT_US = 2**53
"""The same, and rows that share one decision can meet in one answer, whose bounds are then too short."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A plan and the batch time, in microseconds, from which it counts."""

    from_us: int
    plan: DropPlan


@dataclass(frozen=True, slots=True)
class Schedule:
    """The last plans in the order in which they count, and up to which event time answers may miss rows.

    Parameters
    ----------
    entries
        At least one.
    doubtful_until_us
        Answers whose window begins before this event time may miss rows.

    Examples
    --------
    >>> from jettison.settings import RandomDrop
    >>> schedule = Schedule.of(DropPlan(1)).followed_by(DropPlan(2, {"rows": RandomDrop(0.5)}), 1_000)
    >>> schedule.at(999).version, schedule.at(1_000).version, schedule.newest.version
    (1, 2, 2)
    """

    entries: tuple[Entry, ...]
    doubtful_until_us: int = NEVER_US

    @classmethod
    def of(cls, plan: DropPlan) -> Schedule:
        """One plan for all times."""
        return cls((Entry(0, plan),))

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
