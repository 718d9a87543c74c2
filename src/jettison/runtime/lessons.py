"""What a policy is told of batches, and under which plans these ran."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.core.stats import Stats
from jettison.policies.base import Lesson, Policy
from jettison.runtime.equal_ids import EqualIds
from jettison.runtime.faults import Faults
from jettison.runtime.tally import Tally

_REMEMBERED = 64  # plans


class Lessons:
    """Tells the policy of each batch when it is reported, and again when it is on record; one that fails at it plans on.

    Parameters
    ----------
    policy, tally
        Who learns; what adds up the final counts.
    lock
        Held while the policy learns of what the books' own thread tells.
    fault
        Told what went wrong.
    dry_run
        The counts say what would have been kept; in truth every row was.
    """

    def __init__(self, policy: Policy, tally: Tally, lock: threading.RLock, fault: Faults, *, dry_run: bool) -> None:
        self._policy, self._tally, self._lock, self._fault = policy, tally, lock, fault
        self._dry_run = dry_run
        self._equal_ids = EqualIds()
        self._plans: dict[int, DropPlan] = {}

    def planned(self, plan: DropPlan) -> None:
        """Remember a plan under which batches will run."""
        self._plans[plan.version] = plan
        for old in sorted(self._plans)[:-_REMEMBERED]:
            del self._plans[old]

    def plan_of(self, version: int | None) -> DropPlan | None:
        """The plan of that version, if it is one of the last ones; `None` stands for a batch that found no plan."""
        return None if version is None else self._plans.get(version)

    def dropped_by(self, version: int | None) -> DropPlan | None:
        """The same as long as plans drop rows: none in a dry run."""
        return None if self._dry_run else self.plan_of(version)

    def reported(self, report: BatchReport) -> DropPlan | None:
        """A batch has ended; returns its plan."""
        in_force = self.plan_of(report.plan_version)
        self._teach(Lesson(report.batch_id, in_force, report.observed, report.event_times, dry_run=self._dry_run))
        return in_force

    def counted(self, report: BatchReport, stats: Stats) -> Sequence[Mapping[str, Any]]:
        """The final counts of a batch; returns what the policy has found out."""
        with self._lock:
            in_force = self.plan_of(report.plan_version)
            self._tally.exact(report, stats, in_force)
            if odd := self._equal_ids.batch(stats, in_force, self._tally.protected):
                self._fault("identity", f"up to batch {stats.batch_id} {odd}")
            return self._policy.take_records()

    def recorded(self, stats: Stats) -> None:
        """A batch is on record: the policy may learn from it."""
        self._fault.works("ledger")
        if stats.exact:
            with self._lock:
                in_force = self.plan_of(stats.plan_version)
                self._teach(Lesson(stats.batch_id, in_force, {}, stats.event_times, stats, self._dry_run))

    def _teach(self, lesson: Lesson) -> None:
        try:
            self._policy.learn(lesson)
        except Exception as error:
            nothing = f"nothing was learned from batch {lesson.batch_id}"
            self._fault("policy", f"{type(error).__name__}: {error}; {nothing}")
