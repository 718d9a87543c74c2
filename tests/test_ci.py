"""What `.ci/run` and `make bench` do where tools are missing, or are interrupted. What they call is made up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REAL = ("bash", "cat", "chmod", "cp", "dirname", "env", "grep", "mktemp", "rm", "sleep", "touch")
LOGGED = '#!/usr/bin/env bash\necho "NAME $* page=${JETTISON_TEST_PAGE-}" >> "$LOG"\n'
WITHIN = 'while [ $# -gt 0 ] && [ $1 != apt-get ] && [ $1 != make ]; do shift; done\nexec "$@"\n'


def program(folder: Path, name: str, body: str = "") -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    path.write_text(LOGGED.replace("NAME", name) + body)
    path.chmod(0o700)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with nothing but the CI, on a machine whose root has apt-get, and neither browser nor Prometheus."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in REAL:
        (tools / name).symlink_to(str(shutil.which(name)))
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    for name in ("make", "service", "apt-get"):
        program(tools, name)
    program(tools, "id", "echo 0\n")
    program(tools, "timeout", WITHIN)
    return tmp_path


def environment(clone: Path) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "JETTISON_TEST_PAGE"}
    return {**kept, "PATH": str(clone / "tools"), "LOG": str(clone / "log")}


def log(clone: Path) -> list[str]:
    return (clone / "log").read_text().splitlines()


def run(clone: Path) -> list[str]:
    """What a run that must pass called."""
    done = subprocess.run([clone / ".ci" / "run"], env=environment(clone), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return log(clone)


@pytest.mark.parametrize("what", ["update", "install"])
def test_packages_that_cannot_be_had_end_no_run(clone: Path, what: str) -> None:
    program(clone / "tools", "apt-get", f"[ $1 != {what} ]\n")
    calls = run(clone)
    assert "make docs page=" in calls
    assert not any(call.startswith("service") for call in calls)


def test_packages_are_waited_for_for_a_while(clone: Path) -> None:
    calls = run(clone)
    asked = [call for call in calls if call.startswith("apt-get")]
    assert len(asked) == 2
    bounded = [call for call in calls if call.startswith("timeout") and "apt-get" in call]
    assert len(bounded) == len(asked)


def test_with_one_of_the_two_tools_tests_of_the_page_may_skip(clone: Path) -> None:
    program(clone / "tools", "apt-get", 'touch "${0%/*}/chromium" && chmod 700 "${0%/*}/chromium"\n')
    assert "make check page=" in run(clone)


@pytest.mark.parametrize("there", [False, True])
def test_a_prometheus_that_was_there_before_is_not_stopped(clone: Path, there: bool) -> None:
    tools = clone / "tools"
    if there:
        program(tools, "prometheus")
    program(tools, "apt-get", 'for tool in chromium prometheus; do cp "${0%/*}/service" "${0%/*}/$tool"; done\n')
    calls = run(clone)
    assert "make check page=1" in calls
    assert ("service prometheus stop page=" in calls) is not there


def interrupted(command: list[str], clone: Path, environment: Mapping[str, str], begun: str) -> int:
    """How a command ends that Ctrl-C hits once it has logged this."""
    process = subprocess.Popen(command, cwd=clone, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60.0
    while not ((clone / "log").exists() and any(begun in line for line in log(clone))):
        assert time.monotonic() < until
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(timeout=30.0)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_ctrl_c_ends_the_live_tests_too(clone: Path) -> None:
    tools = clone / "tools"
    (tools / "timeout").unlink()
    (tools / "timeout").symlink_to(str(shutil.which("timeout")))
    program(tools, "make", '[ $1 != test-live ] || { echo "sleeps $$" >> "$LOG"; exec sleep 600; }\n')
    assert interrupted([str(clone / ".ci" / "run")], clone, environment(clone), "sleeps") == 130
    (sleeps,) = [int(line.split()[1]) for line in log(clone) if line.startswith("sleeps")]
    assert has_ended(sleeps)


def has_ended(process: int) -> bool:
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        status = Path(f"/proc/{process}/stat")
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_ctrl_c_ends_all_benchmarks_and_not_only_the_one_at_work(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    bin_ = tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    for name in (
        "requirements-build.lock",
        "requirements.lock",
        "pyproject.toml",
        ".venv/.created",
        ".venv/.installed",
    ):
        (tmp_path / name).touch()
    program(bin_, "jettison", "trap 'kill $!; exit 130' INT\nsleep 600 & wait\n")
    program(bin_, "python")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment["LOG"] = str(tmp_path / "log")
    command = ["make", "bench", "PYTHON=true"]
    assert interrupted(command, tmp_path, environment, "jettison bench") != 0
    time.sleep(0.2)
    assert len(log(tmp_path)) == 1, log(tmp_path)
