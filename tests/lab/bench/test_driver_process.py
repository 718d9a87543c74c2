"""What the operating system says of a process and its threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jettison.errors import Unsupported
from jettison.lab.bench import driver_process
from jettison.lab.bench.driver_process import ENDED, KINDS, PYTHON, CpuByThread, cpu_s, jvm_of, kind_of, threads

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux has /proc")


def a_process(name: str, pid: int, parent: int, ticks: int) -> str:
    return f"{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0"


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process that has started a JVM, with a task, a compile thread and one whose name has brackets."""
    monkeypatch.setattr(driver_process, "_PROC", tmp_path)
    monkeypatch.setattr(driver_process.os, "getpid", lambda: 7)
    monkeypatch.setattr(driver_process.os, "sysconf", lambda name: 100)
    for pid, name, parent, ticks in (
        (7, "python3", 1, 100),
        (8, "bash", 7, 0),
        (9, "java", 7, 600),
        (10, "java", 8, 0),
    ):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(a_process(name, pid, parent, ticks))
    for thread, name in ((21, "Executor task l"), (22, "C2 CompilerThre"), (23, "odd) (one")):
        set_thread(tmp_path, thread, name, 100)
    return tmp_path


def set_thread(proc: Path, thread: int, name: str, ticks: int) -> None:
    folder = proc / "9" / "task" / str(thread)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(a_process(name, thread, 7, ticks))


def test_the_jvm_is_the_java_that_this_process_started(proc: Path) -> None:
    assert jvm_of(7) == 9
    with pytest.raises(Unsupported, match="a Java process that this one has started, got none"):
        jvm_of(9)


def test_cpu_is_told_by_kind_of_thread_since_the_first_look(proc: Path) -> None:
    meter = CpuByThread(9)
    set_thread(proc, 21, "Executor task l", 150)
    set_thread(proc, 24, "Executor task l", 30)
    (proc / "9" / "stat").write_text(a_process("java", 9, 7, 700))
    (proc / "7" / "stat").write_text(a_process("python3", 7, 1, 110))
    found = meter.so_far()
    assert set(found) == set(KINDS)
    assert found["tasks"] == pytest.approx(0.8)
    assert found["JIT compiler"] == 0.0
    assert found[ENDED] == pytest.approx(0.2)
    assert found[PYTHON] == pytest.approx(0.1)


def test_a_thread_that_ends_counts_with_what_it_had_at_the_last_look(proc: Path) -> None:
    meter = CpuByThread(9)
    set_thread(proc, 25, "SparkUI-25", 40)
    meter.look()
    (proc / "9" / "task" / "25" / "stat").unlink()
    assert meter.so_far()["web interface"] == pytest.approx(0.4)


def test_this_process_itself() -> None:
    me = driver_process.os.getpid()
    before, until = cpu_s(me), time.process_time() + 0.1
    while time.process_time() < until:
        pass
    assert cpu_s(me) > before
    assert threading.get_native_id() in threads(me)


def test_a_process_that_is_gone_has_no_threads() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert threads(ended.pid) == {}


@pytest.mark.parametrize(
    ("thread", "kind"),
    [
        ("Executor task l", "tasks"),
        ("Executor task i", "tasks"),  # what Spark calls one that waits for work
        ("stream executio", "micro-batch: planning, generating code, logs"),
        ("G1 Conc#0", "garbage collection"),
        ("GC Thread#1", "garbage collection"),
        ("spark-listener-", "listener bus"),
        ("SparkUI-41", "web interface"),
        ("Thread-4", "bridge to Python"),
        ("broadcast-excha", "scheduling: jobs, broadcasts, results"),
        ("process reaper", "other threads of the JVM"),
    ],
)
def test_kinds_of_threads(thread: str, kind: str) -> None:
    assert kind_of(thread) == kind


def test_the_children_of_a_process_are_told_with_their_commands() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        try:
            assert "time.sleep(600)" in driver_process.children(os.getpid())[child.pid]
            assert driver_process.children(child.pid) == {}
        finally:
            child.kill()


def test_a_look_that_fails_is_not_the_last_one() -> None:
    looked = threading.Event()
    count = iter(range(1_000_000))

    def look() -> None:
        if next(count) == 0:
            raise FileNotFoundError("it went while it was looked at")
        looked.set()

    with driver_process.looking(look, 0.001):
        assert looked.wait(120.0)


def test_files_that_go_meanwhile_have_no_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("a", "deep/b", "gone"):
        (tmp_path / name).write_bytes(b"1234")
    stat = os.stat

    def racing(path: str) -> os.stat_result:
        if path.endswith("gone"):
            raise FileNotFoundError(path)
        return stat(path)

    monkeypatch.setattr(driver_process.os, "stat", racing)
    assert driver_process.bytes_below(tmp_path) == 8
    assert driver_process.bytes_below(tmp_path / "nowhere") == 0
