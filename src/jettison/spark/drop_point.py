"""A drop point: where rows may be dropped, how they are told apart, and how its counts are found again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructType

from jettison.core import hashing
from jettison.core.documents import LONGEST_S
from jettison.errors import refuse
from jettison.spark.validate import can_be_hashed, quoted

PLAN = "jt_plan"
"""Column of the plan beside the rows of a stream."""
WEIGHT = "jt_weight"
"""Column of the inverse of the probability that a row was kept."""
_OURS = "jt_"  # columns of a guard's own begin so
SEEN, KEPT, RECENT, ARRIVALS_US, SAMPLE = "seen", "kept", "recent", "arrivals_us", "sample"
"""What is observed at a drop point, under `DropPoint.metric`."""
VERSION, NOW_US = "version", "now_us"
"""What is observed where the plan is read, under `DropPoint.plan_metric`."""
LOOK_EVERY = "look_every"
"""Beside these in the plan: one row in how many has its arrival looked at."""
PLAN_METRIC = "jettison-plan:"
"""How every `plan_metric` begins."""


@dataclass(frozen=True, slots=True)
class DropPoint:
    """Where rows may be dropped, and how they are told apart.

    Parameters
    ----------
    name
        Unique among the drop points of a shedder.
    row_id
        Columns whose values identify a row; rows that agree in all of them, none being null, share one decision.
    arrival
        Timestamp column of the row's arrival at the source, or `None`.
    protect
        Predicate of rows that are never dropped, or `None`.
    dry_run
        Decide and count, but drop nothing.
    observed
        Count rows by `observe` on the row path. Otherwise the filters are marked, and their own row counts tell.
    group
        Name of the group of drop points that read the plan together, or `None`.
    token
        The query's own: drop points of other queries decide independently of this one, whatever their names.
    """

    name: str
    row_id: tuple[str, ...]
    arrival: str | None = None
    protect: Column | None = None
    dry_run: bool = False
    observed: bool = True
    group: str | None = None
    token: str = ""

    @property
    def place(self) -> str:
        """The drop point in an error's words."""
        return f"drop point {self.name!r}"

    @property
    def metric(self) -> str:
        """Name of the drop point's counts among the observed metrics."""
        return f"jettison:{self.name}{self._query}"

    @property
    def plan_metric(self) -> str:
        """Name of the plan version that the drop point read, among the observed metrics."""
        return f"{PLAN_METRIC}{self.group or self.name}{self._query}"

    @property
    def seen_mark(self) -> str:
        """Condition of the filter that counts rows seen, and the text by which it is found in plans.

        Without `observe`, rows are counted by two filters, whose own row counts are the rows seen and kept. Their marks
        never change a decision: a partition has no negative number. They make the conditions non-deterministic in the
        optimizer's eyes, so that neither filter is merged with one of the user's or moved past it.
        """
        return f"SPARK_PARTITION_ID() >= {mark_number(self.name, 'seen', self.token)}"

    @property
    def kept_mark(self) -> str:
        """The same of the filter that drops rows."""
        return f"SPARK_PARTITION_ID() < {mark_number(self.name, 'kept', self.token)}"

    @property
    def _query(self) -> str:
        """Tells apart what drop points of one name in two queries observe, should they meet in one."""
        return f"@{self.token}" if self.token else ""


def mark_number(name: str, side: str, token: str = "") -> int:
    """A negative number that tells the filters of a drop point from all others; partitions have no such number.

    It has ten digits, so that none is found at the beginning of another.
    """
    return -(10**9) - hashing.salt(f"{side} {name}", token) % 10**9


def refuse_equal_marks(point: DropPoint, others: Iterable[DropPoint]) -> None:
    """Raise `InvalidSetting` if the filters of `point` could be taken for those of another: one name in 500 million."""
    for other in others:
        if point.seen_mark == other.seen_mark or point.kept_mark == other.kept_mark:
            expected, hint = "drop points whose rows can be counted apart", "give this one another `name`"
            refuse(expected, f"{other.name!r} and {point.name!r}", hint=hint)


def identity_hash(rows: DataFrame, point: DropPoint) -> Column:
    """A uniform 64-bit number that depends on the row's identity alone.

    Rows whose identity is not complete are told apart by all that they hold: of ids that are mostly null few are left,
    and all of their rows would share one fate. A null within an array or a struct counts. Where no id can be null this
    costs nothing.
    """
    salt = salted(point.name, point.token)
    ids = [rows[column] for column in point.row_id]
    known = F.xxhash64(salt, *ids)
    of_ids = zip(ids, rows.select(*ids).schema.fields, strict=True)
    nulls = [null for column, field in of_ids for null in _nulls(column, field.dataType, field.nullable)]
    if not nulls:
        return known
    held = [field for field in rows.schema.fields if not field.name.startswith(_OURS) and can_be_hashed(field.dataType)]
    others = [told for field in held for told in _told(rows[quoted(field.name)], field.dataType, field.nullable)]
    return F.when(reduce(or_, nulls), F.xxhash64(salt, *others)).otherwise(known)


def _nulls(column: Column, kind: DataType, nullable: bool) -> list[Column]:
    """Conditions of which one holds if a value is null or holds a null; none where its type says that it cannot."""
    found = [column.isNull()] if nullable else []
    if isinstance(kind, StructType):
        found += [null for field in kind.fields for null in _nulls(column[field.name], field.dataType, field.nullable)]
    elif isinstance(kind, ArrayType) and _nulls(column, kind.elementType, kind.containsNull):
        found.append(F.exists(column, lambda each: reduce(or_, _nulls(each, kind.elementType, kind.containsNull))))
    return found


def _told(column: Column, kind: DataType, nullable: bool) -> list[Column]:
    """What tells a value from all others: Spark's hash passes over nulls, so that it does not see where one stands."""
    found = [column.isNull()] if nullable else []
    if isinstance(kind, StructType):
        found += [told for field in kind.fields for told in _told(column[field.name], field.dataType, field.nullable)]
    elif isinstance(kind, ArrayType) and _nulls(column, kind.elementType, kind.containsNull):
        found.append(F.transform(column, lambda each: F.struct(*_told(each, kind.elementType, kind.containsNull))))
    else:
        found.append(column)
    return found


def salted(name: str, token: str) -> Column:
    """The salt that makes decisions of this name in this query independent of all others, as a literal."""
    return F.lit(hashing.salt(name, token)).cast("bigint")


def sound_share(share: Column) -> Column:
    """The share, or 1 where it is none: what a damaged or forged plan says then drops nothing."""
    return F.when(share.between(0.0, 1.0), share).otherwise(F.lit(1.0))


def late_before_us(setting: Column, now_us: Column) -> Column:
    """The arrival before which a row is late, from a setting with `late_after_s` and the batch's time.

    Null, so that no row is late, where that is no age: a number too large would end the query.
    """
    age_s = setting["late_after_s"]
    return F.when(age_s.between(0.0, LONGEST_S), now_us - (age_s * 1e6).cast("bigint"))


def is_late(rows: DataFrame, arrival: str, plan: Column) -> Column:
    """Whether a row arrived before the plan's `late_before_us`."""
    return arrived_us(rows[arrival]) < plan["late_before_us"]


def arrived_us(arrival: Column) -> Column:
    """A row's arrival in microseconds, whatever kind of timestamp it comes as."""
    return F.unix_micros(arrival.cast("timestamp"))
