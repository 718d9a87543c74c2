"""Ways to shed a window: the strict rule with each allocation, and the baselines.

All see a window as the same micro-batches and say which rows they keep and what each kept row weighs. Each is given the
share of the rows that it may process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jettison.concept.allocation import allocate
from jettison.concept.strict import opening_share, strict_rates
from jettison.concept.tally import WindowTally
from jettison.reproduce.concept.streams import Window

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Keys = NDArray[np.int64]
Kept = tuple[Bools, Floats]
"""Which rows are kept, and the weight of every row if it is."""


class Method(Protocol):
    """Sheds one window after the other; may remember what it saw."""

    name: str

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """Choose rows of a window."""
        ...


def pieces(rows: int, batches: int) -> list[slice]:
    """The micro-batches of a window, of equal size."""
    edge = np.linspace(0, rows, batches + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edge)]


@dataclass
class Uniform:
    """Every row with the same probability."""

    name: str = "Uniform"

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """A simple random sample of exactly that share."""
        keep = np.zeros(window.rows, bool)
        keep[random.permutation(window.rows)[: round(share * window.rows)]] = True
        return keep, np.full(window.rows, 1.0 / max(share, 1e-12))


@dataclass
class Strict:
    """The strict rule: rates from the window's own earlier micro-batches, what is unknown is kept.

    Parameters
    ----------
    rule
        The allocation.
    batches, lag
        Micro-batches in a window, and how many pass before counts reach a plan.
    max_named
        Groups that a plan has room for.
    """

    name: str = "concept, equal caps"
    rule: str = "equal"
    batches: int = 60
    lag: int = 1
    max_named: int = 10_000
    _groups_before: float = 0.0

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """Batch by batch; batch t is decided with the counts of batches before t + 1 - lag."""
        distinct, group = np.unique(window.groups, return_inverse=True)
        allowed, draw = share * window.rows, random.random(window.rows)
        keep, weight = np.zeros(window.rows, bool), np.ones(window.rows)
        sums = np.zeros((3, len(distinct)))
        seen, held = [np.zeros(len(distinct))], [np.zeros(len(distinct))]
        first_rows = self.lag * window.rows / self.batches
        opening = opening_share(first_rows, allowed, window.rows, groups=self._groups_before)
        for number, piece in enumerate(pieces(window.rows, self.batches)):
            here, known = group[piece], number + 1 - self.lag
            if known <= 0:
                shares = np.full(len(here), opening)
            else:
                tally = _tally(seen[known], held[known], known / self.batches)
                shares = self._shares(tally, number, allowed - keep.sum(), sums, here)
            keep[piece] = draw[piece] < shares
            weight[piece] = 1.0 / np.maximum(shares, 1e-12)
            seen.append(seen[-1] + np.bincount(here, minlength=len(distinct)))
            held.append(held[-1] + np.bincount(here[keep[piece]], minlength=len(distinct)))
            if self.rule == "neyman":
                mine, x = here[keep[piece]], window.values[piece][keep[piece]]
                sums += [np.bincount(mine, part, len(distinct)) for part in (np.ones(len(x)), x, x * x)]
        self._groups_before = len(distinct)
        return keep, weight

    def _shares(self, tally: WindowTally, number: int, allowed: float, sums: Floats, here: Keys) -> Floats:
        spread = None
        if self.rule == "neyman":
            kept = np.maximum(sums[0], 1.0)
            variance = np.maximum(sums[2] / kept - (sums[1] / kept) ** 2, 0.0)
            # A group with few kept rows has no spread of its own yet.
            own = sums[0] >= 5
            spread = np.sqrt(np.where(own, variance, variance[own].mean() if own.any() else 1.0))[tally.keys]
        rates = strict_rates(
            tally,
            allowed,
            left=1.0 - number / self.batches,
            rule=self.rule,
            spread=spread,
            max_named=self.max_named,
            next_share=min(1.0, self.lag / (self.batches - number)),
            expected_groups=self._groups_before,
        )
        return rates.shares(here)


def _tally(seen: Floats, held: Floats, progress: float) -> WindowTally:
    keys = np.flatnonzero(seen)
    return WindowTally(0, progress, keys, seen[keys], kept_of=held[keys])


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
        order = np.lexsort((random.random(window.rows), group))
        rank = np.empty(window.rows, np.int64)
        start = np.concatenate([[0], np.cumsum(rows)[:-1]])
        rank[order] = np.arange(window.rows) - start[group[order]]
        return rank < size[group], (rows / np.maximum(size, 1.0))[group]


@dataclass
class MovingAverage:
    """Per-key rates from an exponential moving average of earlier micro-batches, as production samplers do.

    The rate of a key is such that kept rows grow with the logarithm of its average; an unknown key is kept. It knows no
    windows: the average runs on.
    """

    group_count: int
    name: str = "per-key moving average"
    batches: int = 60
    weight: float = 0.5
    _average: Floats = field(default_factory=lambda: np.zeros(0))

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """Batch by batch."""
        if not len(self._average):
            self._average = np.zeros(self.group_count)
        keep, weight = np.zeros(window.rows, bool), np.ones(window.rows)
        for piece in pieces(window.rows, self.batches):
            rate = self._rates(share)[window.groups[piece]]
            keep[piece], weight[piece] = random.random(len(rate)) < 1.0 / rate, rate
            counts = np.bincount(window.groups[piece], minlength=self.group_count)
            self._average = self.weight * counts + (1 - self.weight) * self._average
            self._average[self._average < 0.05] = 0.0  # aged out
        return keep, weight

    def _rates(self, share: float) -> Floats:
        average = self._average
        logarithm = np.log10(np.maximum(average, 1.0) * 10.0) * (average > 0)
        if not logarithm.any():
            return np.full(len(average), 1.0 / max(share, 1e-12))
        goal = np.maximum(logarithm * share * average.sum() / logarithm.sum(), 1e-9)
        return np.where(average > goal, np.maximum(average / goal, 1.0), 1.0)


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
        order = np.lexsort((random.random(window.rows), group))
        rank = np.empty(window.rows, np.int64)
        start = np.concatenate([[0], np.cumsum(rows)[:-1]])
        rank[order] = np.arange(window.rows) - start[group[order]]
        return rank < size[group], (rows / size)[group]
