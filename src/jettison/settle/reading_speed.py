"""How fast rows are read, and how long others will take."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Took:
    """Rows, and the seconds in which they were read."""

    rows: int = 0
    seconds: float = 0.0

    def add(self, rows: int, seconds: float) -> None:
        """Count more of them."""
        self.rows += rows
        self.seconds += seconds

    @property
    def rows_per_s(self) -> float | None:
        """`None` where none were read."""
        return self.rows / self.seconds if self.rows and self.seconds else None


@dataclass(slots=True)
class ReadingSpeed:
    """By what this run has settled, or else an earlier one; before, by the search for windows; before that, by a sample.

    Parameters
    ----------
    before_per_s
        Rows a second of an earlier run, if there was one.
    most_per_s
        No more are wanted.
    settled, looked, sampled
        What was read for answers, for windows and for a sample.

    Examples
    --------
    >>> speed = ReadingSpeed(None, 100.0)
    >>> speed.seconds_for(1000) is None, speed.seconds_for(0)
    (True, 0.0)
    >>> speed.looked.add(160, 4.0)  # to find windows takes half as long
    >>> speed.seconds_for(1000)
    50.0
    >>> speed.settled.add(1000, 2.0)
    >>> speed.seconds_for(1000)
    10.0
    """

    before_per_s: float | None = None
    most_per_s: float | None = None
    settled: Took = field(default_factory=Took)
    looked: Took = field(default_factory=Took)
    sampled: Took = field(default_factory=Took)

    def seconds_for(self, rows: int) -> float | None:
        """About how long these would take; `None` where nothing tells."""
        found_per_s = self.looked.rows_per_s and self.looked.rows_per_s / 2.0
        known = self.settled.rows_per_s or self.before_per_s or found_per_s or self.sampled.rows_per_s
        if not known:
            return None if rows else 0.0
        return rows / min(known, self.most_per_s or known)
