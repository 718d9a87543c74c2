"""Drops before a join on Spark: named keys by row, all others by a hash of the key that both sides share."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.policies.groups.group_keys import PANE_BITS, PANES
from jettison.policies.groups.group_setting import JOIN_SALT
from jettison.spark.drop_point import DropPoint, identity_hash, salted
from jettison.spark.mechanisms.group_mechanism import KEY, SLOT, GroupMechanism

WHOLE = "jt_whole"
"""Column that says of a kept row whether its key was decided as a whole."""


class JoinMechanism(GroupMechanism):
    """Executes `GroupDrop` on one side of a join.

    The same light key has the same hash on both sides and in all panes, so of two rows with shares p and q both are kept
    with probability min(p, q); `jf.pair_weight` is its inverse.
    """

    def marks(self, plan: Column) -> dict[str, Column]:
        """Whether the row's key was decided as a whole."""
        return {WHOLE: F.coalesce(~plan["table"]["everything"] & _is_whole(plan["table"]), F.lit(False))}

    def _hash(self, rows: DataFrame, point: DropPoint, table: Column) -> Column:
        residue = F.col(KEY).bitwiseAND(F.lit(PANES - 1).cast("bigint"))
        group = F.col(KEY).bitwiseXOR(F.shiftleft(residue, 64 - PANE_BITS)).bitwiseAND(F.lit(-PANES).cast("bigint"))
        return F.when(_is_whole(table), F.xxhash64(salted(JOIN_SALT, point.token), group)).otherwise(
            identity_hash(rows, point)
        )


def _is_whole(table: Column) -> Column:
    """Whether a key is light: not named in a pane that is. In a pane of which nothing is known any key may be heavy."""
    return (F.col(SLOT) >= table["named"]) & (F.col(SLOT) < table["named"] + PANES)
