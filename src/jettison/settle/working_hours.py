"""When settling may work, and how fast: never in the way of the live query."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from jettison.core.storage import Folder
from jettison.errors import refuse
from jettison.runtime.ledger import Ledger
from jettison.runtime.owner import sign_of_life
from jettison.settle.live_session import last_start

_SHEDDING_S = 60.0  # a batch that dropped rows so long ago at most, or three batches, says that the live query sheds
_AT_ONCE_S = 60.0  # for how long rows may be read faster than is wanted, to wait afterwards
_LOOK_AGAIN_S = 30.0

Hours = tuple[int, int]
"""From this full hour of the day, local time, until before the other; across midnight if it is the smaller one."""


@dataclass(frozen=True, slots=True)
class Manners:
    """Rows a second, on the average of a minute, hours of the day, and whether to go on beside shedding."""

    rows_per_s: float | None = None
    hours: Hours | None = None
    beside_shedding: bool = False

    def __post_init__(self) -> None:
        if self.rows_per_s is not None and not self.rows_per_s > 0:
            hint = "leave it out to read as fast as Spark can"
            refuse("`rows_per_s` must be a positive number", repr(self.rows_per_s), hint=hint)

    def at_once(self, rows: int) -> int:
        """How many rows to read at once, if it may be so many."""
        return rows if self.rows_per_s is None else max(int(min(rows, self.rows_per_s * _AT_ONCE_S)), 1)

    def reason_to_stop(self, home: Folder, waiting: Callable[[str, int, int], None]) -> str:
        """Why not to go on now, if there is a reason; waits for the hours in which to work."""
        while self.hours is not None and not within(self.hours, datetime.now().hour):
            waiting(f"waiting until {self.hours[0]}:00", 0, 0)
            time.sleep(_LOOK_AGAIN_S)
        return "the live query sheds" if not self.beside_shedding and sheds(home, time.time()) else ""

    def rest(self, rows: int, took_s: float) -> None:
        """Wait, if these rows were read faster than is wanted."""
        if self.rows_per_s:
            time.sleep(max(rows / self.rows_per_s - took_s, 0.0))


def within(hours: Hours, hour: int) -> bool:
    """Whether an hour of the day is one of these.

    >>> within((22, 6), 23), within((22, 6), 6), within((8, 9), 8)
    (True, False, True)
    """
    first, end = hours
    return first <= hour < end if first < end else hour >= first or hour < end


def sheds(home: Folder, now_s: float) -> bool:
    """Whether the live query runs, and its last batch on record dropped rows not long ago."""
    ledger = Ledger(home / "ledger")
    batch = None if sign_of_life(home) is None else ledger.last("batch")
    if batch is None or now_s - batch["at_s"] > max(_SHEDDING_S, 3 * batch["duration_s"]):
        return False
    return any(point["dropped"] for point in batch["points"].values()) and not last_start(ledger).get("dry_run")
