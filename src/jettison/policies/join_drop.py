"""Shed both sides of an equi-join: heavy keys row by row, light ones whole and alike on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from jettison.concept.book import PaneBook
from jettison.concept.concepts import GroupConcept, JoinConcept
from jettison.concept.joins import JoinRates, join_rates
from jettison.concept.tally import WindowTally
from jettison.durations import Duration, seconds
from jettison.errors import InvalidSetting, explain
from jettison.plan import DropPlan
from jettison.policies.uniform_drop import beside_protected
from jettison.settings import GroupDrop
from jettison.settings.group_drop import rounded_down
from jettison.stats import Budget, Stats


@dataclass(frozen=True, slots=True)
class JoinDrop:
    """Thin the two inputs of a join so that its count and sums vary the least, at the rows that the budget allows.

    Rates follow from the keys that both sides hold, pane by pane. A key with many rows on both sides is thinned row by row,
    independently on either side; all other keys are kept or dropped whole, by one hash that both sides share, so that
    pairs survive. Pairs weigh the inverse of the probability that both rows were kept, so sums stay unbiased however wrong
    the rates are.

    Parameters
    ----------
    key
        Column or columns of the join key, or SQL for it, under the same name on both sides.
    time
        Column of the event time, likewise.
    pane
        Rates are made anew for each such piece of time; the join's interval is a good choice.
    sides
        Names of the two drop points.
    max_groups
        Most heavy keys that a plan names.

    Examples
    --------
    >>> import numpy as np
    >>> from jettison.stats import PointStats
    >>> half = WindowTally(0).add(np.repeat([64, 128], [900, 2]), progress=0.5)
    >>> seen = Stats(4, 0.0, 1.0, dict.fromkeys(["left", "right"], PointStats(902, 902, windows=(half,))))
    >>> made = JoinDrop(key="ad", time="time", pane="1 minute").plan(seen, Budget(0.1, 0.1, 3.0, "too many rows"))
    >>> made.points["left"].groups, made.points["left"].whole
    (((64,),), True)

    References
    ----------
    .. [1] Katsipoulakis, Labrinidis, Chrysanthis: Concept-Driven Load Shedding. IEEE Big Data, 2018, section VI.C.3.
    """

    key: str | Sequence[str]
    time: str
    pane: Duration
    sides: tuple[str, str] = ("left", "right")
    max_groups: int = 1500

    value: ClassVar[None] = None
    exact_counts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.key:
            raise InvalidSetting(
                explain(
                    "`key` must name a column",
                    repr(self.key),
                    hint="pass the column, or columns, of the join's equality",
                )
            )
        if len(set(self.sides)) != 2:
            raise InvalidSetting(
                explain(
                    "`sides` must name two drop points",
                    repr(self.sides),
                    hint="guard both sides under different names and give them here: sides=('left', 'right')",
                )
            )
        if self.pane_us <= 0 or self.max_groups <= 0:
            raise InvalidSetting(
                explain(
                    "`pane` and `max_groups` must be positive",
                    f"{self.pane!r}, {self.max_groups!r}",
                    hint="a pane about as long as the join's time range, and 1500 groups, suit most joins",
                )
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the key."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)

    @property
    def pane_us(self) -> int:
        """Length of a pane in microseconds."""
        return round(seconds(self.pane, name="pane") * 1e6)

    def book(self) -> PaneBook:
        """An empty book for the keys of one side."""
        return PaneBook(self.pane_us)

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """Give both sides the shares that spend the budget best."""
        protected = max((point.protected_share for point in stats.points.values()), default=0.0)
        share = beside_protected(budget.keep_fraction, protected)
        late = min(1.0, beside_protected(budget.late_keep_fraction, protected) / share) if share > 0 else 1.0
        timed = (None, None) if late >= 1.0 else (rounded_down(late), budget.late_after_s)
        if share >= 1.0:
            everything = GroupDrop(late_factor=timed[0], late_after_s=timed[1], whole=True)
            return DropPlan(0, dict.fromkeys(stats.points, everything), budget.cause)
        by_pane = self._rates(stats, share)
        points = {}
        for name in stats.points:
            heavy = [rates.left if name == self.sides[0] else rates.right for rates in by_pane.values()]
            points[name] = GroupDrop(
                keep_fraction=share,
                pane_us=self.pane_us if by_pane else 0,
                starts_us=tuple(by_pane),
                others=tuple(rounded_down(rates.light) for rates in by_pane.values()),
                groups=tuple(tuple(rates.keys.tolist()) for rates in by_pane.values()),
                keeps=tuple(tuple(map(rounded_down, keep.tolist())) for keep in heavy),
                new_keep_fraction=rounded_down(share),
                late_factor=timed[0],
                late_after_s=timed[1],
                whole=True,
            )
        return DropPlan(0, points, budget.cause)

    def _rates(self, stats: Stats, share: float) -> dict[int, JoinRates]:
        """Rates by start of the pane, for panes of which at least one side has shown rows."""
        sides = [
            {tally.start_us: tally for tally in stats.points[name].windows if tally.progress > 0 and tally.rows > 0}
            if name in stats.points
            else {}
            for name in self.sides
        ]
        starts = sorted({*sides[0], *sides[1]})
        room = self.max_groups // max(len(starts), 1)
        return {start: _pane_rates(sides, start, share, room) for start in starts}


def _pane_rates(sides: Sequence[Mapping[int, WindowTally]], start: int, share: float, room: int) -> JoinRates:
    left, right = (side.get(start, WindowTally(start, progress=1.0)) for side in sides)
    # What the whole pane will hold, if it goes on as it has begun.
    whole = [GroupConcept(tally.keys, tally.seen / tally.progress) for tally in (left, right)]
    unknown = left.overflow_rows / left.progress + right.overflow_rows / right.progress
    total = float(whole[0].rows.sum() + whole[1].rows.sum()) + unknown
    return join_rates(JoinConcept(whole[0], whole[1]), share * total, max_named=room, unknown=unknown)
