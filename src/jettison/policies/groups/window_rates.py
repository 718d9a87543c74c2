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

from jettison.policies.groups.allocation import MIN_ROWS, allocate
from jettison.policies.groups.group_keys import Keys, looked_up
from jettison.policies.groups.window_tally import WindowTally

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

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
    """

    keys: Keys
    keep: Floats
    other: float
    cap: float
    crowded: bool
    expected_rows: float
    rows_left: float

    def shares(self, keys: ArrayLike) -> Floats:
        return looked_up(self.keys, self.keep, keys, self.other)


def window_rates(
    tally: WindowTally,
    allowed: float,
    *,
    left: float | None = None,
    shares: ArrayLike | None = None,
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
    shares, min_rows
        As in `allocate`.
    max_named
        Most groups that the plan has room for.
    enough_rows
        Rows of a group beyond which its answer is accurate enough: no group gets more, even if rows stay unspent.
    next_share
        Share of the rows still to come after which rates are recomputed. When rows are short, groups without a kept row
        are kept whole and paid for until then only; at 1 for good, so that no batch exceeds its own part of the budget.
    expected_groups
        Groups that the window before had: a hint of how many rows to set aside for groups still unseen, no more.

    Examples
    --------
    >>> tally = WindowTally(0).add([1] * 90 + [2] * 5, progress=0.5)
    >>> rates = window_rates(tally, allowed=35)
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
    divided = None if shares is None else np.asarray(shares, float)
    kept, level, named = _comfortable(rows_left, unknown, allowed, divided, min_rows, max_named)
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
    shares: Floats | None,
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
        made = allocate(
            rows_left[named],
            allowed - whole,
            shares=None if shares is None else shares[named],
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
    return WindowRates(keys[named], share, other, level, level < min_rows, expected, total)


def _largest_savings(savings: Floats, count: int) -> Bools:
    named = np.zeros(len(savings), bool)
    if count > 0:
        named[np.argsort(-savings, kind="stable")[:count]] = True
    return named & (savings > 0)
