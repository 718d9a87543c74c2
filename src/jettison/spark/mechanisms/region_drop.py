"""Regional drops on Spark: bucket tables lead from a row's values to its cell of the raster, and so to its threshold.

The tables are made from the plan's cuts once a micro-batch, inside the subquery that reads the plan. A row then costs
one array read per attribute and one more for its threshold, however many regions there are, and a new plan needs no
restart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.policies.sifter import fingerprint
from jettison.sifter.raster import PLAN_MOST_CELLS, ZOOMED_BITS, ZOOMED_BUCKETS
from jettison.sifter.space import CELLS, Space
from jettison.spark.coordinates import check_attributes, coordinate, unclipped_code
from jettison.spark.drop_point import DropPoint, identity_hash
from jettison.spark.mechanisms.random_drop import threshold, weight

_CODE, _OFFSET, _ENTRY, _CELL, _TABLE = "jt_code", "jt_offset", "jt_entry", "jt_cell", "jt_table"

# Bucket 0 lies before the first inner cut, the last one behind the buckets of all inner cuts.
_LAST = ZOOMED_BUCKETS + 1
_BUCKETS = _LAST + 1

# All that a row needs of its bucket along an attribute is one 64-bit number, so that it is read at once: the place of
# the bucket's start in the lowest bits, and above it up to three cuts, as distances from the start of the bucket.
_PLACE_BITS = 16
_CUT_BITS = 24 - ZOOMED_BITS + 1
_NO_CUT = 2 ** (_CUT_BITS - 1)  # no distance is as large

# Rows of a sample that a micro-batch reports: progress events are no place for more.
_MOST_SAMPLED = 1000


class RegionMechanism:
    """Executes `RegionDrop` over the attributes of `space`.

    Parameters
    ----------
    space
        The attributes.
    sample_every
        One row in so many belongs to the sample; 0: none. Those with the lowest hashes, so that a plan which keeps at
        least that share in every region drops none of them.
    """

    schema = (
        "struct<keep_fraction: double, space: bigint, cuts: array<array<int>>, cells: array<int>, keep: array<double>,"
        " late_keep: array<double>, late_after_s: double>"
    )

    def __init__(self, space: Space, sample_every: int = 0) -> None:
        self._space = space
        self._sample_every = sample_every

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """One table of the buckets of every attribute and the threshold of every cell, and beside it the weights."""
        shares = F.flatten(F.array(setting["keep"], F.coalesce(setting["late_keep"], setting["keep"])))
        foreign = (setting["space"] != fingerprint(self._space)) | (F.size(setting["cells"]) > PLAN_MOST_CELLS)
        # Cells of rows in time, then the same cells for late rows.
        by_cell = F.concat(
            _by_cell(setting["cells"], setting["keep"]),
            _by_cell(setting["cells"], F.coalesce(setting["late_keep"], setting["keep"])),
        )
        zooms = [_Zoom.of(setting["cuts"], axis, self._space.dimensions) for axis in self._axes]
        everything = foreign | ~F.exists(shares, lambda share: share < 1.0)
        buckets = [zoom.entries(first_place=0 if axis else self._first_cell) for axis, zoom in enumerate(zooms)]
        return {
            "everything": everything,
            "late_before_us": now_us - (setting["late_after_s"] * 1e6).cast("bigint"),
            "late_cells": F.size(setting["cells"]).cast("bigint"),
            "table": F.when(~everything, F.concat(*buckets, F.transform(by_cell, threshold))),
            "weight": F.when(~everything, F.transform(by_cell, weight)),
            **{f"origin{axis}": zoom.origin.cast("bigint") for axis, zoom in enumerate(zooms)},
            **{f"shift{axis}": zoom.shift for axis, zoom in enumerate(zooms)},
            **{f"mask{axis}": zoom.mask for axis, zoom in enumerate(zooms)},
            **{f"stride{axis}": zoom.stride.cast("bigint") for axis, zoom in enumerate(zooms)},
        }

    def helpers(self, rows: DataFrame, plan: Column) -> list[dict[str, Column]]:
        """Codes of the row, their distances from the first cut, the entries of their buckets, and the cell.

        The table too: to get it out of the plan makes a new object each time. A row outside the domain has no
        distances, and lies in the first cell.
        """
        check_attributes(rows, self._space)
        codes = {f"{_CODE}{axis}": unclipped_code(rows, self._space.attributes[axis]) for axis in self._axes}
        within = reduce(lambda one, other: one & other, [_within(F.col(name)) for name in codes])
        offsets = {
            f"{_OFFSET}{axis}": F.when(within, F.col(f"{_CODE}{axis}") - plan[f"origin{axis}"]) for axis in self._axes
        }
        entries = {f"{_ENTRY}{axis}": F.get(F.col(_TABLE), _bucket_of_row(axis, plan)) for axis in self._axes}
        places = [_place_of_row(axis, plan) for axis in self._axes]
        cell = F.coalesce(reduce(lambda one, other: one + other, places), F.lit(self._first_cell).cast("bigint"))
        return [codes | {_TABLE: plan["table"]}, offsets, entries, {_CELL: cell}]

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        """Compare the row's hash with the threshold of its region and age."""
        cell = F.col(_CELL)
        if point.arrival:
            late = F.unix_micros(rows[point.arrival].cast("timestamp")) < plan["late_before_us"]
            cell = cell + F.when(late, plan["late_cells"]).otherwise(F.lit(0))
        keep = plan["everything"] | (identity_hash(rows, point) <= F.get(F.col(_TABLE), cell))
        return keep, F.when(~plan["everything"], F.get(plan["weight"], cell - self._first_cell))

    @property
    def samples(self) -> bool:
        """Whether a sample is taken."""
        return self._sample_every > 0

    def sampled(self, rows: DataFrame, point: DropPoint) -> Column:
        """Whether the row's hash is among the lowest."""
        return identity_hash(rows, point) <= threshold(F.lit(1.0 / self._sample_every))

    def sample(self, rows: DataFrame, sampled: Column, point: DropPoint) -> Column:
        """Coordinates of the sampled rows: a task that was run twice adds none, and of very many some by chance."""
        place = F.array(*[coordinate(rows, attribute) for attribute in self._space.attributes])
        taken = F.collect_list(
            F.when(sampled, F.struct(identity_hash(rows, point).alias("hash"), place.alias("place")))
        )
        by_hash = F.slice(F.sort_array(F.array_distinct(taken)), 1, _MOST_SAMPLED)
        return F.to_json(F.transform(by_hash, lambda one: one["place"]))

    @property
    def _axes(self) -> range:
        return range(self._space.dimensions)

    @property
    def _first_cell(self) -> int:
        """Where the thresholds begin in the table, behind the buckets of all attributes."""
        return self._space.dimensions * _BUCKETS


