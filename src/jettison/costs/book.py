"""The driver's book of costs: adds up what tasks have learned, lets old rows fade, and is laid down as a file."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field

from jettison.costs.hashing import SharedHashes
from jettison.costs.report import TaskReport
from jettison.costs.sketch import CostSketch
from jettison.errors import DamagedPlan, InvalidSetting, explain

FORGET = 0.2
"""Share of the weight of older rows that goes each time that enough new ones came."""
FORGET_EVERY = 1024
_CHECKSUM_DIGITS = 10


@dataclass(slots=True)
class CostBook:
    """Costs of all executors, one version after the other.

    Reports come as a running total, as an accumulator gives it; what is new in it is added once.

    Parameters
    ----------
    costs
        What is known, handed to every task.
    version
        Grows with every change, across restarts.
    """

    costs: CostSketch
    version: int = 0
    _told: TaskReport = field(init=False)
    _new_rows: float = 0.0

    def __post_init__(self) -> None:
        self._told = TaskReport.empty(self.costs.hashes)

    @classmethod
    def empty(cls, hashes: SharedHashes) -> CostBook:
        """A book in which nothing is written."""
        return cls(CostSketch(hashes))

    def tell(self, total: TaskReport) -> bool:
        """Take in what is new in a running total; returns whether anything was."""
        if total.tasks == self._told.tasks:
            return False
        fresh = CostSketch(self.costs.hashes)
        fresh.counts = total.costs.counts - self._told.costs.counts
        fresh.costs = total.costs.costs - self._told.costs.costs
        self._new_rows += fresh.rows_learned
        if self._new_rows >= FORGET_EVERY:
            self.costs.forget(FORGET)
            self._new_rows = 0.0
        self.costs.merge(fresh)
        self._told = total
        self.version += 1
        return True

    def encode(self) -> bytes:
        """Checksum and JSON; `decode` restores it to single precision."""
        body = json.dumps({"version": self.version, "costs": self.costs.to_dict()}).encode()
        return f"{zlib.crc32(body):0{_CHECKSUM_DIGITS}d} ".encode() + body

    @classmethod
    def decode(cls, content: bytes) -> CostBook:
        """Restore a book, or raise `DamagedPlan`."""
        checksum, body = content[:_CHECKSUM_DIGITS], content[_CHECKSUM_DIGITS + 1 :]
        if not (checksum.isdigit() and int(checksum) == zlib.crc32(body)):
            raise DamagedPlan(explain("learned costs whose checksum fits", f"{content[:40]!r}"))
        try:
            document = json.loads(body)
            return cls(CostSketch.from_dict(document["costs"]), int(document["version"]))
        except (ValueError, KeyError, TypeError, InvalidSetting) as error:
            raise DamagedPlan(explain("learned costs as JSON", f"{body[:40]!r} ({error})")) from error
