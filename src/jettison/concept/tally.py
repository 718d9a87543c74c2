"""Counts of the groups of one window, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.concept.concepts import GroupConcept

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]

MAX_KEYS = 20_000
"""Groups of a window that are counted one by one, unless told otherwise."""


@dataclass(frozen=True, eq=False)
class WindowTally:
    """What is known of one window: its own rows so far, and nothing of any other window.

    For windows that slide, this is a *pane*: the piece of time between two consecutive window starts, which lies in
    the same windows from end to end. A row lies in one pane, so it is decided once.

    Parameters
    ----------
    start_us
        Start of the pane in microseconds since the epoch.
    progress
        Share of the pane's time that the counts cover, in [0, 1].
    keys, seen
        Groups in ascending order and the rows seen of each, kept or dropped.
    overflow_rows
        Rows of groups that are not tracked.
    kept
        Rows kept so far, exact or expected.
    kept_of
        Rows kept so far of each group, exact or expected. A group below 1 has no answer yet.

    Examples
    --------
    >>> tally = WindowTally(0).add([7, 7, 3], progress=0.5)
    >>> tally.keys.tolist(), tally.seen.tolist()
    ([3, 7], [1.0, 2.0])
    """

    start_us: int
    progress: float = 0.0
    keys: Keys = field(default_factory=lambda: np.empty(0, np.int64))
    seen: Floats = field(default_factory=lambda: np.empty(0))
    overflow_rows: float = 0.0
    kept: float = 0.0
    kept_of: Floats = field(default_factory=lambda: np.empty(0))

    def add(
        self,
        keys: ArrayLike,
        rows: ArrayLike | None = None,
        *,
        progress: float,
        overflow_rows: float = 0.0,
        kept: float = 0.0,
        kept_of: ArrayLike | None = None,
        max_keys: int = MAX_KEYS,
    ) -> WindowTally:
        """Add the rows of a micro-batch: keys with the rows of each (and how many were kept), or one key a row.

        Without `kept_of` every group seen counts as one with an answer.

        Of more than `max_keys` groups the largest stay; the rows of the others go into the overflow. A group that
        overflowed is unknown from then on: it is kept whole or, where that would break the budget, thinned with all
        that is unknown.
        """
        new = np.asarray(keys, np.int64)
        count = np.ones(len(new)) if rows is None else np.asarray(rows, float)
        held = count if kept_of is None else np.asarray(kept_of, float)
        merged, place = np.unique(np.concatenate([self.keys, new]), return_inverse=True)
        seen = _sums(place, np.concatenate([self.seen, count]), len(merged))
        of = _sums(place, np.concatenate([self.kept_of, held]), len(merged))
        overflow = self.overflow_rows + overflow_rows
        if len(merged) > max_keys:
            stay = np.sort(np.lexsort((merged, -seen))[:max_keys])
            overflow += float(seen.sum() - seen[stay].sum())
            merged, seen, of = merged[stay], seen[stay], of[stay]
        return WindowTally(self.start_us, progress, merged, seen, overflow, self.kept + kept, of)

    def at(self, progress: float) -> WindowTally:
        """The same counts when more of the window's time has passed."""
        return replace(self, progress=progress)

    @property
    def rows(self) -> float:
        """Rows seen in all."""
        return float(self.seen.sum()) + self.overflow_rows

    @property
    def seen_once(self) -> int:
        """Groups with one row so far: by Good and Turing their share is that of groups still unseen."""
        return int((self.seen == 1.0).sum())

    @property
    def concept(self) -> GroupConcept:
        """Frequencies of the tracked groups."""
        return GroupConcept(self.keys, self.seen)


def _sums(place: NDArray[np.intp], weights: Floats, length: int) -> Floats:
    return np.bincount(place, weights=weights, minlength=length).astype(float)
