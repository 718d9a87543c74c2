"""Regional drops on Spark: bucket tables lead from a row's values to its cell of the raster, and so to its threshold.

The tables are made from the plan's cuts once a micro-batch, inside the subquery that reads the plan. A row then costs
one array read per attribute and one more for its threshold, however many regions there are, and a new plan needs no
restart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.policies.sifter import fingerprint
from jettison.sifter.raster import PLAN_MOST_CELLS, ZOOMED_BITS, ZOOMED_BUCKETS
from jettison.sifter.space import Space
from jettison.spark.coordinates import check_attributes, coordinate, has_code, unclipped_code
from jettison.spark.drop_point import DropPoint, identity_hash
from jettison.spark.mechanisms.base import Mechanism, Sampling
from jettison.spark.mechanisms.random_drop import threshold, weight

_CODE, _OFFSET, _ENTRY, _CELL, _TABLE = "jt_code", "jt_offset", "jt_entry", "jt_cell", "jt_table"

# The table of a plan: a few numbers for each attribute, the buckets of each, and the threshold of every cell. All are
# 64-bit numbers in one array, because to get an array out of the plan makes a new object each time.
_ORIGIN, _SHIFT, _MASK, _STRIDE = range(4)
_NUMBERS = 4

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

    schema = (
        "struct<keep_fraction: double, space: bigint, cuts: array<array<int>>, cells: array<int>, keep: array<double>,"
        " late_keep: array<double>, late_after_s: double>"
    )

    def __init__(self, space: Space, sample_every: int = 0) -> None:
        self._space = space
        self._sample_every = sample_every

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """The table, and beside it the weights of all cells; neither where everything is kept."""
        shares = F.flatten(F.array(setting["keep"], F.coalesce(setting["late_keep"], setting["keep"])))
        foreign = (setting["space"] != fingerprint(self._space)) | (F.size(setting["cells"]) > PLAN_MOST_CELLS)
        everything = foreign | ~F.exists(shares, lambda share: share < 1.0)
        # Cells of rows in time, then the same cells for late rows.
        by_cell = F.concat(
            self._by_cell(setting["cells"], setting["keep"]),
            self._by_cell(setting["cells"], F.coalesce(setting["late_keep"], setting["keep"])),
        )
        table = F.concat(_lookup(setting["cuts"], self._first_cell), F.transform(by_cell, threshold))
        return {
            "everything": everything,
            "late_before_us": now_us - (setting["late_after_s"] * 1e6).cast("bigint"),
            "late_cells": F.size(setting["cells"]).cast("bigint"),
            "table": F.when(~everything, table),
            "weight": F.when(~everything, F.transform(by_cell, weight)),
        }

    def helpers(self, rows: DataFrame, plan: Column) -> list[dict[str, Column]]:
        """Codes of the row, their distances from the first cut, the entries of their buckets, and the cell.

        A row outside the domain has no distances, and lies in the first cell.
        """
        check_attributes(rows, self._space)
        codes = {f"{_CODE}{axis}": unclipped_code(rows, self._space.attributes[axis]) for axis in self._axes}
        within = reduce(lambda one, other: one & other, [has_code(F.col(name)) for name in codes])
        offsets = {
            f"{_OFFSET}{axis}": F.when(within, F.col(f"{_CODE}{axis}") - _number(axis, _ORIGIN)) for axis in self._axes
        }
        entries = {f"{_ENTRY}{axis}": F.get(F.col(_TABLE), self._bucket(axis)) for axis in self._axes}
        place = reduce(lambda one, other: one + other, [_place(axis) for axis in self._axes])
        cell = F.coalesce(place, F.lit(self._first_cell).cast("bigint"))
        return [codes | {_TABLE: plan["table"]}, offsets, entries, {_CELL: cell}]

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        """Compare the row's hash with the threshold of its region and age."""
        cell = F.col(_CELL)
        if point.arrival:
            late = F.unix_micros(rows[point.arrival].cast("timestamp")) < plan["late_before_us"]
            cell = cell + F.when(late, plan["late_cells"]).otherwise(F.lit(0))
        keep = plan["everything"] | (identity_hash(rows, point) <= F.get(F.col(_TABLE), cell))
        return keep, F.when(~plan["everything"], F.get(plan["weight"], cell - self._first_cell))

    def sample(self, rows: DataFrame, point: DropPoint) -> Sampling | None:
        """Rows whose hashes are among the lowest; up to a thousand are reported, by their coordinates."""
        if not self._sample_every:
            return None
        number = identity_hash(rows, point)
        sampled = number <= threshold(F.lit(1.0 / self._sample_every))
        place = F.array(*[coordinate(rows, attribute) for attribute in self._space.attributes])
        row = F.struct(number.alias("hash"), place.alias("place"))
        taken = F.min_by(row, F.when(sampled, number), _MOST_SAMPLED)
        # In the order of the hashes, so that a row which a repeated task has told again stands beside itself.
        once = _let(taken, lambda rows: F.filter(rows, lambda row, i: (i == 0) | (row != F.get(rows, i - 1))))
        return Sampling(sampled, F.to_json(F.transform(once, lambda row: row["place"])))

    @property
    def _axes(self) -> range:
        return range(self._space.dimensions)

    @property
    def _first_cell(self) -> int:
        """Where the thresholds begin in the table."""
        return self._space.dimensions * (_NUMBERS + _BUCKETS)

    def _by_cell(self, cells: Column, of_region: Column) -> Column:
        """Share kept of each cell: never null, so that a row need not look, and never less than the sample."""
        least = F.lit(1.0 / self._sample_every if self._sample_every else 0.0)
        return F.transform(cells, lambda region: F.greatest(F.coalesce(F.get(of_region, region), F.lit(1.0)), least))

    def _bucket(self, axis: int) -> Column:
        """Where the entry of the row's bucket stands in the table."""
        first = self._space.dimensions * _NUMBERS + axis * _BUCKETS
        shift = _number(axis, _SHIFT).cast("int")
        zoomed = F.call_function("shiftright", F.col(f"{_OFFSET}{axis}"), shift) + (first + 1)
        lowest, highest = (F.lit(end).cast("bigint") for end in (first, first + _LAST))
        return F.least(F.greatest(zoomed, lowest), highest)


