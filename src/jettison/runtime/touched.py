"""From which event time on answers hold all their rows again: one that begins earlier is not called exact.

The rows that are left cannot tell what went, and a guard that drops rows before they are parsed does not know their
times. What is known: a stream that keeps to its watermark's delay has no row that is newer than a later row by more than
that delay. So once a batch keeps everything, the newest time seen by then, plus the delay, lies beyond all dropped rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.core.stats import EventTimes
from jettison.runtime.schedule import DEPENDENT_US, NEVER_US, UNKNOWN_US, Doubts, Schedule


class TouchedTimes:
    """The event time before which rows may have been dropped.

    Without event times, that is without a watermark, answers stay in doubt from the first drop on; so they do until
    somebody tells the watermark's delay.

    Parameters
    ----------
    until_us
        What an earlier run knew. Once rows were dropped, that counts as not known: the query may have changed since, and
        its windows with it.

    Examples
    --------
    >>> touched = TouchedTimes()
    >>> touched.delay_us = 20
    >>> touched.open()
    >>> touched.is_open
    True
    >>> touched.observe(EventTimes(newest_us=190, advance_us=10))
    >>> touched.close()
    >>> touched.until_us
    211
    """

    def __init__(self, until_us: int = NEVER_US) -> None:
        self.until_us = NEVER_US if until_us == NEVER_US else UNKNOWN_US
        self.delay_us: int | None = None
        self._newest_us: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether rows may be dropped at this time, or it is not known up to which time they were."""
        return self.until_us == UNKNOWN_US

    def observe(self, times: EventTimes) -> None:
        """Learn from the times of a finished batch."""
        self._newest_us = times.newest_us if self._newest_us is None else max(self._newest_us, times.newest_us)

    def open(self) -> None:
        """Rows are about to be dropped."""
        self.until_us = UNKNOWN_US

    def close(self) -> None:
        """The batch last observed, and all after it, keep every row; no effect where the end is not known."""
        if self._newest_us is not None and self.delay_us is not None:
            self.until_us = self._newest_us + self.delay_us + 1


class Wholeness:
    """Which answers of a query are whole, and which only may be.

    Parameters
    ----------
    before
        What an earlier run said.
    least_us
        What speaks against every answer, whatever the plans do: `UNKNOWN_US` where rows may have been dropped before the
        guards, `DEPENDENT_US` where something beside the guards drops rows that no weight stands for.
    """

    def __init__(self, before: Doubts, least_us: int = NEVER_US) -> None:
        self.touched = TouchedTimes(before.until_us)
        self.margins_us: Mapping[str, int | None] = {}
        self.least_us = least_us
        self.dependent = before.otherwise_us >= DEPENDENT_US
        """Whether rows that share one decision can meet in one answer; as before, until the query's plan has been read."""
        self._ever_dropped = before.otherwise_us > NEVER_US

    def planned(self, plan: DropPlan) -> None:
        """A plan is about to be used."""
        self._ever_dropped = self._ever_dropped or not plan.keeps_everything
        if plan.leaves_partial_answers:
            self.touched.open()

    def batch(self, report: BatchReport, schedule: Schedule) -> None:
        """End the stretch in which answers may miss rows, once a batch has kept all and every plan after its own does."""
        if report.event_times is None:
            return
        self.touched.observe(report.event_times)
        version = report.plan_version
        if not self.touched.is_open or version is None:
            return
        later = [entry.plan for entry in schedule.entries if entry.plan.version >= version]
        if later and not any(plan.leaves_partial_answers for plan in later):
            self.touched.close()

    @property
    def doubts(self) -> Doubts:
        """In which answers rows may be missing."""
        always_us = DEPENDENT_US if self.dependent and self._ever_dropped else self.least_us
        since_the_first_us = UNKNOWN_US if self._ever_dropped else NEVER_US
        return Doubts(max(self.touched.until_us, always_us), max(since_the_first_us, always_us), dict(self.margins_us))
