"""Runs methods over streams and measures their errors, at equal rows processed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.lab.reproduce.concept.methods import Kept, Method
from jettison.lab.reproduce.concept.streams import Stream, Window

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One window under one method. Errors are relative, 1 at most, and 1 for a group without a kept row."""

    rows: int
    processed: int
    error: float
    missing: int
    groups: int
    count_error: float


@dataclass(frozen=True, eq=False)
class Run:
    """A method over the measured windows of a stream."""

    stream: str
    method: str
    share: float
    outcomes: Sequence[Outcome]

    @property
    def processed_share(self) -> float:
        return sum(o.processed for o in self.outcomes) / sum(o.rows for o in self.outcomes)

    @property
    def error(self) -> float:
        """Mean relative error over groups, then over windows."""
        return float(np.mean([o.error for o in self.outcomes]))

    @property
    def error_95(self) -> float:
        """95th percentile over windows of the mean over groups."""
        return float(np.percentile([o.error for o in self.outcomes], 95))

    @property
    def missing_share(self) -> float:
        """Share of the groups that have no kept row."""
        return sum(o.missing for o in self.outcomes) / sum(o.groups for o in self.outcomes)

    @property
    def count_error(self) -> float:
        """Mean relative error of the weighted counts of groups, which exact counts would make 0."""
        return float(np.mean([o.count_error for o in self.outcomes]))


def judge(window: Window, kept: Kept) -> Outcome:
    """Compare the group means and counts of what was kept with those of all rows."""
    keep, weight = kept
    _, group, rows = np.unique(window.groups, return_inverse=True, return_counts=True)
    truth = np.bincount(group, window.values) / rows
    mine, w = group[keep], weight[keep]
    count = np.bincount(mine, w, len(rows))
    total = np.bincount(mine, w * window.values[keep], len(rows))
    there = count > 0
    estimate = np.divide(total, count, out=np.zeros_like(total), where=there)
    # Where the truth is 0, any other estimate is wholly wrong.
    gap = np.abs(estimate - truth)
    relative = np.divide(gap, np.abs(truth), out=np.where(gap > 0, 1.0, 0.0), where=truth != 0)
    return Outcome(
        rows=window.rows,
        processed=int(keep.sum()),
        error=float(np.where(there, np.minimum(relative, 1.0), 1.0).mean()),
        missing=int((~there).sum()),
        groups=len(rows),
        count_error=float(np.minimum(np.abs(count / rows - 1.0), 1.0).mean()),
    )


def run(stream: Stream, make: Callable[[], Method], share: float, seed: int) -> Run:
    """Run a fresh method over a stream. The first window warms it up and is not measured."""
    method, random = make(), np.random.default_rng([seed, 7])
    outcomes = [judge(window, method.keep(window, share, random)) for window in stream.windows]
    return Run(stream.name, method.name, share, outcomes[1:])


def run_at(stream: Stream, make: Callable[[], Method], processed: float, seed: int, *, tolerance: float = 0.01) -> Run:
    """Run a method so that it processes this share of the rows, whatever it has to be told for that.

    The share it is told is adjusted until the rows processed differ by less than the tolerance; the closest run is
    returned, so a method that cannot go so low is seen in its `processed_share`.
    """
    told, best = processed, None
    for _ in range(8):
        made = run(stream, make, told, seed)
        if best is None or abs(made.processed_share - processed) < abs(best.processed_share - processed):
            best = made
        if abs(best.processed_share / processed - 1.0) <= tolerance or made.processed_share <= 0:
            break
        told = float(np.clip(told * processed / made.processed_share, 1e-6, 1.0))
    assert best is not None
    return best
