"""What a backend saw in one micro-batch: the only thing that policies and the controller know of the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jettison.core.documents import Amount, Share


@dataclass(frozen=True, slots=True)
class PointStats:
    """Rows that reached one drop point and rows that it let through.

    Parameters
    ----------
    seen, kept
        Rows in, rows out. In a dry run `kept` counts the rows that would have been kept.
    protected_share
        Share of the rows seen that no plan may drop, as far as the backend knows.
    exact
        False where `kept` is only expected from the setting, because the count was not to be had.
    """

    seen: int
    kept: int
    protected_share: float = 0.0
    exact: bool = True

    @property
    def dropped(self) -> int:
        return self.seen - self.kept


@dataclass(frozen=True, slots=True)
class EventTimes:
    """Times that the rows of a micro-batch carry themselves, in microseconds since the epoch.

    Parameters
    ----------
    newest_us
        Latest time of any row so far.
    advance_us
        Time that one batch covers, about.
    watermark_us
        Rows older than this were no longer accepted in this batch; `None` before there is a watermark.
    """

    newest_us: int
    advance_us: int
    watermark_us: int | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """One micro-batch as its backend saw it. Times are seconds since the epoch.

    Parameters
    ----------
    batch_id
        Number of the micro-batch, unique over the life of the checkpoint.
    started_s
        When the trigger fired: rows that had arrived by then are in this batch, unless a cap on rows left some behind.
    duration_s
        From the trigger to the commit.
    points
        Rows seen and kept by name of the drop point.
    plan_version
        Version of the plan that the batch ran under; `None` when the plan could not be read and all rows were kept.
    oldest_arrival_s, newest_arrival_s
        The 1 % and the 99 % quantile of the rows' arrivals, as their source stamped them: single wild stamps count for
        nothing. `None` where the backend does not observe arrivals.
    recent_rows_per_s
        Arrival rate in the last second before the batch, where arrivals are observed: it shows a step of the load that
        the batch's average hides.
    event_times
        What times the rows carry; `None` where the query has no watermark or the batch no rows.
    work_s
        The part of `duration_s` in which rows were processed; the rest (planning, offsets, commits) does not depend on
        them. `None` where the backend does not tell.
    waiting_rows
        Rows that the source had when the batch started and that the batch did not take; `None` where unknown.
    plan_bytes
        Bytes that the next plan may take as text; `None` for as many as the policy asks for.
    """

    batch_id: int
    started_s: float
    duration_s: float
    points: Mapping[str, PointStats] = field(default_factory=dict)
    plan_version: int | None = None
    oldest_arrival_s: float | None = None
    newest_arrival_s: float | None = None
    recent_rows_per_s: float | None = None
    event_times: EventTimes | None = None
    work_s: float | None = None
    waiting_rows: int | None = None
    plan_bytes: int | None = None

    @property
    def committed_s(self) -> float:
        """When the batch's results became visible."""
        return self.started_s + self.duration_s

    @property
    def seen(self) -> int:
        """Rows that reached the drop points."""
        return sum(point.seen for point in self.points.values())

    @property
    def kept(self) -> int:
        """Rows that the drop points let through to the query's own work."""
        return sum(point.kept for point in self.points.values())

    @property
    def exact(self) -> bool:
        """Whether the rows of all drop points were counted."""
        return all(point.exact for point in self.points.values())

    @property
    def protected_share(self) -> float:
        """Share of the rows seen that no plan may drop."""
        protected = sum(point.seen * point.protected_share for point in self.points.values())
        return protected / self.seen if self.seen else 0.0

    @property
    def worst_latency_s(self) -> float | None:
        """Latency of the row that waited longest, where arrivals are observed."""
        return None if self.oldest_arrival_s is None else self.committed_s - self.oldest_arrival_s

    def everything_kept(self) -> Stats:
        """The same batch as one that kept every row it saw."""
        return replace(self, points={name: replace(point, kept=point.seen) for name, point in self.points.items()})


@dataclass(frozen=True, slots=True)
class Budget:
    """How much the next micro-batches may process: the controller's answer, which a policy spends.

    Parameters
    ----------
    share
        Share of the rows seen that may be processed, over all drop points, protected rows included.
    late_share, late_after_s
        The same for rows that are older than `late_after_s` when their batch starts.
    cause
        In words, why the budget is what it is.
    """

    share: Share
    late_share: Share
    late_after_s: Amount
    cause: str


def beside_protected(share: float, protected_share: float) -> float:
    """Keep fraction of the unprotected rows with which `share` of all rows is processed.

    >>> beside_protected(0.75, protected_share=0.5), beside_protected(0.2, protected_share=0.25)
    (0.5, 0.0)
    """
    if share >= 1.0 or protected_share <= 0.0:
        return min(share, 1.0)
    if protected_share >= share:
        return 0.0
    return (share - protected_share) / (1.0 - protected_share)


def with_protected(keep_fraction: float, protected_share: float) -> float:
    """Share of all rows that is processed where `keep_fraction` of the unprotected ones is kept."""
    return protected_share + (1.0 - protected_share) * keep_fraction


def share_protected(kept_share: float, keep_fraction: float) -> float:
    """Share of all rows that must be protected, since `kept_share` was kept and not `keep_fraction`, which is below 1."""
    return max(0.0, (kept_share - keep_fraction) / (1.0 - keep_fraction))
