"""The baseline against figures worked out by hand from Spark's source, and against ours on the plant."""

from __future__ import annotations

import pytest

from jettison.core.stats import PointStats, Stats
from jettison.lab.sim.pid import PIDRateEstimator, PIDShedder
from jettison.lab.sim.scenarios import REGULATORS, SCENARIOS, compare, measure, table


def test_the_first_batch_sets_the_processing_rate() -> None:
    pid = PIDRateEstimator(batch_interval_s=0.02)
    assert pid.compute(0.0, 10, 0.01, 0.0) == 1000
    assert pid.compute(0.0, 10, 0.01, 0.0) is None, "time must advance"
    assert pid.compute(0.1, 0, 0.01, 0.0) is None, "a batch without rows changes nothing"
    assert pid.compute(0.1, 10, 0.0, 0.0) is None


def test_the_proportional_part_follows_the_processing_rate() -> None:
    pid = PIDRateEstimator(batch_interval_s=1.0, integral=0.0)
    pid.compute(1.0, 1000, 1.0, 0.0)
    assert pid.compute(2.0, 1000, 4.0, 0.0) == pytest.approx(250)


def test_the_integral_part_works_off_the_scheduling_delay() -> None:
    pid = PIDRateEstimator(batch_interval_s=1.0)
    pid.compute(1.0, 1000, 1.0, 0.0)
    assert pid.compute(2.0, 1000, 1.0, 2.0) == pytest.approx(1000 - 0.2 * 2.0 * 1000)


def test_the_derivative_part_and_the_floor() -> None:
    pid = PIDRateEstimator(batch_interval_s=1.0, proportional=0.0, integral=0.0, derivative=0.5)
    pid.compute(1.0, 1000, 1.0, 0.0)
    assert pid.compute(3.0, 400, 1.0, 0.0) == pytest.approx(1000 - 0.5 * 600 / 2)
    assert PIDRateEstimator(1.0).min_rate == 100
    low = PIDRateEstimator(batch_interval_s=1.0)
    low.compute(1.0, 1000, 1.0, 0.0)
    assert low.compute(2.0, 10, 1.0, 0.0) == 100


def test_the_shedder_starts_without_a_limit_and_then_limits() -> None:
    shedder = PIDShedder(batch_interval_s=1.0)
    assert shedder.initial().rows_per_s == float("inf")
    limit = shedder.step(Stats(0, 0.0, 2.0, {"p": PointStats(1000, 1000)}))
    assert limit.rows_per_s == 500
    late = shedder.step(Stats(1, 2.0, 2.0, {"p": PointStats(1000, 1000)}))
    assert late.rows_per_s == pytest.approx(500 - 0.2 * 1.0 * 500), "it started one second late"
    assert shedder.idle(9.0) == late


def test_back_to_back_it_throttles_itself_far_below_capacity() -> None:
    """Each batch earns the rate of the one before it, fixed cost included, so batches shrink without need."""
    name, make, interval_s = REGULATORS[2]
    outcome = measure(SCENARIOS[0], name, make, interval_s, range(3))
    assert outcome.kept_to_ideal < 0.6
    assert outcome.batches_to_recover is None or outcome.batches_to_recover > 30


def test_the_controller_keeps_the_bound_where_the_estimator_breaks_it() -> None:
    ours, pid = (measure(SCENARIOS[1], *regulator, range(6)) for regulator in REGULATORS[:2])
    assert ours.worst_p95_latency_s <= 3.0 < pid.worst_p95_latency_s
    assert ours.variation < pid.variation


def test_the_table_has_a_line_for_every_pair() -> None:
    outcomes = compare(seeds=[0])
    text = table(outcomes)
    assert len(outcomes) == len(SCENARIOS) * len(REGULATORS)
    assert len(text.splitlines()) == 2 + len(outcomes)
