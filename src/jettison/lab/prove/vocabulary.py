"""One query in three vocabularies: Spark's own aggregates, weighted ones, and Jettison's with bounds.

So that a workload is written once, and what a rival is judged by is the query that plain Spark runs.
"""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F

import jettison as jt

WEIGHT = "jt_weight"
"""Column of the weights: Jettison's name, and that of the rivals that weigh rows too."""


class Vocabulary(Protocol):
    """What a query may say of its rows."""

    @property
    def carried(self) -> list[str]:
        """Columns that parsing must carry on."""

    def count(self, *, window: str | None = None) -> Column: ...
    def sum(self, column: str, *, window: str | None = None) -> Column: ...
    def avg(self, column: str, *, window: str | None = None) -> Column: ...

    def value(self, answer: str) -> Column:
        """The number in an answer."""


class Plain:
    """Every row counts as one."""

    carried: list[str] = []  # noqa: RUF012  no one changes it

    def count(self, *, window: str | None = None) -> Column:
        return F.count(F.lit(1)).cast("double")

    def sum(self, column: str, *, window: str | None = None) -> Column:
        return F.sum(column).cast("double")

    def avg(self, column: str, *, window: str | None = None) -> Column:
        return F.avg(column)

    def value(self, answer: str) -> Column:
        return F.col(answer)


class Weighted(Plain):
    """A kept row stands for as many as it weighs; no bounds."""

    carried: list[str] = [WEIGHT]  # noqa: RUF012

    def count(self, *, window: str | None = None) -> Column:
        return F.sum(WEIGHT)

    def sum(self, column: str, *, window: str | None = None) -> Column:
        return F.sum(F.col(WEIGHT) * F.col(column))

    def avg(self, column: str, *, window: str | None = None) -> Column:
        return F.try_divide(F.sum(F.col(WEIGHT) * F.col(column)), F.sum(WEIGHT))


class Bounded(Weighted):
    """The same with bounds and a status: an answer is a struct."""

    def count(self, *, window: str | None = None) -> Column:
        return jt.count(window=window)

    def sum(self, column: str, *, window: str | None = None) -> Column:
        return jt.sum(column, window=window)

    def avg(self, column: str, *, window: str | None = None) -> Column:
        return jt.avg(column, window=window)

    def value(self, answer: str) -> Column:
        return F.col(answer)["value"]
