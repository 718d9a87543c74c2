"""Shed both sides of an equi-join: heavy keys row by row, light ones whole and alike on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from jettison.concept.book import PaneBook
from jettison.concept.concepts import Accuracy, GroupConcept, JoinConcept
from jettison.concept.joins import JoinRates, count_error, join_rates, rows_for
from jettison.concept.promises import LEAST_LEFT, budget_left, settle
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

    When promises conflict: the latency bound and the row budget hold; then the accuracy is met. What gave way stands in the
    plan's cause, and so in the ledger.

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
    rows
        Most rows of a pane to process, both sides together; the latency bound alone, unless given.
    error, confidence
        Relative error of a pane's count of results that is good enough. Rows beyond it are dropped even when there is time.

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
    rows: int | None = None
    error: float | None = None
    confidence: float = 0.95

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
        if self.rows is not None and self.rows <= 0:
            raise InvalidSetting(
                explain("`rows` must be positive", repr(self.rows), hint="leave it out for the latency bound alone")
            )
        if self.error is not None:
            Accuracy(self.error, self.confidence)

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
        if share >= 1.0 and self.rows is None and self.error is None:
            everything = GroupDrop(late_factor=timed[0], late_after_s=timed[1], whole=True)
            return DropPlan(0, dict.fromkeys(stats.points, everything), budget.cause)
        panes = self._panes(stats)
        room = self.max_groups // max(len(panes), 1)
        allowed = [self._allowed(pane, share, room) for pane in panes]
        rates = [pane.rates(rows, room) for pane, (rows, _) in zip(panes, allowed, strict=True)]
        total = sum(pane.rows for pane in panes)
        points = {}
        for name in stats.points:
            heavy = [made.left if name == self.sides[0] else made.right for made in rates]
            points[name] = GroupDrop(
                keep_fraction=min(share, sum(rows for rows, _ in allowed) / total) if total > 0 else share,
                pane_us=self.pane_us if panes else 0,
                starts_us=tuple(pane.left.start_us for pane in panes),
                others=tuple(rounded_down(made.light) for made in rates),
                groups=tuple(tuple(made.keys.tolist()) for made in rates),
                keeps=tuple(tuple(map(rounded_down, keep.tolist())) for keep in heavy),
                new_keep_fraction=rounded_down(self._new_share(share, panes)),
                late_factor=timed[0],
                late_after_s=timed[1],
                whole=True,
            )
        remarks = dict.fromkeys(remark for _, of_pane in allowed for remark in of_pane)
        return DropPlan(0, points, "; ".join([budget.cause, *remarks]))

    def _panes(self, stats: Stats) -> list[_Pane]:
        """The panes of which at least one side has shown rows, the oldest first."""
        sides = [
            {tally.start_us: tally for tally in stats.points[name].windows if tally.progress > 0 and tally.rows > 0}
            if name in stats.points
            else {}
            for name in self.sides
        ]
        starts = sorted({*sides[0], *sides[1]})
        return [_Pane(*(side.get(start, WindowTally(start, progress=1.0)) for side in sides)) for start in starts]

    def _allowed(self, pane: _Pane, share: float, room: int) -> tuple[float, list[str]]:
        """Rows that may be kept of the whole pane at the pace that is right for what is left of it, and what gave way."""
        left = pane.rows_left / pane.rows
        budget = None if self.rows is None else budget_left(self.rows, pane.kept, left)
        settled = settle(latency_share=share, rows_left=pane.rows_left, row_budget_left=budget)
        most = settled.allowed / left
        remarks = [f"the row budget of {self.rows:,} a pane binds"] if settled.binding == "rows" else []
        if self.error is None:
            return most, remarks
        accuracy = Accuracy(self.error, self.confidence)
        rows = rows_for(pane.concept, accuracy, most, max_named=room, unknown=pane.unknown)
        if rows < most:
            return rows, []
        expected = count_error(pane.concept, pane.rates(rows, room), self.confidence)
        if self.error < expected < float("inf"):
            expectation = f"an error of {expected:.2g} instead of {self.error:g}"
            remarks.append(f"{expectation} is to be expected of the join's count")
        return rows, remarks

    def _new_share(self, share: float, panes: Sequence[_Pane]) -> float:
        """Share for panes of which nothing is known: the budget's, and not more than the row budget allows."""
        if self.rows is None or not panes:
            return share
        return min(share, self.rows / max(pane.rows for pane in panes))


@dataclass(frozen=True, eq=False)
class _Pane:
    """Both sides of a pane as far as they are known, and what the whole of it will hold if it goes on as it has begun."""

    left: WindowTally
    right: WindowTally

    @property
    def concept(self) -> JoinConcept:
        left, right = (
            GroupConcept(side.keys[side.certain], side.seen[side.certain] / side.progress)
            for side in (self.left, self.right)
        )
        return JoinConcept(left, right)

    @property
    def unknown(self) -> float:
        """Rows of keys that are not tracked, or only guessed at."""
        sides = (self.left, self.right)
        return sum((side.rows - float(side.seen[side.certain].sum())) / side.progress for side in sides)

    @property
    def rows(self) -> float:
        return sum(side.rows / side.progress for side in (self.left, self.right))

    @property
    def rows_left(self) -> float:
        return sum(side.rows / side.progress * max(1.0 - side.progress, LEAST_LEFT) for side in (self.left, self.right))

    @property
    def kept(self) -> float:
        return self.left.kept + self.right.kept

    def rates(self, allowed: float, room: int) -> JoinRates:
        return join_rates(self.concept, allowed, max_named=room, unknown=self.unknown)
