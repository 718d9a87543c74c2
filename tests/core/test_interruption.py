"""Ctrl-C ends a command with everything that it has started, whoever holds on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WITHIN_S = 60.0  # on a busy machine; on a quiet one it takes a second
# A worker, and what the worker has started; both say in which process they run.
_HELPERS = """
import os, pathlib, signal, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from jettison.core.interruption import leave_it_to_the_parent
here = pathlib.Path(sys.argv[-1])

def work(stubborn):
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (here / "sleeper").write_text(str(sleeper.pid))
    (here / "worker").write_text(str(os.getpid()))
    time.sleep(600)
"""
_COMMAND = """
import logging
import typer
from helpers import *
from jettison import cli
from jettison.core import interruption
interruption.GRACE_S = 1.0

@cli.app.command()
def wait(how: str, where: str) -> None:
    if how == "swallows":
        while True:
            try:
                (here / "worker").write_text(str(os.getpid()))
                (here / "sleeper").write_text(str(os.getpid()))
                time.sleep(600)
            except KeyboardInterrupt:
                pass
    with ProcessPoolExecutor(1, get_context("spawn"), leave_it_to_the_parent) as pool:
        try:
            pool.submit(work, how == "stubborn").result()
        except KeyboardInterrupt:
            if how == "logs":  # as py4j does
                logging.exception("KeyboardInterrupt while sending command.")
            if how == "fails":  # as a call to Java within another one
                try:
                    raise RuntimeError("reentrant call")
                except RuntimeError:
                    logging.exception("Exception while sending command.")
            raise

if __name__ == "__main__":
    cli.main()
"""


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("how", ["worker", "stubborn", "swallows", "logs", "fails"])
@pytest.mark.parametrize("group", [False, True])
def test_ctrl_c_ends_a_command_and_all_that_it_started(tmp_path: Path, how: str, group: bool) -> None:
    """Typed into a terminal it reaches the whole group; sent by another program, one process alone."""
    (tmp_path / "helpers.py").write_text(_HELPERS)
    (tmp_path / "command.py").write_text(_COMMAND)
    command = [sys.executable, "command.py", "wait", how, str(tmp_path)]
    running = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    until = time.monotonic() + WITHIN_S
    while not (tmp_path / "worker").exists() or not (tmp_path / "worker").read_text():
        assert time.monotonic() < until
        assert running.poll() is None
        time.sleep(0.05)
    processes = [int((tmp_path / name).read_text()) for name in ("worker", "sleeper")]
    if group:
        os.killpg(running.pid, signal.SIGINT)
    else:
        running.send_signal(signal.SIGINT)
    said, errors = running.communicate(timeout=WITHIN_S)
    assert (running.returncode, said, errors) == (130, "", "jettison: interrupted\n")
    assert not any(alive(process) for process in processes)


_HELD_ON = """
import logging, subprocess, sys, threading
from jettison.core import interruption

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

def misses_it():
    child.wait()
    logging.error("the other side is gone")

thread = threading.Thread(target=misses_it)
thread.start()
interruption.end_all()
thread.join()
"""


def test_nobody_complains_of_what_was_ended_on_purpose() -> None:
    """As py4j does, of a Java process that a thread was talking to."""
    done = subprocess.run([sys.executable, "-c", _HELD_ON], capture_output=True, text=True, timeout=WITHIN_S)
    assert (done.returncode, done.stderr) == (0, "")
