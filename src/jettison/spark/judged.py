"""Which answers of a running query can be judged by their windows, read from the query's plan.

An answer misses no row if its window begins after all times at which rows were dropped. Those times are known for the
column that has the watermark, in a query that has one; and a window keeps rows of other times away only if nothing
between the guard and the answer lets one row decide on another. So an answer is judged by its window if its window is
made of the watermark's column, rows pass that watermark on every way from a source up to the answer, and all operators
between guard and answer are known to treat rows one by one. What cannot be cleared like this is not judged: a plan that
this module does not understand leaves answers in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from jettison.core.durations import microseconds
from jettison.errors import InvalidSetting
from jettison.spark.drop_point import PLAN_METRIC
from jettison.spark.explained import Node, lists, split

_MOST_ANSWERS = 64  # they travel in the plan file, whose size is fixed
# What `doubts.doubt` looks like: the mark, and the window if there is one.
_MARK = re.compile(r"scalar-subquery#\d+ \[\], (\w+):, -1\), ;, 1\) as double\), (.{0,200})", re.DOTALL)
_WINDOW = re.compile(
    r"coalesce\(cast\(\(unix_micros\((?:[^#()]*#(\d+)-T\d+ms|lateralAliasReference\(([^#()]+)\))\.start\) \+ "
)
_WATERMARK = re.compile(r"~EventTimeWatermark ([\w-]+), (?:[^#]*#(\d+): )?")
# Beside every column that has the watermark, and every window made of it. Not beside these alone: the mark travels with
# schemas, into files and on to other columns.
_DELAY = re.compile(r"-T(\d+)ms\b")
_ROW_BY_ROW = re.compile(
    r"~(Project|Filter|Expand|Generate|SubqueryAlias|CollectMetrics|Repartition\w*|ResolvedHint|WithCTE|CTERelation\w+)\b"
    r"|~?View\b"
)
_SOURCE = re.compile(r"~?(Relation|LocalRelation|LogicalRDD|Streaming\w*Relation)\b")
ON_STREAM = re.compile(r"~|Streaming\w*Relation")  # somewhere below, because views do not say so themselves
_TIME = r"precisetimestampconversion\([^#]*#(\d+)-T\d+ms, "
_TIME_WINDOW = re.compile(rf"named_struct\(start, knownnullable\(precisetimestampconversion\(\(\({_TIME}")
_SESSION = re.compile(rf"named_struct\(start, precisetimestampconversion\({_TIME}")
_GAP = re.compile(r" \+ cast\(([\w ]+) as interval\) as timestamp\)")
_FUNCTION = re.compile(r"~?\w*MapInArrow\b")  # one under load-aware shedding looks like any other
_PLAN_READ = re.compile(rf"CollectMetrics ({PLAN_METRIC}[^,]*),")
_HELD_BACK = "raise_error("


def judged(
    plan: Sequence[Node], guards: Collection[str], plan_reads: Collection[str], *, held_back: bool = False
) -> tuple[dict[str, int | None], int | None]:
    """The answers of a query, as `Doubts.margins_us` has them, and the delay of its watermark.

    Answers behind the guard of another shedder, or behind a function that may drop rows, are left out: they are not this
    query's own.

    Parameters
    ----------
    plan
        The analyzed plan of the running query.
    guards
        Texts that only the query's own guards contain.
    plan_reads
        Names under which these observe their plans.
    held_back
        Judge only answers that go through `deliver`: those of windows that were dropped in part come out of others.
    """
    marked = {node for node in plan if any(guard in node.text for guard in guards)}
    last_guards = {node for node in marked if marked & node.below == {node}}
    found: dict[str, list[int | None]] = {}
    left_out: set[str] = set()
    for node in plan:
        answers = {mark: _window_of(rest, node.text) for mark, rest in _MARK.findall(node.text)}
        if answers and _depends_on_others(node, plan_reads):
            left_out.update(answers)
        margins = {
            window: _margin_us(node, _Way(window), last_guards)
            for window in set(answers.values())
            if window is not None and (not held_back or _is_delivered(node, window))
        }
        for mark, window in answers.items():
            found.setdefault(mark, []).append(None if window is None else margins.get(window))
    watermarks = {match[1] for node in plan if (match := _WATERMARK.match(node.text))}
    delays_ms = {int(delay) for node in plan for delay in _DELAY.findall(node.text)}
    one = len(watermarks) == len(delays_ms) == 1
    margins_us = {
        mark: max(margin for margin in margins if margin is not None) if one and None not in margins else None
        for mark, margins in list(found.items())[:_MOST_ANSWERS]
        if mark not in left_out
    }
    return margins_us, delays_ms.pop() * 1000 if one else None


def _window_of(text: str, operator: str) -> str | None:
    """The attribute that holds the window of an answer. Spark 4.0 may call it by its name among the operator's columns."""
    match = _WINDOW.match(text)
    if match is None or match[1]:
        return None if match is None else match[1]
    named = set(re.findall(rf"(?:\[|, ){re.escape(match[2])}#(\d+)-T", operator))
    return named.pop() if len(named) == 1 else None


