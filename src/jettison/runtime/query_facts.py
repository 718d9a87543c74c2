"""What the running query's own plan says of its rows and answers, and which answers are in doubt for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

import msgspec

from jettison.core.answer_bounds import AnswerBounds
from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.core.taken import Taken
from jettison.runtime.schedule import DEPENDENT_US, UNKNOWN_US
from jettison.runtime.wholeness import Wholeness

log = logging.getLogger("jettison")

_LONGEST = 200  # of what is quoted


class QueryFacts:
    """Told by whoever reads the query's plan; what follows for answers is in the plan file at once.

    Parameters
    ----------
    whole
        Which answers are whole.
    lock
        Held while that is changed.
    restate
        Called then, with the lock held.
    fault
        Told what is wrong with the query.
    """

    def __init__(
        self,
        whole: Wholeness,
        lock: AbstractContextManager[object],
        restate: Callable[[], None],
        fault: Callable[[str, str], None],
    ) -> None:
        self._whole, self._lock, self._restate, self.fault = whole, lock, restate, fault
        self.reads_no_plan = ""
        """That, in words, where the query that runs is not the one that was guarded."""
        self.takes_every_row: bool | None = None
        """Whether the query has nothing in it that may stop before all rows, as a limit does; `None`: not known yet."""
        self.times_are_of_all = False
        """Whether the event times that Spark reports of a batch are of all rows that count: not before a plan says so."""
        self.sees_all_input = False
        """Whether the only drop point certainly sees the rows that count as the query's input, each once, and no others."""

    def counted_all(self, report: BatchReport) -> bool:
        """Whether the counts that came with a report are certainly those of all rows that the sources handed over."""
        # Behind a limit the second says nothing: a source that is read as far as needed reports as many rows.
        known = self.takes_every_row
        return sum(report.seen.values()) == report.input_rows if known is None else known

    def taken(self, report: BatchReport) -> Taken | None:
        """What a batch took, without event times that other rows of it may lie outside of."""
        if report.taken is None or self.times_are_of_all:
            return report.taken
        return msgspec.structs.replace(report.taken, oldest_us=None, newest_us=None)

    def kept_all(self, report: BatchReport, ran: DropPlan | None) -> bool:
        """Whether a batch that ran under this plan certainly saw its whole input and dropped nothing of it."""
        whole = self.sees_all_input and bool(self.takes_every_row) and not report.any_runs
        return whole and ran is not None and ran.keeps_everything

    def rows_are_dependent(self, point: str, multipliers: Sequence[str]) -> None:
        """Rows that share one decision can meet in one answer: say so in the answers from which rows were dropped."""
        log.warning("jettison: rows behind %r are multiplied (%s); bounds would be too short", point, multipliers[0])
        with self._lock:
            self._whole.dependent = True
            self._restate()

    def rows_are_independent(self) -> None:
        """The query's plan shows no rows that share a decision, whatever an earlier run had."""
        with self._lock:
            self._whole.dependent = False
            self._restate()

    def bounds(self, answers: Mapping[str, AnswerBounds]) -> Mapping[str, AnswerBounds]:
        """How far answers are off; what a dry run foresees takes rows for independent, whose plan says otherwise."""
        dependent = self._whole.dependent
        return {name: one.of_dependent_rows() if one.foreseen and dependent else one for name, one in answers.items()}

    def others_drop(self) -> None:
        """Something beside the guards drops rows that no weight stands for: say so in every answer from now on."""
        with self._lock:
            self._whole.least_us = DEPENDENT_US
            self._restate()

    def answers_found(self, margins_us: Mapping[str, int | None], delay_us: int | None) -> None:
        """Judge these answers by their windows from now on; see `Doubts`. Without the watermark's delay doubt never ends."""
        with self._lock:
            self._whole.margins_us, self._whole.delay_us = margins_us, delay_us
            self._restate()

    def answers_shrink(self, results: Sequence[str]) -> None:
        """Counts and sums that take no notice of dropped rows are too small while rows are dropped: say so."""
        hint = f"use `jt.count` and `jt.sum`, or add up `jt_weight`; seen: {', '.join(results)[:_LONGEST]}"
        self.fault("answers", f"plain counts and sums behind a guard are too small while rows are dropped; {hint}")

    def unguarded(self) -> None:
        """The query that runs is not the one that was guarded: say so."""
        what = "the query that was started does not read this shedder's plan, and keeps every row"
        self.reads_no_plan = f"{what}: is the guarded DataFrame in it?"
        self.fault("guard", self.reads_no_plan)

    def shared(self, query: str) -> None:
        """Another query runs under these plans, and what it drops is in no books: no answer is certain from now on."""
        with self._lock:
            self._whole.least_us = max(self._whole.least_us, UNKNOWN_US)
            self._restate()
        what = f"query {query} reads this shedder's plans, but was not started by its shedder"
        self.fault("guard", f"{what}: its rows are shed, but not counted, and no answer is called exact any more")
