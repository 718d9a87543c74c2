"""Kill -9 while windows are being dropped: what was decided stays decided, and every answer is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import jettison as jt
from committed import committed_rows
from driver_process import kill_when, start_driver
from window_streams import START, dropped_windows, land_seconds

FILES, SECONDS_PER_FILE, ROWS_PER_SECOND = 14, 10, 20


@pytest.mark.long
def test_kill_while_windows_are_dropped_changes_no_decision_and_no_answer(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for file in range(FILES):
        seconds = range(SECONDS_PER_FILE * file, SECONDS_PER_FILE * (file + 1))
        land_seconds(tmp_path / "in" / f"{file:03d}.json", seconds, ROWS_PER_SECOND, age=file)
    ledger = jt.Ledger(tmp_path / "checkpoint" / "jettison" / "ledger")

    def dropping() -> bool:
        return ledger.totals().batches >= 5 and bool(dropped_windows(ledger.records("plan")))

    kill_when(start_driver("window_driver", tmp_path, str(tmp_path)), dropping)
    before = dropped_windows(ledger.records("plan"))
    assert start_driver("window_driver", tmp_path, str(tmp_path), "finish").wait(timeout=400) == 0

    dropped = {5 * n for n in dropped_windows(ledger.records("plan"))}  # fails where a decision has changed
    assert {5 * n for n in before} <= dropped
    answers = [(int(a["window"]["start"].timestamp()), a["n"]) for a in committed_rows(tmp_path / "out")]
    starts = [start for start, _ in answers]
    assert len(starts) == len(set(starts)), "an answer is there twice"
    assert {n for start, n in answers if start >= START} == {10 * ROWS_PER_SECOND}
    # A window comes out in the batch after the one whose rows have closed it.
    watermark = START + (FILES - 1) * SECONDS_PER_FILE - 1 - 2
    closed = set(range(START, watermark - 9, 5))
    assert closed - dropped <= set(starts)
    assert not dropped & set(starts)
    assert closed & dropped