@dataclass(frozen=True, slots=True)
class _Way:
    """What is known on the way down from an answer.

    Parameters
    ----------
    window
        The attribute that holds the window; `None` below the place where windows are made.
    time
        The attribute that holds the time of which they are made; `None` above that place and below the watermark.
    margin_us
        How long before its window a row may lie that takes part in it.
    is_guarded
        Whether the last guard was passed.
    """

    window: str | None
    time: str | None = None
    margin_us: int = 0
    is_guarded: bool = False

    @property
    def is_watermarked(self) -> bool:
        """Whether the watermark was passed, on the column of which the windows are made."""
        return self.window is None and self.time is None


def _margin_us(node: Node, way: _Way, last_guards: Collection[Node]) -> int | None:
    """The margin of an answer; `None` where it cannot be judged."""
    streams = [child for child in node.children if any(map(ON_STREAM.match, child.texts_below))]
    if node.text.startswith("~Aggregate"):
        below_it = _through_aggregate(node.text, way)
    elif watermark := _WATERMARK.match(node.text):
        below_it = _through_watermark(watermark[2], way)
    elif _ROW_BY_ROW.match(node.text):
        below_it = _through_projection(node.text, way)
    elif node.text.startswith("~Union"):  # its columns have the names of the first part alone
        below_it = way if way.is_watermarked else None
    else:
        one_by_one = way.is_guarded or (node.text.startswith("~Join") and len(streams) == 1)
        below_it = way if one_by_one else None
    if below_it is None:
        return None
    below_it = replace(below_it, is_guarded=below_it.is_guarded or node in last_guards)
    if not streams:  # files of a running query are read by what is also a table's name
        is_source = any(_SOURCE.match(each.text) for each in (node, *node.children))
        return below_it.margin_us if is_source and below_it.is_watermarked and below_it.is_guarded else None
    margins = [_margin_us(child, below_it, last_guards) for child in streams]
    return None if None in margins else max(margin for margin in margins if margin is not None)


def _through_watermark(column: str | None, way: _Way) -> _Way | None:
    """Windows must be made of this very column."""
    return replace(way, time=None) if way.is_watermarked or (way.window is None and way.time == column) else None


def _through_aggregate(text: str, way: _Way) -> _Way | None:
    """Groups hold rows of one window only if the window is one of their keys; behind the guard, at least."""
    if way.window is None:
        return _renamed(text, way) if way.is_guarded else None
    before = _renamed(text, way)
    return before if f"#{before.window}-T" in text.partition("], [")[0] else None


def _through_projection(text: str, way: _Way) -> _Way | None:
    before = _renamed(text, way)
    if way.window is None or before != way:
        return before
    if text.startswith("~Expand"):
        return _through_expand(text, way)
    named = re.search(rf" AS [^#]*#{way.window}-T", text)
    if named is None:
        return way
    made_of = text[: named.start()]
    made_of = made_of[made_of.rfind("named_struct(start, ") :]
    if " AS " in made_of:
        return None
    if window := _TIME_WINDOW.match(made_of):
        return replace(way, window=None, time=window[1])
    session, gap_us = _SESSION.match(made_of), _gap_us(made_of)
    return None if session is None or gap_us is None else replace(way, window=None, time=session[1], margin_us=gap_us)


def _through_expand(text: str, way: _Way) -> _Way | None:
    found = lists(text)
    if len(found) != 2:
        return None
    copies, outputs = found
    place = next((place for place, output in enumerate(outputs) if f"#{way.window}-T" in output), None)
    if place is None:
        return way
    made = [split(copy[1:-1])[place:] for copy in copies if copy.startswith("[")]
    times = {match[1] if each and (match := _TIME_WINDOW.match(each[0])) else None for each in made}
    return replace(way, window=None, time=times.pop()) if len(times) == 1 and None not in times else None


def _renamed(text: str, way: _Way) -> _Way:
    """The way under the name that its attribute has before an operator. What is computed gets no such name."""
    attribute = way.time if way.window is None else way.window
    match = re.search(rf"(?:\[|, )[^#,]*#(\d+)(?:-T\d+ms)? AS [^#]*#{attribute}-T", text)
    if match is None:
        return way
    return replace(way, time=match[1]) if way.window is None else replace(way, window=match[1])


def _gap_us(session: str) -> int | None:
    """The gap that ends a session, which reaches as far back; `None` where each row has its own."""
    match = _GAP.search(session)
    try:
        return None if match is None else microseconds(match[1])
    except InvalidSetting:
        return None


def _depends_on_others(answer: Node, plan_reads: Collection[str]) -> bool:
    texts = answer.texts_below
    reads = {name for text in texts for name in _PLAN_READ.findall(text)}
    return not reads <= set(plan_reads) or any(_FUNCTION.match(text) for text in texts)


def _is_delivered(answer: Node, window: str) -> bool:
    """Whether a filter above an answer holds it back where its window was dropped."""
    while len(answer.parents) == 1:
        (answer,) = answer.parents
        if answer.text.startswith("~Filter") and _HELD_BACK in answer.text and f"#{window}-T" in answer.text:
            return True
    return False
