"""Drop rows by value: ranges that matter least to those who read the answers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from jettison.core.decision import Candidates, Decision
from jettison.core.documents import Number, Share
from jettison.core.setting import Setting
from jettison.core.spec import Spec
from jettison.errors import refuse
from jettison.policies.uniform.random_setting import RandomDrop

MOST_RANGES = 8
"""Ranges that a backend compiles into its condition."""


@dataclass(frozen=True, slots=True)
class RangeDrop(Setting):
    """Drop the rows whose value lies in one of some half-open ranges.

    What is left is a subset of the answer, not a sample of it: kept rows weigh 1, and sums over them are sums over the
    values that were wanted.

    Parameters
    ----------
    column
        The column that holds the value. Rows where it is null are kept.
    drop
        Ranges `(low, end)` to drop, `low <= value < end`; at most `MOST_RANGES`, ascending, not overlapping.
    keep_fraction
        Share of the rows that is expected to stay.

    Examples
    --------
    >>> RangeDrop("value", [(0, 25)], keep_fraction=0.8).drop
    ((0.0, 25.0),)
    """

    column: str
    drop: tuple[tuple[Number, Number], ...] = ()
    keep_fraction: Share = 1.0

    kind: ClassVar[str] = "range"

    def check(self) -> None:
        """The ranges are few, none is empty, and they ascend."""
        edges = [edge for part in self.drop for edge in part]
        if len(self.drop) > MOST_RANGES or edges != sorted(edges) or any(low == end for low, end in self.drop):
            expected = f"`drop` takes at most {MOST_RANGES} ranges, each low < end, which ascend and do not overlap"
            refuse(expected, repr(self.drop), hint="sort them, and join ranges that overlap or lie close together")

    @property
    def keeps_everything(self) -> bool:
        """Whether no row at all is dropped."""
        return not self.drop

    def decide(self, spec: Spec, rows: Candidates) -> Decision:
        """Keep what lies in none of the ranges; what is left stands for itself alone."""
        values = np.asarray(rows.columns[self.column], float)
        dropped = np.zeros(len(rows), bool)
        for low, end in self.drop:
            dropped |= (values >= low) & (values < end)
        return Decision(~dropped, np.ones(len(rows)))


Part: TypeAlias = tuple[float, float, float]
"""Low, end and share of the rows."""


def few_ranges(dropped: Sequence[Part], kept: Sequence[Part]) -> list[Part]:
    """Join ranges that touch, and if too many are left drop what lies between them too, where that is fewest rows.

    So never less is dropped than was asked.

    >>> few_ranges([(0, 5, 0.1), (5, 9, 0.2), (20, 30, 0.3)], [(9, 20, 0.4)])
    [(0, 9, 0.30000000000000004), (20, 30, 0.3)]
    """
    joined: list[Part] = []
    for part in sorted(dropped):
        if joined and part[0] <= joined[-1][1]:
            joined[-1] = _one(joined[-1], part)
        else:
            joined.append(part)
    between = _shares_between(joined, kept)
    to_close = max(0, len(joined) - MOST_RANGES)
    closed = set(sorted(range(len(between)), key=between.__getitem__)[:to_close])
    chosen = joined[:1]
    for gap, part in enumerate(joined[1:]):
        if gap in closed:
            chosen[-1] = _one(chosen[-1], part, between[gap])
        else:
            chosen.append(part)
    return chosen


def _shares_between(parts: Sequence[Part], kept: Sequence[Part]) -> list[float]:
    """Of each gap between ranges that ascend, what is kept within it."""
    starts, ends = [end for _, end, _ in parts[:-1]], [low for low, _, _ in parts[1:]]
    within = [0.0] * len(starts)
    for low, end, share in kept:
        for gap in range(bisect_left(ends, end), bisect_right(starts, low)):
            within[gap] += share
    return within


def _one(before: Part, after: Part, between: float = 0.0) -> Part:
    return before[0], after[1], before[2] + between + after[2]


@dataclass(frozen=True, slots=True)
class RangeSpec(Spec):
    """The column that holds the value. Plans may hold random drops too."""

    column: str

    kind: ClassVar[str] = RangeDrop.kind

    @property
    def kinds(self) -> tuple[str, ...]:
        return (RangeDrop.kind, RandomDrop.kind)
