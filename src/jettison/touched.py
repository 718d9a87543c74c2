"""For which stretches of event time answers may miss rows: an answer is exact only outside of them.

The rows that are left cannot tell what went, and a guard that drops rows before they are parsed does not know their
times. What is known: a row older than the watermark would have been ignored anyway; and a stream that keeps to its
watermark's delay has no row that is newer than a later row by more than that delay.
"""

from __future__ import annotations

from collections.abc import Iterable

from jettison.schedule import EARLIEST_US, LATEST_US, Stretch
from jettison.stats import EventTimes

_MOST = 32


class TouchedTimes:
    """Stretches in which rows may have been dropped: opened before the first drop, closed when their end is known.

    Without event times, that is without a watermark, a stretch that was opened stays open.

    Examples
    --------
    >>> touched = TouchedTimes()
    >>> touched.observe(EventTimes(newest_us=100, advance_us=10))
    >>> touched.observe(EventTimes(newest_us=130, advance_us=10, watermark_us=80))
    >>> touched.open()
    >>> touched.stretches[0].from_us, touched.is_open
    (80, True)
    >>> touched.observe(EventTimes(newest_us=190, advance_us=10, watermark_us=110))
    >>> touched.close()
    >>> touched.stretches
    (Stretch(from_us=80, until_us=211),)
    """

    def __init__(self, stretches: Iterable[Stretch] = ()) -> None:
        self.stretches: tuple[Stretch, ...] = tuple(sorted(stretches))
        self._newest_us: int | None = None
        self._watermark_us: int | None = None
        self._delay_us: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether rows may be dropped at this time."""
        return any(stretch.until_us == LATEST_US for stretch in self.stretches)

    def observe(self, times: EventTimes | None) -> None:
        """Learn from the times of a finished batch."""
        if times is None:
            return
        if times.watermark_us is not None:
            # One that has moved was set by rows of this run. At a restart it may stem from rows seen before.
            moved = self._watermark_us is not None and times.watermark_us > self._watermark_us
            if (moved or self._watermark_us is None) and self._newest_us is not None:
                self._delay_us = max(self._newest_us - times.watermark_us, self._delay_us or 0)
            self._watermark_us = times.watermark_us
        self._newest_us = times.newest_us if self._newest_us is None else max(self._newest_us, times.newest_us)

    def open(self) -> None:
        """Rows are about to be dropped: from any window that is not closed yet."""
        if not self.is_open:
            start = EARLIEST_US if self._watermark_us is None else self._watermark_us
            self._set([*self.stretches, Stretch(start, LATEST_US)])

    def close(self) -> None:
        """The batch last observed, and all after it, keep every row; no effect where the end is not known."""
        if self._newest_us is None or self._delay_us is None:
            return
        end = self._newest_us + self._delay_us + 1
        self._set(
            Stretch(one.from_us, max(end, one.from_us)) if one.until_us == LATEST_US else one for one in self.stretches
        )

    def _set(self, stretches: Iterable[Stretch]) -> None:
        """Join what overlaps, and the oldest ones where there are too many."""
        joined: list[Stretch] = []
        for one in sorted(stretches):
            if joined and one.from_us <= joined[-1].until_us:
                joined[-1] = Stretch(joined[-1].from_us, max(joined[-1].until_us, one.until_us))
            else:
                joined.append(one)
        while len(joined) > _MOST:
            joined[:2] = [Stretch(joined[0].from_us, joined[1].until_us)]
        self.stretches = tuple(joined)
