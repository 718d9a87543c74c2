"""Regional drops on Spark: bucket tables lead from a row's values to its cell of the raster, and so to its threshold.

The tables are made from the plan's cuts once a micro-batch, where the plan is read. A row then costs
one array read per attribute and one more for its threshold, however many regions there are, and a new plan needs no
restart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.core.documents import field_types
from jettison.policies.regions.region_setting import (
    PLAN_MOST_CELLS,
    ZOOMED_BITS,
    ZOOMED_BUCKETS,
    RegionDrop,
    fingerprint,
)
from jettison.source.space import CELLS, Space
from jettison.spark import validate
from jettison.spark.coordinates import check_attributes, coordinate, has_code, is_missing, unclipped_code
from jettison.spark.drop_point import SAMPLE, DropPoint, identity_hash, is_late, late_before_us, sound_share
from jettison.spark.mechanisms.mechanism import Mechanism, Sampling
from jettison.spark.mechanisms.random_mechanism import threshold, weight
from jettison.spark.mechanisms.setting_schema import schema_of
from jettison.spark.named_column import with_name

_CODE, _OFFSET, _ENTRY, _CELL, _TABLE = "jt_code", "jt_offset", "jt_entry", "jt_cell", "jt_table"

# Bucket 0 lies before the first inner cut, the last one behind the buckets of all inner cuts.
_LAST = ZOOMED_BUCKETS + 1
_BUCKETS = _LAST + 1

# All that a row needs of its bucket is one number, so that it is read at once: the place of the bucket's start in the
# lowest bits, and above it up to three cuts, as distances from the start of the bucket.
_PLACE_BITS = 16
_CUT_BITS = 24 - ZOOMED_BITS + 1
_NO_CUT = 1 << (_CUT_BITS - 1)  # no distance is as large

# Rows of a sample that a micro-batch reports: progress events are no place for more.
_MOST_SAMPLED = 1000


class RegionMechanism(Mechanism):
    """Executes `RegionDrop` over the attributes of `space`.

    Parameters
    ----------
    space
        The attributes.
    sample_every
        One row in so many belongs to the sample; 0: none. Those with the lowest hashes: as every region keeps at least
        that share, whatever the plan says, none of them is dropped.
    """

    schema = schema_of(
        field_types(RegionDrop),
        *("keep_fraction", "space", "cuts", "cells", "missing", "keep", "late_keep", "late_after_s"),
    )

    def __init__(self, space: Space, sample_every: int = 0) -> None:
        self._space = space
        self._sample_every = sample_every

    def check(self, rows: DataFrame, point: DropPoint) -> None:
        check_attributes(rows, self._space, where=point.place)
        if self._sample_every:
            validate.since(rows.sparkSession, (4, 2), "`sample_every` (`min_by` of many rows)", where=point.place)

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """The table, and beside it the weights of all cells; neither where everything is kept.

        A plan may be damaged or forged and still be JSON: where its raster makes no sense everything is kept, and so are
        the rows of a region whose share is none.
        """
        late_keep = F.coalesce(setting["late_keep"], setting["keep"])
        drops = F.exists(F.flatten(F.array(setting["keep"], late_keep)), lambda share: share < 1.0)
        everything = ~F.coalesce(self._sound(setting) & drops, F.lit(False))
        # The regions of all cells, then those of rows outside by what they miss; for rows in time, then for late ones.
        regions = F.concat(setting["cells"], setting["missing"])
        by_cell = F.concat(self._by_cell(regions, setting["keep"]), self._by_cell(regions, late_keep))
        zooms = [_Zoom.of(setting["cuts"], axis, self._space.dimensions) for axis in self._axes]
        buckets = [zoom.entries(first_place=0 if axis else self._first_cell) for axis, zoom in enumerate(zooms)]
        # One array for all, because to get an array out of the plan makes a new object each time.
        table = F.concat(*buckets, F.transform(by_cell, threshold))
        return {
            "everything": everything,
            "late_before_us": late_before_us(setting, now_us),
            "outside": (self._first_cell + F.size(setting["cells"])).cast("bigint"),
            "late_cells": F.size(regions).cast("bigint"),
            "table": F.when(~everything, table),
            "weight": F.when(~everything, F.transform(by_cell, weight)),
            **{f"origin{axis}": zoom.origin.cast("bigint") for axis, zoom in enumerate(zooms)},
            **{f"shift{axis}": zoom.shift for axis, zoom in enumerate(zooms)},
            **{f"mask{axis}": zoom.mask.cast("bigint") for axis, zoom in enumerate(zooms)},
            **{f"stride{axis}": zoom.stride.cast("bigint") for axis, zoom in enumerate(zooms)},
        }

    def helpers(self, rows: DataFrame, point: DropPoint, plan: Column) -> list[dict[str, Column]]:
        """Codes of the row, their distances from the first cut, the entries of their buckets, and the cell.

        A row outside the domain has no distances. Its cell lies behind those of the raster, by what values it misses.
        """
        codes = {f"{_CODE}{axis}": unclipped_code(rows, self._space.attributes[axis]) for axis in self._axes}
        within = reduce(lambda one, other: one & other, [has_code(F.col(name)) for name in codes])
        offsets = {
            f"{_OFFSET}{axis}": F.when(within, F.col(f"{_CODE}{axis}") - plan[f"origin{axis}"]) for axis in self._axes
        }
        entries = {f"{_ENTRY}{axis}": F.get(F.col(_TABLE), _bucket_of_row(axis, plan)) for axis in self._axes}
        place = reduce(lambda one, other: one + other, [_place_of_row(axis, plan) for axis in self._axes])
        cell = F.when(F.col(f"{_OFFSET}0").isNotNull(), place).otherwise(plan["outside"] + self._pattern(rows))
        return [codes | {_TABLE: plan["table"]}, offsets, entries, {_CELL: cell}]

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        cell = F.col(_CELL)
        if point.arrival:
            late = is_late(rows, point.arrival, plan)
            cell = cell + F.when(late, plan["late_cells"]).otherwise(F.lit(0))
        keep = plan["everything"] | (identity_hash(rows, point) <= F.get(F.col(_TABLE), cell))
        return keep, F.when(~plan["everything"], F.get(plan["weight"], cell - self._first_cell))

    def sample(self, rows: DataFrame, point: DropPoint) -> Sampling | None:
        """Rows whose hashes are among the lowest; up to a thousand are reported, by their coordinates."""
        if not self._sample_every:
            return None
        number = identity_hash(rows, point)
        place = F.array(*[coordinate(rows, attribute) for attribute in self._space.attributes])

        def report(order: Column) -> Column:
            taken = F.min_by(F.struct(order.alias("hash"), place.alias("place")), order, _MOST_SAMPLED)
            # In the order of the hashes, so that a row which a repeated task has told again stands beside itself.
            once = with_name(taken, lambda rows: F.filter(rows, lambda row, i: (i == 0) | (row != F.get(rows, i - 1))))
            return F.to_json(F.transform(once, lambda row: row["place"]))

        return Sampling(F.when(number <= threshold(F.lit(1.0 / self._sample_every)), number), report)

    def read(self, observed: Mapping[str, Any]) -> NDArray[np.float64] | None:
        """The sampled rows as coordinates; a missing value is NaN."""
        text = observed.get(SAMPLE)
        return None if text is None else np.array(json.loads(text), dtype=np.float64)

    @property
    def _axes(self) -> range:
        return range(self._space.dimensions)

    @property
    def _first_cell(self) -> int:
        """Where the thresholds begin in the table."""
        return self._space.dimensions * _BUCKETS

    def _sound(self, setting: Column) -> Column:
        """Whether a setting is of these attributes, and its raster one that the table can hold."""
        codes = F.lit(CELLS + 1)

        def ascends(cuts: Column) -> Column:
            in_order = F.array_sort(F.array_distinct(cuts)) == cuts
            return in_order & (F.get(cuts, F.lit(0)) == 1) & (F.get(cuts, F.size(cuts) - 1) == codes)

        # Doubles, because a product of whole numbers that does not fit would end the query.
        cells = F.aggregate(setting["cuts"], F.lit(1.0), lambda product, cuts: product * (F.size(cuts) + 1))
        return (
            (setting["space"] == fingerprint(self._space))
            & (F.size(setting["cuts"]) == self._space.dimensions)
            & F.forall(setting["cuts"], ascends)
            & (F.size(setting["cells"]) == cells)
            & (F.size(setting["cells"]) <= PLAN_MOST_CELLS)
            & (F.size(setting["missing"]) == 1 << self._space.dimensions)
        )

    def _pattern(self, rows: DataFrame) -> Column:
        """Which values a row misses, as the bits of a number."""
        attributes = enumerate(self._space.attributes)
        bits = [F.when(is_missing(rows, one), F.lit(1 << axis)).otherwise(F.lit(0)) for axis, one in attributes]
        return reduce(lambda one, other: one + other, bits)

    def _by_cell(self, cells: Column, of_region: Column) -> Column:
        """Share kept of each cell: always one, so that a row need not look, and never less than the sample."""
        least = F.lit(1.0 / self._sample_every if self._sample_every else 0.0)

        return F.transform(cells, lambda region: F.greatest(sound_share(F.get(of_region, region)), least))


@dataclass(frozen=True)
class _Zoom:
    """How the codes of an attribute become buckets, and how far its neighbours lie apart in the raster.

    Buckets divide the range between the first and the last inner cut: where all rows crowd in a corner of the domain,
    so do the cuts, and buckets of the whole domain would not part them.

    Parameters
    ----------
    cuts
        All cuts, the domain's edges first and last.
    origin
        Code at which bucket 1 begins: the first inner cut, or the upper edge where there is none.
    shift
        A bucket holds `2**shift` codes.
    stride
        Distance in the raster between neighbours along the attribute.
    """

    cuts: Column
    origin: Column
    shift: Column
    stride: Column

    @classmethod
    def of(cls, cuts: Column, axis: int, dimensions: int) -> _Zoom:
        mine = F.get(cuts, F.lit(axis))
        origin = F.get(mine, F.lit(1))
        # These are computed of unsound cuts too, where numbers that do not fit must not end the query.
        span = F.greatest(F.try_subtract(F.get(mine, F.size(mine) - 2), origin), F.lit(0))
        # The digits of the span in base two: exact, where a logarithm might be off by one.
        shift = F.greatest(F.length(F.bin(span)) - ZOOMED_BITS, F.lit(0))
        stride = F.lit(1)
        for other in range(axis + 1, dimensions):
            stride = F.try_multiply(stride, F.size(F.get(cuts, F.lit(other))) + 1)
        return cls(mine, origin, shift, stride)

    @property
    def mask(self) -> Column:
        """The bits of a code's distance from the origin that say where in its bucket it lies."""
        return F.call_function("shiftleft", F.lit(1), self.shift) - 1

    def entries(self, *, first_place: int) -> Column:
        """What a row needs of each bucket, as one number: see `_PLACE_BITS`."""
        known = {"origin": self.origin, "shift": self.shift, "mask": self.mask, "stride": self.stride}
        inner = F.slice(self.cuts, F.lit(2), F.size(self.cuts) - 2)
        # Bound to a variable, because every mention of an expression is planned again in every micro-batch.
        return with_name(
            F.struct(inner.alias("inner"), *[column.alias(name) for name, column in known.items()]),
            lambda zoom: _entries(zoom, first_place),
        )


