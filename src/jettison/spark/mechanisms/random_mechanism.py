"""Random drops on Spark: the hash of a row's identity against a threshold.

A retried task keeps the same rows, and a lower keep fraction keeps a subset of a higher one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.core.documents import field_types
from jettison.core.hashing import HIGHEST, LOWEST
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.spark.drop_point import DropPoint, identity_hash, is_late, late_before_us
from jettison.spark.mechanisms.mechanism import Mechanism
from jettison.spark.mechanisms.setting_schema import schema_of


class RandomMechanism(Mechanism):
    """Executes `RandomDrop`."""

    schema = schema_of(field_types(RandomDrop))

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """Thresholds and weights of rows in time and of late ones, and before which arrival a row is late.

        A plan may be damaged or forged and still be JSON: a share that makes no sense keeps its rows.
        """
        keep = setting["keep_fraction"]
        late = F.coalesce(setting["late_keep_fraction"], keep)
        return {
            "threshold": threshold(keep),
            "weight": weight(keep),
            "late_threshold": threshold(late),
            "late_weight": weight(late),
            "late_before_us": late_before_us(setting, now_us),
        }

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        highest_kept, weight_if_kept = plan["threshold"], plan["weight"]
        everything = highest_kept == HIGHEST
        if point.arrival:
            late, late_threshold = is_late(rows, point.arrival, plan), plan["late_threshold"]
            everything = everything & (late_threshold == HIGHEST)
            highest_kept = F.when(late, late_threshold).otherwise(highest_kept)
            weight_if_kept = F.when(late, plan["late_weight"]).otherwise(weight_if_kept)
        # While nothing is dropped, the hash is not even computed.
        return everything | (identity_hash(rows, point) <= highest_kept), weight_if_kept


def threshold(keep_fraction: Column) -> Column:
    """The largest hash that is kept. Exact at 1; at 0 one hash in 2**64 is still kept. All are kept of what is no share.

    Short, because an expression is planned again in every micro-batch, node by node: what is no share is no number of 64
    bits either, but for negative ones that are nearly 0.
    """
    share = F.when(keep_fraction >= 0.0, keep_fraction)
    return F.coalesce((share * float(2**64) + float(LOWEST)).try_cast("bigint"), F.lit(HIGHEST))


def weight(keep_fraction: Column) -> Column:
    """The inverse of the share kept; null where nothing is, and 1 where it is no share."""
    return F.when(keep_fraction.between(0.0, 1.0), F.try_divide(F.lit(1.0), keep_fraction)).otherwise(F.lit(1.0))
