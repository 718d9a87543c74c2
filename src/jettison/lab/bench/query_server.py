"""A continual-query server: every row matched with thousands of standing queries natively.

The queries become a small table of grid cells, each with the boxes that meet it. Rows are joined with the boxes of
their cell by a broadcast hash join and then compared with the boxes' exact bounds: no Python, and no loop over queries.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.policies.regions.queries import RangeQueries
from jettison.source.space import ABOVE, BELOW, HIGHEST, LOWEST, Attribute
from jettison.spark.coordinates import check_attributes, coordinate, is_missing

QUERY = "jt_query"
_CELL, _PLACE = "jt_cell", "jt_place"
_MOST_SHIFT = (ABOVE - 1).bit_length()
# Entries of the table per box: finer cells compare rows with fewer boxes, but boxes then lie in more cells.
_MOST_ENTRIES_PER_BOX = 16


def matched(rows: DataFrame, queries: RangeQueries) -> DataFrame:
    """Each row once for every query that it satisfies, with the query's number as the column `jt_query`.

    Works on streams and on batches. A row that satisfies no query does not appear. Missing values are as in SQL: they
    satisfy no comparison, and do not matter to queries that do not mention their attribute.

    Parameters
    ----------
    rows
        Must have a column for every attribute of the queries.
    queries
        The standing queries.
    """
    check_attributes(rows, queries.space, where="the queries")
    grid = _Grid(queries)
    table = F.broadcast(rows.sparkSession.createDataFrame(grid.table()))
    # Columns of their own, so that they are computed once a row and not once for every box of its cell.
    places = {f"{_PLACE}{axis}": _comparable(rows, one) for axis, one in enumerate(queries.space.attributes)}
    joined = rows.withColumns(places).withColumn(_CELL, grid.cell()).join(table, _CELL)
    for axis in range(queries.space.dimensions):
        place = F.col(f"{_PLACE}{axis}")
        joined = joined.where((place >= F.col(f"jt_low{axis}")) & (place < F.col(f"jt_high{axis}")))
    bounds = [f"jt_{side}{axis}" for side in ("low", "high") for axis in range(queries.space.dimensions)]
    return joined.drop(_CELL, *places, *bounds)


class _Grid:
    """A grid over the two most selective attributes, just fine enough."""

    def __init__(self, queries: RangeQueries) -> None:
        self._queries = queries
        self._first = queries.space.codes(queries.low).astype(np.int64)
        self._last = queries.space.codes(queries.high).astype(np.int64)
        widths = (self._last - self._first).mean(axis=0) if len(self._first) else np.zeros(queries.space.dimensions)
        self._axes = sorted(np.argsort(widths, kind="stable")[:2].tolist())
        self._shift = _MOST_SHIFT
        while self._shift > 0 and self._entries(self._shift - 1) <= _MOST_ENTRIES_PER_BOX * len(self._first):
            self._shift -= 1
        self._columns = (ABOVE >> self._shift) + 1

    def cell(self) -> Column:
        """Number of the cell that a row lies in, from its places along the attributes."""
        attributes = self._queries.space.attributes
        codes = [_code(F.col(f"{_PLACE}{axis}"), attributes[axis]) for axis in self._axes]
        places = [F.shiftright(one, self._shift) for one in codes]
        cell = places[0].cast("bigint")
        return cell * self._columns + places[1] if len(places) > 1 else cell

    def table(self) -> pa.Table:
        """Boxes by cell: cell, query and exact bounds."""
        box, cell = self._boxes_of_cells()
        queries = self._queries
        columns = {_CELL: cell, QUERY: queries.owner[box].astype(np.int32)}
        for axis in range(queries.space.dimensions):
            columns[f"jt_low{axis}"] = queries.low[box, axis]
            columns[f"jt_high{axis}"] = queries.high[box, axis]
        return pa.table(columns)

    def _entries(self, shift: int) -> int:
        spans = (self._last[:, self._axes] >> shift) - (self._first[:, self._axes] >> shift) + 1
        return int(spans.prod(axis=1).sum())

    def _boxes_of_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        box = np.arange(len(self._first))
        cell = np.zeros(len(box), dtype=np.int64)
        for axis in self._axes:
            first = self._first[box, axis] >> self._shift
            span = (self._last[box, axis] >> self._shift) - first + 1
            offset = np.arange(span.sum()) - np.repeat(np.cumsum(span) - span, span)
            cell = np.repeat(cell, span) * self._columns + np.repeat(first, span) + offset
            box = np.repeat(box, span)
        return box, cell


def _comparable(rows: DataFrame, attribute: Attribute) -> Column:
    """The coordinate as boxes of queries hold it: minus infinity where it is missing, else a finite number."""
    finite = F.least(F.greatest(coordinate(rows, attribute), F.lit(LOWEST)), F.lit(HIGHEST))
    return F.when(is_missing(rows, attribute), F.lit(float("-inf"))).otherwise(finite)


def _code(place: Column, attribute: Attribute) -> Column:
    """Code of a `_comparable` place, 0 or 2**24 + 1 outside the domain; missing values lie below it."""
    exact = (place - attribute.low) * attribute.scale + 1.0
    return F.least(F.greatest(exact, F.lit(float(BELOW))), F.lit(float(ABOVE))).cast("int")
