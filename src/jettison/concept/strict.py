"""Keep fractions from a window's own counts alone: what is unknown is kept, and the budget holds all the same.

Only groups that are to be thinned are named. All others form one stratum: groups too small to thin, groups not yet
seen, groups that were not tracked. That stratum is kept whole unless the budget has too few rows for it; then it gets
nine tenths of the budget, because a group without a kept row needs one before others need more.

Nothing here can bias an answer: each row is kept with a probability that is known when it comes, and weighs its
inverse. A wrong concept only makes answers less precise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.concept.allocation import MIN_ROWS, allocate
from jettison.concept.tally import WindowTally

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Keys = NDArray[np.int64]

_MOST_FOR_UNSERVED = 0.9
_EVEN_PART = 0.1
"""Part of the budget that is divided evenly over rows, so that no weight exceeds ten times that of a uniform drop."""
_ONE = 1.0 - 1e-6  # counts are estimates times shares


@dataclass(frozen=True, eq=False)
class WindowRates:
    """How the rows still to come of one window are kept.

    Parameters
    ----------
    keys, keep
        Groups to thin, ascending, and the share to keep of each.
    other
        Share to keep of every other group, unseen ones included. 1 unless the budget has too few rows for them.
    cap
        Rows still to be kept of each thinned group, about.
    crowded
        Whether the budget has too few rows for `min_rows` of every group.
    expected_rows, rows_left
        Rows to be kept of those still to come, and how many come, both expected.
    pooled_groups
        Known groups that would be thinned on their own but are only thinned with all others, for want of room.
    """

    keys: Keys
    keep: Floats
    other: float
    cap: float
    crowded: bool
    expected_rows: float
    rows_left: float
    pooled_groups: int = 0

    def shares(self, keys: ArrayLike) -> Floats:
        """Share to keep of rows of the given groups."""
        wanted = np.asarray(keys, np.int64)
        if not len(self.keys):
            return np.full(wanted.shape, self.other)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[place] == wanted, self.keep[place], self.other)


def strict_rates(
    tally: WindowTally,
    allowed: float,
    *,
    left: float | None = None,
    rule: str = "equal",
    spread: ArrayLike | None = None,
    min_rows: float = MIN_ROWS,
    max_named: int = 1500,
    enough_rows: float | None = None,
    next_share: float = 1.0,
    expected_groups: float = 0.0,
) -> WindowRates:
    """Divide `allowed` rows among what is still to come of a window.

    Parameters
    ----------
    tally
        The window's own rows so far; its `progress` must be positive.
    allowed
        Rows that may still be kept.
    left
        Share of the window's time still to come; what the tally does not cover, unless given. With a lag between
        counting and deciding it is less.
    rule, spread, min_rows
        As in `allocate`.
    max_named
        Most groups that the plan has room for.
    enough_rows
        Rows of a group beyond which its answer is accurate enough: no group gets more, even if rows stay unspent.
    next_share
        Share of the rows still to come after which rates are made anew. When rows are short, groups without a kept row
        are kept whole and paid for until then only; at 1 for good, so that no batch exceeds its own part of the budget.
    expected_groups
        Groups that the window before had: a hint of how many rows to set aside for groups still unseen, no more.

    Examples
    --------
    >>> tally = WindowTally(0).add([1] * 90 + [2] * 5, progress=0.5)
    >>> rates = strict_rates(tally, allowed=35)
    >>> rates.shares([1, 2, 99]).round(3).tolist()
    [0.333, 1.0, 1.0]
    """
    ahead = 1.0 - tally.progress if left is None else left
    rows_left = tally.estimated * (ahead / tally.progress)
    # Every group starts as one with a single row. If as many new ones come as the time so far suggests, this many do.
    unseen = tally.seen_once * float(np.log1p(ahead / tally.progress))
    unseen = max(unseen, (expected_groups - len(tally.keys)) * min(1.0, ahead / (1.0 - tally.progress + 1e-12)))
    unknown = unseen + tally.unseen_rows * (ahead / tally.progress)
    allowed = max(allowed, 0.0)
    total = tally.rows * (ahead / tally.progress)
    deviation = None if spread is None else np.asarray(spread, float)
    kept, level, named = _comfortable(rows_left, unknown, allowed, rule, deviation, min_rows, max_named)
    if named is None:
        unserved = tally.kept_of < _ONE if len(tally.kept_of) else np.zeros(len(rows_left), bool)
        made = _crowded(tally.keys, rows_left, unserved, unknown, allowed, min_rows, max_named, next_share)
        return replace(made, rows_left=total)
    if enough_rows is not None:
        limit = max(enough_rows, min_rows)
        kept, level = np.minimum(kept, limit), min(level, limit)
        # Those that the budget needs thinned keep their place in the plan; others take what room there is.
        named |= _largest_savings(np.where(named, 0.0, rows_left - kept), max_named - int(named.sum()))
    kept = np.where(named, kept, rows_left)
    share = np.divide(kept, rows_left, out=np.ones_like(kept), where=rows_left > 0)
    expected = float(kept.sum()) + unknown
    return WindowRates(tally.keys[named], share[named], 1.0, level, False, expected, total)


def _comfortable(
    rows_left: Floats,
    unknown: float,
    allowed: float,
    rule: str,
    spread: Floats | None,
    min_rows: float,
    max_named: int,
) -> tuple[Floats, float, Bools | None]:
    """Rows kept, level, and groups to name while all others are kept whole; `None` where that breaks the budget."""
    named: Bools = np.ones(len(rows_left), bool)
    for _ in range(2):
        whole = unknown + float(rows_left[~named].sum())
        floor = float(np.minimum(rows_left[named], min_rows).sum())
        if whole + floor > allowed:
            return rows_left, float("inf"), None
        part = None if spread is None else spread[named]
        made = allocate(
            rows_left[named],
            allowed - whole,
            rule=rule,
            spread=part,
            min_rows=min_rows,
            least_share=_EVEN_PART * allowed / max(float(rows_left.sum()) + unknown, 1.0),
        )
        kept = rows_left.copy()
        kept[named] = made.rows
        named = kept < rows_left * (1.0 - 1e-9)
        if named.sum() <= max_named:
            return kept, made.level, named
        # No room for all of them: those where thinning saves most; the others are kept whole and paid for.
        named = _largest_savings(rows_left - kept, max_named)
    return rows_left, float("inf"), None


def _crowded(
    keys: Keys,
    rows_left: Floats,
    first: Bools,
    unknown: float,
    allowed: float,
    min_rows: float,
    max_named: int,
    next_share: float,
) -> WindowRates:
    """What is unknown first, then equal caps over what is known; what is not named shares one rate.

    A group without a kept row needs one before others need more: it is paid for until the next plan, by which time it
    has one. Groups that have one always get something, because a row with no chance to be kept would bias the answer,
    and because only kept rows tell how large a group is.
    """
    total = float(rows_left.sum()) + unknown
    if total <= 0.0:
        return WindowRates(keys[:0], np.empty(0), 1.0, float("inf"), False, 0.0, 0.0)
    demand = np.where(first, np.minimum(rows_left, np.maximum(1.0, rows_left * next_share)), rows_left)
    waiting = float(demand[first].sum()) + unknown
    set_aside = min(float(demand[~first].sum()), (1.0 - _MOST_FOR_UNSERVED) * allowed)
    unit = min(1.0, (allowed - set_aside) / waiting) if waiting > 0 else 1.0
    served = allocate(demand[~first], allowed - unit * waiting, min_rows=0.0, least_share=_EVEN_PART * allowed / total)
    level, kept = served.level, demand * unit
    kept[~first] = served.rows
    savings = np.where(first, 0.0, rows_left - kept)
    above = savings > rows_left * 1e-9
    named = above if above.sum() <= max_named else _largest_savings(savings, max_named)
    pool_left = unknown + float(demand[~named].sum())
    pool_kept = unknown * unit + float(kept[~named].sum())
    other = min(1.0, pool_kept / pool_left) if pool_left > 0 else min(1.0, level)
    share = np.divide(kept[named], rows_left[named], out=np.ones(int(named.sum())), where=rows_left[named] > 0)
    expected = float(kept[named].sum()) + other * pool_left
    pooled = int((above & ~named).sum())
    return WindowRates(keys[named], share, other, level, level < min_rows, expected, total, pooled)


def _largest_savings(savings: Floats, count: int) -> Bools:
    named = np.zeros(len(savings), bool)
    if count > 0:
        named[np.argsort(-savings, kind="stable")[:count]] = True
    return named & (savings > 0)


def opening_share(
    first_rows: float, allowed: float, window_rows: float, *, groups: float, rows_each: float = 4.0
) -> float:
    """Share to keep of a window's first rows, of which nothing is known: all, or no more than their even part.

    All, so that no group can be missed, if that leaves `rows_each` rows for every group. Otherwise some group may be
    missed anyway, and what rows there are do more good once groups can be told apart.

    Parameters
    ----------
    first_rows
        Rows that come before the first counts are known: those of one micro-batch, times the lag.
    allowed
        Rows that may be kept of the whole window.
    window_rows
        Rows expected of the whole window.
    groups
        Groups expected, from the window before. Only a hint of what must be left over: it decides no group's share.

    Examples
    --------
    >>> opening_share(1_000, 5_000, 60_000, groups=300), opening_share(1_000, 600, 60_000, groups=300)
    (1.0, 0.01)
    """
    if first_rows + groups * rows_each <= allowed:
        return 1.0
    return min(1.0, allowed / window_rows) if window_rows > 0 else 1.0
