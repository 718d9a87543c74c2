"""Exponents that fit, and the cases that need no Spark, at small sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.lab.bench import scale
from jettison.lab.bench.growth import exponent, grows
from jettison.lab.bench.scale_on_spark import IDLE, PLAIN, SHEDS

SIZES = [10, 100, 1_000, 10_000]


@given(st.floats(0.1, 3.0), st.floats(0.01, 100.0))
def test_the_exponent_of_a_power_is_found(power: float, factor: float) -> None:
    assert exponent(SIZES, [factor * size**power for size in SIZES]).value == pytest.approx(power)


@pytest.mark.parametrize(("power", "holds"), [(0.5, True), (1.0, True), (2.0, False)])
def test_worse_than_n_log_n_misses_the_bar(power: float, holds: bool) -> None:
    assert grows("cost", {size: float(size) ** power for size in SIZES}, "ms").holds is holds


def test_n_log_n_itself_meets_it() -> None:
    assert grows("cost", {size: size * np.log2(size) for size in SIZES}, "ms").value == pytest.approx(1.0)


def test_a_fit_that_is_not_certain_decides_nothing() -> None:
    """Exponents of 1 in the mean, from sizes that scatter around it."""
    costs = {10: 1e1, 100: 1e2, 1_000: 2e3, 10_000: 4e3, 100_000: 2e5, 1_000_000: 6e5}
    found = grows("cost", costs, "ms")
    assert found.value < 1.1
    assert found.verdict == "cannot tell"


def test_what_a_guard_adds_is_what_it_adds_while_nothing_is_shed() -> None:
    cpu_s = {
        PLAIN: {size: 1.0 * size for size in SIZES},
        IDLE: {size: 1.5 * size for size in SIZES},
        SHEDS: {size: 0.3 * size for size in SIZES},
    }
    assert scale.added("x", cpu_s).config["costs"]["1000"] == 500.0


def test_a_size_at_which_a_guard_seems_to_add_nothing_is_not_left_out() -> None:
    """By the sizes that remain the cost would be a square; by all it is noise."""
    plain = {size: 1.0 * size for size in (10, 30, 100, 300, 1_000, 3_000, 10_000)}
    idle = {size: cost * (1.0 + size / 1e4) for size, cost in plain.items()}
    assert scale.added("x", {PLAIN: plain, IDLE: idle}).holds is False
    found = scale.added("x", {PLAIN: plain, IDLE: idle | {1_000: 990.0}})
    assert math.isnan(found.value)
    assert found.verdict == "cannot tell"


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
