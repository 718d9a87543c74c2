"""Ways to shed a window: the strict rule with each allocation, the policy itself, and the baselines.

All see a window as the same micro-batches and say which rows they keep and what each kept row weighs. Each is given the
share of the rows that it may process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jettison.core.plan import HUGE_PLAN_BYTES, DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.lab.reproduce.concept.streams import Floats, Keys, Window
from jettison.policies.base import Lesson
from jettison.policies.groups.allocation import allocate
from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.groups.group_books import GroupBooks
from jettison.policies.groups.group_keys import packed
from jettison.policies.groups.group_setting import GroupDrop, keep_shares
from jettison.policies.groups.pane_book import IDLE_SAMPLE, KeptGroups
from jettison.policies.groups.window_rates import window_rates
from jettison.policies.groups.window_tally import WindowTally

Bools = NDArray[np.bool_]
Kept = tuple[Bools, Floats]
"""Which rows are kept, and the weight of every row if it is."""
BATCHES = 60
"""Micro-batches in a window."""
_PANE_US = 600_000_000
_LISTED = 2_000  # groups of a micro-batch that the guard on Spark reports by name


class Method(Protocol):
    """Sheds one window after the other; may remember what it saw."""

    name: str

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """Which rows of a window are kept, about `share` of them, and the weight of each row."""
        ...


def pieces(rows: int) -> list[slice]:
    """The micro-batches of a window, of equal size."""
    edge = np.linspace(0, rows, BATCHES + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edge)]


def opening_share(
    first_rows: float, allowed: float, window_rows: float, *, groups: float, rows_each: float = 4.0
) -> float:
    """Share to keep of a window's first rows, of which nothing is known: all, or no more than their even part.

    All, so that no group can be missed, if that leaves `rows_each` rows for every group that is expected. Otherwise some
    group may be missed anyway, and what rows there are do more good once groups can be told apart.
    """
    if first_rows + groups * rows_each <= allowed:
        return 1.0
    return min(1.0, allowed / window_rows) if window_rows > 0 else 1.0


@dataclass
class Uniform:
    """Every row with the same probability: a simple random sample of exactly that share."""

    name: str = "Uniform"

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        keep = np.zeros(window.rows, bool)
        keep[random.permutation(window.rows)[: round(share * window.rows)]] = True
        return keep, np.full(window.rows, 1.0 / max(share, 1e-12))


@dataclass
class Strict:
    """The strict rule: rates from the window's own earlier micro-batches, what is unknown is kept.

    Dropped rows are counted too, which on an engine only `exact_counts` does. Rows are divided by an equal, a proportional
    or a neyman `rule`; a plan has room for `max_named` groups.
    """

    name: str = "concept, equal caps"
    rule: str = "equal"
    max_named: int = 10_000
    _groups_before: float = 0.0

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """Batch by batch, each decided with the counts of those before."""
        distinct, group = np.unique(window.groups, return_inverse=True)
        allowed, draw = share * window.rows, random.random(window.rows)
        keep, weight = np.zeros(window.rows, bool), np.ones(window.rows)
        seen, held, square, total = np.zeros((4, len(distinct)))
        for number, piece in enumerate(pieces(window.rows)):
            here = group[piece]
            if number:
                keys = np.flatnonzero(seen)
                tally = WindowTally(0, number / BATCHES, keys, seen[keys], kept_of=held[keys])
                spread = _spread(held, total, square)[keys] if self.rule == "neyman" else None
                shares = self._shares(tally, number, allowed - keep.sum(), spread, here)
            else:
                opening = opening_share(window.rows / BATCHES, allowed, window.rows, groups=self._groups_before)
                shares = np.full(len(here), opening)
            mine = keep[piece] = draw[piece] < shares
            weight[piece] = 1.0 / np.maximum(shares, 1e-12)
            x = window.values[piece][mine]
            seen += np.bincount(here, minlength=len(distinct))
            held += np.bincount(here[mine], minlength=len(distinct))
            total += np.bincount(here[mine], x, len(distinct))
            square += np.bincount(here[mine], x * x, len(distinct))
        self._groups_before = len(distinct)
        return keep, weight

    def _shares(self, tally: WindowTally, number: int, allowed: float, spread: Floats | None, here: Keys) -> Floats:
        divided = None if self.rule == "equal" else tally.estimated  # the paper's rule: proportional to the rows
        rates = window_rates(
            tally,
            allowed,
            left=1.0 - number / BATCHES,
            shares=divided if spread is None else tally.estimated * spread,
            max_named=self.max_named,
            next_share=min(1.0, 1.0 / (BATCHES - number)),
            expected_groups=self._groups_before,
        )
        return rates.shares(here)


def _spread(held: Floats, total: Floats, square: Floats) -> Floats:
    """Standard deviation of each group's kept values; a group with few of them has none of its own yet."""
    kept = np.maximum(held, 1.0)
    variance = np.maximum(square / kept - (total / kept) ** 2, 0.0)
    own = held >= 5
    return np.asarray(np.sqrt(np.where(own, variance, variance[own].mean() if own.any() else 1.0)), float)


