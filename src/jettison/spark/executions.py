"""The SQL executions of one query run, as the driver's REST interface shows them (the documented `/api/v1`).

The interface lists executions by position among those that Spark still remembers, oldest first, and builds the plan
graph of each one listed. So nothing is listed that has been seen before: the reader keeps its place in the list, and
finds it again by bisection when Spark has forgotten executions before it.
"""

from __future__ import annotations

import bisect
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jettison.errors import Unsupported, refuse

_PAGE = 16
_REMEMBERED = 256
# The first request makes the driver load its web framework, which took 2 s on a quiet machine of two cores.
_TIMEOUT_S = 15.0
# Spark forgets old executions while it lists them, does not find their plans, and says that there is no such application.
_NOT_FOUND, _TRIES, _TRY_AGAIN_S = 404, 5, 0.1
# The driver is this process's own: a proxy for the world outside is not asked for it.
_opened = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class Executions:
    """Hands out each execution of a query run once, after it has ended.

    The execution of a micro-batch is known by its description, which Spark writes again for every batch. Those that the
    sink starts within it, as `foreachBatch` does, name it as their root, whatever description the user gave them.

    Parameters
    ----------
    ui_url
        Address of the driver's web interface, `SparkContext.uiWebUrl`.
    application_id
        `SparkContext.applicationId`.
    run_id
        `StreamingQuery.runId`.
    """

    def __init__(self, ui_url: str, application_id: str, run_id: str) -> None:
        self._url = f"{ui_url}/api/v1/applications/{application_id}"
        self._ours = re.compile(rf"runId = {re.escape(run_id)}\nbatch = (\d+)\s*$")
        self._place: int | None = None
        self._done_id = -1  # executions up to this one need not be looked at again
        self._read: set[int] = set()  # later ones that were read already
        self._batch_by_root: dict[int, int] = {}
        self._next_batch = 0  # nobody asks for those before it any more

    def ended(self, first_batch: int = 0) -> Iterator[tuple[int, bool, dict[str, Any]]]:
        """Executions that have ended since the last time: their batch, whether each is the batch's own, and itself.

        Those of batches before `first_batch` are passed over: nobody needs their counts.
        """
        if first_batch > self._next_batch + 1:
            self._place = None  # what was passed over is not listed: the place is found again, from the end
            self._read.clear()
        self._next_batch = max(self._next_batch, first_batch)
        all_done = True
        for execution in self._later():
            number, batch = execution["id"], self._batch_of(execution)
            if number not in self._read and execution["status"] != "RUNNING":
                if batch is not None and batch >= first_batch:
                    details = self._get(f"/sql/{number}?details=true&planDescription=false")
                    yield batch, number in self._batch_by_root, details
                self._read.add(number)
            all_done = all_done and number in self._read
            if all_done:
                self._place = (self._place or 0) + 1
                self._done_id = number
                self._read.discard(number)

    def trouble(self) -> str | None:
        """In words, why no row counts can be had from this interface; `None` where they can."""
        try:
            some = self._fetched(f"/sql?details=true&planDescription=false&offset=0&length={_PAGE}")
            nodes = [node for execution in some for node in execution["nodes"]]
        except (OSError, ValueError) as error:
            return f"{error} at {self._url}"
        except (KeyError, TypeError):
            return f"an answer that does not list executions at {self._url}"
        return "its plans have no descriptions" if nodes and not any("desc" in node for node in nodes) else None

    def lost_tasks(self, execution: Mapping[str, Any]) -> bool:
        """Whether tasks of an execution failed or were stopped, so that others were run in their place."""
        jobs = [self._get(f"/jobs/{job}") for job in execution.get("successJobIds", ())]
        return any(job["numFailedTasks"] or job["numKilledTasks"] for job in jobs)

    def _batch_of(self, execution: Mapping[str, Any]) -> int | None:
        """Which of the run's micro-batches an execution belongs to; `None` if it is none of ours."""
        number = execution["id"]
        root = execution.get("rootExecutionId", number)
        if root == number and (match := self._ours.search(execution.get("description") or "")):
            self._batch_by_root[number] = int(match[1])
            for old in sorted(self._batch_by_root)[:-_REMEMBERED]:
                del self._batch_by_root[old]
        return self._batch_by_root.get(root)

    def _later(self) -> Iterator[dict[str, Any]]:
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
        """Position of the first execution of interest, found from the end of the list: what came before is not ours."""
        place = self._bisect(lambda execution: False)
        while place > 0:
            start = max(0, place - _PAGE)
            page = self._list(start, place - start)
            place = start
            found = [match for one in page if (match := self._ours.search(one.get("description") or ""))]
            if not found or int(found[0][1]) < self._next_batch:
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

    def _list(self, place: int, length: int) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self._get(
            f"/sql?details=false&planDescription=false&offset={place}&length={length}"
        )
        return listed

    def _get(self, path: str) -> Any:
        try:
            return self._fetched(path)
        except (OSError, ValueError) as error:
            expected, hint = "row counts from the driver's web interface", "pass accounting='observe' if it is closed"
            refuse(expected, f"{error} at {self._url}", hint=hint, error=Unsupported, cause=error)

    def _fetched(self, path: str) -> Any:
        for left in reversed(range(_TRIES)):
            try:
                with _opened(self._url + path, timeout=_TIMEOUT_S) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code != _NOT_FOUND or not left:
                    raise
                time.sleep(_TRY_AGAIN_S)
