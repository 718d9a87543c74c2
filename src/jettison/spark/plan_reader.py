"""What the plan of a running query tells of its answers: which are judged by their windows, and which are wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from jettison.runtime.query_facts import QueryFacts
from jettison.spark import doubts
from jettison.spark.dependence import multipliers
from jettison.spark.drop_point import DropPoint
from jettison.spark.explained import Node, analyzed_plan, explained, is_cut_short, physical_plan
from jettison.spark.judged import ON_STREAM, judged
from jettison.spark.mechanisms import Mechanism
from jettison.spark.unweighted import unweighted

_LONGEST_WAIT = 64  # batches with rows
_MAY_STOP = re.compile(r"~?(\w*Limit|Tail)\b")  # before all rows below it were taken
_SAME_ROWS = re.compile(r"~(Project|EventTimeWatermark|SubqueryAlias|View|CollectMetrics)\b")
T = TypeVar("T")


class Explains(Protocol):
    """Prints its plans, as a streaming query does."""

    def explain(self, extended: bool = False) -> None: ...


class PlanReader:
    """Reads the plan of a query when a batch with rows has run, once if that shows all guards, and tells its pilot."""

    def __init__(self, pilot: QueryFacts, points: tuple[DropPoint, ...], mechanisms: Mapping[str, Mechanism]) -> None:
        self._pilot, self._points = pilot, points
        self.plan_metrics = {point.plan_metric for point in points}
        """What a query observes that reads this one's plans."""
        drops = not any(point.dry_run for point in points)
        # Windows that were dropped in part come out of `deliver` not at all, and all others whole.
        self._held_back = drops and any(each.holds_answers_back for each in mechanisms.values())
        self._shrinks = drops and not self._held_back
        self._every_row_stays = any(mechanism.stays for mechanism in mechanisms.values())
        self._unread = {point.name for point in points}
        self._batches, self._next_try = 0, 1
        self._multiplied = False

    def read(self, query: Explains) -> None:
        """Learn how answers are to be judged, and have it said if they are wrong under shedding.

        Called for each batch with rows. What a plan does not show, as a guard on a source that is still empty, is looked
        for again, ever more rarely; what cannot be read at all is taken for the worst that it may say.
        """
        self._batches += 1
        if not self._unread or self._batches < self._next_try:
            return
        self._next_try = self._batches + min(self._batches, _LONGEST_WAIT)
        self._pilot.times_are_of_all = False  # should this fail
        text = explained(query.explain)
        if not (any(name in text for name in self.plan_metrics) or is_cut_short(text)):
            self._unread.clear()
            self._pilot.unguarded()
            return
        guards = {point.name: point.metric if point.observed else point.kept_mark for point in self._points}
        found = {point.name: self._multipliers(text, guards[point.name], point) for point in self._points}
        for name in sorted(self._unread):
            if multiplied := found[name]:
                self._pilot.rows_are_dependent(name, multiplied)
        if doubts.companions_leave_doubt(text):
            self._pilot.others_drop()
        written = analyzed_plan(text)
        self._pilot.takes_every_row = bool(written) and not any(_MAY_STOP.match(node.text) for node in written)
        self._pilot.times_are_of_all = bool(written) and times_are_of_all(written)
        self._pilot.sees_all_input = sees_all_input(written, [point.seen_mark for point in self._points])
        margins_us, delay_us = self._tried(
            lambda: judged(written, guards.values(), self.plan_metrics, held_back=self._held_back), lambda _: ({}, None)
        )
        self._pilot.answers_found(margins_us, delay_us)
        self._multiplied = self._multiplied or any(found.values())
        self._unread = {name for name in self._unread if found[name] is None}
        if not self._unread and not self._multiplied:
            self._pilot.rows_are_independent()
        if self._shrinks and not self._unread:
            plain = self._tried(
                lambda: unweighted(written, guards.values(), every_row_stays=self._every_row_stays),
                lambda _: [],
            )
            if plain:
                self._pilot.answers_shrink(plain)

    def _multipliers(self, text: str, guard: str, point: DropPoint) -> Sequence[str] | None:
        if is_cut_short(text):
            return ["not known: Spark has cut the plan short, see spark.sql.maxPlanStringLength"]
        return self._tried(
            lambda: multipliers(physical_plan(text), guard, point.row_id), lambda words: [f"not known: {words}"]
        )

    def _tried(self, read: Callable[[], T], otherwise: Callable[[str], T]) -> T:
        """What is read from the plan or, where that fails, the worst that it may say."""
        try:
            return read()
        except Exception as error:
            words = f"the query's plan cannot be read ({type(error).__name__}: {error})"
            self._pilot.fault("answers", words)
            return otherwise(words)


def times_are_of_all(written: Sequence[Node]) -> bool:
    """Whether the event times that Spark tells are of all rows: all pass the only watermark.

    Of several, Spark tells the times of one, which may have seen other rows than the rest.
    """
    watermarks = set(filter(_is_watermark, written))
    if not watermarks:  # then it tells none
        return True
    ahead, seen = [written[0]], set(watermarks)
    while ahead:
        node = ahead.pop()
        if node not in seen:
            seen.add(node)
            streams = [child for child in node.children if any(map(ON_STREAM.match, child.texts_below))]
            if not streams:  # a source
                return False
            ahead += streams
    return len(watermarks) == 1


def _is_watermark(node: Node) -> bool:
    return node.text.lstrip("~").startswith("EventTimeWatermark")


def sees_all_input(written: Sequence[Node], marks: Sequence[str]) -> bool:
    """Whether one guard stands in a plan as it was written, over the only stream, with nothing below that changes rows.

    `marks` are the texts of the filters that count rows seen. Spark moves nothing past them.
    """
    guards = [node for node in written if any(mark in node.text for mark in marks)]
    if len(guards) != 1:
        return False
    below = guards[0].below - {guards[0]}
    sources = [node for node in below if not node.children]
    # Spark marks operators on streams, but not all of their sources. What only static ones read is none.
    others = [node for node in written if not node.children and node not in below]
    static = all(not node.text.startswith("~") for other in others for node in (other, *other.parents))
    return len(sources) == 1 and static and all(_SAME_ROWS.match(node.text) for node in below - set(sources))
