"""Ctrl-C, typed into a terminal while Java runs, ends each command with one line, and no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from page_ledgers import query
from processes import nothing_is_left_of, of_session

WITHIN_S, AT_WORK_S = 300.0, 10.0
COMMANDS = {
    "demo": ("demo",),
    "bench": ("bench", "sifter-lookup", "--repetitions", "1"),
    "bench-apart": ("bench", "profile", "--only", "small", "--repetitions", "1"),
    "reproduce": ("reproduce", "window", "--quick", "--only", "subset"),
    "audit": ("audit", "{query}", "--answers", "answers"),
    "reconcile": ("reconcile", "{query}", "--to", "exact", "--query", "job:answers", "--source", "job:source"),
}
LONG = ("demo", "bench", "bench-apart", "reproduce")
"""Those that surely still run by then."""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them")
@pytest.mark.parametrize(
    ("name", "after_s"), [*((name, 0.0) for name in COMMANDS), *((name, AT_WORK_S) for name in LONG)]
)
def test_ctrl_c_leaves_nothing_behind(name: str, after_s: float, tmp_path: Path) -> None:
    """While Java starts, and while it works."""
    query(tmp_path / "rides")
    (tmp_path / "job.py").write_text("def answers(rows): ...\ndef source(reader): ...\n")
    words = [word.format(query=tmp_path / "rides") for word in COMMANDS[name]]
    running = subprocess.Popen(
        [sys.executable, "-m", "jettison.cli", *words],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + WITHIN_S
        while "java" not in of_session(running.pid).values():
            assert running.poll() is None, running.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.2)
        time.sleep(after_s)
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=WITHIN_S)
        assert running.returncode == 130, errors
        assert errors.endswith("jettison: interrupted\n")
        assert "Traceback" not in errors, errors
        assert nothing_is_left_of(running.pid), of_session(running.pid)
    finally:
        for process in of_session(running.pid):
            os.kill(process, signal.SIGKILL)
        running.wait()
