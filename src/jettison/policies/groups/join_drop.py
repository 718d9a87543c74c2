"""Shed both sides of an equi-join: heavy keys row by row, light ones whole and alike on both sides."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from jettison.core.durations import Duration
from jettison.core.plan import LARGE_PLAN_BYTES, DropPlan
from jettison.core.stats import Budget, Stats
from jettison.errors import refuse
from jettison.policies.base import ColumnOrSql, listed
from jettison.policies.groups.concepts import GroupConcept, JoinConcept
from jettison.policies.groups.group_books import GroupBooks, GroupPolicy
from jettison.policies.groups.group_setting import GroupSpec, bytes_of_groups, groups_within
from jettison.policies.groups.join_rates import JoinRates, count_error, join_rates, rows_for
from jettison.policies.groups.window_tally import WindowTally
from jettison.policies.window.window_grid import Grid, grid_of


@dataclass(frozen=True, slots=True)
class JoinDrop(GroupPolicy):
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
        The join key, one column or several: a name, SQL, or a Spark column that is not bound to one side. The same on
        both sides.
    time
        The event time, likewise.
    pane
        Rates are made for each such piece of time by itself; the join's interval is a good choice.
    sides
        Names of the two drop points.
    rows
        Most rows of a pane to process, both sides together; the latency bound alone, unless given.
    error, confidence
        Relative error of a pane's count of results that is good enough. Rows beyond it are dropped even when there is time.

    Examples
    --------
    >>> from jettison.core.stats import PointStats
    >>> policy = JoinDrop(key="ad", time="time", pane="1 minute")
    >>> for side in policy.sides:
    ...     policy.groups.book(side).add([0, 0], [64, 128], [900, 2], newest_us=30 * 10**6)  # half of the first pane
    >>> seen = Stats(4, 0.0, 1.0, dict.fromkeys(policy.sides, PointStats(902, 902)))
    >>> made = policy.plan(seen, Budget(0.1, 0.1, 3.0, "too many rows"))
    >>> made.points["left"].groups, made.points["left"].whole
    (((64,),), True)

    References
    ----------
    .. [1] Katsipoulakis, Labrinidis, Chrysanthis: Concept-Driven Load Shedding. IEEE Big Data, 2018, section VI.C.3.
    """

    key: ColumnOrSql | Sequence[ColumnOrSql]
    time: ColumnOrSql
    pane: Duration
    sides: tuple[str, str] = ("left", "right")
    rows: int | None = None
    error: float | None = None
    confidence: float = 0.95
    groups: GroupBooks = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._begin(key=self.key, time=self.time)
        if len(set(self.sides)) != 2:
            hint = "guard both sides under different names and give them here: sides=('left', 'right')"
            refuse("`sides` must name two drop points", repr(self.sides), hint=hint)

    @property
    def points(self) -> tuple[str, ...]:
        return self.sides

    @property
    def grid(self) -> Grid:
        return grid_of(self.pane)

    @property
    def plan_bytes(self) -> int:
        """Room for 2,500 heavy keys on each side, or for all keys that may be heavy: those that both sides have shown.

        Panes share it evenly, so that each has room for as many keys as the one with most of them.
        """
        panes = self._panes(self.sides)
        most = max((pane.most_heavy for pane in panes), default=0)
        return max(LARGE_PLAN_BYTES, bytes_of_groups(2 * len(panes) * most))

    @property
    def spec(self) -> GroupSpec:
        """Drops by key and pane, light keys alike on both sides."""
        return GroupSpec(listed(self.key, "key"), self.time, self.pane_us, whole=True)

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        protected = max((point.protected_share for point in stats.points.values()), default=0.0)
        share, setting, enough = self._spend(budget, protected)
        if enough:
            return DropPlan(0, dict.fromkeys(stats.points, setting), budget.cause)
        panes = self._panes(stats.points)
        room = groups_within(stats.plan_bytes or self.plan_bytes) // 2 // max(len(panes), 1)
        allowed = [self._allowed(pane, share, room) for pane in panes]
        rates = [pane.rates(rows, room) for pane, (rows, _) in zip(panes, allowed, strict=True)]
        total = sum(pane.rows for pane in panes)
        starts = [pane.left.start_us for pane in panes]
        points = {
            name: setting.naming(
                self.pane_us,
                [
                    (start, made.light, made.keys, made.left if name == self.sides[0] else made.right)
                    for start, made in zip(starts, rates, strict=True)
                ],
                keep_fraction=min(share, sum(rows for rows, _ in allowed) / total) if total > 0 else share,
                new=self._new_share(share, max((pane.rows for pane in panes), default=0.0)),
            )
            for name in stats.points
        }
        remarks = dict.fromkeys(remark for _, of_pane in allowed for remark in of_pane)
        if any(len(made.keys) == room < pane.most_heavy for pane, made in zip(panes, rates, strict=True)):
            remarks[f"the plan has room for {room:,} heavy keys of a pane"] = None
        return DropPlan(0, points, "; ".join([budget.cause, *remarks]))

    def _panes(self, points: Collection[str]) -> list[_Pane]:
        """The panes of which at least one side has shown rows, the oldest first."""
        sides = [
            {tally.start_us: tally for tally in self.groups.tallies(name) if tally.progress > 0 and tally.rows > 0}
            if name in points
            else {}
            for name in self.sides
        ]
        starts = sorted({*sides[0], *sides[1]})
        return [_Pane(*(side.get(start, WindowTally(start, progress=1.0)) for side in sides)) for start in starts]

    def _allowed(self, pane: _Pane, share: float, room: int) -> tuple[float, list[str]]:
        """Rows that may be kept of the whole pane at the pace that is right for what is left of it, and what gave way."""
        left = pane.rows_left / pane.rows
        allowed, rows_bind = self._allowed_rows(share, pane.kept, left, pane.rows_left)
        most = allowed / left
        remarks = [f"the row budget of {self.rows:,} a pane binds"] if rows_bind else []
        if self.accuracy is None:
            return most, remarks
        rows = rows_for(pane.concept, self.accuracy, most, max_named=room, unknown=pane.unknown)
        if rows < most:
            return rows, []
        expected = count_error(pane.concept, pane.rates(rows, room), self.confidence)
        if self.accuracy.error < expected < float("inf"):
            expectation = f"an error of {expected:.2g} instead of {self.error:g}"
            remarks.append(f"{expectation} is to be expected of the join's count")
        return rows, remarks


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
    def most_heavy(self) -> int:
        """No more keys than this can have been shown by both sides."""
        return min(len(self.left.keys), len(self.right.keys))

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
        return sum(side.rows / side.progress * side.time_left for side in (self.left, self.right))

    @property
    def kept(self) -> float:
        return self.left.kept + self.right.kept

    def rates(self, allowed: float, room: int) -> JoinRates:
        return join_rates(self.concept, allowed, max_named=room, unknown=self.unknown)
