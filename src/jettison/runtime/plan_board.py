"""What is published for a query: its schedule of plans, with the lead and the lease under which they count."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.errors import DamagedPlan
from jettison.runtime.schedule import Doubts, Schedule

_LEAD_S = 0.1  # from the decision until a plan counts: by then the file must be there
_MOST_PLANS = 48


class Publisher(Protocol):
    """Carries schedules to the backend."""

    lease_s: float
    look_every: int
    """One row in how many has its arrival looked at, from the next schedule on that is published."""

    def room(self, wanted: int) -> int:
        """Bytes that one plan may take as text, now that so many are wanted; never fewer than before."""

    def publish(self, schedule: Schedule, valid_until_us: int) -> None:
        """Put a schedule in force, with a lease until then."""

    def fits(self, schedule: Schedule) -> bool:
        """Whether a schedule can be published, with room to spare for a plan that keeps everything."""

    def published(self) -> Schedule | None:
        """The schedule on file, if there is one."""

    def lease_ends_us(self) -> int | None:
        """When the lease on file ends or has ended; `None` where nothing readable is on file."""


class PlanBoard:
    """Publishes plans so that the plan of a batch depends on the batch's time alone.

    A plan counts from a moment that lies after its file was written, so that no batch to which it applies can have read
    the file without it; plans that a batch may still be repeated under stay on file. A write that takes longer than the
    lead breaks this for a batch that starts meanwhile and is then killed; the lead is therefore twice the slowest of the
    last writes. No answer is called exact for that: doubts are written before the plan that they are about.

    Parameters
    ----------
    publisher
        Carries the schedules.
    schedule
        What is on file already.
    begun_us
        The time of the batch that a restart may repeat: no plan that is posted counts for it, even if the clock was set
        back since.
    """

    def __init__(
        self,
        publisher: Publisher,
        schedule: Schedule,
        clock: Callable[[], float] = time.time,
        *,
        begun_us: int | None = None,
    ) -> None:
        self._publisher = publisher
        self._clock = clock
        self._not_before_us = 0 if begun_us is None else begun_us + 1
        self._writes_s: list[float] = []
        self._clock_went_back = False
        self._valid_until_us = publisher.lease_ends_us() or 0
        self.schedule = schedule

    def has_room(self, plan: DropPlan) -> bool:
        """Whether a plan can be published before a batch is reported; one that ends a plan that drops rows always can."""
        if plan.keeps_everything and not self.schedule.newest.keeps_everything:
            return True
        if not self._publisher.fits(Schedule.of(plan)):
            return True  # too large by itself: a fault, which publishing it raises
        return len(self.schedule.entries) < _MOST_PLANS and self._publisher.fits(self.schedule.followed_by(plan, 0))

    def post(self, plan: DropPlan, doubts: Doubts, *, at_once: bool = False) -> float:
        """Publish a plan beside those before it; returns the time from which it counts.

        It may count `at_once` while no batch can start before it is on file. Else what it leaves in doubt is on file before
        it begins to count, however long writing takes.
        """
        if not at_once:
            self.restate(doubts)
        from_us = self._from_us(0.0 if at_once else self._lead_s())
        schedule = self._as_found(from_us).followed_by(plan, max(from_us, self._not_before_us))
        self._write(replace(schedule, doubts=doubts))
        return self.schedule.entries[-1].from_us / 1e6

    def renew(self) -> None:
        """Renew the lease of what is published; where it has ended, the newest plan counts from now on again."""
        self._publish_again(self.schedule.doubts)

    def restate(self, doubts: Doubts) -> None:
        """Publish again in which answers rows may be missing."""
        if doubts != self.schedule.doubts:
            self._publish_again(doubts)

    def wrong_plan(self, report: BatchReport, *, repeated: bool) -> str:
        """What is to be said of a batch that found no plan, or not the one that counted; empty for all others.

        An older one is found where the newer of two files is damaged, which is looked at, because a plan may also have come
        on file late. A batch that may be `repeated` has that of its first attempt.
        """
        if report.plan_version is None:
            return f"batch {report.batch_id} found no valid plan and kept every row"
        counted = None if repeated else self.schedule.at(int(report.started_s * 1e6))
        if counted is None or report.plan_version >= counted.version or self._is_on_file(counted):
            return ""
        ran = f"batch {report.batch_id} ran under plan {report.plan_version} where plan {counted.version} counted"
        return f"{ran}: the file that held it is damaged"

    def _is_on_file(self, plan: DropPlan) -> bool:
        """Whether a plan, or a later one, can be read now."""
        try:
            found = self._publisher.published()
        except (DamagedPlan, OSError):
            return False
        return found is not None and found.newest.version >= plan.version

    def batch_done(self, started_s: float) -> None:
        """A batch that started then is committed: plans that only batches before it had are not needed again."""
        self.schedule = self.schedule.forgetting(int(started_s * 1e6))
        self._not_before_us = 0  # what could be repeated has been
        soon_us = self._from_us(self._lead_s())
        latest_us = max(self.schedule.entries[-1].from_us, self._valid_until_us - self._lease_us)
        self._clock_went_back = latest_us > soon_us

    def _publish_again(self, doubts: Doubts) -> None:
        from_us = self._from_us(self._lead_s())
        schedule = self._as_found(from_us)
        if schedule != self.schedule:
            schedule = schedule.followed_by(self.schedule.newest, max(from_us, self._not_before_us))
        self._write(replace(schedule, doubts=doubts))

    def _as_found(self, until_us: int) -> Schedule:
        """The plans that batches with a time before `until_us` find or have found: mostly what the schedule says.

        Once the lease has ended they keep everything; repeated, they are to do so again. Plans of a clock that was ahead
        would count too late, and no batch can have them any more once one was reported under the present clock.
        """
        schedule = self.schedule.known_by(until_us) if self._clock_went_back else self.schedule
        ended = self._valid_until_us < self._from_us(self._lead_s() / 2)  # or does so while the next file is written
        drops = any(entry.plan.leaves_partial_answers for entry in schedule.entries)
        return schedule.lapsed(self._valid_until_us) if ended and drops else schedule

    def _write(self, schedule: Schedule) -> None:
        began_s = self._clock()
        valid_until_us = int(began_s * 1e6) + self._lease_us
        if not self._clock_went_back:  # a batch of a clock that was ahead may be repeated, and had a valid plan
            valid_until_us = max(valid_until_us, self._valid_until_us)
        self._publisher.publish(schedule, valid_until_us)
        self._writes_s = [*self._writes_s[-7:], self._clock() - began_s]
        self.schedule, self._valid_until_us = schedule, valid_until_us

    @property
    def _lease_us(self) -> int:
        return int(self._publisher.lease_s * 1e6)

    def _from_us(self, lead_s: float) -> int:
        return int((self._clock() + lead_s) * 1e6)

    def _lead_s(self) -> float:
        return max(_LEAD_S, 2 * max(self._writes_s, default=0.0))
