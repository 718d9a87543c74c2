"""Which plan a micro-batch runs under: a function of the batch's own time, so that a repeated batch drops the same rows.

The plan file holds a schedule: the last plans, each with the time from which it counts. A batch takes the newest one
that is not younger than the batch. Its time stands in Spark's offset log and comes back when the batch is repeated, so
whatever was published in between, the batch finds the plan that it had. Beside the plans the schedule says for which
stretches of event time answers may miss rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jettison.plan import DropPlan

EARLIEST_US, LATEST_US = -(2**62), 2**62
"""Before and after every time that a row can carry."""


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """Event times, in microseconds, from `from_us` up to but without `until_us`."""

    from_us: int = EARLIEST_US
    until_us: int = LATEST_US


@dataclass(frozen=True, slots=True)
class Entry:
    """A plan and the batch time, in microseconds, from which it counts."""

    from_us: int
    plan: DropPlan


@dataclass(frozen=True, slots=True)
class Schedule:
    """The last plans in the order in which they count, and where answers may miss rows.

    Parameters
    ----------
    entries
        At least one.
    touched
        Stretches of event time in which rows may have been dropped.

    Examples
    --------
    >>> from jettison.settings import RandomDrop
    >>> schedule = Schedule.of(DropPlan(1)).followed_by(DropPlan(2, {"rows": RandomDrop(0.5)}), 1_000)
    >>> schedule.at(999).version, schedule.at(1_000).version, schedule.newest.version
    (1, 2, 2)
    """

    entries: tuple[Entry, ...]
    touched: tuple[Stretch, ...] = ()

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

    def with_touched(self, stretches: Iterable[Stretch]) -> Schedule:
        """The schedule with other stretches in which answers may miss rows."""
        return replace(self, touched=tuple(stretches))
