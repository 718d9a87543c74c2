"""The driver's two processes, Python and the JVM, as the operating system sees them: CPU time by kind of thread.

Linux alone tells, in `/proc`. It cuts the names of threads after 15 characters, which is enough to tell kinds apart.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jettison.errors import Unsupported, refuse

_PROC = Path("/proc")
_LOOK_AGAIN_S = 0.5
JIT = "JIT compiler"
_KINDS = (
    ("tasks", r"Executor task"),
    ("micro-batch: planning, generating code, logs", r"stream executio"),
    (JIT, r"C[12] Compiler"),
    ("garbage collection", r"GC Thread|G1 |VM Thread|VM Periodic"),
    ("listener bus", r"spark-listener-"),
    ("web interface", r"SparkUI|qtp\d"),
    ("bridge to Python", r"Thread-\d"),
    (
        "scheduling: jobs, broadcasts, results",
        r"dag-scheduler|dispatcher|task-result|broadcast|subquery|shuffle|map-output",
    ),
)
PYTHON, OTHER, ENDED = "Python", "other threads of the JVM", "threads of the JVM that ended"
KINDS = (*(name for name, _ in _KINDS), OTHER, ENDED, PYTHON)


class CpuByThread:
    """Seconds of CPU of the driver, by kind of thread, since it was made; `pid` is the JVM's.

    Threads are looked at every half second: one that ends counts with what it had at the last look, its rest is told apart.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._last: dict[int, tuple[str, float]] = {}
        self.look()
        self._first = {thread: cpu_s for thread, (_, cpu_s) in self._last.items()}
        self._first_total_s, self._first_python_s = cpu_s(pid), cpu_s(os.getpid())

    def look(self) -> None:
        self._last |= threads(self._pid)

    def so_far(self) -> dict[str, float]:
        self.look()
        found = dict.fromkeys(KINDS, 0.0)
        for thread, (name, used_s) in self._last.items():
            found[kind_of(name)] += used_s - self._first.get(thread, 0.0)
        # The process has them all; what is missing had no thread at the last look.
        found[ENDED] = max(cpu_s(self._pid) - self._first_total_s - sum(found.values()), 0.0)
        found[PYTHON] = cpu_s(os.getpid()) - self._first_python_s
        return found


@contextmanager
def looking(look: Callable[[], object], every_s: float) -> Iterator[None]:
    """Looks again and again, in a thread of its own, for as long as the block runs.

    What comes and goes meanwhile may spoil a look, but not those after it: whoever needs them all has to count them.
    """
    done = threading.Event()

    def look_again() -> None:
        while not done.wait(every_s):
            with suppress(Exception):
                look()

    watcher = threading.Thread(target=look_again, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextmanager
def cpu_by_thread() -> Iterator[CpuByThread]:
    """Of the threads of the JVM that this process started, while the block runs."""
    meter = CpuByThread(jvm_of(os.getpid()))
    with looking(meter.look, _LOOK_AGAIN_S):
        yield meter


def kind_of(thread: str) -> str:
    """What a thread of the JVM is for.

    >>> kind_of("C2 CompilerThre"), kind_of("Executor task l"), kind_of("Reference Handl")
    ('JIT compiler', 'tasks', 'other threads of the JVM')
    """
    return next((name for name, pattern in _KINDS if re.match(pattern, thread)), OTHER)


def children(parent: int) -> dict[int, str]:
    """The processes that a process has started, by id, each with its command line."""
    found = {}
    for stat in _PROC.glob("[0-9]*/stat"):
        if _stat(stat)[1][1:2] == [str(parent)]:
            with suppress(OSError):  # it may end meanwhile
                words = (stat.parent / "cmdline").read_bytes().split(b"\0")
                found[int(stat.parent.name)] = " ".join(word.decode(errors="replace") for word in words)
    return found


def jvm_of(parent: int) -> int:
    """The Java process that a process has started."""
    for stat in _PROC.glob("[0-9]*/stat"):
        name, fields = _stat(stat)
        if name == "java" and int(fields[1]) == parent:
            return int(stat.parent.name)
    refuse(
        "a Java process that this one has started",
        "none" if _PROC.is_dir() else "no /proc",
        hint="the profile is taken on Linux, from a local session",
        error=Unsupported,
    )


def threads(process: int) -> dict[int, tuple[str, float]]:
    """Name and CPU seconds of each thread of a process, by its number."""
    found = {}
    for stat in (_PROC / str(process) / "task").glob("*/stat"):
        name, fields = _stat(stat)
        if fields:
            found[int(stat.parent.name)] = name, _used_s(fields)
    return found


def resident_bytes(process: int) -> int:
    """Memory that a process holds."""
    pages = int((_PROC / str(process) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def bytes_below(folder: Path) -> int:
    """Size of all files below a folder, without those that go while it is looked through."""
    found = 0
    for path, _, names in os.walk(folder):  # it passes over folders that are gone
        for name in names:
            with suppress(OSError):
                found += os.stat(os.path.join(path, name)).st_size
    return found


def cpu_s(process: int) -> float:
    """CPU seconds of a process, threads that ended included."""
    return _used_s(_stat(_PROC / str(process) / "stat")[1])


def _used_s(fields: list[str]) -> float:
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _stat(path: Path) -> tuple[str, list[str]]:
    """Name, and the fields after it, of a process or thread; no fields where it is gone."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return "", []
    # The name may hold blanks and brackets itself.
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
