"""Row counts of a micro-batch that cost nothing on the row path, and whether they are exact.

Spark counts the rows that leave every filter anyway. Those counts are read from the driver's REST interface, where the
guard's filters are recognised by their marks. `observe` would give the same counts, but breaks whole-stage code
generation and costs some tens of nanoseconds a row.

A sink such as `foreachBatch` may run a batch's plan any number of times, whole or in part. Counts are called exact only
where it is certain that they are those of the batch, once.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from jettison.core.batch_report import BatchReport, Counted
from jettison.core.redact import redacted
from jettison.core.storage import Folder
from jettison.errors import Unsupported, refuse
from jettison.spark import validate
from jettison.spark.drop_point import DropPoint
from jettison.spark.executions import Executions

log = logging.getLogger("jettison")

_NOTE = "accounting.json"
_ROWS_OUT = "number of output rows"
_CACHE = "InMemoryTableScan"
_WRITES_ONCE = "WriteToDataSourceV2"
# A limit stops what is below it, unless something stands in between that takes all rows before it gives any.
_LIMITS = ("CollectLimit", "CollectTail", "LocalLimit", "GlobalLimit", "StreamingLocalLimit", "StreamingGlobalLimit")
_TAKES_ALL = ("Exchange", "HashAggregate", "SortAggregate", "ObjectHashAggregate", "Sort", "TakeOrderedAndProject")
_LOOK_AGAIN_S = 0.5
_PATIENCE_S, _LITTLE_PATIENCE_S = 5.0, 1.0
_REMEMBERED_BATCHES = 64
_FAILURES = 3
_DESCRIBES_FILTERS = (4, 3)

Mark = tuple[str, str]
"""Texts that tell the filter of rows seen at a drop point, and that of rows kept."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One execution of the plan of a batch."""

    rows: Mapping[str, Sequence[int]]  # by mark, for each filter that carries it
    cut_short: frozenset[str]  # marks of filters that did not get all rows
    cached: frozenset[str]  # marks of filters below a cache: rows may have come from there, past them
    failed: bool  # all of it, or a task: what that had put into a cache is counted nowhere
    own: bool  # the batch's own execution, and not one that the sink started
    written_once: bool = False  # by Spark itself, which hands the rows to the sink


class FilterCounts:
    """Reads how many rows left the marked filters of the micro-batches of one query run."""

    def __init__(self, executions: Executions, marks: Iterable[Mark]) -> None:
        self._executions = executions
        self._marks = [text for mark in marks for text in mark]
        self._runs: dict[int, list[_Run]] = {}
        self._ended: set[int] = set()

    def of_batch(
        self, batch_id: int, mark: Mark, *, any_runs: bool, input_rows: int = 0, patience_s: float = _PATIENCE_S
    ) -> Counted | None:
        """Rows seen and kept in one micro-batch, or `None` where Spark counted none.

        `any_runs` says that the sink may have run the batch's plan more or less than once, `input_rows` how many rows
        Spark itself says that the batch took. The interface lags a little
        behind the query, so this asks again until the batch is there. Raises `Unsupported` when it is not there in time.
        """
        deadline = time.monotonic() + patience_s
        while batch_id not in self._ended:
            self._look(batch_id)
            if batch_id in self._ended:
                break
            if time.monotonic() > deadline:
                refuse(
                    f"row counts of batch {batch_id} within {patience_s:g} s",
                    "none from the driver's web interface",
                    hint="pass accounting='observe' if that interface is not to be had",
                    error=Unsupported,
                )
            time.sleep(_LOOK_AGAIN_S)
        return decided(self._runs.get(batch_id, []), mark, any_runs=any_runs, input_rows=input_rows)

    def _look(self, first_batch: int) -> None:
        for batch, own, execution in self._executions.ended(first_batch):
            run = _run_of(execution, self._marks, own=own)
            if run.cached and not run.failed:
                run = replace(run, failed=self._executions.lost_tasks(execution))
            self._runs.setdefault(batch, []).append(run)
            if own:  # those that the sink started have ended before it
                self._ended.add(batch)
        for old in sorted(self._ended)[:-_REMEMBERED_BATCHES]:
            self._ended.discard(old)
            self._runs.pop(old, None)


