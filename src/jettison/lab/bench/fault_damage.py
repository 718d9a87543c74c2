"""Damage to what lies beside a checkpoint, as a disk, a crash or an operator does it."""

from __future__ import annotations

import json
import random
import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from jettison.lab.bench.fault_scenario import CLOCK, LEDGER, PLAN, PLAN_AT_WORK, STATE
from jettison.runtime import plan_file

_AHEAD_S = (5.0, 600.0)  # less than what makes rows late: their arrivals stay what they are
_NEAR_S = 86_400.0
_NUMBER = re.compile(r"\b\d{10}(?:\.\d+)?\b")


def damage(checkpoint: Path, kind: str, chance: random.Random) -> bool:
    """Do to the files beside a checkpoint what a fault of this kind does, and say whether anything has changed."""
    before = _contents(checkpoint)
    _DAMAGE[kind](checkpoint, chance)
    return _contents(checkpoint) != before


def _contents(checkpoint: Path) -> dict[Path, bytes]:
    """Of all that may be damaged; a query at work replaces some of it meanwhile."""
    home, found = checkpoint / "jettison", dict[Path, bytes]()
    for path in (home / "plan", home / "controller.json", *(home / "ledger").glob("*.jsonl"), *_offsets(checkpoint)):
        with suppress(FileNotFoundError):
            found[path] = path.read_bytes()
    return found


def _offsets(checkpoint: Path) -> Iterable[Path]:
    return (checkpoint / "offsets").glob("[0-9]*")


def _plan(checkpoint: Path, chance: random.Random) -> None:
    path = checkpoint / "jettison" / "plan"
    if path.exists():
        if chance.random() < 0.2:
            path.unlink()
        else:
            path.write_bytes(_broken(path.read_bytes(), chance))


def _ledger(checkpoint: Path, chance: random.Random) -> None:
    """The newest file's last line is cut, or has other bytes in it, as a crash of the machine may leave it."""
    written = sorted((checkpoint / "jettison" / "ledger").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    if not written:
        return
    content = written[-1].read_bytes()
    start = content.rstrip(b"\n").rfind(b"\n") + 1
    line = content[start:]
    if line:
        written[-1].write_bytes(content[:start] + _broken(line, chance))


def _state(checkpoint: Path, chance: random.Random) -> None:
    path = checkpoint / "jettison" / "controller.json"
    if path.exists():
        path.write_bytes(_broken(path.read_bytes(), chance))


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


def _set_clock_back(checkpoint: Path, chance: random.Random) -> None:
    """All that was stamped so far gets later: to the next leg, the machine's clock was set back by as much."""
    ahead_s = chance.choice(_AHEAD_S)
    for path in _offsets(checkpoint):
        version, facts, *rest = path.read_text().split("\n")
        document = json.loads(facts)
        document["batchTimestampMs"] += int(ahead_s * 1e3)
        path.write_text("\n".join([version, json.dumps(document), *rest]))
    state = checkpoint / "jettison" / "controller.json"
    if state.exists():
        state.write_text(_later(state.read_text(errors="replace"), ahead_s))
    plan = checkpoint / "jettison" / "plan"
    if plan.exists():
        plan.write_bytes(_plans_later(plan.read_bytes(), ahead_s))


def _later(text: str, ahead_s: float) -> str:
    now_s = time.time()

    def moved(match: re.Match[str]) -> str:
        at_s = float(match[0])
        return repr(at_s + ahead_s) if abs(at_s - now_s) < _NEAR_S else match[0]

    return _NUMBER.sub(moved, text)


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


_DAMAGE: Mapping[str, Callable[[Path, random.Random], None]] = {
    PLAN: _plan,
    PLAN_AT_WORK: _plan,
    LEDGER: _ledger,
    STATE: _state,
    CLOCK: _set_clock_back,
}
