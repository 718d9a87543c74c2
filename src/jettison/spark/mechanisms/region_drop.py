"""Regional drops on Spark: bucket tables lead from a row's values to its cell of the raster, and so to its threshold.

The tables are made from the plan's cuts once a micro-batch, inside the subquery that reads the plan. A row then costs
a few array reads per attribute, however many regions there are, and a new plan needs no restart.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.policies.sifter import fingerprint
from jettison.sifter.raster import ZOOMED_BUCKETS, ZOOMED_MOST_CUTS
from jettison.sifter.space import Space
from jettison.spark.coordinates import check_attributes, code
from jettison.spark.drop_point import DropPoint, identity_hash
from jettison.spark.mechanisms.random_drop import threshold, weight


class RegionMechanism:
    """Executes `RegionDrop` over the attributes of `space`."""

    schema = (
        "struct<keep_fraction: double, space: bigint, cuts: array<array<int>>, cells: array<int>, keep: array<double>,"
        " late_keep: array<double>, late_after_s: double>"
    )

    def __init__(self, space: Space) -> None:
        self._space = space

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """Bucket tables of every attribute, and threshold and weight of every cell."""
        shares = F.flatten(F.array(setting["keep"], F.coalesce(setting["late_keep"], setting["keep"])))
        foreign = setting["space"] != fingerprint(self._space)
        fields = {
            "everything": foreign | ~F.exists(shares, lambda share: share < 1.0),
            "late_before_us": now_us - (setting["late_after_s"] * 1e6).cast("bigint"),
        }
        for age in ("", "late_"):
            keep = _by_cell(setting["cells"], setting[f"{age}keep"])
            fields |= {f"{age}threshold": F.transform(keep, threshold), f"{age}weight": F.transform(keep, weight)}
        for axis in range(self._space.dimensions):
            fields |= _tables(setting["cuts"], axis, self._space.dimensions)
        return fields

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        """Compare the row's hash with the threshold of its region and age."""
        check_attributes(rows, self._space)
        places = [_place(code(rows, attribute), axis, plan) for axis, attribute in enumerate(self._space.attributes)]
        cell = reduce(lambda one, other: one + other, places)
        highest_kept, weight_if_kept = F.get(plan["threshold"], cell), F.get(plan["weight"], cell)
        if point.arrival:
            late = F.unix_micros(rows[point.arrival].cast("timestamp")) < plan["late_before_us"]
            highest_kept = F.when(late, F.get(plan["late_threshold"], cell)).otherwise(highest_kept)
            weight_if_kept = F.when(late, F.get(plan["late_weight"], cell)).otherwise(weight_if_kept)
        weight_if_kept = F.when(plan["everything"], F.lit(1.0)).otherwise(weight_if_kept)
        return plan["everything"] | (identity_hash(rows, point) <= highest_kept), weight_if_kept


def _tables(cuts: Column, axis: int, dimensions: int) -> dict[str, Column]:
    """Per bucket the cuts before it and the cuts that may lie in it, for the attribute number `axis`.

    Buckets divide the range between the first and the last inner cut: where all rows crowd in a corner of the domain,
    so do the cuts, and buckets of the whole domain would not part them.
    """
    mine = F.get(cuts, F.lit(axis))
    count = F.size(mine)
    origin = F.get(mine, F.lit(1))
    span = F.greatest(F.get(mine, count - 2) - origin, F.lit(1))
    shift = F.greatest(F.ceil(F.log2(span / F.lit(float(ZOOMED_BUCKETS)))), F.lit(0)).cast("int")
    stride = F.lit(1)
    for other in range(axis + 1, dimensions):
        stride = stride * (F.size(F.get(cuts, F.lit(other))) + 1)
    # Bucket b has i cuts before it for the buckets after that of cut i - 1, up to that of cut i.
    widths = F.transform(
        F.sequence(F.lit(0), count),
        lambda i: F.array_repeat(
            i,
            F.when(i < count, _bucket(F.get(mine, i), origin, shift)).otherwise(_LAST)
            - F.when(i > 0, _bucket(F.get(mine, i - 1), origin, shift)).otherwise(-1),
        ),
    )
    before = F.flatten(widths)
    return {
        f"origin{axis}": origin,
        f"shift{axis}": shift,
        f"stride{axis}": stride,
        f"before{axis}": F.transform(before, lambda i: i * stride),
        **{f"inside{axis}_{k}": _cuts_from(mine, before, k) for k in range(ZOOMED_MOST_CUTS)},
    }


def _by_cell(cells: Column, of_region: Column) -> Column:
    return F.transform(cells, lambda region: F.get(of_region, region))


def _cuts_from(cuts: Column, before: Column, k: int) -> Column:
    """Per bucket the cut number `k` from its start on; where there is none, a number beyond all codes."""
    return F.transform(before, lambda i: F.coalesce(F.get(cuts, i + k), F.lit(2**30)))


_LAST = ZOOMED_BUCKETS + 1


def _bucket(code: Column, origin: Column, shift: Column) -> Column:
    """Bucket of a code: 0 before the first inner cut, then as many as the range between the inner cuts takes."""
    zoomed = F.call_function("shiftright", code - origin, shift) + 1
    return F.least(F.greatest(zoomed, F.lit(0)), F.lit(_LAST))


def _place(code: Column, axis: int, plan: Column) -> Column:
    """Place of a row among the cuts of an attribute, times its stride in the raster."""
    bucket = _bucket(code, plan[f"origin{axis}"], plan[f"shift{axis}"])
    stride = plan[f"stride{axis}"]
    place = F.get(plan[f"before{axis}"], bucket)
    for k in range(ZOOMED_MOST_CUTS):
        beyond = code >= F.get(plan[f"inside{axis}_{k}"], bucket)
        place = place + F.when(beyond, stride).otherwise(F.lit(0))
    return place
