"""The exact answers of the demo's query, from the numbers that the stream is made of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jettison.demo.rides import BOOK_ROWS, ZONES, RideBook, zone_name
from jettison.demo.schedule import Int64Array, Schedule
from jettison.errors import InvalidSetting, explain


@dataclass(frozen=True, slots=True)
class Answer:
    """Exact count and sum of the fares of one zone in one window."""

    rides: int
    fare_cents: int

    @property
    def fare_mean(self) -> float:
        """Mean fare."""
        return self.fare_cents / self.rides / 100


class Truth:
    """Exact answers per window of event time and pickup zone, over the first `rows` rows of the feed.

    Windows are Spark's tumbling windows: `[start, start + window_s)` with `start` a multiple of `window_s` since the
    Unix epoch. A window and zone without rides has no answer, as in Spark.

    Parameters
    ----------
    schedule, book
        What was landed.
    window_s
        Length of a window in whole seconds of event time.
    rows
        How many rows count, such as `RideFeed.landed_rows()` after an early stop; all of them by default.

    Examples
    --------
    >>> truth = Truth(Schedule.of_rows(250_000, rows_per_file=50_000), RideBook(7), window_s=10)
    >>> sum(answer.rides for answer in truth.answers.values())
    250000
    """

    def __init__(self, schedule: Schedule, book: RideBook, *, window_s: int, rows: int | None = None) -> None:
        if window_s < 1 or window_s != int(window_s):
            raise InvalidSetting(
                explain(
                    "`window_s` must be a whole number of seconds from 1",
                    repr(window_s),
                    hint="use the length of the query's window in seconds, such as 10",
                )
            )
        self.window_s = int(window_s)
        self.rows = schedule.rows if rows is None else rows
        self._schedule, self._book = schedule, book
        self.answers: dict[tuple[int, str], Answer] = {}
        """Answer by start of the window, in seconds since the Unix epoch, and name of the zone."""
        for start_s, stretch in self._windows():
            self.answers |= self._answers_of(start_s, stretch)

    def _windows(self) -> Iterator[tuple[int, range]]:
        # Event time never falls from one row to the next, so a window is a stretch of consecutive rows.
        first = 0
        while first < self.rows:
            start_s = self._event_s(first) // self.window_s * self.window_s
            last = bisect_left(range(self.rows), start_s + self.window_s, lo=first, key=self._event_s)
            yield start_s, range(first, last)
            first = last

    def _event_s(self, row: int) -> int:
        return int(self._schedule.event_s(self._schedule.arrival_us([row]))[0])

    def _answers_of(self, start_s: int, stretch: range) -> dict[tuple[int, str], Answer]:
        times = _times_in_book(stretch)
        rides = np.bincount(self._book.zone, weights=times, minlength=ZONES)
        # Sums of whole cents stay exact in a double up to 2**53.
        cents = np.bincount(self._book.zone, weights=times * self._book.fare_cents, minlength=ZONES)
        return {
            (start_s, zone_name(zone)): Answer(int(rides[zone]), int(cents[zone]))
            for zone in np.flatnonzero(rides).tolist()
        }


def _times_in_book(stretch: range) -> Int64Array:
    """How often each ride of the book occurs in a stretch of consecutive rows."""
    full, rest = divmod(len(stretch), BOOK_ROWS)
    times = np.full(BOOK_ROWS, full, dtype=np.int64)
    times[np.arange(stretch.start, stretch.start + rest) % BOOK_ROWS] += 1
    return times
