"""The rate controller of Spark's DStreams: a PID on the processing rate, with Spark's own constants.

In its favour, what exceeds its rate is dropped and not delayed. Scheduling delay is how much later a batch starts than one
interval after the batch before; an interval is half the bound.
"""

from __future__ import annotations

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats
from jettison.lab.prove.rivals.rival import Entry, Rival, Stage
from jettison.lab.prove.vocabulary import Weighted
from jettison.lab.sim.pid import PIDRateEstimator
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.policies.uniform.uniform_drop import UniformDrop


class PidDrop(UniformDrop):
    """Keeps the share of the rows that the estimator's rate is of the arrivals, whatever the budget."""

    def __init__(self, interval_s: float) -> None:
        super().__init__()
        self._pid = PIDRateEstimator(interval_s)
        self._batch_id: int | None = None
        self._started_s: float | None = None
        self._share = 1.0

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """A new share after each batch."""
        if stats.seen and stats.batch_id != self._batch_id:
            self._batch_id = stats.batch_id
            self._share = self._after(stats)
        points = dict.fromkeys(stats.points, RandomDrop(self._share))
        return DropPlan(0, points, cause=f"{self._pid.latest_rate:,.0f} rows/s by PID")

    def _after(self, stats: Stats) -> float:
        interval_s = self._pid.batch_interval_s
        since_s = interval_s if self._started_s is None else stats.started_s - self._started_s
        self._started_s = stats.started_s
        rate = self._pid.compute(stats.committed_s, stats.kept, stats.duration_s, max(0.0, since_s - interval_s))
        arriving = stats.recent_rows_per_s or stats.seen / max(since_s, 1e-3)
        return self._share if rate is None else min(rate / max(arriving, 1.0), 1.0)


def _enter(stage: Stage) -> Entry:
    return stage.under(PidDrop(stage.bound_s / 2), Weighted())


RIVAL = Rival("pid", "a PID rate controller, as in DStreams", _enter)
