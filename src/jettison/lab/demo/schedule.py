"""When each row of the demo's stream arrives: fixed in advance, whatever becomes of the rows afterwards."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jettison.errors import refuse

Int64Array = npt.NDArray[np.int64]

EVENT_EPOCH_S = 1_772_438_400
"""Where the simulated clock starts: Monday 2026-03-02, 08:00 UTC. Fixed, so that every run sees the same rides."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of time in which rows arrive at a constant rate.

    Parameters
    ----------
    duration_s
        Length of the stretch in seconds.
    rows_per_s
        Rows that arrive in each second; 0 for a pause.
    """

    duration_s: float
    rows_per_s: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """Arrival of every row, open loop: a function of the row's number alone.

    File `k` holds the rows that arrive between `edges_us[k]` and `edges_us[k + 1]`, spread evenly over that time, and
    is due at the end of it. Times are microseconds since the start of the feed, so that they are exact in the files.

    Parameters
    ----------
    edges_us
        Bounds of the files' intervals, rising.
    rows_before
        Number of rows that arrive before each edge.
    event_speed
        Seconds that the simulated clock of the rides advances in one second of the schedule.

    Examples
    --------
    >>> schedule = Schedule.from_phases([Phase(0.2, 30), Phase(0.1, 100)], interval_s=0.1)
    >>> schedule.rows, schedule.files, schedule.file_rows(2)
    (16, 3, range(6, 16))
    >>> schedule.arrival_us([0, 1, 15]).tolist()
    [0, 33333, 290000]
    """

    edges_us: tuple[int, ...]
    rows_before: tuple[int, ...]
    event_speed: float = 1.0

    @classmethod
    def from_phases(cls, phases: Sequence[Phase], *, interval_s: float = 0.1, event_speed: float = 1.0) -> Schedule:
        """Cut the phases into files of `interval_s` each; the last one may be shorter."""
        ends_us = np.cumsum([0.0] + [phase.duration_s * 1e6 for phase in phases])
        rows_at_ends = np.cumsum([0.0] + [phase.duration_s * phase.rows_per_s for phase in phases])
        total_us = round(float(ends_us[-1]))
        edges_us = [*range(0, total_us, round(interval_s * 1e6)), total_us]
        # A hair more than the float says, so that 0.3 s of 10 rows/s is 3 rows and not 2.
        rows_before = np.floor(np.interp(edges_us, ends_us, rows_at_ends) + 1e-6).astype(int)
        return cls(tuple(edges_us), tuple(rows_before.tolist()), event_speed)

    @classmethod
    def of_rows(cls, rows: int, *, rows_per_file: int, event_speed: float = 1.0) -> Schedule:
        """Exactly `rows` rows, in full files but for the last, one every 0.1 s."""
        rows_before = (*range(0, rows, rows_per_file), rows)
        return cls(tuple(k * 100_000 for k in range(len(rows_before))), rows_before, event_speed)

    @property
    def rows(self) -> int:
        return self.rows_before[-1]

    @property
    def files(self) -> int:
        """Number of files, empty ones included."""
        return len(self.edges_us) - 1

    @property
    def duration_s(self) -> float:
        """From the start to the last file's landing."""
        return self.edges_us[-1] / 1e6

    def file_rows(self, file: int) -> range:
        return range(self.rows_before[file], self.rows_before[file + 1])

    @property
    def largest_file(self) -> int:
        return int(np.diff(self.rows_before).max())

    def due_us(self, file: int) -> int:
        return self.edges_us[file + 1]

    def arrival_us(self, rows: range | npt.ArrayLike) -> Int64Array:
        """Arrival of the rows with these numbers, in microseconds since the start."""
        rows = np.arange(rows.start, rows.stop) if isinstance(rows, range) else np.asarray(rows, dtype=np.int64)
        before = np.asarray(self.rows_before, dtype=np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < self.rows):
            refuse(
                f"a row's number must lie in [0, {self.rows})",
                f"{rows.min()} to {rows.max()}",
                hint="rows are counted from 0, and row `schedule.rows - 1` is the last",
            )
        # From the right, so that an empty file is passed over.
        file = np.searchsorted(before, rows, side="right") - 1
        edges = np.asarray(self.edges_us, dtype=np.int64)
        length_us, count = edges[file + 1] - edges[file], before[file + 1] - before[file]
        return np.asarray(edges[file] + (rows - before[file]) * length_us // count, dtype=np.int64)

    def rows_by(self, elapsed_us: float) -> int:
        return bisect_left(range(self.rows), elapsed_us, key=lambda row: int(self.arrival_us([row])[0]))

    def event_s(self, arrival_us: Int64Array) -> Int64Array:
        """Time of day of the rides that arrive then, in whole seconds since the Unix epoch."""
        return EVENT_EPOCH_S + (arrival_us * self.event_speed).astype(np.int64) // 1_000_000
