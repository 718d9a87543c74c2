"""The text of a running query's plan, which Spark's public interface only prints."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from jettison.spark.dependence import multipliers, plan_of_text
from jettison.spark.drop_point import DropPoint


def dependent_rows(query: StreamingQuery, point: DropPoint) -> list[str] | None:
    """What may make several rows of one behind `point`; `None` where the last batch does not tell, as without rows."""
    mark = point.metric if point.observed else point.kept_mark
    return multipliers(plan_of_text(explained(query)), mark, point.id)


def explained(query: StreamingQuery) -> str:
    """What `query.explain()` prints, without printing it."""
    with contextlib.redirect_stdout(_Printed(sys.stdout)) as printed:
        query.explain()
    return printed.text.getvalue()


class _Printed(io.TextIOBase):
    """Takes what this thread prints; what other threads print meanwhile goes where it always went."""

    def __init__(self, usual: Any) -> None:
        self.text = io.StringIO()
        self._usual = usual
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        """Keep a text, or pass it on."""
        mine = threading.get_ident() == self._thread
        return self.text.write(text) if mine else int(self._usual.write(text))