def _lookup(cuts: Column, first_cell: int) -> Column:
    """What leads from codes to cells: the numbers of all attributes, then their buckets.

    Bound to a variable step by step, because every mention of an expression is planned anew in every micro-batch.
    """
    return _let(
        F.transform(cuts, lambda mine, axis: _zoom(mine, _stride(cuts, axis), F.when(axis == 0, first_cell))),
        lambda zooms: F.concat(
            F.flatten(F.transform(zooms, lambda zoom: zoom["numbers"])), F.flatten(F.transform(zooms, _entries))
        ),
    )


def _let(value: Column, body: Callable[[Column], Column]) -> Column:
    return F.get(F.transform(F.array(value), body), F.lit(0))


def _stride(cuts: Column, axis: Column) -> Column:
    """Distance in the raster between neighbours along an attribute: the cells of all later ones."""
    later = F.slice(cuts, axis + 2, F.size(cuts))
    return F.aggregate(later, F.lit(1), lambda product, one: product * (F.size(one) + 1))


def _zoom(cuts: Column, stride: Column, first_place: Column) -> Column:
    """How the codes of an attribute become buckets: they divide the range between the first and the last inner cut.

    Where all rows crowd in a corner of the domain, so do the cuts, and buckets of the whole domain would not part them.
    """

    def of_inner(inner: Column) -> Column:
        origin = F.coalesce(F.get(inner, F.lit(0)), F.lit(1))
        span = F.coalesce(F.get(inner, F.size(inner) - 1), F.lit(1)) - origin
        # The digits of the span in base two: exact, where a logarithm might be off by one.
        shift = F.greatest(F.length(F.bin(span)) - ZOOMED_BITS, F.lit(0))
        return _let(
            F.struct(origin.alias("origin"), shift.alias("shift"), stride.alias("stride")),
            lambda one: F.struct(
                inner.alias("inner"),
                F.coalesce(first_place, F.lit(0)).alias("first_place"),
                one["origin"].alias("origin"),
                one["shift"].alias("shift"),
                one["stride"].alias("stride"),
                _mask(one["shift"]).alias("mask"),
                F.transform(
                    F.array(one["origin"], one["shift"], _mask(one["shift"]), one["stride"]),
                    lambda number: F.coalesce(number.cast("bigint"), F.lit(0).cast("bigint")),
                ).alias("numbers"),
            ),
        )

    return _let(F.slice(cuts, F.lit(2), F.size(cuts) - 2), of_inner)


def _mask(shift: Column) -> Column:
    """The bits of a code's distance from the origin that say where in its bucket it lies."""
    return F.call_function("shiftleft", F.lit(1), shift) - 1


def _entries(zoom: Column) -> Column:
    """What a row needs of each bucket of an attribute, as one number: see `_PLACE_BITS`."""
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
        place = ((before + 1) * zoom["stride"] + zoom["first_place"]).cast("bigint")
        cuts = [F.shiftleft(cut_in_bucket(before + k, bucket), _PLACE_BITS + k * _CUT_BITS) for k in range(3)]
        return F.coalesce(reduce(lambda one, other: one.bitwiseOR(other), cuts, place), F.lit(0).cast("bigint"))

    before = F.flatten(F.transform(F.sequence(F.lit(0), F.size(inner)), buckets_before))
    return F.transform(before, entry)


def _number(axis: int, which: int) -> Column:
    return F.get(F.col(_TABLE), F.lit(axis * _NUMBERS + which))


def _place(axis: int) -> Column:
    """Place of a row among the cuts of an attribute, times its stride in the raster."""
    entry, stride = F.col(f"{_ENTRY}{axis}"), _number(axis, _STRIDE)
    place = entry.bitwiseAND(F.lit((1 << _PLACE_BITS) - 1).cast("bigint"))
    distance = F.col(f"{_OFFSET}{axis}").bitwiseAND(_number(axis, _MASK))
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