def _entries(zoom: Column, first_place: int) -> Column:
    inner = zoom["inner"]

    def bucket_of(cut: Column) -> Column:
        return F.call_function("shiftright", cut - zoom["origin"], zoom["shift"]) + 1

    def buckets_before(i: Column) -> Column:
        # Bucket b has i cuts before it for the buckets after that of cut i - 1, up to that of cut i.
        until = F.coalesce(bucket_of(F.get(inner, i)), F.lit(_LAST))
        since = F.coalesce(bucket_of(F.get(inner, i - 1)), F.lit(-1))
        return F.array_repeat(i, until - since)

    def cut_in_bucket(number: Column, bucket: Column) -> Column:
        """Distance of a cut from the start of the bucket, if it lies there."""
        cut = F.get(inner, number)
        distance = (cut - zoom["origin"]).bitwiseAND(zoom["mask"])
        return F.when(bucket_of(cut) == bucket, distance).otherwise(_NO_CUT).cast("bigint")

    def entry(before: Column, bucket: Column) -> Column:
        place = ((before + 1) * zoom["stride"] + first_place).cast("bigint")
        cuts = [F.shiftleft(cut_in_bucket(before + k, bucket), _PLACE_BITS + k * _CUT_BITS) for k in range(3)]
        return F.coalesce(reduce(lambda one, other: one.bitwiseOR(other), cuts, place), F.lit(0).cast("bigint"))

    before = F.flatten(F.transform(F.sequence(F.lit(0), F.size(inner)), buckets_before))
    return F.transform(before, entry)


