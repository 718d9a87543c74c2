"""From which event time on answers hold all their rows again: one that begins earlier is not called exact.

The rows that are left cannot tell what went, and a guard that drops rows before they are parsed does not know their
times. What is known: a stream that keeps to its watermark's delay has no row that is newer than a later row by more than
that delay. So once no further batch can drop rows, the newest time seen by then, plus the delay, lies beyond all dropped
rows. Which batches cannot, no clock tells, for it may be set back to a plan that drops: a batch that found a plan which
came on file after the last of those was gone from there, and all batches after that one.
"""

from __future__ import annotations

from collections.abc import Mapping

from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.runtime.schedule import DEPENDENT_US, NEVER_US, NOWHERE, UNKNOWN_US, Doubts, Schedule


class Wholeness:
    """Which answers of a query are whole, and which only may be.

    Without event times, that is without a watermark, answers stay in doubt from the first drop on; so they do until
    somebody tells the watermark's delay.

    Parameters
    ----------
    before
        What an earlier run said. Once rows were dropped, up to which time counts as not known: the query may have changed
        since, and its windows with it.
    least_us
        What speaks against every answer, whatever the plans do: `UNKNOWN_US` where rows may have been dropped before the
        guards, `DEPENDENT_US` where something beside the guards drops rows that no weight stands for.
    """

    def __init__(self, before: Doubts = NOWHERE, least_us: int = NEVER_US) -> None:
        self._until_us = NEVER_US if before.until_us == NEVER_US else UNKNOWN_US
        self._newest_us = -(2**63)
        self.delay_us: int | None = None
        """By how much a row may be older than one before it, as the watermark says."""
        self.margins_us: Mapping[str, int | None] = {}
        self.least_us = least_us
        self.dependent = before.otherwise_us >= DEPENDENT_US
        """Whether rows that share one decision can meet in one answer; as before, until the query's plan has been read."""
        self._ever_dropped = before.otherwise_us > NEVER_US
        self._whole_from: int | None = None

    def planned(self, plan: DropPlan, schedule: Schedule) -> None:
        """A plan will be put on file beside those of the schedule."""
        self._ever_dropped = self._ever_dropped or not plan.keeps_everything
        if plan.leaves_partial_answers:
            self._in_doubt()
        elif self._whole_from is None and not _drops(schedule):
            self._whole_from = plan.version

    def batch(self, report: BatchReport, ran: DropPlan | None) -> None:
        """End the stretch in which answers may miss rows, once no batch can drop any; `ran` is what this one had."""
        if ran is not None and ran.leaves_partial_answers:
            self._in_doubt()  # it found what is not on file any more
        if report.event_times is None:
            return
        self._newest_us = max(self._newest_us, report.event_times.newest_us)
        version = report.plan_version
        if self._until_us != UNKNOWN_US or version is None or self.delay_us is None:
            return
        if self._whole_from is not None and version >= self._whole_from:
            self._until_us = self._newest_us + self.delay_us + 1

    def wants_a_new_version(self, schedule: Schedule) -> bool:
        """Whether doubt could end, would only the plan in force be put on file once more, now that none there drops rows."""
        waits = self._until_us == UNKNOWN_US and self.delay_us is not None and self._whole_from is None
        return waits and not _drops(schedule)

    def _in_doubt(self) -> None:
        self._until_us, self._whole_from = UNKNOWN_US, None

    @property
    def doubts(self) -> Doubts:
        always_us = DEPENDENT_US if self.dependent and self._ever_dropped else self.least_us
        since_the_first_us = UNKNOWN_US if self._ever_dropped else NEVER_US
        return Doubts(max(self._until_us, always_us), max(since_the_first_us, always_us), dict(self.margins_us))


def _drops(schedule: Schedule) -> bool:
    return any(entry.plan.leaves_partial_answers for entry in schedule.entries)
