"""The taxi rides of the demo, as numbers for the truth and as JSON text for the stream, from one seed.

Text is cheap here by construction: a book of 100,000 rides is written out once as a matrix of bytes, all rows of one
width, and row `i` of the stream is ride `i` modulo 100,000 with the number and the time of day patched in. The last
five digits of a row's number are those of its place in the book, so that only constants have to be patched.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jettison.lab.demo.schedule import Int64Array

BOOK_ROWS = 100_000
ZONES = 150

_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_RIDE = (
    '{"ride_id":"r%011d","time":"2026-03-02T08:00:00Z","zone":"%s","dropoff":"%s","distance_km":%d.%02d,'
    '"fare":%d.%02d,"tip":%d.%02d,"payment":"%s","passengers":%d'
)
_HEAD = _RIDE % (0, "", "", 0, 0, 0, 0, 0, 0, "", 0)
_ID_HIGH = slice(_HEAD.index("r0") + 1, _HEAD.index("r0") + 7)
_TIME = slice(_HEAD.index("2026"), _HEAD.index("2026") + 20)
_PAYMENTS = ("card", "cash", "app")

Uint8Array = npt.NDArray[np.uint8]


def zone_name(zone: int) -> str:
    """Name of a zone in the text.

    >>> zone_name(0), zone_name(149)
    ('Z001', 'Z150')
    """
    return f"Z{zone + 1:03d}"


@dataclass(frozen=True)
class RideBook:
    """The rides that the stream goes through again and again; equal seeds give equal books.

    Zones follow Zipf's law, so that the busiest has about 18 % of the rides and the quietest about 0.1 %. Fares are
    2.50 plus a log-normal part whose scale depends on the zone. Money is kept in cents: the text of a fare and the
    number that the truth adds up are the same value.

    Parameters
    ----------
    seed
        Decides all random choices.

    Examples
    --------
    >>> book = RideBook(seed=7)
    >>> len(book.zone), int(book.zone.max()) < ZONES
    (100000, True)
    """

    seed: int = 7

    @cached_property
    def zone(self) -> Int64Array:
        """Pickup zone of each ride, from 0."""
        return self._zones(stream=0)

    @cached_property
    def fare_cents(self) -> Int64Array:
        rng = self._rng(1)
        scale = rng.uniform(0.8, 1.3, size=ZONES)[self.zone]
        fare = 2.5 + 1.75 * scale * rng.lognormal(0.9, 0.65, size=BOOK_ROWS)
        return np.rint(fare * 100).astype(np.int64)

    @cached_property
    def text(self) -> Uint8Array:
        """One ride a row as JSON, padded with spaces before the closing brace to one width."""
        lines = self._lines()
        width = max(map(len, lines)) + 1
        padded = "".join(line.ljust(width - 1) + "}" for line in lines)
        return np.frombuffer(padded.encode("ascii"), dtype=np.uint8).reshape(len(lines), width)

    def _lines(self) -> list[str]:
        rng = self._rng(2)
        fare, dropoff = self.fare_cents, self._zones(stream=3)
        distance = np.maximum(1, np.rint((fare - 250) / 1.6 * rng.uniform(0.8, 1.25, BOOK_ROWS))).astype(np.int64)
        payment = rng.choice(len(_PAYMENTS), size=BOOK_ROWS, p=[0.6, 0.25, 0.15])
        # Cash tips are not on record.
        tip = np.where(payment == 1, 0, np.rint(fare * rng.uniform(0, 0.3, BOOK_ROWS))).astype(np.int64)
        passengers = 1 + rng.binomial(4, 0.12, size=BOOK_ROWS)
        names = np.array([zone_name(zone) for zone in range(ZONES)])
        columns = [np.arange(BOOK_ROWS), names[self.zone], names[dropoff]]
        for hundredths in (distance, fare, tip):
            columns += np.divmod(hundredths, 100)
        columns += [np.array(_PAYMENTS)[payment], passengers]
        return [_RIDE % values for values in zip(*(column.tolist() for column in columns), strict=True)]

    def _zones(self, stream: int) -> Int64Array:
        share = 1.0 / np.arange(1, ZONES + 1)
        return self._rng(stream).choice(ZONES, size=BOOK_ROWS, p=share / share.sum()).astype(np.int64)

    def _rng(self, stream: int) -> np.random.Generator:
        # A generator for each column, so that the numbers are the same whether or not the text is ever made.
        return np.random.default_rng([self.seed, stream])


class RideWriter:
    """Writes the text of consecutive rows into one matrix, which the next call overwrites.

    Parameters
    ----------
    book
        The rides.
    max_rows
        Most rows that one call asks for.
    """

    def __init__(self, book: RideBook, max_rows: int) -> None:
        self._text = book.text
        self._page = np.empty((max_rows, self._text.shape[1]), dtype=np.uint8)

    @property
    def width(self) -> int:
        return int(self._text.shape[1])

    def write(self, first_row: int, event_s: Int64Array) -> Uint8Array:
        """Return the text of the rows from `first_row`, one for each event time."""
        page = self._page[: len(event_s)]
        for start, stop in _runs(BOOK_ROWS, first_row, len(page)):
            place = (first_row + start) % BOOK_ROWS
            page[start:stop] = self._text[place : place + stop - start]
            page[start:stop, _ID_HIGH] = _bytes(f"{(first_row + start) // BOOK_ROWS:06d}")
        changes = np.flatnonzero(np.diff(event_s)) + 1
        for start, stop in zip([0, *changes.tolist()], [*changes.tolist(), len(page)], strict=True):
            if stop > start:
                page[start:stop, _TIME] = _bytes(_time_text(int(event_s[start])))
        return page


def _runs(period: int, first: int, count: int) -> list[tuple[int, int]]:
    """Cut `count` rows from number `first` where the number passes a multiple of `period`."""
    cuts = list(range(period - first % period, count, period))
    return list(zip([0, *cuts], [*cuts, count], strict=True))


def _time_text(event_s: int) -> str:
    return datetime.fromtimestamp(event_s, tz=UTC).strftime(_TIME_FORMAT)


def _bytes(text: str) -> Uint8Array:
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
