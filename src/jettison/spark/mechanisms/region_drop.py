"""Regional drops on Spark: bucket tables lead from a row's values to its cell of the raster, and so to its threshold.

The tables are made from the plan's cuts once a micro-batch, inside the subquery that reads the plan. A row then costs
a few array reads per attribute, however many regions there are, and a new plan needs no restart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.policies.sifter import fingerprint
from jettison.sifter.raster import ZOOMED_BUCKETS, ZOOMED_MOST_CUTS
from jettison.sifter.space import Space
from jettison.spark.coordinates import check_attributes, code
from jettison.spark.drop_point import DropPoint, identity_hash
from jettison.spark.mechanisms.random_drop import threshold, weight

_CODE, _BUCKET, _CELL, _TABLES, _THRESHOLD = "jt_code", "jt_bucket", "jt_cell", "jt_tables", "jt_threshold"


class RegionMechanism:
    """Executes `RegionDrop` over the attributes of `space`."""

    schema = (
        "struct<keep_fraction: double, space: bigint, cuts: array<array<int>>, cells: array<int>, keep: array<double>,"
        " late_keep: array<double>, late_after_s: double>"
    )

    def __init__(self, space: Space) -> None:
        self._space = space

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """Bucket tables of every attribute, one after the other, and threshold and weight of every cell."""
        shares = F.flatten(F.array(setting["keep"], F.coalesce(setting["late_keep"], setting["keep"])))
        foreign = setting["space"] != fingerprint(self._space)
        # Cells of rows in time, then the same cells for late rows.
        by_cell = F.concat(
            _by_cell(setting["cells"], setting["keep"]),
            _by_cell(setting["cells"], F.coalesce(setting["late_keep"], setting["keep"])),
        )
        zooms = [_Zoom.of(setting["cuts"], axis, self._space.dimensions) for axis in self._axes]
        return {
            "everything": foreign | ~F.exists(shares, lambda share: share < 1.0),
            "late_before_us": now_us - (setting["late_after_s"] * 1e6).cast("bigint"),
            "late_cells": F.size(setting["cells"]),
            "tables": F.concat(*[_tables(F.get(setting["cuts"], F.lit(axis)), zooms[axis]) for axis in self._axes]),
            "threshold": F.transform(by_cell, threshold),
            "weight": F.transform(by_cell, weight),
            **{f"origin{axis}": zooms[axis].origin for axis in self._axes},
            **{f"shift{axis}": zooms[axis].shift for axis in self._axes},
            **{f"stride{axis}": zooms[axis].stride for axis in self._axes},
        }

    def helpers(self, rows: DataFrame, plan: Column) -> list[dict[str, Column]]:
        """Codes of the row, their buckets, and from both the cell of the raster.

        The arrays too: to get one out of the plan makes a new object each time.
        """
        check_attributes(rows, self._space)
        codes = {f"{_CODE}{axis}": code(rows, self._space.attributes[axis]) for axis in self._axes}
        buckets = {f"{_BUCKET}{axis}": _bucket_of_row(axis, plan) for axis in self._axes}
        places = [_place_of_row(axis, plan) for axis in self._axes]
        arrays = {_TABLES: plan["tables"], _THRESHOLD: plan["threshold"]}
        return [codes | arrays, buckets, {_CELL: reduce(lambda one, other: one + other, places)}]

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        """Compare the row's hash with the threshold of its region and age."""
        cell = F.col(_CELL)
        if point.arrival:
            late = F.unix_micros(rows[point.arrival].cast("timestamp")) < plan["late_before_us"]
            cell = cell + F.when(late, plan["late_cells"]).otherwise(F.lit(0))
        keep = plan["everything"] | (identity_hash(rows, point) <= F.get(F.col(_THRESHOLD), cell))
        return keep, F.when(~plan["everything"], F.get(plan["weight"], cell))

    @property
    def _axes(self) -> range:
        return range(self._space.dimensions)


def _by_cell(cells: Column, of_region: Column) -> Column:
    return F.transform(cells, lambda region: F.get(of_region, region))


_LAST = ZOOMED_BUCKETS + 1
_BUCKETS = _LAST + 1


@dataclass(frozen=True)
class _Zoom:
    """How the codes of an attribute become buckets, and how far its neighbours lie apart in the raster.

    Buckets divide the range between the first and the last inner cut: where all rows crowd in a corner of the domain,
    so do the cuts, and buckets of the whole domain would not part them.
    """

    origin: Column
    shift: Column
    stride: Column

    @classmethod
    def of(cls, cuts: Column, axis: int, dimensions: int) -> _Zoom:
        mine = F.get(cuts, F.lit(axis))
        origin = F.get(mine, F.lit(1))
        span = F.greatest(F.get(mine, F.size(mine) - 2) - origin, F.lit(1))
        shift = F.greatest(F.ceil(F.log2(span / F.lit(float(ZOOMED_BUCKETS)))), F.lit(0)).cast("int")
        stride = F.lit(1)
        for other in range(axis + 1, dimensions):
            stride = stride * (F.size(F.get(cuts, F.lit(other))) + 1)
        return cls(origin, shift, stride)


def _tables(cuts: Column, zoom: _Zoom) -> Column:
    """Per bucket of an attribute the cuts before it (times the stride), and then the cuts that may lie in it."""
    count = F.size(cuts)

    def buckets_before(i: Column) -> Column:
        # Bucket b has i cuts before it for the buckets after that of cut i - 1, up to that of cut i.
        until = F.when(i < count, _bucket(F.get(cuts, i), zoom.origin, zoom.shift)).otherwise(_LAST)
        since = F.when(i > 0, _bucket(F.get(cuts, i - 1), zoom.origin, zoom.shift)).otherwise(-1)
        return F.array_repeat(i, until - since)

    before = F.flatten(F.transform(F.sequence(F.lit(0), count), buckets_before))
    inside = [_cuts_from(cuts, before, k) for k in range(ZOOMED_MOST_CUTS)]
    return F.concat(F.transform(before, lambda i: i * zoom.stride), *inside)


def _cuts_from(cuts: Column, before: Column, k: int) -> Column:
    """Per bucket the cut number `k` from its start on; where there is none, a number beyond all codes."""
    return F.transform(before, lambda i: F.coalesce(F.get(cuts, i + k), F.lit(2**30)))


def _bucket(code: Column, origin: Column, shift: Column) -> Column:
    """Bucket of a code: 0 before the first inner cut, then as many as the range between the inner cuts takes."""
    zoomed = F.call_function("shiftright", code - origin, shift) + 1
    return F.least(F.greatest(zoomed, F.lit(0)), F.lit(_LAST))


def _bucket_of_row(axis: int, plan: Column) -> Column:
    return _bucket(F.col(f"{_CODE}{axis}"), plan[f"origin{axis}"], plan[f"shift{axis}"])


def _place_of_row(axis: int, plan: Column) -> Column:
    """Place of a row among the cuts of an attribute, times its stride in the raster."""
    tables, code, bucket = F.col(_TABLES), F.col(f"{_CODE}{axis}"), F.col(f"{_BUCKET}{axis}")
    start = axis * (1 + ZOOMED_MOST_CUTS) * _BUCKETS
    place = F.get(tables, bucket + start)
    for k in range(1, ZOOMED_MOST_CUTS + 1):
        beyond = code >= F.get(tables, bucket + (start + k * _BUCKETS))
        place = place + F.when(beyond, plan[f"stride{axis}"]).otherwise(F.lit(0))
    return place
