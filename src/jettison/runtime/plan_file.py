"""The file that carries plans into a running query: limited in size, checked, and valid for a limited time.

Layout: checksum, end of validity, one row in how many has its arrival looked at, number of the writing, the schedule as
JSON; blanks between them. A checksum of all that follows it tells a damaged file from a whole one, and the lease makes the
newest plan expire when the controller that should renew it has died. What every reader needs stands before the JSON at a
fixed place, counted in bytes, so that the JSON is parsed only if the file is whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, NoReturn

from msgspec import Meta, Struct

from jettison.core import documents
from jettison.core.plan import PLAN_BYTES, DropPlan
from jettison.core.storage import Folder
from jettison.errors import DamagedPlan, PlanTooLarge, refuse
from jettison.runtime.schedule import Doubts, Entry, Schedule

PLAN_FILE, SECOND_FILE = "plan", "plan.2"
"""Its name, and that of the second one where a file that is read cannot be replaced: then they are written in turn."""
CHECKSUM = slice(0, 10)
VALID_UNTIL_US = slice(11, 27)
LOOK_EVERY = slice(28, 33)
WRITING = slice(34, 44)
BODY_START = 45
CHECKED_START = VALID_UNTIL_US.start
PLANS_ON_FILE = 4
"""Plans of that size for which a file has room: the one that a running batch has, and those for the next."""
MOST_OFTEN = 16
"""One row in so many has its arrival looked at in a small batch."""
_MOST_RARELY, _ENOUGH_ROWS = 4096, 1024
_LATEST_US = 10**16 - 1  # in the year 2286: the place has 16 digits


def encode(
    schedule: Schedule,
    *,
    valid_until_us: int,
    size: int = PLAN_BYTES,
    look_every: int = MOST_OFTEN,
    writing: int = 0,
) -> bytes:
    """Lay out a schedule in at most `size` bytes.

    One row in `look_every`, a power of two, has its arrival looked at: no decision depends on it. Of two files the one of
    the later `writing` counts. Only the newest plan is written with its cause: the query reads none of them.

    >>> content = encode(Schedule.of(DropPlan(7)), valid_until_us=1_700_000_000_000_000, size=256)
    >>> len(content) <= 256, decode(content).newest.version
    (True, 7)
    """
    newest = schedule.newest
    plans = [
        {"from_us": entry.from_us, **entry.plan.to_document()} | ({} if entry.plan is newest else {"cause": ""})
        for entry in schedule.entries
    ]
    body = documents.encode(_Document(schedule.doubts.until_us, schedule.doubts.text(), plans))
    head = f"{min(valid_until_us, _LATEST_US):016d} {look_every:05d} {writing:010d} "
    checked = (head + body).encode("ascii")
    content = f"{zlib.crc32(checked):010d} ".encode() + checked
    if len(content) > size:
        refuse(
            f"a plan must fit its file of {size:,} bytes",
            f"{len(content):,} bytes",
            where=f"plan version {schedule.newest.version}",
            hint="a policy asks for more by `plan_bytes`, and keeps to what `Stats.plan_bytes` says",
            error=PlanTooLarge,
        )
    return content


def look_every(rows: int) -> int:
    """One row in how many is to be looked at in batches of so many: a thousand rows tell when rows arrive, as a million do.

    >>> look_every(0), look_every(100_000), look_every(10**9)
    (16, 64, 4096)
    """
    return min(max(1 << max(rows // _ENOUGH_ROWS, 1).bit_length() - 1, MOST_OFTEN), _MOST_RARELY)


def decode(content: bytes) -> Schedule:
    """Restore a schedule that `encode` laid out, or raise `DamagedPlan`.

    The marks of aggregates are not restored: they are others in every run.
    """
    checksum, checked = content[CHECKSUM], content[CHECKED_START:]
    if not (checksum.isdigit() and checked.isascii() and int(checksum) == zlib.crc32(checked)):
        _refuse(content, "its checksum does not fit")
    try:
        document = documents.decode(content[BODY_START:], _Document)
        entries = tuple(_entry(plan) for plan in document.plans)
        doubts = Doubts(document.doubtful_until_us, int(document.doubts.partition(";")[0]))
    except ValueError as error:
        _refuse(content, str(error), error)
    return Schedule(entries, doubts)


class OnFile(NamedTuple):
    """What was published: the schedule, the end of its lease, and the number of the writing.

    `damage` says what is wrong with the other file: it may be the one that was written last.
    """

    schedule: Schedule
    valid_until_us: int
    writing: int
    damage: str = ""


def on_file(folder: Folder, names: Sequence[str] = (PLAN_FILE, SECOND_FILE)) -> OnFile | None:
    """What was published last, of the files that are whole; raises `DamagedPlan` where there are only others."""
    found, damage = [], None
    for content in map(folder.read, names):
        if content is None:
            continue
        try:
            schedule = decode(content)
        except DamagedPlan as error:
            damage = error
        else:
            found.append(OnFile(schedule, int(content[VALID_UNTIL_US]), int(content[WRITING])))
    if damage is not None and not found:
        raise damage
    newest = max(found, key=lambda each: each.writing, default=None)
    return newest if newest is None or damage is None else newest._replace(damage=str(damage))


class _Document(Struct):
    doubtful_until_us: int
    doubts: Annotated[str, Meta(pattern="^-?[0-9]+;")]
    plans: Annotated[list[dict[str, Any]], Meta(min_length=1)]


class _Dated(Struct):
    from_us: int


def _entry(plan: dict[str, Any]) -> Entry:
    return Entry(documents.convert(plan, _Dated).from_us, DropPlan.from_document(plan))


def _refuse(content: bytes, reason: str, cause: Exception | None = None) -> NoReturn:
    hint = "nothing is lost: every row is kept until the controller writes its next plan"
    got = f"{content[:60]!r} ({reason})"
    refuse("a plan file as it was written", got, hint=hint, error=DamagedPlan, cause=cause)
