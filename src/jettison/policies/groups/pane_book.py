"""The open panes of one drop point: batches of group counts in, tallies for the policy out, concept shifts when panes close.

Where it is lost that costs precision only: every pane is then one of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from jettison.policies.groups.concepts import shift
from jettison.policies.groups.group_keys import unpacked
from jettison.policies.groups.group_setting import GroupDrop, keep_shares, other_share
from jettison.policies.groups.window_tally import MAX_KEYS, WindowTally

IDLE_SAMPLE = 1.0 / 16.0
"""Share of the rows that a backend looks at while everything is kept: enough to find the groups to thin."""
_OPEN_PANES = 2  # besides the newest; each takes room in the plan
_LEAST_PROGRESS = 1e-3  # the first rows of a pane come from its first moments


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """What a backend reports of the rows that it kept in one micro-batch.

    Parameters
    ----------
    keys, kept
        Groups in panes, packed as in `group_keys`, and the rows kept of each: the largest ones, if there are many.
    rows
        Rows that were looked at: all that were kept, or of these a sample, while everything is kept.
    newest_us
        Latest event time among them.
    variation
        Coefficient of variation of the value that the query aggregates; `None` where it is not looked at.
    """

    keys: tuple[int, ...]
    kept: tuple[int, ...]
    rows: int
    newest_us: int
    variation: float | None = None


@dataclass(frozen=True, slots=True)
class SavedBook:
    """What a book knows, for a restart: up to when rows have come and panes are closed, and the open panes."""

    newest_us: int | None
    closed_until_us: int
    panes: tuple[WindowTally, ...]


class PaneBook:
    """Counts of groups in the panes that are still open.

    Parameters
    ----------
    pane_us
        Length of a pane in microseconds.
    max_keys
        Most groups counted one by one in a pane; the others are counted together.

    Examples
    --------
    >>> book = PaneBook(pane_us=100)
    >>> book.add([0, 0, 100], [7, 8, 7], [5, 1, 2], newest_us=110)
    >>> [(tally.start_us, tally.seen.tolist(), round(tally.progress, 2)) for tally in book.tallies]
    [(0, [5.0, 1.0], 1.0), (100, [2.0], 0.1)]
    >>> book.close(watermark_us=105)[0]["start_us"], len(book.tallies)
    (0, 1)
    """

    def __init__(self, pane_us: int, *, max_keys: int = MAX_KEYS) -> None:
        self._pane_us = pane_us
        self._max_keys = max_keys
        self._open: dict[int, WindowTally] = {}
        self._before: WindowTally | None = None
        self._newest_us: int | None = None
        self._closed_until_us = -(2**63)

    @property
    def oldest_open_us(self) -> int | None:
        """Panes that end by this time hardly get rows any more, watermark or not; `None` before there is a row."""
        return None if self._newest_us is None else self._newest_us - _OPEN_PANES * self._pane_us

    @property
    def tallies(self) -> tuple[WindowTally, ...]:
        """What is known of the open panes, the oldest first."""
        return tuple(self._open[start] for start in sorted(self._open))

    def saved(self, most_groups: int) -> SavedBook:
        """What it knows, with the newest panes that have so many groups together: of the others nothing is known then."""
        groups = np.cumsum([len(tally.keys) for tally in reversed(self.tallies)])
        count = int((groups <= most_groups).sum())
        return SavedBook(self._newest_us, self._closed_until_us, self.tallies[len(groups) - count :])

    def restore(self, saved: SavedBook) -> None:
        """Know what was saved, in place of all else; raises `ValueError` where that cannot be true."""
        if not all(tally.is_sound for tally in saved.panes):
            raise ValueError("no counts of groups")
        self._newest_us, self._closed_until_us = saved.newest_us, saved.closed_until_us
        self._open = {tally.start_us: tally for tally in saved.panes}

    def learn(self, seen: KeptGroups, setting: GroupDrop | None) -> None:
        """Add what the rows kept in a micro-batch say about all of its rows: each stands for its weight.

        A group's count is then an estimate that is unbiased, and exact while the group is kept whole and others are not.
        Rows that the report does not list by group count as rows of the newest pane whose groups are not known.

        Where rows come from a sample, because nothing is known of their groups yet or because everything is kept and
        only some rows are looked at, the tally says how many rows the groups have that were missed.

        Parameters
        ----------
        seen
            The report.
        setting
            What the batch ran under; `None` if it found no plan.

        Examples
        --------
        >>> from jettison.policies.groups.group_keys import packed
        >>> book = PaneBook(pane_us=100)
        >>> keys = tuple(packed([640, 128], [0, 0]).tolist())
        >>> book.learn(KeptGroups(keys, (5, 3), 8, 50), GroupDrop(0.5, 100, (0,), (1.0,), ((640,),), ((0.1,),)))
        >>> book.tallies[0].keys.tolist(), book.tallies[0].seen.tolist()
        ([128, 640], [3.0, 50.0])
        """
        newest_pane = seen.newest_us // self._pane_us
        groups, panes = unpacked(seen.keys, newest_pane)
        starts, kept = panes * self._pane_us, np.asarray(seen.kept, float)
        if setting is None or setting.keeps_everything:
            share, rest_share = np.full(len(kept), IDLE_SAMPLE), IDLE_SAMPLE
        else:
            share, rest_share = keep_shares(setting, starts, groups), other_share(setting, newest_pane * self._pane_us)
        rest = max(seen.rows - float(kept.sum()), 0.0) / (rest_share or 1.0)
        self.add(
            starts,
            groups,
            # A row that had no chance to be kept (it was protected) stands for itself.
            np.divide(kept, share, out=kept.copy(), where=share > 0),
            newest_us=seen.newest_us,
            setting=setting,
            unlisted={newest_pane * self._pane_us: rest} if rest > 0.0 else {},
            looked=kept,
        )

    def add(
        self,
        starts_us: ArrayLike,
        groups: ArrayLike,
        rows: ArrayLike,
        *,
        newest_us: int,
        setting: GroupDrop | None = None,
        unlisted: Mapping[int, float] | None = None,
        looked: ArrayLike | None = None,
    ) -> None:
        """Add the counts of a micro-batch.

        Parameters
        ----------
        starts_us, groups, rows
            Start of the pane, hash of the group, and rows of that group in that pane, kept or dropped.
        newest_us
            Latest event time so far, from which the progress of panes follows.
        setting
            What the batch ran under, from which the rows kept follow; `None` if everything was kept.
        unlisted
            By pane, rows of groups that the counts leave out because the backend counts only the largest.
        looked
            Rows of each group that were looked at, where `rows` are estimates from them; all of them, unless given.
        """
        start, group = np.asarray(starts_us, np.int64), np.asarray(groups, np.int64)
        count = np.asarray(rows, float)
        shown = count if looked is None else np.asarray(looked, float)
        share = np.ones(len(start)) if setting is None else keep_shares(setting, start, group)
        self._newest_us = newest_us if self._newest_us is None else max(self._newest_us, newest_us)
        rest = {} if unlisted is None else unlisted
        for one in sorted({*start.tolist(), *rest}):
            if one + self._pane_us <= self._closed_until_us:
                continue  # a row that came too late: its pane is on record
            here = start == one
            kept, more = count[here] * share[here], rest.get(one, 0.0)
            planned = setting.keep_fraction if setting is not None and one in setting.starts_us else None
            more_kept = more if setting is None else more * other_share(setting, one)
            self._open[one] = self._open.get(one, WindowTally(one)).add(
                group[here],
                count[here],
                progress=self._progress(one),
                overflow_rows=more,
                kept=float(kept.sum()) + more_kept,
                kept_of=kept,
                looked=shown[here],
                planned=None if planned is None else planned * (float(count[here].sum()) + more),
                max_keys=self._max_keys,
            )
        for one, tally in self._open.items():
            # Time passes for panes without new rows, too.
            self._open[one] = replace(tally, progress=self._progress(one))

    def close(self, watermark_us: int) -> list[dict[str, float]]:
        """Forget the panes that end at or before the watermark, and put each on record.

        When it was, its rows (as far as they were estimated), the groups known by name, the rows of the others, and how
        far its concept lies from that of the pane before, where there is one.
        """
        closed = []
        for start in sorted(start for start in self._open if start + self._pane_us <= watermark_us):
            tally = self._open.pop(start)
            rows, unknown = round(tally.rows), round(tally.overflow_rows)
            moved = {} if self._before is None else asdict(shift(self._before.concept, tally.concept))
            closed.append({"start_us": start, "rows": rows, "groups": len(tally.keys), "pooled_rows": unknown, **moved})
            self._before = tally
        self._closed_until_us = max(watermark_us, self._closed_until_us)
        return closed

    def _progress(self, start_us: int) -> float:
        newest = start_us if self._newest_us is None else self._newest_us
        return float(np.clip((newest - start_us) / self._pane_us, _LEAST_PROGRESS, 1.0))
