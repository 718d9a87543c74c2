"""Kill -9 while windows are being dropped: what was decided stays decided, and every answer is whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

import jettison as jt

DRIVER = Path(__file__).with_name("window_driver.py")
START = 1_767_225_600
FILES, SECONDS_PER_FILE, ROWS_PER_SECOND = 16, 10, 20


def land(folder: Path) -> None:
    folder.mkdir()
    for file in range(FILES):
        seconds = range(SECONDS_PER_FILE * file, SECONDS_PER_FILE * (file + 1))
        lines = [
            json.dumps({"value": ROWS_PER_SECOND * s + i, "at": datetime.fromtimestamp(START + s, UTC).isoformat()})
            for s in seconds
            for i in range(ROWS_PER_SECOND)
        ]
        path = folder / f"{file:03d}.json"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (START + file, START + file))  # files are taken in the order of their age


def run_driver(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(DRIVER), str(folder), *arguments]
    return subprocess.Popen(command, cwd=folder, start_new_session=True)


def plans(ledger: jt.Ledger) -> list[dict]:
    return [record["points"]["rows"] for record in ledger.records("plan") if "rows" in record["points"]]


def test_kill_while_windows_are_dropped_changes_no_decision_and_no_answer(tmp_path: Path) -> None:
    land(tmp_path / "in")
    ledger = jt.Ledger(tmp_path / "checkpoint" / "jettison" / "ledger")
    driver = run_driver(tmp_path)
    try:
        deadline = time.monotonic() + 300
        while not any("d" in "".join(plan["marks"]) for plan in plans(ledger)) or ledger.totals().batches < 5:
            assert driver.poll() is None, "the driver ended by itself"
            assert time.monotonic() < deadline, "no windows dropped"
            time.sleep(0.1)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert run_driver(tmp_path, "finish").wait(timeout=400) == 0

    marked: dict[int, str] = {}
    for plan in plans(ledger):
        for n, letter in enumerate(plan["marks"][0] if plan["marks"] else "", start=sum(plan["first"])):
            assert marked.setdefault(n, letter) == letter, "a decision has changed"
    dropped = {5 * n for n, letter in marked.items() if letter == "d"}
    answers = [(int(a["window"]["start"].timestamp()), a["n"]) for a in pq.read_table(tmp_path / "out").to_pylist()]
    starts = [start for start, _ in answers]
    assert len(starts) == len(set(starts)), "an answer is there twice"
    assert {n for start, n in answers if start >= START} == {10 * ROWS_PER_SECOND}
    last = START + FILES * SECONDS_PER_FILE - 1 - 2  # where the watermark ends up
    closed = set(range(START, last - 9, 5))
    assert closed - dropped <= set(starts)
    assert not dropped & set(starts)
    assert closed & dropped