@dataclass
class AsShipped:
    """`ConceptDrop` as a query gets it: a plan after every micro-batch, in force for the next, learned from kept rows.

    By default a latency bound asks for the share in every micro-batch. With `strict` it is a budget of rows a window, and
    the first rows of a window are kept whole. `plan_bytes` are what a plan may take.
    """

    name: str = "ConceptDrop itself"
    strict: bool = False
    plan_bytes: int = HUGE_PLAN_BYTES
    _pane: int = 0
    _groups: GroupBooks = field(default_factory=lambda: GroupBooks(_PANE_US))
    _setting: GroupDrop = field(default_factory=GroupDrop)

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """One pane: keep by the plan in force, report what was kept, plan again."""
        rows = max(1, round(share * window.rows)) if self.strict else None
        policy = ConceptDrop("group", "time", "10 minutes", rows, strict=self.strict)
        object.__setattr__(policy, "groups", self._groups)  # another policy in every window, but one query
        latency = 1.0 if self.strict else share
        budget = Budget(latency, latency, 3600.0, "so much can be processed")
        keep, weight = np.zeros(window.rows, bool), np.ones(window.rows)
        for number, piece in enumerate(pieces(window.rows)):
            groups = window.groups[piece]
            shares = keep_shares(self._setting, np.full(len(groups), self._pane * _PANE_US), groups)
            mine = keep[piece] = random.random(len(groups)) < shares
            weight[piece] = 1.0 / shares  # never 0: every row has a chance
            newest_us = int((self._pane + (number + 1) / BATCHES) * _PANE_US) - 1
            if self._setting.keeps_everything:
                mine = mine & (random.random(len(groups)) < IDLE_SAMPLE)
            seen = _report(groups[mine], self._pane, newest_us)
            policy.learn(Lesson(number, DropPlan(0, {"rows": self._setting}), {"rows": seen}))
            point = PointStats(len(groups), int(keep[piece].sum()))
            made = policy.plan(Stats(number, 0.0, 1.0, {"rows": point}, plan_bytes=self.plan_bytes), budget).points[
                "rows"
            ]
            assert isinstance(made, GroupDrop)
            self._setting = made
        self._pane += 1
        return keep, weight


def _report(groups: Keys, pane: int, newest_us: int) -> KeptGroups:
    found, kept = np.unique(groups, return_counts=True)
    largest = np.argsort(-kept, kind="stable")[:_LISTED]
    keys = packed(found[largest], np.full(len(largest), pane))
    return KeptGroups(tuple(keys.tolist()), tuple(kept[largest].tolist()), len(groups), newest_us)


@dataclass
class Reservoirs:
    """Stratified reservoirs of equal size, as OASRS: the sample of each group is drawn over the whole window.

    Every row has to be held against its reservoir until the window closes, and the size is set here with hindsight so
    that the rows kept add up: a method that no filter before the query could be.
    """

    name: str = "reservoirs (OASRS)"

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """The first rows of each group in a random order."""
        _, group, rows = np.unique(window.groups, return_inverse=True, return_counts=True)
        wanted = allocate(rows, share * window.rows, min_rows=0.0).rows
        size = np.floor(wanted + random.random(len(wanted)))
        return _ranks(group, rows, random) < size[group], (rows / np.maximum(size, 1.0))[group]


@dataclass
class PaperSetting:
    """The paper's own form on a complete window: a sample of 1 - b finds the concept, then rows are kept by it.

    A group that the sample holds keeps as many rows as the sample has of it (a proportional representation); a group that
    it does not hold is infrequent and "simply added". So far more than 1 - b of the window is processed.
    """

    name: str = "paper's setting"

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """`share` is 1 - b, the size of the sample and not of what is processed."""
        _, group, rows = np.unique(window.groups, return_inverse=True, return_counts=True)
        sample = random.permutation(window.rows)[: round(share * window.rows)]
        found = np.bincount(group[sample], minlength=len(rows))
        size = np.where(found > 0, found, rows)
        return _ranks(group, rows, random) < size[group], (rows / size)[group]


def _ranks(group: Keys, rows: Keys, random: np.random.Generator) -> Keys:
    """The place of every row in a random order of its group."""
    order = np.lexsort((random.random(len(group)), group))
    rank = np.empty(len(group), np.int64)
    rank[order] = np.arange(len(group)) - (np.cumsum(rows) - rows)[group[order]]
    return rank


@dataclass
class LastWindow:
    """Equal caps from the counts of the window before; a group that was not there gets the overall share."""

    group_count: int
    name: str = "last window's rates"
    _before: Floats | None = None

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """All rows at the rates of the window before."""
        if self._before is None:
            rate = np.full(self.group_count, share)
        else:
            kept = allocate(self._before, share * self._before.sum()).rows
            rate = np.where(self._before > 0, kept / np.maximum(self._before, 1.0), share)
        self._before = np.bincount(window.groups, minlength=self.group_count).astype(float)
        shares = rate[window.groups]
        return random.random(window.rows) < shares, 1.0 / np.maximum(shares, 1e-12)
