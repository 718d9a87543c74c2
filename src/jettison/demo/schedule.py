"""When each row of the demo's stream arrives: fixed in advance, whatever becomes of the rows afterwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jettison.errors import InvalidSetting, explain

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

    def __post_init__(self) -> None:
        if not (math.isfinite(self.duration_s) and self.duration_s > 0):
            raise InvalidSetting(
                explain(
                    "`duration_s` of a phase must be positive",
                    repr(self.duration_s),
                    hint="leave out a phase of no length; a pause is Phase(5.0, rows_per_s=0)",
                )
            )
        if not (math.isfinite(self.rows_per_s) and self.rows_per_s >= 0):
            raise InvalidSetting(
                explain("`rows_per_s` of a phase must not be negative", repr(self.rows_per_s), hint="0 makes a pause")
            )


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
        if not phases:
            raise InvalidSetting(
                explain(
                    "a schedule needs at least one phase",
                    "none",
                    hint="begin with one such as Phase(duration_s=10, rows_per_s=1000)",
                )
            )
        interval_us = round(interval_s * 1e6)
        if interval_us < 1000:
            raise InvalidSetting(
                explain(
                    "`interval_s` must be at least 0.001",
                    repr(interval_s),
                    hint="0.1 lands ten files a second, which Spark lists without trouble",
                )
            )
        if not (math.isfinite(event_speed) and event_speed > 0):
            raise InvalidSetting(
                explain(
                    "`event_speed` must be positive",
                    repr(event_speed),
                    hint="1 lets the rides' clock go with the feed's, 60 makes a second of it a minute of theirs",
                )
            )
        ends_us = np.cumsum([0.0] + [phase.duration_s * 1e6 for phase in phases])
        rows_at_ends = np.cumsum([0.0] + [phase.duration_s * phase.rows_per_s for phase in phases])
        total_us = round(float(ends_us[-1]))
        edges_us = [*range(0, total_us, interval_us), total_us]
        # A hair more than the float says, so that 0.3 s of 10 rows/s is 3 rows and not 2.
        rows_before = np.floor(np.interp(edges_us, ends_us, rows_at_ends) + 1e-6).astype(int)
        return cls(tuple(edges_us), tuple(rows_before.tolist()), event_speed)

    @classmethod
    def of_rows(cls, rows: int, *, rows_per_file: int, interval_s: float = 0.1, event_speed: float = 1.0) -> Schedule:
        """Exactly `rows` rows, in full files but for the last."""
        if rows < 1 or rows_per_file < 1:
            raise InvalidSetting(
                explain(
                    "`rows` and `rows_per_file` must be positive",
                    f"{rows} and {rows_per_file}",
                    hint="for no rows at all, use no feed",
                )
            )
        rows_before = (*range(0, rows, rows_per_file), rows)
        interval_us = round(interval_s * 1e6)
        return cls(tuple(k * interval_us for k in range(len(rows_before))), rows_before, event_speed)

    @property
    def rows(self) -> int:
        """Rows in all files together."""
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
        """Numbers of the rows in a file."""
        return range(self.rows_before[file], self.rows_before[file + 1])

    def due_us(self, file: int) -> int:
        """When the file is to land."""
        return self.edges_us[file + 1]

    def arrival_us(self, rows: npt.ArrayLike) -> Int64Array:
        """Arrival of the rows with these numbers, in microseconds since the start."""
        rows = np.asarray(rows, dtype=np.int64)
        before = np.asarray(self.rows_before, dtype=np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < self.rows):
            raise InvalidSetting(
                explain(
                    f"a row's number must lie in [0, {self.rows})",
                    f"{rows.min()} to {rows.max()}",
                    hint="rows are counted from 0, and row `schedule.rows - 1` is the last",
                )
            )
        # From the right, so that an empty file is passed over.
        file = np.searchsorted(before, rows, side="right") - 1
        edges = np.asarray(self.edges_us, dtype=np.int64)
        length_us, count = edges[file + 1] - edges[file], before[file + 1] - before[file]
        return np.asarray(edges[file] + (rows - before[file]) * length_us // count, dtype=np.int64)

    def file_arrival_us(self, file: int) -> Int64Array:
        """Arrival of all rows of one file: the same as `arrival_us`, without the search for the file."""
        start_us, count = self.edges_us[file], len(self.file_rows(file))
        return start_us + np.arange(count, dtype=np.int64) * (self.edges_us[file + 1] - start_us) // max(count, 1)

    def event_s(self, arrival_us: Int64Array) -> Int64Array:
        """Time of day of the rides that arrive then, in whole seconds since the Unix epoch."""
        return EVENT_EPOCH_S + (arrival_us * self.event_speed).astype(np.int64) // 1_000_000

    def to_dict(self) -> dict[str, Any]:
        """Plain values, from which `from_dict` restores an equal schedule in another process."""
        return {"edges_us": self.edges_us, "rows_before": self.rows_before, "event_speed": self.event_speed}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Schedule:
        """Restore what `to_dict` gave, also after a passage through JSON."""
        return cls(tuple(values["edges_us"]), tuple(values["rows_before"]), float(values["event_speed"]))
