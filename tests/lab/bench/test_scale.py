"""Exponents that fit, and the cases that need no Spark, at small sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.lab.bench import scale
from jettison.lab.bench.growth import exponent, grows

SIZES = [10, 100, 1_000, 10_000]


@given(st.floats(0.1, 3.0), st.floats(0.01, 100.0))
def test_the_exponent_of_a_power_is_found(power: float, factor: float) -> None:
    assert exponent(SIZES, [factor * size**power for size in SIZES]).value == pytest.approx(power)


@pytest.mark.parametrize(("power", "holds"), [(0.5, True), (1.0, True), (2.0, False)])
def test_worse_than_n_log_n_misses_the_bar(power: float, holds: bool) -> None:
    assert grows("cost", {size: float(size) ** power for size in SIZES}, "ms").holds is holds


def test_n_log_n_itself_meets_it() -> None:
    assert grows("cost", {size: size * np.log2(size) for size in SIZES}, "ms").value == pytest.approx(1.0)


def test_fixed_cost_of_small_sizes_hides_nothing() -> None:
    """A square behind a large constant: over all sizes it would look like a line."""
    costs = {size: 1e6 + float(size) ** 2 for size in (10, 30, 100, 3_000, 10_000, 30_000, 100_000)}
    assert grows("cost", costs, "ms").holds is False


@pytest.mark.parametrize(
    ("case", "sizes"),
    [
        (scale.drop_points, (10, 20, 30)),
        (scale.groups, (10, 50, 100)),
        (scale.regions, (4, 8, 16)),
        (scale.queries, (10, 20, 40)),
    ],
)
def test_each_case_without_spark_measures_every_size(case, sizes) -> None:
    for result in case(1, sizes):
        assert set(result.config["costs"]) == {str(size) for size in sizes}
        assert all(cost >= 0.0 for cost in result.config["costs"].values())
