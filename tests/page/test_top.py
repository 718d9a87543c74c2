"""What a query left beside its checkpoint, shown without asking the query."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from jettison.core.plan import DropPlan
from jettison.core.stats import PointStats, Stats
from jettison.core.storage import Folder
from jettison.costs.cost_hashing import SharedHashes
from jettison.costs.function_status import CostStatus
from jettison.costs.task_report import TaskReport
from jettison.errors import InvalidInput
from jettison.page.command import run_top
from jettison.runtime.ledger import Ledger


def shown(checkpoint: Path) -> str:
    console = Console(width=160, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115 - ends with it
    run_top(console, str(checkpoint))
    return console.export_text()


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must be that of a query that has run under Jettison"):
        shown(tmp_path)


def test_latency_rows_cause_and_the_costliest_keys_are_shown(tmp_path: Path) -> None:
    home = Folder(tmp_path) / "jettison"
    ledger = Ledger.open(home / "ledger")
    ledger.start(0.5, latency_bound_s=3.0, points=["rows"], restored=False)
    ledger.plan(1.0, DropPlan(3, cause="all is well"))
    ledger.batch(Stats(6, 1e9 - 1, 0.5, {"rows": PointStats(500, 500)}, plan_version=3), latency_s=0.5)
    seven = Stats(7, 1e9, 0.5, {"rows": PointStats(1000, 900)}, plan_version=3, waiting_rows=250)
    ledger.batch(seven, latency_s=1.25, lag=(1300, 0.75))
    report = TaskReport.empty(SharedHashes(1, 8, seed=1))
    report.seen, report.kept = 900, 800
    report.top = {"@dear": (4.0, 0.1), "@cheap": (796.0, 0.08)}
    report.dropped_keys = {"@dear": (100.0, 2.5)}
    status = CostStatus.of(report, max_wait_s=0.5)
    status.report("score").lay_down(home, "load_aware")
    text = shown(tmp_path)
    rows = next(line for line in text.splitlines() if line.startswith("rows  "))
    assert rows.split()[-6:] == ["900", "of", "1,000", "1,500", "1,400", "100"]
    assert next(line for line in text.splitlines() if line.startswith("latency of 3 s")).endswith(" 1.25 s")
    assert next(line for line in text.splitlines() if line.startswith("rows behind ")).endswith(" 1,300 (0.8 s)")
    assert next(line for line in text.splitlines() if line.startswith("rows left behind ")).endswith(" 250")
    assert "in all 2 batches: 1,400 of 1,500 rows kept" in text
    assert "plan 3: all is well" in text
    assert "score: 800 of 900 rows kept" in text
    assert next(line for line in text.splitlines() if line.startswith("@dear")).split() == [
        "@dear",
        "4",
        "25",
        "0.1",
        "100",
    ]


def test_what_comes_from_data_is_printed_as_it_is_and_steers_nothing(tmp_path: Path) -> None:
    home = Folder(tmp_path) / "jettison"
    report = TaskReport.empty(SharedHashes(1, 8, seed=1))
    report.seen, report.top = 1, {"[/a]": (4.0, 0.1), "\x1b[2Jgone": (1.0, 0.1)}
    CostStatus.of(report, max_wait_s=0.5).report("score").lay_down(home, "load_aware")
    text = shown(tmp_path)
    assert "[/a]" in text
    assert "\x1b" not in text


def test_a_status_that_cannot_be_read_is_named_and_the_rest_shown(tmp_path: Path) -> None:
    home = Folder(tmp_path) / "jettison"
    ledger = Ledger.open(home / "ledger")
    ledger.batch(Stats(0, 1e9, 0.5, {"rows": PointStats(10, 10)}, plan_version=1), latency_s=None)
    (home / "companions").replace("load_aware.json", b"{}")
    text = shown(tmp_path)
    assert next(line for line in text.splitlines() if line.startswith("latency")).endswith(" no rows")
    assert "load_aware: its report cannot be read" in text


def test_a_plan_that_no_batch_has_run_under_is_not_taken_for_that_of_the_last_one(tmp_path: Path) -> None:
    ledger = Ledger.open(Folder(tmp_path) / "jettison" / "ledger")
    ledger.batch(Stats(7, 1e9, 0.5, {"rows": PointStats(1000, 1000)}, plan_version=2), latency_s=1.25)
    ledger.plan(1.0, DropPlan(3, cause="keep 0.25"))
    assert "plan 3, under which no batch on record has run yet: keep 0.25" in shown(tmp_path)


def test_a_plan_that_still_stands_is_shown_with_the_present_reason(tmp_path: Path) -> None:
    home = Folder(tmp_path) / "jettison"
    ledger = Ledger.open(home / "ledger")
    ledger.plan(1.0, DropPlan(1, cause="start: no batch has been measured yet"))
    ledger.batch(Stats(7, 1e9, 0.5, {"rows": PointStats(10, 10)}, plan_version=1), latency_s=1.25)
    assert "plan 1: start: no batch has been measured yet" in shown(tmp_path)
    home.replace("controller.json", b'{"budget": {"cause": "100 rows/s arrive: keep all"}}')
    assert "plan 1: 100 rows/s arrive: keep all" in shown(tmp_path)
    ledger.plan(2e9, DropPlan(2, cause="a later reason"))
    assert "plan 2, under which no batch on record has run yet: a later reason" in shown(tmp_path)


def test_a_query_that_has_ended_is_said_to_have(tmp_path: Path) -> None:
    home = Folder(tmp_path) / "jettison"
    ledger = Ledger.open(home / "ledger")
    ledger.start(1.0)
    ledger.batch(Stats(0, 1e9, 0.5, {"rows": PointStats(10, 9, exact=False)}), latency_s=None)
    assert "ended 2" not in shown(tmp_path)
    assert "in all 1 batches: about 9 of 10 rows kept" in shown(tmp_path)
    ledger.stop(1.7e9, faults={}, error="it broke\n  at line 7")
    assert "ended 2023-11-14 22:13:20+00:00 by an error: it broke\n" in shown(tmp_path)


def test_a_run_that_failed_in_its_first_batch_is_shown_with_its_error(tmp_path: Path) -> None:
    ledger = Ledger.open(Folder(tmp_path) / "jettison" / "ledger")
    ledger.start(1.0)
    assert "no batch is on record" in shown(tmp_path)
    ledger.plan(1.0, DropPlan(1, cause="start"))
    traced = (
        "Query 7: Traceback (most recent call last):\n  File 'a.py', line 1, in f\n    g()\nValueError: no zone 7\n"
    )
    ledger.stop(1.7e9, faults={}, error=traced)
    text = shown(tmp_path)
    assert "by an error: ValueError: no zone 7" in text
    assert "plan 1, under which no batch on record has run yet: start" in text


def test_a_query_that_gives_no_sign_of_life_is_said_to_give_none(tmp_path: Path) -> None:
    home = Folder(tmp_path) / "jettison"
    ledger = Ledger.open(home / "ledger")
    ledger.start(1.0)
    ledger.batch(Stats(0, 1e9, 0.5, {"rows": PointStats(10, 9)}), latency_s=None)
    home.replace("owner.json", b'{"run": "a", "at_s": 1.0}')
    assert "the query may have been killed" in shown(tmp_path)
