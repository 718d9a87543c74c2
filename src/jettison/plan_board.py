"""What is published for a query: its schedule of plans, with the lead and the lease under which they count."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from jettison.plan import DropPlan
from jettison.schedule import Schedule

_LEAD_S = 0.1  # from the decision until a plan counts: by then the file must be there
_MOST_PLANS = 48


class Publisher(Protocol):
    """Carries schedules to the backend."""

    lease_s: float

    def publish(self, schedule: Schedule) -> None:
        """Put a schedule in force and renew its lease."""
        ...

    def has_room_beside(self, schedule: Schedule) -> bool:
        """Whether one more plan fits beside those of the schedule."""
        ...

    def published(self) -> Schedule | None:
        """The schedule on file, if there is one."""
        ...

    def lease_ended_us(self) -> int | None:
        """When the lease on file ended; `None` while it runs."""
        ...


class PlanBoard:
    """Publishes plans so that the plan of a batch depends on the batch's time alone.

    A plan counts from a moment that lies after its file was written, so that no batch to which it applies can have read
    the file without it; plans that a batch may still be repeated under stay on file. A write that takes longer than the
    lead breaks this for a batch that starts meanwhile and is then killed; the lead is therefore twice the slowest of the
    last writes.

    Parameters
    ----------
    publisher
        Carries the schedules.
    schedule
        What is on file already.
    """

    def __init__(self, publisher: Publisher, schedule: Schedule, clock: Callable[[], float] = time.time) -> None:
        self._publisher = publisher
        self._clock = clock
        self._writes_s: list[float] = []
        self.schedule = schedule

    def has_room(self) -> bool:
        """Whether one more plan can be published before a batch is reported."""
        entries = len(self.schedule.entries)
        return entries == 1 or (entries < _MOST_PLANS and self._publisher.has_room_beside(self.schedule))

    def post(self, plan: DropPlan, doubtful_until_us: int, *, at_once: bool = False) -> float:
        """Publish a plan beside those before it; returns the time from which it counts.

        It may count `at_once` while no batch can start before it is on file.
        """
        from_us = int((self._clock() + (0.0 if at_once else self._lead_s())) * 1e6)
        schedule = self.schedule
        ended_us = self._publisher.lease_ended_us()
        if ended_us is not None and schedule.newest.leaves_partial_answers:
            # Batches since then have kept everything; repeated, they are to do so again.
            schedule = schedule.followed_by(schedule.newest.released(plan.version, "the lease had run out"), ended_us)
        self._write(replace(schedule.followed_by(plan, from_us), doubtful_until_us=doubtful_until_us))
        return self.schedule.entries[-1].from_us / 1e6

    def renew(self) -> None:
        """Renew the lease of what is published."""
        self._write(self.schedule)

    def restate(self, doubtful_until_us: int) -> None:
        """Publish another time up to which answers may miss rows."""
        if doubtful_until_us != self.schedule.doubtful_until_us:
            self._write(replace(self.schedule, doubtful_until_us=doubtful_until_us))

    def batch_done(self, started_s: float) -> None:
        """A batch that started then is committed: plans that only batches before it had are not needed again."""
        self.schedule = self.schedule.forgetting(int(started_s * 1e6))

    def _write(self, schedule: Schedule) -> None:
        began_s = self._clock()
        self._publisher.publish(schedule)
        self._writes_s = [*self._writes_s[-7:], self._clock() - began_s]
        self.schedule = schedule

    def _lead_s(self) -> float:
        return max(_LEAD_S, 2 * max(self._writes_s, default=0.0))
