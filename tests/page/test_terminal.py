"""A query in the terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from jettison.page.terminal import screen
from jettison.page.view import Query
from page_ledgers import query


def shown(view, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, record=True, file=open(os.devnull, "w"))  # noqa: SIM115 - ends with it
    console.print(screen(view, width, height))
    return console.export_text().splitlines()


@pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24), (50, 16)])
def test_the_screen_fits_the_window_and_says_what_the_page_says(tmp_path: Path, width: int, height: int) -> None:
    query(tmp_path)
    view = Query(str(tmp_path), "rides").view()
    lines = shown(view, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "25,000 of 40,000 rows kept" in text
    assert "plan 2: twice too many rows" in text
    assert "latency of 3 s" in text
    assert ("5.9%" in text) == (height > 16), "the error of the answers, where there is room"


def test_what_comes_from_data_cannot_steer_the_terminal(tmp_path: Path) -> None:
    query(tmp_path, point="\x1b[31mred\x07", cause="\x1b]0;title\x07 [bold]too many")
    text = "\n".join(shown(Query(str(tmp_path), "rides").view(), 120, 40))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]too many" in text


@pytest.mark.parametrize("key", ["q", "Ctrl-C"])
def test_q_and_ctrl_c_quit(tmp_path: Path, key: str) -> None:
    query(tmp_path)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "jettison.cli", "top", str(tmp_path)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    try:
        seen, deadline_s = b"", time.monotonic() + 120
        while b"q: quit" not in seen and time.monotonic() < deadline_s:
            if select.select([ours], [], [], 1.0)[0]:
                seen += os.read(ours, 65536)
        assert b"twice too many rows" in seen
        if key == "q":
            os.write(ours, b"q")
        else:
            process.send_signal(signal.SIGINT)
        while process.poll() is None and time.monotonic() < deadline_s:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        os.close(ours)
