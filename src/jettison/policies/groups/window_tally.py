"""Counts of the groups of one window, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.core.documents import Amount, Share
from jettison.policies.groups.concepts import GroupConcept
from jettison.policies.groups.group_keys import Keys

Floats = NDArray[np.float64]

MAX_KEYS = 20_000
"""Groups of a window that are counted one by one, unless told otherwise."""
_LEAST_LEFT = 1.0 / 60.0  # of a pane that is over: late rows come, as many as in a usual batch
_FADING = 0.5  # what is known of a pane grows with every micro-batch, so that the last ones count
_FEW_ROWS, _MOST_OVERSPENT = 20.0, 2.0
_MOST_ROWS = 1e15


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
    looked
        Rows of each group that were looked at. Where they are fewer than those seen, the counts come from a sample.
    novel_rows, recent_rows
        Of the micro-batches after the first, the later ones counting more: rows of groups that were not known when their
        batch began, and all rows. Their ratio is the share of rows whose group is not known.
    overspent
        Rows kept for each row that a plan expects to keep: what it must ask for less, or may ask for more.

    Examples
    --------
    >>> tally = WindowTally(0).add([7, 7, 3], progress=0.5)
    >>> tally.keys.tolist(), tally.seen.tolist()
    ([3, 7], [1.0, 2.0])
    """

    start_us: int
    progress: Share = 0.0
    keys: Keys = field(default_factory=lambda: np.empty(0, np.int64))
    seen: Floats = field(default_factory=lambda: np.empty(0))
    overflow_rows: Amount = 0.0
    kept: Amount = 0.0
    kept_of: Floats = field(default_factory=lambda: np.empty(0))
    looked: Floats = field(default_factory=lambda: np.empty(0))
    novel_rows: Amount = 0.0
    recent_rows: Amount = 0.0
    overspent: Amount = 1.0

    def __post_init__(self) -> None:
        if len(self.looked) != len(self.seen):
            object.__setattr__(self, "looked", self.seen)

    def add(
        self,
        keys: ArrayLike,
        rows: ArrayLike | None = None,
        *,
        progress: float,
        overflow_rows: float = 0.0,
        kept: float = 0.0,
        kept_of: ArrayLike | None = None,
        looked: ArrayLike | None = None,
        planned: float | None = None,
        max_keys: int = MAX_KEYS,
    ) -> WindowTally:
        """Add the rows of a micro-batch: keys with the rows of each (and how many were kept), or one key a row.

        Without `kept_of` every group seen counts as one with an answer; without `looked` every row was looked at.
        `planned` are the rows that the plan in force expected to keep of them.

        Of more than `max_keys` groups the largest stay; the rows of the others go into the overflow. A group that
        overflowed is unknown from then on: it is kept whole or, where that would break the budget, thinned with all
        that is unknown.
        """
        new = np.asarray(keys, np.int64)
        count = np.ones(len(new)) if rows is None else np.asarray(rows, float)
        held = count if kept_of is None else np.asarray(kept_of, float)
        shown = count if looked is None else np.asarray(looked, float)
        novel, recent = self._novelty(new, count, overflow_rows)
        merged, place = np.unique(np.concatenate([self.keys, new]), return_inverse=True)
        seen, of, sample = (
            np.bincount(place, weights=np.concatenate(both), minlength=len(merged)).astype(float)
            for both in ((self.seen, count), (self.kept_of, held), (self.looked, shown))
        )
        overflow = self.overflow_rows + overflow_rows
        if len(merged) > max_keys:
            stay = np.sort(np.lexsort((merged, -seen))[:max_keys])
            overflow += float(seen.sum() - seen[stay].sum())
            merged, seen, of, sample = merged[stay], seen[stay], of[stay], sample[stay]
        total = self.kept + kept
        over = self.overspent if planned is None else _corrected(self.overspent, kept, planned)
        return WindowTally(self.start_us, progress, merged, seen, overflow, total, of, sample, novel, recent, over)

    def _novelty(self, keys: Keys, rows: Floats, unlisted: float) -> tuple[float, float]:
        if not self.rows:
            return 0.0, 0.0  # to an empty tally everything is new
        new = float(rows[~np.isin(keys, self.keys)].sum()) + unlisted
        return _FADING * self.novel_rows + new, _FADING * self.recent_rows + float(rows.sum()) + unlisted

    @property
    def is_sound(self) -> bool:
        """Whether this can be the tally of a window: what was saved may have been damaged."""
        counts = (self.seen, self.kept_of, self.looked)
        counted = all(len(one) == len(self.keys) and ((one >= 0.0) & (one <= _MOST_ROWS)).all() for one in counts)
        spent = 1.0 / _MOST_OVERSPENT <= self.overspent <= _MOST_OVERSPENT
        return bool(counted and spent and (np.diff(self.keys) > 0).all())

    @property
    def rows(self) -> float:
        return float(self.seen.sum()) + self.overflow_rows

    @property
    def time_left(self) -> float:
        """Share of the pane's time that is still to come."""
        return max(1.0 - self.progress, _LEAST_LEFT)

    @property
    def seen_once(self) -> int:
        """Groups with one row so far: by Good and Turing their share is that of groups still unseen."""
        return int((self.seen == 1.0).sum())

    @property
    def unseen_rows(self) -> float:
        """Rows so far of groups that the sample has missed; none where every row was looked at.

        By Good and Turing as many as the rows which those groups stand for that it shows once, beside themselves. That
        is too many once groups are thinned as soon as they are known, since then they stay at one row. What is seen
        directly, the share of recent rows whose group was not known, is at most a little old. So the smaller counts.
        """
        once = self.looked == 1.0
        missed = float((self.seen[once] - 1.0).sum()) + self.overflow_rows
        if self.recent_rows <= 0.0:
            return missed
        return min(missed, self.rows * self.novel_rows / self.recent_rows)

    @property
    def estimated(self) -> Floats:
        """Rows of each group so far, for shares that fall with them: as `seen`, and one more row where they are a sample.

        A share of `cap / rows` spends the cap on average only if the inverse of `rows` is right on average. Of rows that
        come by chance, that of one more than were looked at is.
        """
        more = np.divide(self.seen, self.looked, out=np.zeros_like(self.seen), where=self.looked > 0)
        return np.where(self.seen > self.looked * (1 + 1e-9), self.seen + more, self.seen)

    @property
    def certain(self) -> NDArray[np.bool_]:
        """Groups whose size is more than a guess: those of which several rows were looked at, or all."""
        return (self.looked > 1.0) | (self.seen <= self.looked * (1 + 1e-9))

    @property
    def concept(self) -> GroupConcept:
        return GroupConcept(self.keys, self.seen)


def _corrected(before: float, kept: float, planned: float) -> float:
    """Half of the way towards what the last batch says, less where it has few rows."""
    ratio = (kept + _FEW_ROWS) / (planned + _FEW_ROWS)
    return float(np.clip(before * ratio**0.5, 1.0 / _MOST_OVERSPENT, _MOST_OVERSPENT))
