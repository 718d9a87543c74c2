"""Exact row counts of a micro-batch that cost nothing on the row path.

Spark counts the rows that leave every filter anyway. Those counts are read from the driver's REST interface (the
documented `/api/v1/applications/<app>/sql`), where the guard's filters are recognised by their marks. `observe`
would give the same counts, but breaks whole-stage code generation and costs some tens of nanoseconds a row.
"""

from __future__ import annotations

import bisect
import functools
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jettison.batch_report import BatchReport
from jettison.errors import Unsupported, explain
from jettison.pilot import ExactCounts
from jettison.spark.drop_point import DropPoint

_ROWS_OUT = "number of output rows"
_LOOK_AGAIN_S = 0.5
_PAGE = 16
_REMEMBERED_BATCHES = 64
# The first request makes the driver load its web framework, which took 2 s on a quiet machine of two cores.
_TIMEOUT_S = 30.0


class FilterCounts:
    """Reads how many rows left the marked filters of the micro-batches of one query run.

    The interface lists executions by position among those that Spark still remembers, oldest first, and builds the
    plan graph of each one listed. So this never lists what it has seen before: it keeps its place in the list, and
    finds it again by bisection when Spark has forgotten executions before it.

    Parameters
    ----------
    ui_url
        Address of the driver's web interface, `SparkContext.uiWebUrl`.
    application_id
        `SparkContext.applicationId`.
    run_id
        `StreamingQuery.runId`.
    marks
        Texts that tell the filters.
    """

    def __init__(self, ui_url: str, application_id: str, run_id: str, marks: Iterable[str]) -> None:
        self._url = f"{ui_url}/api/v1/applications/{application_id}/sql"
        self._ours = re.compile(rf"runId = {re.escape(run_id)}\nbatch = (\d+)\s*$")
        self._marks = frozenset(marks)
        self._place: int | None = None
        self._done_id = -1  # executions up to this one need not be looked at again
        self._read: set[int] = set()  # later ones that were read already
        self._counts: dict[int, dict[str, int]] = {}

    def of_batch(self, batch_id: int, *, patience_s: float = 5.0) -> dict[str, int]:
        """Rows out of the filters in one micro-batch, by mark.

        The interface lags a little behind the query, so this asks again until the counts are there. Raises
        `Unsupported` when they are not there in time.
        """
        deadline = time.monotonic() + patience_s
        while self._counts.get(batch_id, {}).keys() != self._marks:
            self._look()
            found = self._counts.get(batch_id, {})
            if found.keys() == self._marks:
                break
            if time.monotonic() > deadline:
                raise Unsupported(
                    explain(
                        f"row counts of batch {batch_id} within {patience_s:g} s",
                        f"{len(found)} of {len(self._marks)} from the driver's web interface",
                        hint="pass accounting='observe' if that interface is not to be had",
                    )
                )
            time.sleep(_LOOK_AGAIN_S)
        return self._counts[batch_id]

    def _look(self) -> None:
        """Read the executions that have ended since the last look."""
        all_done = True
        for execution in self._later_executions():
            if execution["id"] not in self._read and execution["status"] != "RUNNING":
                self._read.add(execution["id"])
                if (batch := self._batch_of(execution)) is not None and execution["status"] == "COMPLETED":
                    self._add_counts(batch, self._get(f"/{execution['id']}?details=true&planDescription=false"))
            all_done = all_done and execution["id"] in self._read
            if all_done:
                self._place = (self._place or 0) + 1
                self._done_id = execution["id"]
                self._read.discard(execution["id"])

    def _later_executions(self) -> Iterator[dict[str, Any]]:
        place = self._find_place()
        while page := self._list(place, _PAGE):
            yield from page
            if len(page) < _PAGE:
                return
            place += len(page)

    def _find_place(self) -> int:
        """Position of the first execution that is not done with."""
        if self._place is None:
            self._place = self._first_place()
        elif self._place > 0:
            before = self._list(self._place - 1, 1)
            if not before or before[0]["id"] != self._done_id:  # Spark has forgotten executions before our place
                self._place = self._bisect(lambda execution: execution["id"] > self._done_id)
        return self._place

    def _first_place(self) -> int:
        """Position of the run's first execution, found from the end of the list: what came before is not ours."""
        place = self._bisect(lambda execution: False)
        while place > 0:
            start = max(0, place - _PAGE)
            ours = [self._batch_of(execution) is not None for execution in self._list(start, place - start)]
            place = start
            if not any(ours):
                break
        before = self._list(place - 1, 1) if place else []
        self._done_id = before[0]["id"] if before else -1
        return place

    def _bisect(self, is_later: Callable[[dict[str, Any]], bool]) -> int:
        """The first position from which on executions are later, or the end of the list."""

        def beyond(place: int) -> bool:
            found = self._list(place, 1)
            return not found or is_later(found[0])

        end = 1
        while not beyond(end):
            end *= 2
        return bisect.bisect_left(range(end), True, key=beyond)

    def _batch_of(self, execution: Mapping[str, Any]) -> int | None:
        """Which of the run's micro-batches an execution is; `None` if it is none of them."""
        match = self._ours.search(execution["description"])
        return None if match is None else int(match[1])

    def _add_counts(self, batch_id: int, execution: Mapping[str, Any]) -> None:
        counts = self._counts.setdefault(batch_id, {})
        for mark, rows in _marked_counts(execution, self._marks):
            counts[mark] = counts.get(mark, 0) + rows
        for old in sorted(self._counts)[:-_REMEMBERED_BATCHES]:
            del self._counts[old]

    def _list(self, place: int, length: int) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self._get(f"?details=false&planDescription=false&offset={place}&length={length}")
        return listed

    def _get(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(self._url + path, timeout=_TIMEOUT_S) as response:
                return json.load(response)
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise Unsupported(
                explain(
                    "row counts from the driver's web interface",
                    f"{error} at {self._url}",
                    hint="pass accounting='observe' if that interface is closed",
                )
            ) from error


def exact_counts(ui_url: str, application_id: str, points: Sequence[DropPoint]) -> ExactCounts:
    """Rows seen and kept at each of the drop points in a batch, by the name of the point."""
    marks = [mark for point in points for mark in (point.seen_mark, point.kept_mark)]
    counts_of_run = functools.cache(lambda run_id: FilterCounts(ui_url, application_id, run_id, marks))

    def of(report: BatchReport) -> dict[str, tuple[int, int]]:
        found = counts_of_run(report.run_id).of_batch(report.batch_id)
        return {point.name: (found[point.seen_mark], found[point.kept_mark]) for point in points}

    return of


def _marked_counts(execution: Mapping[str, Any], marks: Collection[str]) -> Iterable[tuple[str, int]]:
    for node in execution["nodes"]:
        for mark in marks:
            if node["nodeName"] == "Filter" and mark in node["desc"]:
                for metric in node["metrics"]:
                    if metric["name"] == _ROWS_OUT:
                        yield mark, int("".join(filter(str.isdigit, metric["value"])))
