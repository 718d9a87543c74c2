"""Range drops on Spark: a value against ranges whose ends come from the plan, beside random drops.

A query network mixes both kinds: where a value survives to the outputs rows are dropped by it, elsewhere at random.
The plan tells which, so this mechanism executes either.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.core.documents import field_types
from jettison.policies.network.range_setting import MOST_RANGES, RangeDrop
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.spark.drop_point import DropPoint
from jettison.spark.mechanisms.mechanism import Mechanism
from jettison.spark.mechanisms.random_mechanism import RandomMechanism
from jettison.spark.mechanisms.setting_schema import schema_of


class RangeMechanism(Mechanism):
    """Executes `RangeDrop` on one column, and `RandomDrop`.

    The ranges are compared one by one, without a loop: Spark refuses what the plan holds inside higher-order functions.
    """

    schema = schema_of(
        {"kind": str} | field_types(RandomDrop) | field_types(RangeDrop), "kind", *field_types(RandomDrop), "drop"
    )

    def __init__(self, column: str) -> None:
        self._column = column
        self._random = RandomMechanism()

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """The random drop's fields, the ends of each range, null where there are fewer, and whether they drop nothing.

        A plan may be damaged or forged and still be JSON: ranges that `RangeDrop` would refuse drop nothing.
        """
        by_range = setting["kind"] == RangeDrop.kind
        fields = self._random.plan_fields(setting, now_us)
        fields["everything"] = ~F.coalesce(_sound(setting), F.lit(False))
        fields["by_range"] = F.coalesce(by_range, F.lit(False))
        for number in range(MOST_RANGES):
            ends = F.get(setting["drop"], F.lit(number))
            fields[f"low{number}"], fields[f"end{number}"] = F.get(ends, F.lit(0)), F.get(ends, F.lit(1))
        return fields

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        """Outside all ranges, or kept by the hash, whichever the plan asks for."""
        kept, weight = self._random.decision(rows, point, plan)
        if self._column not in rows.columns:
            return kept, weight
        value = rows[self._column].cast("double")
        inside = [
            F.coalesce((value >= plan[f"low{n}"]) & (value < plan[f"end{n}"]), F.lit(False)) for n in range(MOST_RANGES)
        ]
        outside = plan["everything"] | ~reduce(lambda a, b: a | b, inside)
        by_range = plan["by_range"]
        # What is left is a subset, not a sample: it stands for itself only.
        return F.when(by_range, outside).otherwise(kept), F.when(by_range, F.lit(1.0)).otherwise(weight)


def _sound(setting: Column) -> Column:
    """Whether ranges are given, few, finite, ascending and without overlap, beside a share that makes sense."""
    ends = F.flatten(setting["drop"])
    return (
        F.size(setting["drop"]).between(1, MOST_RANGES)
        & F.forall(setting["drop"], lambda one: (F.size(one) == 2) & (F.get(one, F.lit(0)) < F.get(one, F.lit(1))))
        & F.forall(ends, lambda end: end.isNotNull() & (F.abs(end) < float("inf")))
        & (F.array_sort(ends) == ends)
        & setting["keep_fraction"].between(0.0, 1.0)
    )