def decided(runs: Sequence[_Run], mark: Mark, *, any_runs: bool, input_rows: int = 0) -> Counted | None:
    """What the executions of a batch's plan say together; `input_rows` is what Spark says of the batch as a whole."""
    found = [(run, one) for run in runs if (one := _one_count(run, mark, input_rows, any_runs=any_runs)) is not None]
    # Rows that come from a cache pass no filter: such an execution shows 0.
    found = [(run, one) for run, one in found if one.seen] or found
    if not found:
        return None
    whole = {one for run, one in found if one.exact and not run.failed and not run.cached.intersection(mark)}
    if len(whole) == 1:
        return whole.pop()  # every execution that took all rows says the same
    largest = max((one for _, one in found), key=lambda one: one.seen)
    # The only one that filled a cache took all rows, if none had come there by another that failed.
    failed = any(run.failed and mark[0] in run.rows for run in runs)
    filled_cache = len(found) == 1 and not failed and 0 < largest.seen == input_rows
    return largest._replace(exact=largest.exact and filled_cache)


def _one_count(run: _Run, mark: Mark, input_rows: int, *, any_runs: bool) -> Counted | None:
    """What one execution says; where it read the source several times, rows count once."""
    any_runs = any_runs and not run.written_once
    seen, kept = (run.rows.get(text, ()) for text in mark)
    if not seen or not kept:
        # Spark shows no count of a filter that no task has run. Where it says itself that there was no row, that is 0.
        ran_whole = not (run.failed or run.cut_short.intersection(mark) or run.cached.intersection(mark))
        no_rows = input_rows == 0 and not (seen or kept) and run.rows.keys() >= set(mark)
        return Counted(0, 0) if no_rows and ran_whole and not (any_runs and run.own) else None
    alike = len(set(seen)) == len(set(kept)) == 1
    # In a sink's own executions the filters of all branches share their counts; and RDDs of the batch count as the
    # batch's own execution, however often and far they are read.
    shared = any_runs and (run.own or len(seen) > 1)
    # Shared, each shows what all of them took together, which is then all that Spark says it took.
    times = len(seen) if any_runs and alike and max(seen) >= input_rows else 1
    exact = alike and not shared and not run.cut_short.intersection(mark)
    return Counted(max(seen) // times, min(max(kept), max(seen)) // times, exact)


def _run_of(execution: Mapping[str, Any], marks: Sequence[str], *, own: bool) -> _Run:
    nodes = {node["nodeId"]: node for node in execution["nodes"]}
    above = {edge["fromId"]: edge["toId"] for edge in execution.get("edges", ())}
    rows: dict[str, list[int]] = {}
    cut_short, cached = set(), set()
    for number, node in nodes.items():
        for mark in marks:
            if node["nodeName"] == "Filter" and mark in node.get("desc", ""):
                rows.setdefault(mark, []).extend(_rows_out(node))
                later = list(_names_above(number, nodes, above))
                if _is_cut_short(later):
                    cut_short.add(mark)
                if any(name.startswith(_CACHE) for name in later):
                    cached.add(mark)
    failed = execution["status"] != "COMPLETED"
    written_once = any(node["nodeName"] == _WRITES_ONCE for node in nodes.values())
    return _Run(rows, frozenset(cut_short), frozenset(cached), failed, own, written_once)


def _rows_out(node: Mapping[str, Any]) -> list[int]:
    values = [metric["value"] for metric in node["metrics"] if metric["name"] == _ROWS_OUT]
    return [int("".join(filter(str.isdigit, value))) for value in values]


def _names_above(number: int, nodes: Mapping[int, Mapping[str, Any]], above: Mapping[int, int]) -> Iterator[str]:
    """The operators that the rows of a node pass, one after the other."""
    for _ in nodes:
        number = above.get(number, -1)
        if number not in nodes:
            return
        yield nodes[number]["nodeName"]


def _is_cut_short(later: Iterable[str]) -> bool:
    """Whether a limit among the later operators may have stopped a filter."""
    for name in later:
        if name.startswith((*_LIMITS, *_TAKES_ALL)):
            return name.startswith(_LIMITS)
    return False


class MetricCounts:
    """Rows seen and kept at drop points, for a pilot's books; gives up an interface that fails three times in a row.

    From then on nothing is asked any more, and the books' own expectations stand. `on_lost` is told why, once.
    """

    def __init__(
        self, ui_url: str, application_id: str, points: Sequence[DropPoint], on_lost: Callable[[str], None]
    ) -> None:
        self._where = (ui_url, application_id)
        self._marks = {point.name: (point.seen_mark, point.kept_mark) for point in points}
        self._on_lost = on_lost
        self._of_run: dict[str, FilterCounts] = {}
        self._failures = 0

    def __call__(self, report: BatchReport) -> dict[str, Counted]:
        """The counts of one batch by drop point, where they are to be had."""
        if self._failures >= _FAILURES:
            return {}
        try:
            found = self._counts(report)
        except Exception as error:
            self._failures += 1
            if self._failures < _FAILURES:
                raise
            reason = error.__cause__ or error  # in its own words, without a hint that is not for this place
            self._on_lost(str(reason))
            refuse(
                "row counts from the driver's web interface",
                f"{_FAILURES} failures in a row, the last of them: {reason}",
                hint="counts are estimates until the query is started again; then they are taken by `observe`",
                error=Unsupported,
                cause=error,
            )
        self._failures = 0
        return found

    def _counts(self, report: BatchReport) -> dict[str, Counted]:
        run = report.run_id
        if run not in self._of_run:
            self._of_run[run] = FilterCounts(Executions(*self._where, run), self._marks.values())
        # An interface that has just failed is not waited for as long again.
        patience_s = _PATIENCE_S if not self._failures else _LITTLE_PATIENCE_S
        found = {
            name: self._of_run[run].of_batch(
                report.batch_id, mark, any_runs=report.any_runs, input_rows=report.input_rows, patience_s=patience_s
            )
            for name, mark in self._marks.items()
        }
        return {name: counted for name, counted in found.items() if counted is not None}


def by_metrics(spark: SparkSession, folder: Folder, *, required: bool) -> bool:
    """Whether counts can be had from the driver's web interface; raises where they must be and cannot.

    Where they failed in the run before, a note in `folder` says so, and holds until metrics are asked for by name.
    """
    url = validate.web_interface(spark)
    if url is None:
        trouble: str | None = "a session without one (spark.ui.enabled=false, or Spark Connect)"
    elif validate.version(spark) < _DESCRIBES_FILTERS:  # nothing is tried: its list may still be empty
        trouble = f"that of Spark {spark.version} does not say which filter is which; since 4.3 it does"
    else:
        trouble = Executions(url, spark.sparkContext.applicationId, "").trouble()
    if required:
        if trouble is not None:
            expected, hint = "accounting='metrics' needs the driver's web interface", "pass accounting='observe'"
            refuse(expected, trouble, hint=hint, error=Unsupported)
        folder.delete(_NOTE)
        return True
    if url is None:
        return False  # nothing is wrong: there is none
    before = folder.read(_NOTE)
    if trouble is None and before is not None:
        trouble = f"it failed in an earlier run ({_reason(before)}); pass accounting='metrics' to try it again"
    if trouble is not None:
        log.warning(
            "jettison: rows are counted by `observe`, because the driver's web interface is no help: %s", trouble
        )
    return trouble is None


def note_trouble(folder: Folder, reason: str) -> None:
    """Have the next start count by `observe`."""
    folder.replace(_NOTE, json.dumps({"at_s": time.time(), "because": redacted(reason)}).encode())


def _reason(note: bytes) -> str:
    try:
        return str(json.loads(note)["because"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "unknown"
