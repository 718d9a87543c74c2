"""Damage to what lies beside a checkpoint, as a disk, a crash or an operator does it."""

from __future__ import annotations

import json
import random
import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from jettison.lab.bench.fault_scenario import CLOCK, LEDGER, PLAN, PLAN_AT_WORK, STATE
from jettison.runtime import plan_file

_AHEAD_S = (5.0, 600.0)  # less than what makes rows late: their arrivals stay what they are
_NEAR_S = 86_400.0
_NUMBER = re.compile(r"\b\d{10}(?:\.\d+)?\b")


def damage(checkpoint: Path, kind: str, chance: random.Random) -> bool:
    """Do to the files beside a checkpoint what a fault of this kind does, and say whether it has changed anything."""
    return _DAMAGE[kind](checkpoint, chance)


def _changed(path: Path, change: Callable[[bytes], bytes]) -> bool:
    """Put other content into a file, if there is one, and say whether it is another."""
    try:
        before = path.read_bytes()
    except FileNotFoundError:
        return False
    after = change(before)
    path.write_bytes(after)
    return after != before


def _offsets(checkpoint: Path) -> Iterable[Path]:
    return (checkpoint / "offsets").glob("[0-9]*")


def _plan(checkpoint: Path, chance: random.Random) -> bool:
    path = checkpoint / "jettison" / "plan"
    if not path.exists():
        return False
    if chance.random() < 0.2:
        path.unlink()
        return True
    return _changed(path, lambda content: _broken(content, chance))


def _ledger(checkpoint: Path, chance: random.Random) -> bool:
    """The newest file's last line is cut, or has other bytes in it, as a crash of the machine may leave it."""
    written = sorted((checkpoint / "jettison" / "ledger").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)

    def broken(content: bytes) -> bytes:
        start = content.rstrip(b"\n").rfind(b"\n") + 1
        line = content[start:]
        return content[:start] + _broken(line, chance) if line else content

    return bool(written) and _changed(written[-1], broken)


def _state(checkpoint: Path, chance: random.Random) -> bool:
    return _changed(checkpoint / "jettison" / "controller.json", lambda content: _broken(content, chance))


def _broken(content: bytes, chance: random.Random) -> bytes:
    """Cut, with a few other bytes, all zeros or empty."""
    way = chance.randrange(4)
    if way == 0 or not content:
        return content[: chance.randrange(max(len(content), 1))]
    if way == 1:
        return b"\0" * len(content)
    if way == 2:
        return b""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _set_clock_back(checkpoint: Path, chance: random.Random) -> bool:
    """All that was stamped so far gets later: to the next leg, the machine's clock was set back by as much."""
    ahead_s = chance.choice(_AHEAD_S)
    home = checkpoint / "jettison"
    moved = [_changed(path, lambda content: _offsets_later(content, ahead_s)) for path in _offsets(checkpoint)]
    moved.append(_changed(home / "controller.json", lambda content: _later(content.decode(errors="replace"), ahead_s)))
    moved.append(_changed(home / "plan", lambda content: _plans_later(content, ahead_s)))
    return any(moved)


def _offsets_later(content: bytes, ahead_s: float) -> bytes:
    version, facts, *rest = content.decode().split("\n")
    document = json.loads(facts)
    document["batchTimestampMs"] += int(ahead_s * 1e3)
    return "\n".join([version, json.dumps(document), *rest]).encode()


def _later(text: str, ahead_s: float) -> bytes:
    now_s = time.time()

    def moved(match: re.Match[str]) -> str:
        at_s = float(match[0])
        return repr(at_s + ahead_s) if abs(at_s - now_s) < _NEAR_S else match[0]

    return _NUMBER.sub(moved, text).encode()


def _plans_later(content: bytes, ahead_s: float) -> bytes:
    """The same plans from later on; a file that is damaged stays so."""
    try:
        plan_file.decode(content)
    except ValueError:
        return content
    ahead_us = int(ahead_s * 1e6)

    def moved(match: re.Match[bytes]) -> bytes:
        from_us = int(match[1])
        return b'"from_us":%d' % (from_us + ahead_us if from_us else 0)

    body = re.sub(rb'"from_us":(\d+)', moved, content[plan_file.BODY_START :])
    until = b"%016d" % (int(content[plan_file.VALID_UNTIL_US]) + ahead_us)
    between = content[plan_file.VALID_UNTIL_US.stop : plan_file.BODY_START]
    checked = until + between + body
    return b"%010d " % zlib.crc32(checked) + checked


_DAMAGE: Mapping[str, Callable[[Path, random.Random], bool]] = {
    PLAN: _plan,
    PLAN_AT_WORK: _plan,
    LEDGER: _ledger,
    STATE: _state,
    CLOCK: _set_clock_back,
}
