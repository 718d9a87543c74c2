"""The exact answers of the demo's query, from the numbers that the stream is made of."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from jettison.lab.demo.rides import BOOK_ROWS, ZONES, RideBook, zone_name
from jettison.lab.demo.schedule import EVENT_EPOCH_S, Int64Array, Schedule


@dataclass(frozen=True, slots=True)
class Answer:
    """Exact count and sum of the fares of one zone in one window."""

    rides: int
    fare_cents: int

    @property
    def fare_mean(self) -> float:
        return self.fare_cents / self.rides / 100


def true_answers(
    schedule: Schedule, book: RideBook, *, window_s: int, rows: int | None = None
) -> dict[tuple[int, str], Answer]:
    """Exact answers over the first `rows` rows of a feed, all of them by default.

    They are by start of the window, in seconds since the Unix epoch, and name of the pickup zone. Windows are Spark's
    tumbling windows of event time: `[start, start + window_s)` with `start` a multiple of `window_s`. A window and zone
    without rides has no answer, as in Spark.

    >>> answers = true_answers(Schedule.of_rows(250_000, rows_per_file=50_000), RideBook(), window_s=10)
    >>> sum(answer.rides for answer in answers.values())
    250000
    """

    def event_s(row: int) -> int:
        return int(schedule.event_s(schedule.arrival_us([row]))[0])

    rows = schedule.rows if rows is None else rows
    answers: dict[tuple[int, str], Answer] = {}
    start_s, first = EVENT_EPOCH_S // window_s * window_s, 0
    while first < rows:
        # Event time never falls from one row to the next, so a window is a stretch of consecutive rows.
        last = bisect_left(range(rows), start_s + window_s, lo=first, key=event_s)
        times = _times_in_book(range(first, last))
        rides = np.bincount(book.zone, weights=times, minlength=ZONES)
        # Sums of whole cents stay exact in a double up to 2**53.
        cents = np.bincount(book.zone, weights=times * book.fare_cents, minlength=ZONES)
        for zone in np.flatnonzero(rides).tolist():
            answers[start_s, zone_name(zone)] = Answer(int(rides[zone]), int(cents[zone]))
        start_s, first = start_s + window_s, last
    return answers


def _times_in_book(stretch: range) -> Int64Array:
    """How often each ride of the book occurs in a stretch of consecutive rows."""
    full, rest = divmod(len(stretch), BOOK_ROWS)
    times = np.full(BOOK_ROWS, full, dtype=np.int64)
    times[np.arange(stretch.start, stretch.start + rest) % BOOK_ROWS] += 1
    return times
