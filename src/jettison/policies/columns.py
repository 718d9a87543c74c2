"""Columns as users name them: a policy passes them on, and only a backend looks inside.

Any column of a backend's own will do beside a name or SQL, such as a `Column` of Spark: policies import no backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from jettison.errors import refuse

ColumnOrSql: TypeAlias = Any
"""Name of a column, SQL over the row, or a backend's own column."""


def listed(columns: ColumnOrSql | Sequence[ColumnOrSql], argument: str) -> tuple[ColumnOrSql, ...]:
    """One column or several, as a tuple; refused where there is none.

    >>> listed("route", "group"), listed(["city", "hour"], "group")
    (('route',), ('city', 'hour'))
    """
    found = tuple(columns) if isinstance(columns, list | tuple) else (columns,)
    if not found or any(one is None or (isinstance(one, str) and not one) for one in found):
        refuse(f"`{argument}` must name a column", repr(columns), hint="pass the column, or SQL, that the query uses")
    return found
