"""The books of a running query: each batch is completed with exact counts and put on record, off the fast path."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from jettison.core.answer_bounds import AnswerBounds
from jettison.core.batch_report import BatchReport, Counted
from jettison.core.documents import decode, encode
from jettison.core.stats import Stats
from jettison.runtime.ledger import Ledger

if TYPE_CHECKING:
    from jettison.runtime.pilot import Pilot

_FINISHED = None
_MOST_BEHIND = 32

ExactCounts = Callable[[BatchReport], Mapping[str, Counted]]
"""Counts by drop point, for a report whose counts are incomplete; none where they are not to be had. May block and raise."""


class _Item(NamedTuple):
    report: BatchReport
    stats: Stats
    latency_s: float | None
    lag: tuple[int, float] | None


class Books:
    """Completes the reports of batches and puts them on record, one by one, on a thread that may block.

    Parameters
    ----------
    ledger
        Where they are recorded.
    exact_counts
        Completes reports; nobody does where not given.
    pilot
        Told of each batch, and of faults.
    """

    def __init__(self, ledger: Ledger, exact_counts: ExactCounts | None, pilot: Pilot) -> None:
        self._ledger, self._exact_counts, self._pilot = ledger, exact_counts, pilot
        self._reports: queue.Queue[_Item | None] = queue.Queue()
        self._unrecorded: set[int] = set()
        self._told_of_estimates = False

    def expect(self, *batches: int) -> None:
        """These batches have run: the books are not complete without them."""
        self._unrecorded.update(batches)

    @property
    def are_complete(self) -> bool:
        """Whether all batches that have run are on record."""
        return not self._unrecorded

    def add(
        self, report: BatchReport, stats: Stats, latency_s: float | None, lag: tuple[int, float] | None = None
    ) -> None:
        """Put a batch on record as soon as its counts are there; `stats` may hold expectations in their place."""
        self._reports.put(_Item(report, stats, latency_s, lag))

    def finish(self) -> None:
        """No more batches will come."""
        self._reports.put(_FINISHED)

    def keep(self, aside: Callable[[BatchReport], None]) -> None:
        """Work until there is nothing more to come; `aside` is shown each report first."""
        while (item := self._reports.get()) is not _FINISHED:
            for kind, step in (("answers", partial(aside, item.report)), ("ledger", partial(self._record, item))):
                try:
                    step()
                except Exception as error:
                    self._pilot.fault(kind, f"{type(error).__name__}: {error}")

    def _record(self, item: _Item) -> None:
        stats = self._completed(item.report, item.stats)
        records = self._pilot.lessons.counted(item.report, stats)
        report = item.report
        answers, taken = self._answers(report), self._pilot.facts.taken(report)
        self._pilot.tally.bounds = answers or self._pilot.tally.bounds
        self._ledger.batch(stats, latency_s=item.latency_s, lag=item.lag, taken=taken, answers=answers)
        self._unrecorded.discard(stats.batch_id)
        for record in records:
            self._ledger.found(stats.committed_s, record)
        self._pilot.lessons.recorded(stats)

    def _answers(self, report: BatchReport) -> Mapping[str, AnswerBounds]:
        """What is to be on record of its answers; nothing where it cannot be, for the batch is on record without it."""
        try:
            return decode(encode(self._pilot.facts.bounds(report.answers)), dict[str, AnswerBounds])
        except Exception as error:
            what = f"how far answers of batch {report.batch_id} are off cannot be put on record"
            self._pilot.fault("answers", f"{what} ({type(error).__name__}: {error})")
            return {}

    def _completed(self, report: BatchReport, stats: Stats) -> Stats:
        if not self._pilot.facts.counted_all(report):  # asked here, where the query's plan has been looked at
            stats = replace(stats, points={name: replace(point, exact=False) for name, point in stats.points.items()})
        if stats.exact:
            return stats
        if report.nothing_new:
            return replace(stats, points={name: replace(point, exact=True) for name, point in stats.points.items()})
        ran = self._pilot.lessons.plan_of(report.plan_version)
        if len(stats.points) == 1 and self._pilot.facts.kept_all(report, ran):
            rows = report.input_rows  # what the backend counts as its input is both counts then
            points = {name: replace(one, seen=rows, kept=rows, exact=True) for name, one in stats.points.items()}
            return replace(stats, points=points)
        points = dict(stats.points)
        for name, counted in self._counts(report).items():
            seen, kept, exact = Counted(*counted)
            points[name] = replace(points[name], seen=seen, kept=kept, exact=exact)
        completed = replace(stats, points=points)
        if report.any_runs and not completed.exact and not self._told_of_estimates:
            self._told_of_estimates = True
            why = "the sink ran the plan of the batch never, in part or in ways that cannot be told apart"
            what = f"row counts of batch {report.batch_id}, and maybe later ones, are estimates"
            self._pilot.fault("estimate", f"{what}: {why}")
        return completed

    def _counts(self, report: BatchReport) -> Mapping[str, Counted]:
        """What the backend counted; nothing where it cannot, or where asking would let the books fall behind."""
        behind = self._reports.qsize()
        try:
            if behind > _MOST_BEHIND:
                raise TimeoutError(f"the books are {behind} batches behind, so its counts are estimates")
            return {} if self._exact_counts is None else self._exact_counts(report)
        except Exception as error:
            self._pilot.fault("accounting", f"batch {report.batch_id}: {error or type(error).__name__}")
            return {}
