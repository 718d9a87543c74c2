"""Priorities on Spark: predicates tell the level of a row, and the hash of its identity meets the level's threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.core.documents import field_types
from jettison.core.hashing import HIGHEST
from jettison.policies.priority.priority_setting import LevelDrop, LevelSpec
from jettison.spark import validate
from jettison.spark.drop_point import DropPoint, identity_hash, is_late, late_before_us
from jettison.spark.mechanisms.mechanism import Mechanism
from jettison.spark.mechanisms.random_mechanism import threshold, weight
from jettison.spark.mechanisms.setting_schema import schema_of

_LEVEL, _WEIGHT = "jt_level", "jt_level_weight"


class PriorityMechanism(Mechanism):
    """Executes `LevelDrop`.

    Rows kept are counted by level, each for as many as it stands for: what is left of a level tells how large it is.
    """

    schema = schema_of(field_types(LevelDrop), "keeps", "late_keeps", "late_after_s")
    learns_from = (_LEVEL, _WEIGHT)

    def __init__(self, spec: LevelSpec) -> None:
        self._levels = spec.levels

    def check(self, rows: DataFrame, point: DropPoint) -> None:
        for level in self._levels:
            validate.predicate(rows, level, where=point.place, argument="priorities")

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """Thresholds and weights by level, of rows in time and of late ones; what is no share keeps its rows."""
        keeps = setting["keeps"]
        late = F.coalesce(setting["late_keeps"], keeps)
        lowest = F.least(*(F.array_min(F.transform(one, threshold)) for one in (keeps, late)))
        return {
            "thresholds": F.transform(keeps, threshold),
            "weights": F.transform(keeps, weight),
            "late_thresholds": F.transform(late, threshold),
            "late_weights": F.transform(late, weight),
            "everything": lowest == HIGHEST,
            "late_before_us": late_before_us(setting, now_us),
        }

    def helpers(self, rows: DataFrame, point: DropPoint, plan: Column) -> list[dict[str, Column]]:
        """The level, none for protected rows, and what a row of it stands for if it is kept."""
        level = F.lit(len(self._levels))
        for number, predicate in reversed(list(enumerate(self._levels))):
            level = F.when(F.expr(predicate), F.lit(number)).otherwise(level)
        if point.protect is not None:
            level = F.when(~F.coalesce(point.protect, F.lit(False)), level)
        stands_for = self._of_level(rows, point, plan, "weights")
        return [{_LEVEL: level}, {_WEIGHT: F.coalesce(stands_for, F.lit(1.0))}]

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        kept = identity_hash(rows, point) <= self._of_level(rows, point, plan, "thresholds")
        return plan["everything"] | kept, F.col(_WEIGHT)

    def learned(self, keep: Column) -> Mapping[str, Column]:
        rows = [
            F.sum(F.when(keep & (F.col(_LEVEL) == number), F.col(_WEIGHT)).otherwise(0.0))
            for number in range(len(self._levels) + 1)
        ]
        return {"levels": F.array(*rows)}

    def read(self, observed: Mapping[str, Any]) -> tuple[float, ...] | None:
        levels = observed.get("levels")
        return None if not levels or None in levels else tuple(levels)

    def _of_level(self, rows: DataFrame, point: DropPoint, plan: Column, name: str) -> Column:
        found = F.get(plan[name], F.col(_LEVEL))
        if not point.arrival:
            return found
        return F.when(is_late(rows, point.arrival, plan), F.get(plan[f"late_{name}"], F.col(_LEVEL))).otherwise(found)
