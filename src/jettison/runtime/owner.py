"""Who may write beside a checkpoint: one driver at a time.

Spark itself refuses a second driver on a checkpoint, but only when it commits its first batch. By then a second
shedder would have published its plan to the query of the first. So a run writes its name beside the checkpoint before
it writes anything else, and gives a sign of life every few seconds.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from msgspec import Struct

from jettison.core.documents import Number, decode, encode
from jettison.core.storage import Folder
from jettison.errors import CheckpointInUse, refuse

_FILE = "owner.json"
BEAT_S = 5.0
SILENT_S = 3 * BEAT_S
"""Without a sign for so long, a query counts as gone to whoever only looks; a second run waits to be sure."""
_SILENT_BEATS = 2.5
_SETTLING_S = 0.05
_held_here: set[str] = set()


class Sign(Struct, frozen=True, kw_only=True):
    """What a run writes to say that it holds a checkpoint and is alive: who it is, where, and the number of the sign."""

    run: str
    host: str | None = None
    boot: str | None = None
    pid_namespace: str | None = None
    pid: int | None = None
    beat: int = 0
    at_s: Number | None = None

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host!r}"


class Owner:
    """Holds a checkpoint for one run, or refuses.

    A run that ended has let go of it. One whose process is dead has lost it, where that can be known: on the same host, in
    the same process namespace. So has one that gives no sign of life for two and a half beats while it is being
    watched: no two clocks are compared.

    Parameters
    ----------
    folder
        Where everything of Jettison's lies beside the checkpoint.
    beat_s
        Time between two signs of life.
    """

    def __init__(self, folder: Folder, *, beat_s: float = BEAT_S) -> None:
        self._folder = folder
        self._beat_s = beat_s
        self._run = uuid.uuid4().hex
        self._dead: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def refuse_second(self) -> None:
        """Raise `CheckpointInUse` if another run holds the checkpoint; takes seconds if there are doubts."""
        found = sign_of_life(self._folder)
        if found is None or found.run in (self._run, *self._dead) or _is_dead(found):
            return
        if found.run not in _held_here and self._is_silent(found):
            self._dead.add(found.run)
            return
        self._refuse(found)

    def claim(self, on_lost: Callable[[str], None]) -> None:
        """Take the checkpoint, or raise `CheckpointInUse`. Should another run ever take it, `on_lost` is told."""
        self.refuse_second()
        _held_here.add(self._run)
        self._write(0)
        time.sleep(_SETTLING_S)  # of two that take it at once, the one that wrote first finds the other's name
        found = sign_of_life(self._folder)
        if found is not None and found.run != self._run:
            _held_here.discard(self._run)
            self._refuse(found)
        self._ended = threading.Event()
        threading.Thread(target=self._beat, args=(self._ended, on_lost), name="jettison-owner", daemon=True).start()

    def release(self) -> None:
        """Let go of the checkpoint."""
        with self._lock:  # no sign of life is written after this
            self._ended.set()
            _held_here.discard(self._run)
            with contextlib.suppress(OSError):  # then whoever comes next finds that no sign of life is given
                found = sign_of_life(self._folder)
                if found is not None and found.run == self._run:
                    self._folder.delete(_FILE)

    def _refuse(self, found: Sign) -> NoReturn:
        hint = "stop that query first, or give this one a checkpoint of its own"
        expected, got = "the checkpoint must belong to no other query", f"one that {found} holds"
        refuse(expected, got, where=self._folder.uri, hint=hint, error=CheckpointInUse)

    def _beat(self, ended: threading.Event, on_lost: Callable[[str], None]) -> None:
        beat = 0
        while not ended.wait(self._beat_s):
            beat += 1
            with self._lock:
                if ended.is_set():
                    return
                try:
                    found = sign_of_life(self._folder)
                    if found is None or found.run == self._run:
                        self._write(beat)
                        continue
                except OSError:  # the next beat may succeed
                    continue
                ended.set()
            on_lost(f"{found} has taken over the checkpoint")

    def _is_silent(self, found: Sign) -> bool:
        """Whether the run that holds the checkpoint gives no sign of life, watched for longer than a beat of its own."""
        deadline = time.monotonic() + _SILENT_BEATS * self._beat_s
        while time.monotonic() < deadline:
            time.sleep(self._beat_s / 10)
            now = sign_of_life(self._folder)
            if now is None or now != found:
                return now is None
        return True

    def _write(self, beat: int) -> None:
        sign = Sign(run=self._run, **place(), pid=os.getpid(), beat=beat, at_s=time.time())
        self._folder.replace(_FILE, encode(sign).encode())


def sign_of_life(folder: Folder) -> Sign | None:
    """The last one of the run that holds a checkpoint; `None` where none does, or nothing on file names a run."""
    try:
        return decode(folder.read(_FILE) or b"null", Sign)
    except ValueError:
        return None


def _is_dead(found: Sign) -> bool:
    """Whether the process that wrote this is known to be gone: only where its number means here what it meant there."""
    pid = found.pid
    if not all(getattr(found, name) == here for name, here in place().items()) or pid is None or pid <= 0:
        return False
    if pid == os.getpid():
        return found.run not in _held_here
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def place() -> dict[str, str | None]:
    """Where a process number is valid: two containers may have one host name, and each numbers its processes itself."""
    return {"host": socket.gethostname(), "boot": _boot(), "pid_namespace": _pid_namespace()}


def _boot() -> str | None:
    with contextlib.suppress(OSError):  # not every system tells
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None


def _pid_namespace() -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return None
