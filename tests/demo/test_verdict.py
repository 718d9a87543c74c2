"""The demo's figures, over runs whose latency is known beforehand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from demo_runs import PHASES, run_with
from jettison.demo import verdict


def test_a_query_that_keeps_up_has_a_latency_of_at_most_two_batches() -> None:
    latency = verdict.latency(run_with([1.0] * 60), PHASES)
    assert latency.worst_s == pytest.approx(2.0, abs=0.02)
    assert latency.p50_s == pytest.approx(1.5, abs=0.05)
    assert latency.p95_s == pytest.approx(1.95, abs=0.05)
    assert latency.growth_s_per_s == pytest.approx(0.0, abs=0.01)
    assert latency.unanswered_rows == 0
    assert latency.judged_batches == len(verdict.overload_batches(run_with([1.0] * 60), PHASES)) > 20


def test_a_query_that_falls_behind_grows_and_its_waiting_rows_count() -> None:
    latency = verdict.latency(run_with([1.0] * 10 + [3.0, 9.0, 27.0, 81.0]), PHASES)
    assert latency.growth_s_per_s > 0.3
    assert latency.unanswered_rows > 5_000
    assert latency.p95_s > 20.0


def test_the_first_batches_of_the_overload_are_not_judged() -> None:
    slow_at_first = [1.0] * 10 + [4.0, 4.0, 4.0] + [1.0] * 60
    assert verdict.latency(run_with(slow_at_first), PHASES).p95_s < 5.5
    assert len(verdict.overload_batches(run_with([1.0] * 60), PHASES, after=0)) - 3 == len(
        verdict.overload_batches(run_with([1.0] * 60), PHASES)
    )


def test_an_overload_that_is_over_within_its_first_batches_leaves_nothing_to_judge() -> None:
    run = run_with([1.0] * 10 + [14.0, 16.0, 9.0])
    latency = verdict.latency(replace(run, landed=run.batches[-1].last), PHASES)
    assert (latency.judged_batches, latency.p50_s, latency.p95_s, latency.worst_s) == (0, None, None, None)
    assert verdict.kept_fraction(run, PHASES) is None
    assert verdict.kept_fraction_variation(run, PHASES) is None


def test_kept_fraction_is_weighted_by_rows_and_its_variation_is_not() -> None:
    run = run_with([1.0] * 60, kept=0.25)
    assert verdict.kept_fraction(run, PHASES) == pytest.approx(0.25)
    assert verdict.kept_fraction_variation(run, PHASES) == pytest.approx(0.0)


def test_a_batch_without_a_count_on_record_says_nothing_of_the_share_kept() -> None:
    run = run_with([1.0] * 60, kept=0.25)
    run.batches[20] = replace(run.batches[20], kept_fraction=math.nan)
    assert verdict.kept_fraction(run, PHASES) == pytest.approx(0.25)
    assert verdict.kept_fraction_variation(run, PHASES) == pytest.approx(0.0)
    assert verdict.batches_not_counted(run) == 1