def _by_cell(cells: Column, of_region: Column) -> Column:
    # Never null, so that a row need not look whether it is.
    return F.transform(cells, lambda region: F.coalesce(F.get(of_region, region), F.lit(1.0)))


@dataclass(frozen=True)
class _Zoom:
    """How the codes of an attribute become buckets, and how far its neighbours lie apart in the raster.

    Buckets divide the range between the first and the last inner cut: where all rows crowd in a corner of the domain,
    so do the cuts, and buckets of the whole domain would not part them.

    Parameters
    ----------
    inner
        The cuts without the domain's edges.
    origin
        Code at which bucket 1 begins.
    shift
        A bucket holds `2**shift` codes.
    stride
        Distance in the raster between neighbours along the attribute.
    """

    inner: Column
    origin: Column
    shift: Column
    stride: Column

    @classmethod
    def of(cls, cuts: Column, axis: int, dimensions: int) -> _Zoom:
        mine = F.get(cuts, F.lit(axis))
        inner = F.slice(mine, F.lit(2), F.size(mine) - 2)
        origin = F.coalesce(F.get(inner, F.lit(0)), F.lit(1))
        span = F.coalesce(F.get(inner, F.size(inner) - 1), F.lit(1)) - origin
        # The digits of the span in base two: exact, where a logarithm might be off by one.
        shift = F.greatest(F.length(F.bin(span)) - ZOOMED_BITS, F.lit(0))
        stride = F.lit(1)
        for other in range(axis + 1, dimensions):
            stride = stride * (F.size(F.get(cuts, F.lit(other))) + 1)
        return cls(inner, origin, shift, stride)

    @property
    def mask(self) -> Column:
        """The bits of a code's distance from the origin that say where in its bucket it lies."""
        return F.call_function("shiftleft", F.lit(1).cast("bigint"), self.shift) - 1

    def entries(self, *, first_place: int) -> Column:
        """What a row needs of each bucket, as one number: see `_PLACE_BITS`."""
        count = F.size(self.inner)

        def buckets_before(i: Column) -> Column:
            # Bucket b has i cuts before it for the buckets after that of cut i - 1, up to that of cut i.
            until = F.when(i < count, self._bucket(F.get(self.inner, i))).otherwise(_LAST)
            since = F.when(i > 0, self._bucket(F.get(self.inner, i - 1))).otherwise(-1)
            return F.array_repeat(i, until - since)

        def entry(before: Column, bucket: Column) -> Column:
            place = ((before + 1) * self.stride + first_place).cast("bigint")
            cuts = [self._cut_in_bucket(before + rank, bucket) for rank in range(3)]
            shifted = [_shifted_left(cut, _PLACE_BITS + rank * _CUT_BITS) for rank, cut in enumerate(cuts)]
            return reduce(lambda one, other: one.bitwiseOR(other), shifted, place)

        before = F.flatten(F.transform(F.sequence(F.lit(0), count), buckets_before))
        return F.transform(before, lambda before, bucket: F.coalesce(entry(before, bucket), F.lit(0).cast("bigint")))

    def _cut_in_bucket(self, number: Column, bucket: Column) -> Column:
        """Distance of a cut from the start of the bucket, if it lies there."""
        cut = F.get(self.inner, number)
        distance = (cut - self.origin).cast("bigint").bitwiseAND(self.mask)
        return F.when(self._bucket(cut) == bucket, distance).otherwise(_NO_CUT)

    def _bucket(self, cut: Column) -> Column:
        return F.call_function("shiftright", cut - self.origin, self.shift) + 1


def _within(code: Column) -> Column:
    return (code >= 1) & (code <= CELLS)


def _bucket_of_row(axis: int, plan: Column) -> Column:
    """Where the entry of the row's bucket stands in the table."""
    first = axis * _BUCKETS
    zoomed = F.call_function("shiftright", F.col(f"{_OFFSET}{axis}"), plan[f"shift{axis}"]) + (first + 1)
    lowest, highest = (F.lit(end).cast("bigint") for end in (first, first + _LAST))
    return F.least(F.greatest(zoomed, lowest), highest)


def _place_of_row(axis: int, plan: Column) -> Column:
    """Place of a row among the cuts of an attribute, times its stride in the raster."""
    entry, stride = F.col(f"{_ENTRY}{axis}"), plan[f"stride{axis}"]
    place = entry.bitwiseAND(F.lit(2**_PLACE_BITS - 1).cast("bigint"))
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
    return bits.bitwiseAND(F.lit(2**_CUT_BITS - 1).cast("bigint"))


def _shifted_left(number: Column, bits: int) -> Column:
    return F.shiftleft(number.cast("bigint"), bits)
