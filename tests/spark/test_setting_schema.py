"""Spark reads plans as it always has: a field that changes its name or its type shows here."""

from __future__ import annotations

import pytest

from jettison.spark.mechanisms import (
    GroupMechanism,
    Mechanism,
    PriorityMechanism,
    RandomMechanism,
    RangeMechanism,
    RegionMechanism,
    WindowMechanism,
)
from jettison.spark.mechanisms.setting_schema import schema_of

LATE = "late_after_s: double"


@pytest.mark.parametrize(
    ("mechanism", "schema"),
    [
        (RandomMechanism, f"keep_fraction: double, late_keep_fraction: double, {LATE}"),
        (
            RangeMechanism,
            f"kind: string, keep_fraction: double, late_keep_fraction: double, {LATE}, drop: array<array<double>>",
        ),
        (
            GroupMechanism,
            "starts_us: array<bigint>, others: array<double>, groups: array<array<bigint>>, keeps: array<array<double>>, "
            f"new_keep_fraction: double, late_factor: double, {LATE}",
        ),
        (
            RegionMechanism,
            "keep_fraction: double, space: bigint, cuts: array<array<int>>, cells: array<int>, missing: array<int>, "
            f"keep: array<double>, late_keep: array<double>, {LATE}",
        ),
        (PriorityMechanism, f"keeps: array<double>, late_keeps: array<double>, {LATE}"),
        (WindowMechanism, "first: array<bigint>, marks: array<string>, opens_us: array<array<bigint>>"),
    ],
)  # fmt: skip
def test_what_spark_reads_follows_from_the_types_of_the_setting(mechanism: type[Mechanism], schema: str) -> None:
    assert mechanism.schema.replace("`", "") == f"struct<{schema}>"


def test_a_field_that_the_setting_does_not_have_is_found_when_the_mechanism_is_made() -> None:
    with pytest.raises(KeyError, match="kept"):
        schema_of({"keep": float}, "kept")
