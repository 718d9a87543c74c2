"""The file that carries plans into a running query: fixed size, checked, and valid for a limited time.

Layout: checksum, end of validity, the schedule as JSON, padding; blanks between them. The engine caches the file's
length when the query is built, so every version has the same size. A checksum tells a damaged file from a whole one,
and the lease makes the newest plan expire when the controller that should renew it has died. What every reader needs
stands before the JSON at a fixed place, so that the JSON is parsed only if the file is whole.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

from jettison.errors import DamagedPlan, PlanTooLarge, explain
from jettison.plan import DropPlan
from jettison.schedule import Entry, Schedule

CHECKSUM = slice(0, 10)
VALID_UNTIL_US = slice(11, 27)
BODY_START = 28
CHECKED_START = VALID_UNTIL_US.start
DEFAULT_SIZE = 64 * 1024
"""Bytes that one plan may take, unless told otherwise."""
PLANS_ON_FILE = 4
"""Plans of that size for which a file has room: the one that a running batch has, and those for the next."""
_LATEST_US = 10**16 - 1  # in the year 2286: the place has 16 digits


def encode(schedule: Schedule, *, valid_until_us: int, size: int = DEFAULT_SIZE) -> bytes:
    """Lay out a schedule in exactly `size` bytes.

    Only the newest plan is written with its cause: the query reads none of them.

    >>> content = encode(Schedule.of(DropPlan(7)), valid_until_us=1_700_000_000_000_000, size=256)
    >>> len(content), decode(content).newest.version
    (256, 7)
    """
    *older, newest = schedule.entries
    plans = [_entry(Entry(entry.from_us, replace(entry.plan, cause=""))) for entry in older] + [_entry(newest)]
    # ASCII only, so that bytes and characters agree.
    body = json.dumps(
        {"doubtful_until_us": schedule.doubtful_until_us, "plans": plans}, allow_nan=False, separators=(",", ":")
    )
    checked = f"{min(valid_until_us, _LATEST_US):016d} {body}".encode("ascii")
    content = f"{zlib.crc32(checked):010d} ".encode() + checked
    if len(content) > size:
        raise PlanTooLarge(
            explain(
                f"a plan must fit its file of {size:,} bytes",
                f"{len(content):,} bytes",
                where=f"plan version {schedule.newest.version}",
                hint="raise `plan_size`, or let the policy track fewer keys",
            )
        )
    return content.ljust(size)


def decode(content: bytes) -> Schedule:
    """Restore a schedule that `encode` laid out, or raise `DamagedPlan`."""
    text = content.rstrip()
    checksum, checked = text[CHECKSUM], text[CHECKED_START:]
    if not (checksum.isdigit() and checked.isascii() and int(checksum) == zlib.crc32(checked)):
        raise _damaged(content, "its checksum does not fit")
    try:
        document = json.loads(text[BODY_START:])
        entries = tuple(_restored(entry) for entry in document["plans"])
        doubtful_until_us = int(document["doubtful_until_us"])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise _damaged(content, str(error)) from error
    if not entries:
        raise _damaged(content, "it holds no plan")
    return Schedule(entries, doubtful_until_us)


def _entry(entry: Entry) -> dict[str, Any]:
    return {"from_us": entry.from_us, **entry.plan.to_document()}


def _restored(document: dict[str, Any]) -> Entry:
    return Entry(int(document["from_us"]), DropPlan.from_document(document))


def _damaged(content: bytes, reason: str) -> DamagedPlan:
    return DamagedPlan(
        explain(
            "a plan file as it was written",
            f"{content[:60]!r} ({reason})",
            hint="nothing is lost: every row is kept until the controller writes its next plan",
        )
    )
