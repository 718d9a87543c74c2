"""Exact row counts of a micro-batch that cost nothing on the row path.

Spark counts the rows that leave every filter anyway. Those counts are read from the driver's REST interface (the
documented `/api/v1/applications/<app>/sql`), where the guard's filters are recognised by their marks. `observe`
would give the same counts, but breaks whole-stage code generation and costs some tens of nanoseconds a row.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any

from jettison.errors import Unsupported, explain

_ROWS_OUT = "number of output rows"
_MOST_EXECUTIONS = 1_000_000
_LOOK_AGAIN_S = 0.2
# The first request makes the driver load its web framework, which took 2 s on a quiet machine of two cores.
_TIMEOUT_S = 30.0


class FilterCounts:
    """Reads how many rows left the marked filters of one micro-batch.

    Parameters
    ----------
    ui_url
        Address of the driver's web interface, `SparkContext.uiWebUrl`.
    application_id
        `SparkContext.applicationId`.
    """

    def __init__(self, ui_url: str, application_id: str) -> None:
        self._url = f"{ui_url}/api/v1/applications/{application_id}/sql"

    def of_batch(self, run_id: str, batch_id: int, marks: Iterable[str], *, patience_s: float = 5.0) -> dict[str, int]:
        """Rows out of the filters that carry `marks`, in one micro-batch of the query run `run_id`.

        The interface lags a little behind the query, so this asks again until the counts are there. Raises
        `Unsupported` when they are not there in time.
        """
        wanted = set(marks)
        deadline = time.monotonic() + patience_s
        while True:
            counts = self._look(f"runId = {run_id}\nbatch = {batch_id}", wanted)
            if counts.keys() == wanted:
                return counts
            if time.monotonic() > deadline:
                raise Unsupported(
                    explain(
                        f"row counts of batch {batch_id} within {patience_s:g} s",
                        f"{len(counts)} of {len(wanted)} from the driver's web interface",
                        hint="pass accounting='observe' if that interface is not to be had",
                    )
                )
            time.sleep(_LOOK_AGAIN_S)

    def _look(self, description: str, marks: set[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for execution in self._executions(description):
            for mark, rows in _marked_counts(execution, marks):
                counts[mark] = counts.get(mark, 0) + rows
        return counts

    def _executions(self, description: str) -> list[dict[str, Any]]:
        # Not by offset: that is a position among the executions that Spark still remembers, and it forgets old ones.
        listing = self._get(f"?details=false&planDescription=false&offset=0&length={_MOST_EXECUTIONS}")
        return [
            self._get(f"/{execution['id']}?details=true&planDescription=false")
            for execution in listing
            if execution["status"] == "COMPLETED" and execution["description"].strip().endswith(description)
        ]

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


def _marked_counts(execution: Mapping[str, Any], marks: set[str]) -> Iterable[tuple[str, int]]:
    for node in execution["nodes"]:
        for mark in marks:
            if node["nodeName"] == "Filter" and mark in node["desc"]:
                for metric in node["metrics"]:
                    if metric["name"] == _ROWS_OUT:
                        yield mark, int("".join(filter(str.isdigit, metric["value"])))
