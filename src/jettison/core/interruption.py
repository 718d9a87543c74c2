"""Ctrl-C ends a command, and every process that it started, within seconds.

Whoever is interrupted gets the time to close its books. What is not done after that is ended by force, so that nothing
is left behind: least of all a Java process, or a driver that waits for one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

STATUS = 128 + signal.SIGINT
"""What a process that was interrupted says as its exit status."""
GRACE_S = 10.0
"""To stop queries and close books; then all is ended by force."""
_LAST_S, _LOOK_AGAIN_S = 3.0, 0.05
_PROC = Path("/proc")
_asked, _said = threading.Event(), threading.Event()
_known: set[tuple[int, str]] = set()


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Within this block Ctrl-C ends the process in `GRACE_S`, whatever handlers others install; for the main thread."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    # Spark installs a handler of its own in each session; this one hears of the signal all the same.
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_await, args=(reader,), daemon=True, name="jettison-interruption").start()
    root = logging.getLogger()
    root.addFilter(_is_no_interruption)
    try:
        yield
    finally:
        root.removeFilter(_is_no_interruption)
        signal.set_wakeup_fd(before)
        writer.close()


def was_asked() -> bool:
    """Whether Ctrl-C was typed: then errors are its consequence."""
    return _asked.is_set()


def end_all() -> None:
    """End the processes that this one has started, and those that they have, and wait for it; nobody complains of that."""
    logging.disable()
    _end(_remembered(), signal.SIGTERM)
    until = time.monotonic() + _LAST_S
    while _remembered() and time.monotonic() < until:
        time.sleep(_LOOK_AGAIN_S)
    _end(_remembered(), signal.SIGKILL)


def leave_it_to_the_parent() -> None:
    """In a process that works for another: Ctrl-C is for that one, which then ends this one; what is open is closed."""
    signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT}
    )  # Spark would put its own handler in the place of any other
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def _is_no_interruption(record: logging.LogRecord) -> bool:
    """Whoever is interrupted, as py4j in a call, need not say so with a traceback, nor what fails because of it."""
    if not record.exc_info:
        return True
    return not (isinstance(record.exc_info[1], KeyboardInterrupt) or _asked.wait(_LOOK_AGAIN_S))


def _await(reader: socket.socket) -> None:
    with reader:
        while signal.SIGINT not in (signals := reader.recv(64)):
            if not signals:
                return
    _asked.set()
    _remembered()
    # Drivers that work for this one; the JVM must live until queries have been stopped.
    _end([one for one in _started() if one.parent == os.getpid() and not one.is_java], signal.SIGTERM)
    time.sleep(GRACE_S)
    _end(_remembered(), signal.SIGKILL)  # whoever waited for one of these can end now
    time.sleep(_LAST_S)
    say()
    os._exit(STATUS)


def say() -> None:
    """The one line, once."""
    if not _said.is_set():
        _said.set()
        print("jettison: interrupted", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class _Process:
    number: int
    parent: int
    began: str
    """Tells it from a later one with the same number."""
    is_java: bool


def _end(processes: Iterable[_Process], by: int) -> None:
    for process in processes:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            os.kill(process.number, by)


def _remembered() -> list[_Process]:
    """What this process has started and still runs, also where whoever was in between has ended."""
    _known.update((one.number, one.began) for one in _started())
    return [one for one in _all() if (one.number, one.began) in _known]


def _started() -> list[_Process]:
    """The processes below this one."""
    every, found = _all(), {os.getpid()}
    below: list[_Process] = []
    while more := [one for one in every if one.parent in found and one.number not in found]:
        below += more
        found |= {one.number for one in more}
    return [one for one in below if not _keeps_books(one.number)]


def _keeps_books(process: int) -> bool:
    """Whether it is the process in which `multiprocessing` notes what to clean up: that one ends by itself, and last."""
    try:
        return b"multiprocessing.resource_tracker" in (_PROC / str(process) / "cmdline").read_bytes()
    except OSError:
        return False


def _all() -> list[_Process]:
    """Every process that runs."""
    if _PROC.is_dir():
        return [one for stat in _PROC.glob("[0-9]*/stat") if (one := _of(stat)) is not None]
    command = ["ps", "-A", "-o", "pid=,ppid=,lstart=,comm="]  # on macOS
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    words = [line.split(None, 7) for line in lines]
    return [_Process(int(one[0]), int(one[1]), " ".join(one[2:7]), "java" in one[7]) for one in words if len(one) == 8]


def _of(stat: Path) -> _Process | None:
    try:
        text = stat.read_text(errors="replace")
    except OSError:
        return None
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    # One that has ended is there until its parent takes note.
    return None if rest[0] == "Z" else _Process(int(stat.parent.name), int(rest[1]), rest[19], name == "java")
