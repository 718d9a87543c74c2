"""The snapshot counts rows without a remainder and reads as one line."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from jettison.core.answer_bounds import AnswerBounds
from jettison.costs.cost_hashing import SharedHashes
from jettison.costs.function_status import CostStatus
from jettison.costs.task_report import TaskReport
from jettison.runtime.status import Status

STATUS = Status(
    mode="shedding",
    keep_fraction={"rides": 0.25, "fares": 1.0},
    plan_version=12,
    cause="4 times too many rows",
    latency_s=2.5,
    latency_bound_s=3.0,
    batches=8,
    rows_seen=4000,
    rows_kept=1000,
    faults={"plan": 1},
)


def test_rows_seen_are_kept_or_dropped():
    assert STATUS.rows_dropped == 3000
    assert STATUS.rows_seen == STATUS.rows_kept + STATUS.rows_dropped


def test_the_line_names_mode_fractions_latency_rows_plan_and_cause():
    assert str(STATUS) == (
        "shedding (keep fraction: rides 0.250, fares 1.000), latency 2.50 s of 3 s, "
        "1,000 of 4,000 rows kept, plan 12: 4 times too many rows; faults: plan 1"
    )


def test_the_share_of_late_rows_is_named_where_it_is_another():
    status = dataclasses.replace(STATUS, mode="thinning late rows", late_keep_fraction={"fares": 0.05})
    assert str(status).startswith("thinning late rows (keep fraction: rides 0.250, fares 1.000 (late rows 0.050)),")


def test_counts_that_are_estimates_are_called_so():
    line = str(dataclasses.replace(STATUS, estimated_batches=2))
    assert "about 1,000 of 4,000 rows kept (counts of 2 of 8 batches are estimates)" in line


def test_a_batch_that_runs_under_an_older_plan_is_named():
    status = dataclasses.replace(STATUS, running_batch="from the next batch on: the batch that runs keeps all its rows")
    expected = (
        "shedding (keep fraction: rides 0.250, fares 1.000) from the next batch on: the batch that runs keeps all"
    )
    assert str(status).startswith(expected)
    assert "that runs" not in str(dataclasses.replace(status, mode="dry run"))


def test_a_query_that_has_ended_is_not_spoken_of_as_running():
    ended = dataclasses.replace(STATUS, mode="ended")
    assert str(ended) == (
        "ended, 1,000 of 4,000 rows kept in 8 batches, last latency 2.50 s of 3 s, last plan 12: 4 times too many rows; "
        "faults: plan 1"
    )
    failed = dataclasses.replace(ended, error="java.lang.Boom: it broke\n  at line 7")
    assert str(failed).startswith("ended by an error (java.lang.Boom: it broke), 1,000 of")
    traced = (
        "Query 7: Traceback (most recent call last):\n  File 'a.py', line 1, in f\n    g()\nValueError: no zone 7\n"
    )
    assert str(dataclasses.replace(ended, error=traced)).startswith(
        "ended by an error (ValueError: no zone 7), 1,000 of"
    )
    assert dataclasses.replace(ended, error="password=hunter2").error == "password=***"


def test_the_line_in_the_guide_to_dry_runs_is_what_a_status_says():
    guide = (Path(__file__).parents[2] / "docs" / "dry-run.md").read_text()
    shown = " ".join(re.search(r"```\n(dry run .*?)```", guide, flags=re.DOTALL)[1].split())
    cause = "412,000 rows/s arrive, 131,000 rows/s can be processed within 3.0 s: keep 0.31"
    fare = AnswerBounds(answers=150, bounded=138, few_rows=12, median=0.031, p95=0.098, foreseen=True)
    counts = (12, 4_200_113, 1_302_411, {})
    assert shown == str(Status("dry run", {"rows": 0.31}, 7, cause, 2.41, 3.0, *counts, bounds={"fare": fare}))


def test_what_keeps_rows_from_being_dropped_stands_first():
    status = dataclasses.replace(STATUS, mode="not shedding", not_shedding="OSError: disk full", faults={})
    assert str(status).startswith("not shedding: OSError: disk full (keep fraction: rides 0.250, fares 1.000), latency")


def test_before_the_first_batch_the_line_says_so():
    assert "latency no batch yet of 3 s" in str(dataclasses.replace(STATUS, latency_s=None))


def test_companions_are_shown_with_their_costliest_keys():
    report = TaskReport.empty(SharedHashes(1, 8, seed=1))
    report.top = {"@dear": (4.0, 0.1)}
    function = CostStatus.of(report, max_wait_s=1.0)
    assert "; score: 0 of 0 rows kept" in str(dataclasses.replace(STATUS, companions={"score": function}))
    assert "costliest: @dear (25 ms)" in str(dataclasses.replace(STATUS, companions={"score": function}))


def test_a_snapshot_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        STATUS.batches = 9


def test_the_line_in_the_readme_is_what_a_status_says():
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    shown = " ".join(re.search(r"```\n(shedding .*?)```", readme, flags=re.DOTALL)[1].split())
    cause = "412,000 rows/s arrive, 131,000 rows/s can be processed within 3.0 s: keep 0.31"
    late = {"rows": 0.05}
    counts = (12, 4_200_113, 1_302_411, {})
    status = Status("shedding", {"rows": 0.31}, 7, cause, 2.41, 3.0, *counts, late_keep_fraction=late)
    assert shown == str(status)
