"""Statistics of a batch at once, with expectations in place of counts that come later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.core.setting import Setting
from jettison.core.stats import EventTimes, PointStats, Stats, with_protected
from jettison.policies.base import Policy
from jettison.runtime.tally import Tally


class ExpectedStats:
    """Makes statistics of reports: what was counted, or else what the plan and earlier batches let expect.

    Parameters
    ----------
    points
        Names of the drop points.
    policy, tally
        Who knows which share a setting keeps; which part of the input reaches a drop point, and is protected there.
    fault
        Told what went wrong.
    """

    def __init__(
        self, points: tuple[str, ...], policy: Policy, tally: Tally, fault: Callable[[str, str], None]
    ) -> None:
        self._points, self._policy, self._tally, self._fault = points, policy, tally, fault
        self._newest_us = -(2**63)

    def of(self, report: BatchReport, in_force: DropPlan | None) -> Stats:
        """Of a batch that ran under `in_force`; `None` where it found no plan and kept everything."""
        points = {name: self._point(name, report, in_force) for name in self._points}
        return report.stats(points, self._times_so_far(report))

    def nothing_seen(self, now_s: float) -> Stats:
        """Of no batch at all."""
        points = {name: PointStats(0, 0, self._tally.protected_share(name)) for name in self._points}
        return Stats(batch_id=-1, started_s=now_s, duration_s=0.0, points=points)

    def _times_so_far(self, report: BatchReport) -> EventTimes | None:
        if report.event_times is None:
            return None
        self._newest_us = max(self._newest_us, report.event_times.newest_us)
        return replace(report.event_times, newest_us=self._newest_us)

    def _point(self, name: str, report: BatchReport, in_force: DropPlan | None) -> PointStats:
        seen = report.seen.get(name)
        if seen is None:
            seen = round(report.input_rows * self._tally.input_share(name, len(self._points)))
        protected = self._tally.protected_share(name)
        kept = report.kept.get(name)
        if kept is not None:
            counted = name in report.seen and not report.any_runs
            return PointStats(max(seen, kept), kept, protected, counted)
        setting = in_force.points.get(name) if in_force else None
        fraction = 1.0 if setting is None else self._share(setting, report.event_times)
        kept = round(seen * with_protected(fraction, protected))
        return PointStats(seen, kept, protected, False)

    def _share(self, setting: Setting, times: EventTimes | None) -> float:
        if times is not None:
            try:
                return self._policy.expected_share(setting, times)
            except Exception as error:
                self._fault("policy", f"{type(error).__name__}: {error}; the plan's own share is expected")
        return setting.keep_fraction
