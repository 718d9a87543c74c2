"""From which event time on answers hold all their rows again: one that begins earlier is not called exact.

The rows that are left cannot tell what went, and a guard that drops rows before they are parsed does not know their
times. What is known: a stream that keeps to its watermark's delay has no row that is newer than a later row by more than
that delay. So once a batch keeps everything, the newest time seen by then, plus the delay, lies beyond all dropped rows.
"""

from __future__ import annotations

from jettison.schedule import NEVER_US, UNKNOWN_US
from jettison.stats import EventTimes


class TouchedTimes:
    """The event time before which rows may have been dropped.

    Without event times, that is without a watermark, answers stay in doubt from the first drop on.

    Parameters
    ----------
    until_us
        What was known before: `NEVER_US` while nothing was dropped, `UNKNOWN_US` while rows may be dropped.

    Examples
    --------
    >>> touched = TouchedTimes()
    >>> touched.observe(0, EventTimes(newest_us=100, advance_us=10))
    >>> touched.observe(1, EventTimes(newest_us=130, advance_us=10, watermark_us=80))
    >>> touched.open()
    >>> touched.is_open
    True
    >>> touched.observe(2, EventTimes(newest_us=190, advance_us=10, watermark_us=110))
    >>> touched.close()
    >>> touched.until_us
    211
    """

    def __init__(self, until_us: int = NEVER_US) -> None:
        self.until_us = until_us
        self._newest_us: int | None = None
        self._watermark_us: int | None = None
        self._delay_us: int | None = None
        self._batch_id: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether rows may be dropped at this time, or it is not known up to which time they were."""
        return self.until_us >= UNKNOWN_US

    def observe(self, batch_id: int, times: EventTimes | None) -> None:
        """Learn from the times of a finished batch."""
        follows, self._batch_id = self._batch_id == batch_id - 1, batch_id
        if times is None:
            return
        if times.watermark_us is not None:
            # One that has moved was set by rows of this run. At a restart it may stem from rows seen before.
            moved = self._watermark_us is None or times.watermark_us > self._watermark_us
            # Where a report is missing, its rows may have set it, and the newest time known is too old.
            if moved and follows and self._newest_us is not None:
                self._delay_us = max(self._newest_us - times.watermark_us, self._delay_us or 0)
            self._watermark_us = times.watermark_us
        self._newest_us = times.newest_us if self._newest_us is None else max(self._newest_us, times.newest_us)

    def open(self) -> None:
        """Rows are about to be dropped."""
        self.until_us = max(self.until_us, UNKNOWN_US)

    def close(self) -> None:
        """The batch last observed, and all after it, keep every row; no effect where the end is not known."""
        if self._newest_us is not None and self._delay_us is not None:
            self.until_us = self._newest_us + self._delay_us + 1
