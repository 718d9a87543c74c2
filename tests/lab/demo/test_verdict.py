"""The demo's figures, over runs whose latency is known beforehand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from demo_runs import PHASES, run_with
from jettison.lab.demo import verdict


def test_a_query_that_keeps_up_has_a_latency_of_at_most_two_batches() -> None:
    latency = verdict.latency(run_with([1.0] * 60), PHASES, 3.0)
    assert latency.latency_worst_s == pytest.approx(2.0, abs=0.02)
    assert latency.latency_p50_s == pytest.approx(1.5, abs=0.05)
    assert latency.latency_p95_s == pytest.approx(1.95, abs=0.05)
    assert latency.latency_growth_s_per_s == pytest.approx(0.0, abs=0.01)
    assert latency.unanswered_rows == 0
    assert (latency.latency_peak_s, latency.back_under_bound_s) == (pytest.approx(2.0, abs=0.02), 0.0)
    assert latency.judged_batches == len(verdict.overload_batches(run_with([1.0] * 60), PHASES)) > 20


def test_a_query_that_falls_behind_grows_and_its_waiting_rows_count() -> None:
    latency = verdict.latency(run_with([1.0] * 10 + [3.0, 9.0, 27.0, 81.0]), PHASES, 10.0)
    assert 0.3 < latency.latency_growth_s_per_s < 1.0
    assert latency.unanswered_rows > 5_000
    # The batch that ended at 49.5 s took what had arrived from 13.5 s on.
    assert latency.latency_peak_s == pytest.approx(36.0, abs=0.2)
    assert latency.back_under_bound_s is None
    assert latency.held is verdict.Held.NO
    assert (latency.judged_batches, latency.latency_p50_s, latency.latency_p95_s, latency.latency_worst_s) == (
        0,
        None,
        None,
        None,
    ), "rows that wait show no latency of batches that were never there"


def test_a_query_of_which_no_batch_ends_falls_behind_second_by_second() -> None:
    latency = verdict.latency(run_with([]), PHASES, 10.0)
    assert latency.latency_growth_s_per_s == pytest.approx(1.0, abs=0.01)
    assert latency.latency_peak_s == pytest.approx(50.0, abs=0.2)


def test_a_batch_that_ends_just_before_the_run_does_is_no_recovery() -> None:
    """Its rows were old and those that wait are young: between these two moments the age only seems to fall."""
    assert verdict.latency(run_with([39.0]), PHASES, 10.0).latency_growth_s_per_s > 0.3


def test_the_whole_overload_is_told_beside_the_part_that_is_judged() -> None:
    # The step is at 10 s; batches end at 10.5, 18.5, 29.5 and then every second.
    latency = verdict.latency(run_with([1.0] * 10 + [8.0, 11.0] + [1.0] * 60), PHASES, 10.0)
    assert latency.latency_peak_s == pytest.approx(19.0, abs=0.2)
    assert latency.latency_p95_s < 10.0, "the judged part alone would pass"
    assert latency.back_under_bound_s == pytest.approx(20.5, abs=0.1), "the batch after the slow one still pays for it"
    assert latency.over_bound_share == pytest.approx(20.5 / 30.0, abs=0.01)
    assert latency.over_bound_batches == 2
    # The first took what came in 8 s, all of it too late; the second what came in 11 s, the first 2 s of it too late.
    assert latency.over_bound_rows == pytest.approx(600 * (8.0 + 2.0), rel=0.02)
    assert latency.held is verdict.Held.CAME_BACK


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ({}, verdict.Held.YES),
        ({"over_bound_share": 0.25}, verdict.Held.YES),
        ({"over_bound_share": 0.26}, verdict.Held.CAME_BACK),
        ({"judged_batches": 4}, verdict.Held.UNKNOWN),
        ({"judged_batches": 4, "over_bound_share": 0.5}, verdict.Held.CAME_BACK),
        ({"back_under_bound_s": None, "over_bound_share": 1.0}, verdict.Held.NO),
        ({"latency_p95_s": 10.01}, verdict.Held.NO),
    ],
)
def test_held_takes_enough_batches_and_little_time_over_the_bound(change: dict[str, Any], held: verdict.Held) -> None:
    good = verdict.latency(run_with([1.0] * 60), PHASES, 10.0)
    assert replace(good, **change).held is held


def test_a_bound_that_the_last_batch_breaks_has_not_come_back() -> None:
    run = run_with([1.0] * 10 + [4.0] * 10)
    latency = verdict.latency(replace(run, landed=run.batches[-1].last), PHASES, 7.0)
    assert (latency.back_under_bound_s, latency.over_bound_share) == (None, 1.0)


def test_the_first_batches_of_the_overload_are_not_judged() -> None:
    slow_at_first = [1.0] * 10 + [4.0, 4.0, 4.0] + [1.0] * 60
    assert verdict.latency(run_with(slow_at_first), PHASES, 10.0).latency_p95_s < 5.5
    assert len(verdict.overload_batches(run_with([1.0] * 60), PHASES, after=0)) - 3 == len(
        verdict.overload_batches(run_with([1.0] * 60), PHASES)
    )


def test_an_overload_that_is_over_within_its_first_batches_leaves_nothing_to_judge() -> None:
    run = run_with([1.0] * 10 + [14.0, 16.0, 9.0])
    latency = verdict.latency(replace(run, landed=run.batches[-1].last), PHASES, 10.0)
    assert (latency.judged_batches, latency.latency_p50_s, latency.latency_p95_s, latency.latency_worst_s) == (
        0,
        None,
        None,
        None,
    )
    assert verdict.kept(run, PHASES).kept_fraction is None
    assert verdict.kept(run, PHASES).kept_fraction_variation is None


def test_kept_fraction_is_weighted_by_rows_and_its_variation_is_not() -> None:
    run = run_with([1.0] * 60, kept=0.25)
    assert verdict.kept(run, PHASES).kept_fraction == pytest.approx(0.25)
    assert verdict.kept(run, PHASES).kept_fraction_variation == pytest.approx(0.0)


def test_a_batch_without_a_count_on_record_says_nothing_of_the_share_kept() -> None:
    run = run_with([1.0] * 60, kept=0.25)
    batches = list(run.batches)
    batches[20] = replace(batches[20], kept_fraction=math.nan)
    run = replace(run, batches=batches)
    assert verdict.kept(run, PHASES).kept_fraction == pytest.approx(0.25)
    assert verdict.kept(run, PHASES).kept_fraction_variation == pytest.approx(0.0)
    assert verdict.kept(run, PHASES).batches_not_counted == 1


def test_the_first_batch_counts_like_all_others() -> None:
    run = run_with([8.0] + [1.0] * 40, kept=1.0)
    found = verdict.first_minute(run, PHASES)
    assert found.first_batch_s == pytest.approx(8.0)
    # The next batch takes what arrived while the first one ran: its oldest row waits for both.
    assert found.latency_worst_s == pytest.approx(9.0, abs=0.2)
    assert found.latency_p95_s is not None
    assert found.latency_p95_s < found.latency_worst_s
    assert (found.kept_fraction, found.kept_below_capacity) == (pytest.approx(1.0), pytest.approx(1.0))


def test_rows_dropped_before_the_overload_are_told_from_others() -> None:
    run = run_with([1.0] * 60, kept=1.0)
    first, second, *others = run.batches
    batches = [
        first,
        replace(second, kept_fraction=0.5),
        *(replace(each, kept_fraction=0.4) for each in others[10:]),
    ]
    run = replace(run, batches=batches)
    found = verdict.first_minute(run, PHASES)
    assert found.kept_below_capacity is not None
    assert found.kept_fraction is not None
    assert 0.4 < found.kept_fraction < found.kept_below_capacity < 1.0


def test_rows_without_an_answer_have_waited_so_far_and_unknown_counts_say_nothing() -> None:
    run = run_with([1.0] * 10, kept=math.nan)
    found = verdict.first_minute(run, PHASES)
    assert found.latency_worst_s == pytest.approx(run.ended_s - run.batches[-1].started_s, abs=0.2)
    assert (found.kept_fraction, found.kept_below_capacity) == (None, None)
    # The last batch that ended began at 9.5 s, half a second before the load rose to 600 rows/s for 30 s, and then 100.
    assert found.unanswered_rows == pytest.approx(50 + 600 * 30 + 1000, abs=20)
    assert verdict.first_minute(replace(run, batches=[]), PHASES).first_batch_s is None
