"""The file that carries a plan into a running query: fixed size, checked, and valid for a limited time.

The engine caches the file's length when the query is built, so every version has the same size. A checksum tells a
damaged plan from a whole one, and the lease makes a plan expire when the controller that should renew it has died.
"""

from __future__ import annotations

import json
import zlib

from jettison.errors import DamagedPlan, PlanTooLarge, explain
from jettison.plan import DropPlan

CHECKSUM_DIGITS = 10
DEFAULT_SIZE = 64 * 1024


def encode(plan: DropPlan, *, valid_until_ms: int, size: int = DEFAULT_SIZE) -> bytes:
    """Lay out a plan as checksum, blank, JSON and padding, exactly `size` bytes in all.

    >>> content = encode(DropPlan(7), valid_until_ms=1_700_000_000_000, size=256)
    >>> len(content), decode(content).version
    (256, 7)
    """
    document = json.loads(plan.to_json()) | {"valid_until_ms": valid_until_ms}
    body = json.dumps(document, allow_nan=False).encode()  # ASCII only, so that bytes and characters agree
    content = f"{zlib.crc32(body):0{CHECKSUM_DIGITS}d} ".encode() + body
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
    checksum, body = text[:CHECKSUM_DIGITS], text[CHECKSUM_DIGITS + 1 :]
    if not (checksum.isdigit() and body.isascii() and int(checksum) == zlib.crc32(body)):
        raise DamagedPlan(explain("a plan whose checksum fits", f"{content[:60]!r}"))
    return DropPlan.from_json(body.decode())
