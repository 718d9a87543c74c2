"""What waits in the source, and the next batch that can still be changed."""

from __future__ import annotations

import math
from typing import NamedTuple

from jettison.control.load_model import Running
from jettison.control.outlook import Ahead
from jettison.control.produced import Produced


class Source(NamedTuple):
    """What waits.

    Parameters
    ----------
    served_s
        Rows that arrived later wait.
    since_s, waiting
        How many rows wait as of that time, where it is known.
    cap
        Most rows that a batch takes.
    late_after_s
        Age at which a row is late, where arrivals are observed; else infinite.
    produced
        What the source itself says of rows that have come, as far as it was asked.

    Examples
    --------
    >>> ahead, rest = Source(served_s=10.0, since_s=10.0, waiting=None, cap=500.0, late_after_s=3.0).taken_at(18.0, 100.0)
    >>> ahead, rest.served_s, rest.rows(20.0, 100.0)
    (Ahead(wait_s=8.0, fresh=0.0, late=500.0), 15.0, 500.0)
    """

    served_s: float
    since_s: float
    waiting: float | None
    cap: float = math.inf
    late_after_s: float = math.inf
    produced: Produced | None = None

    def rows(self, at_s: float, rate: float) -> float:
        """Rows that wait at a time."""
        from_s, before = (self.served_s, 0.0) if self.waiting is None else (self.since_s, self.waiting)
        came = None if self.produced is None else self.produced.came(from_s, at_s, rate)
        return before + (rate * max(at_s - from_s, 0.0) if came is None else came)

    def taken_at(self, start_s: float, rate: float) -> tuple[Ahead, Source]:
        """The batch that is triggered then, and what it leaves behind."""
        wait_s, there = max(start_s - self.served_s, 0.0), self.rows(start_s, rate)
        rows = min(there, self.cap)
        late = min(rate * max(wait_s - self.late_after_s, 0.0), rows)
        served_s = start_s if rows == there else min(self.served_s + rows / max(rate, 1e-9), start_s)
        left = None if self.waiting is None else there - rows
        return Ahead(wait_s, rows - late, late), self._replace(served_s=served_s, since_s=start_s, waiting=left)


class NextBatch(NamedTuple):
    """The next batch that has not started.

    Parameters
    ----------
    ahead, rate
        The batch, and the arrival rate to expect.
    in_doubt, rate_in_doubt
        The same, should the batch that runs end at once, and be a slow one where it runs too long, not one of more rows.
    lasts_s
        How long that one is expected to run.
    expected, waiting, lag_s
        The batch, should that one last as long; rows that wait by now; time until then.
    running
        The batch that runs, if one does.
    """

    ahead: Ahead
    rate: float
    in_doubt: Ahead
    rate_in_doubt: float
    lasts_s: float
    expected: Ahead
    waiting: float
    lag_s: float
    running: Running | None = None
