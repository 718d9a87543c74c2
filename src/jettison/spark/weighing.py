"""Whether an aggregate looks at `jt_weight`: one that does not gives counts and sums that are too small."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable

from pyspark.sql import DataFrame

from jettison.errors import InvalidSetting, explain
from jettison.spark.guard import WEIGHT

_EXPRESSION_ID = re.compile(r"#\d+L?")
_AGGREGATE = re.compile(r"[\s:+|~-]*Aggregate ")


def check_weighed(function: Callable[..., DataFrame], rows: DataFrame, *, where: str) -> None:
    """Raise `InvalidSetting` if a function aggregates `rows` as it would without their weights; runs no query.

    A function that cannot do without the column, or aggregates something else when it is there, uses it.
    """
    try:
        unweighed = _aggregates(function(rows.drop(WEIGHT)))
    except Exception:
        return
    if unweighed and unweighed == _aggregates(function(rows)):
        hint = "use jt.count, jt.sum and the like; or leave out `weighted`, then nothing is dropped before it"
        raise InvalidSetting(explain(f"an aggregate that uses `{WEIGHT}`", "one that does not", where=where, hint=hint))


def _aggregates(rows: DataFrame) -> list[str]:
    """The aggregates of a query as it was written, in words."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        rows.explain(extended=True)
    analyzed = text.getvalue().split("== Optimized Logical Plan ==")[0].split("== Analyzed Logical Plan ==")[-1]
    return [_EXPRESSION_ID.sub("", line).strip(" :+|~-") for line in analyzed.splitlines() if _AGGREGATE.match(line)]