def _bucket_of_row(axis: int, plan: Column) -> Column:
    """Where the entry of the row's bucket stands in the table."""
    first = axis * _BUCKETS
    zoomed = F.call_function("shiftright", F.col(f"{_OFFSET}{axis}"), plan[f"shift{axis}"]) + (first + 1)
    lowest, highest = (F.lit(end).cast("bigint") for end in (first, first + _LAST))
    return F.least(F.greatest(zoomed, lowest), highest)


def _place_of_row(axis: int, plan: Column) -> Column:
    """Place of a row among the cuts of an attribute, times its stride in the raster."""
    entry, stride = F.col(f"{_ENTRY}{axis}"), plan[f"stride{axis}"]
    place = entry.bitwiseAND(F.lit((1 << _PLACE_BITS) - 1).cast("bigint"))
    distance = F.col(f"{_OFFSET}{axis}").bitwiseAND(plan[f"mask{axis}"])
    # Most buckets hold no cut: the first comparison then settles it.
    return (
        F.when(distance < _cut(entry, 0), place)
        .when(distance < _cut(entry, 1), place + stride)
        .when(distance < _cut(entry, 2), place + stride * 2)
        .otherwise(place + stride * 3)
    )


def _cut(entry: Column, rank: int) -> Column:
    bits = F.shiftright(entry, _PLACE_BITS + rank * _CUT_BITS)
    return bits.bitwiseAND(F.lit((1 << _CUT_BITS) - 1).cast("bigint"))
