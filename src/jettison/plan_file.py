"""The file that carries a plan into a running query: fixed size, checked, and valid for a limited time.

Layout: checksum, end of validity, version, the plan's JSON, padding; blanks between them. The engine caches the
file's length when the query is built, so every version has the same size. A checksum tells a damaged plan from a
whole one, and the lease makes a plan expire when the controller that should renew it has died. What every reader
needs stands before the JSON at a fixed place, so that the JSON is parsed once and only if the plan is valid.
"""

from __future__ import annotations

import zlib

from jettison.errors import DamagedPlan, PlanTooLarge, explain
from jettison.plan import DropPlan

CHECKSUM = slice(0, 10)
VALID_UNTIL_US = slice(11, 27)
VERSION = slice(28, 47)
BODY_START = 48
CHECKED_START = VALID_UNTIL_US.start
DEFAULT_SIZE = 64 * 1024
_LATEST_US = 10**16 - 1  # in the year 2286: times of equal length compare as texts


def encode(plan: DropPlan, *, valid_until_us: int, size: int = DEFAULT_SIZE) -> bytes:
    """Lay out a plan in exactly `size` bytes.

    >>> content = encode(DropPlan(7), valid_until_us=1_700_000_000_000_000, size=256)
    >>> len(content), decode(content).version
    (256, 7)
    """
    # ASCII only, so that bytes and characters agree.
    checked = f"{min(valid_until_us, _LATEST_US):016d} {plan.version:019d} {plan.to_json()}".encode("ascii")
    content = f"{zlib.crc32(checked):010d} ".encode() + checked
    if len(content) > size:
        raise PlanTooLarge(
            explain(
                f"a plan must fit its file of {size:,} bytes",
                f"{len(content):,} bytes",
                where=f"plan version {plan.version}",
                hint="raise `plan_size`, or let the policy track fewer keys",
            )
        )
    return content.ljust(size)


def decode(content: bytes) -> DropPlan:
    """Restore a plan that `encode` laid out, or raise `DamagedPlan`."""
    text = content.rstrip()
    checksum, checked = text[CHECKSUM], text[CHECKED_START:]
    if not (checksum.isdigit() and checked.isascii() and int(checksum) == zlib.crc32(checked)):
        raise DamagedPlan(
            explain(
                "a plan whose checksum fits",
                f"{content[:60]!r}",
                hint="nothing is lost: every row is kept until the controller writes its next plan",
            )
        )
    return DropPlan.from_json(text[BODY_START:].decode())
