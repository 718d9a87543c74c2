"""What a command leaves running, as Linux shows it."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

_LAST_S = 5.0


def of_session(leader: int) -> dict[int, str]:
    """Names of the processes in the session that a command leads, or led, by number; also those in groups of their own."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            name, _, rest = stat.read_text(errors="replace").partition("(")[2].rpartition(")")
            state, _, _, session = rest.split()[:4]
            if int(session) == leader and state != "Z":
                found[int(stat.parent.name)] = name
    return found


def nothing_is_left_of(leader: int) -> bool:
    """Whether its session is empty within seconds: what cleans up for `multiprocessing` ends after all others."""
    until = time.monotonic() + _LAST_S
    while (left := of_session(leader)) and time.monotonic() < until:
        time.sleep(0.05)
    return not left
