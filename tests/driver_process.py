"""Starts a driver in a process group of its own, and kills the whole group at a moment of the test's choice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_DRIVERS = Path(__file__).with_name("spark")


def start_driver(name: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Run `tests/spark/NAME.py` with `folder` as its working directory."""
    environment = os.environ | {"SPARK_WORKER_DIR": str(folder / "work"), "SPARK_LOCAL_DIRS": str(folder / "scratch")}
    command = [sys.executable, str(_DRIVERS / f"{name}.py"), *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)


def kill_when(driver: subprocess.Popen[bytes], ready: Callable[[], bool], *, within_s: float = 900) -> None:
    """Send kill -9 to the driver, its JVM and its workers, if any, as soon as `ready` says so."""
    try:
        deadline = time.monotonic() + within_s
        while not ready():
            assert driver.poll() is None, "the driver ended by itself"
            assert time.monotonic() < deadline, "what the test waits for has not happened"
            time.sleep(0.1)  # to look costs the driver time, too
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
