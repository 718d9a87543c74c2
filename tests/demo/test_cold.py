"""What the first minute of a run comes to, over made-up runs. Starts no Spark."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from demo_runs import PHASES, run_with
from jettison.demo.cold import first_minute


def test_the_first_batch_counts_like_all_others() -> None:
    run = run_with([8.0] + [1.0] * 40, kept=1.0)
    found = first_minute(run, PHASES)
    assert found.first_batch_s == pytest.approx(8.0)
    # The next batch takes what arrived while the first one ran: its oldest row waits for both.
    assert found.latency_worst_s == pytest.approx(9.0, abs=0.2)
    assert found.latency_p95_s is not None
    assert found.latency_p95_s < found.latency_worst_s
    assert (found.kept_fraction, found.kept_below_capacity) == (pytest.approx(1.0), pytest.approx(1.0))


def test_rows_dropped_before_the_overload_are_told_from_others() -> None:
    run = run_with([1.0] * 60, kept=1.0)
    first, second, *others = run.batches
    run.batches = [
        first,
        replace(second, kept_fraction=0.5),
        *(replace(each, kept_fraction=0.4) for each in others[10:]),
    ]
    found = first_minute(run, PHASES)
    assert found.kept_below_capacity is not None
    assert found.kept_fraction is not None
    assert 0.4 < found.kept_fraction < found.kept_below_capacity < 1.0


def test_rows_without_an_answer_have_waited_so_far_and_unknown_counts_say_nothing() -> None:
    run = run_with([1.0] * 10, kept=math.nan)
    found = first_minute(run, PHASES)
    assert found.latency_worst_s == pytest.approx(run.ended_s - run.batches[-1].started_s, abs=0.2)
    assert (found.kept_fraction, found.kept_below_capacity) == (None, None)
    run.batches = []
    assert first_minute(run, PHASES).first_batch_s is None
