"""Shed both sides of an equi-join: heavy keys row by row, light ones whole and alike on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jettison.core.durations import Duration, microseconds
from jettison.core.plan import PLAN_BYTES, DropPlan
from jettison.core.stats import Budget, Stats, beside_protected
from jettison.errors import refuse
from jettison.policies.columns import ColumnOrSql, listed
from jettison.policies.groups.concepts import Accuracy, GroupConcept, JoinConcept
from jettison.policies.groups.group_books import GroupBooks, GroupPolicy
from jettison.policies.groups.group_setting import GroupDrop, GroupSpec, bytes_of_groups, groups_within, rounded_down
from jettison.policies.groups.join_rates import JoinRates, count_error, join_rates, rows_for
from jettison.policies.groups.promises import LEAST_LEFT, allowed_rows, budget_left
from jettison.policies.groups.window_tally import WindowTally


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
    max_groups
        Most heavy keys that a plan names, on both sides; as many as fit into 128 kB (about 2,500), unless given.
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
    max_groups: int | None = None
    rows: int | None = None
    error: float | None = None
    confidence: float = 0.95
    groups: GroupBooks = field(init=False, repr=False, compare=False)
    """What the query has shown of its keys."""

    def __post_init__(self) -> None:
        listed(self.key, "key"), listed(self.time, "time")
        if len(set(self.sides)) != 2:
            refuse(
                "`sides` must name two drop points",
                repr(self.sides),
                hint="guard both sides under different names and give them here: sides=('left', 'right')",
            )
        if self.pane_us <= 0 or (self.max_groups is not None and self.max_groups <= 0):
            refuse(
                "`pane` and `max_groups` must be positive",
                f"{self.pane!r}, {self.max_groups!r}",
                hint="a pane about as long as the join's time range suits most joins; leave out `max_groups`",
            )
        if self.rows is not None and self.rows <= 0:
            refuse("`rows` must be positive", repr(self.rows), hint="leave it out for the latency bound alone")
        if self.error is not None:
            Accuracy(self.error, self.confidence)
        object.__setattr__(self, "groups", GroupBooks(self.pane_us))

    @property
    def points(self) -> tuple[str, ...]:
        return self.sides

    @property
    def pane_us(self) -> int:
        return microseconds(self.pane, name="pane")

    @property
    def plan_bytes(self) -> int:
        """Room for all keys that may be named, on both sides."""
        return 2 * PLAN_BYTES if self.max_groups is None else bytes_of_groups(2 * self.max_groups)

    @property
    def spec(self) -> GroupSpec:
        """Drops by key and pane, light keys alike on both sides."""
        return GroupSpec(listed(self.key, "key"), self.time, self.pane_us, whole=True)

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        protected = max((point.protected_share for point in stats.points.values()), default=0.0)
        share = beside_protected(budget.share, protected)
        late = min(1.0, beside_protected(budget.late_share, protected) / share) if share > 0 else 1.0
        timed = (None, None) if late >= 1.0 else (rounded_down(late), budget.late_after_s)
        if share >= 1.0 and self.rows is None and self.error is None:
            everything = GroupDrop(late_factor=timed[0], late_after_s=timed[1], whole=True)
            return DropPlan(0, dict.fromkeys(stats.points, everything), budget.cause)
        panes = self._panes(stats)
        fitting = groups_within(stats.plan_bytes or self.plan_bytes) // 2
        room = min(fitting, self.max_groups or fitting) // max(len(panes), 1)
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
            {tally.start_us: tally for tally in self.groups.tallies(name) if tally.progress > 0 and tally.rows > 0}
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
        allowed, rows_bind = allowed_rows(share, pane.rows_left, budget)
        most = allowed / left
        remarks = [f"the row budget of {self.rows:,} a pane binds"] if rows_bind else []
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
