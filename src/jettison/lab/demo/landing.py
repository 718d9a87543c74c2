"""Lands files of taxi rides in a directory, one parquet file at a time, as Spark would read them from Kafka."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from jettison.errors import refuse
from jettison.lab.demo.rides import BOOK_ROWS, ZONES, RideBook, RideWriter, zone_name
from jettison.lab.demo.schedule import EVENT_EPOCH_S, Int64Array, Schedule

SPARK_SCHEMA = "partition INT, offset BIGINT, timestamp TIMESTAMP, value STRING"
"""For `spark.readStream.schema(SPARK_SCHEMA).parquet(directory)`: the shape of a Kafka record."""

RIDE_SCHEMA = (
    "ride_id STRING, time TIMESTAMP, zone STRING, dropoff STRING, distance_km DOUBLE, fare DOUBLE, tip DOUBLE, "
    "payment STRING, passengers INT"
)
"""For `from_json(value, RIDE_SCHEMA)`."""

_ARROW_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("value", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Exact count and sum of the fares of one zone in one window."""

    rides: int
    fare_cents: int

    @property
    def fare_mean(self) -> float:
        return self.fare_cents / self.rides / 100


@dataclass(frozen=True)
class Landing:
    """One run of a schedule: which rows land, when, and what the exact answers over them are.

    Parameters
    ----------
    schedule
        Arrival of the rows since the start.
    book
        The rides.
    started_us
        Wall-clock time of the start, in microseconds since the Unix epoch.
    """

    schedule: Schedule
    book: RideBook
    started_us: int

    def arrival_of(self, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Arrival of the rows with these numbers, in seconds since the Unix epoch.

        Files are read in landing order, so a reader that has taken `n` rows has taken the rows 0 to `n - 1`.
        """
        return (self.started_us + self.schedule.arrival_us(rows)) / 1e6

    def truth(self, *, window_s: int, rows: int | None = None) -> dict[tuple[int, str], Answer]:
        """Exact answers over the first `rows` rows, all of them by default.

        They are by start of the window, in seconds since the Unix epoch, and name of the pickup zone. Windows are
        Spark's tumbling windows of event time: `[start, start + window_s)` with `start` a multiple of `window_s`. A window
        and zone without rides has no answer, as in Spark.

        >>> landing = Landing(Schedule.of_rows(250_000, rows_per_file=50_000), RideBook(), started_us=0)
        >>> sum(answer.rides for answer in landing.truth(window_s=10).values())
        250000
        """

        def event_s(row: int) -> int:
            return int(self.schedule.event_s(self.schedule.arrival_us([row]))[0])

        rows = self.schedule.rows if rows is None else rows
        answers: dict[tuple[int, str], Answer] = {}
        start_s, first = EVENT_EPOCH_S // window_s * window_s, 0
        while first < rows:
            # Event time never falls from one row to the next, so a window is a stretch of consecutive rows.
            last = bisect_left(range(rows), start_s + window_s, lo=first, key=event_s)
            times = _times_in_book(range(first, last))
            rides = np.bincount(self.book.zone, weights=times, minlength=ZONES)
            # Sums of whole cents stay exact in a double up to 2**53.
            cents = np.bincount(self.book.zone, weights=times * self.book.fare_cents, minlength=ZONES)
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


class Lander:
    """Lands the files of one run; a reader never sees a part of a file.

    Each file is written under a hidden name in the same directory and then renamed. Its modification time is set to the
    time it was due, because Spark reads files in that order, in milliseconds: files landed late and close together
    would otherwise tie. The rows' `timestamp` is their scheduled arrival, however late the file lands.

    Parameters
    ----------
    directory
        Where the files go; made if missing.
    landing
        What to land.

    Notes
    -----
    A row costs about 0.3 microseconds of CPU, so that 450,000 rows/s take about 0.14 of a core (2 busy cores): the
    text is copied from the book and patched as whole columns of bytes, passed to Arrow without a copy, and written
    without compression, dictionary or statistics. At that rate the files take about 85 MB a second.
    """

    def __init__(self, directory: Path, landing: Landing) -> None:
        self._directory, self._landing = directory, landing
        largest = landing.schedule.largest_file
        self._writer = RideWriter(landing.book, largest)
        self._text_ends = np.arange(largest + 1, dtype=np.int32) * np.int32(self._writer.width)
        self._partition = np.zeros(largest, dtype=np.int32)
        directory.mkdir(parents=True, exist_ok=True)

    def land(self, file: int) -> int:
        """Land one file and return its number of rows; a file without rows is left out."""
        rows = self._landing.schedule.file_rows(file)
        if not rows:
            return 0
        name = f"rides-{file:06d}.parquet"
        hidden = self._directory / f".{name}.tmp"
        bare = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
        pq.write_table(self._table(file), hidden, compression="none", **bare)
        due_ns = (self._landing.started_us + self._landing.schedule.due_us(file)) * 1000
        os.utime(hidden, ns=(due_ns, due_ns))
        hidden.rename(self._directory / name)
        return len(rows)

    def _table(self, file: int) -> pa.Table:
        schedule = self._landing.schedule
        rows = schedule.file_rows(file)
        arrival_us = schedule.arrival_us(rows)
        text = self._writer.write(rows.start, schedule.event_s(arrival_us))
        columns = [
            pa.array(self._partition[: len(rows)]),
            pa.array(np.arange(rows.start, rows.stop, dtype=np.int64)),
            pa.array(self._landing.started_us + arrival_us).view(pa.timestamp("us", tz="UTC")),
            pa.StringArray.from_buffers(len(rows), pa.py_buffer(self._text_ends[: len(rows) + 1]), pa.py_buffer(text)),
        ]
        return pa.Table.from_arrays(columns, schema=_ARROW_SCHEMA)


def land_all(directory: str | Path, rows: int, *, rows_per_file: int = 50_000, event_speed: float = 1.0) -> Landing:
    """Land exactly `rows` rows at once, for calibration and tests; their arrivals end now, one file every 0.1 s.

    Parameters
    ----------
    directory
        An empty or missing directory.
    rows, rows_per_file
        How many rows in all, and in each file but the last.
    event_speed
        Seconds that the rides' own clock advances per second.
    """
    refuse_used(Path(directory))
    schedule = Schedule.of_rows(rows, rows_per_file=rows_per_file, event_speed=event_speed)
    landing = Landing(schedule, RideBook(), time.time_ns() // 1000 - schedule.edges_us[-1])
    lander = Lander(Path(directory), landing)
    for file in range(schedule.files):
        lander.land(file)
    return landing


def refuse_used(directory: Path) -> None:
    """Raise if rides are there already: offsets would occur twice."""
    if any(directory.glob("rides-*.parquet")):
        refuse("a feed needs a directory without rides", str(directory), hint="take a new one")
