"""Companions of this application that are open: which of them a query's plan shows."""

from __future__ import annotations

from pyspark.sql import SparkSession

from jettison.runtime.companion import Companion
from jettison.spark import doubts

_open: list[Companion] = []


def opened(spark: SparkSession, companion: Companion) -> None:
    """From now on rows may go; called once, before any query with the companion starts."""
    if not companion.keeps_answers_exact:
        doubts.unplanned(spark)
    _open.append(companion)


def closed(companion: Companion) -> None:
    """No query with the companion runs any more."""
    _open[:] = [other for other in _open if other is not companion]


def leave_doubt(plan: str) -> bool:
    """Whether the text of a query's plan shows a companion because of which no answer can be called exact."""
    return any(one.operator in plan and not one.keeps_answers_exact for one in _open)
