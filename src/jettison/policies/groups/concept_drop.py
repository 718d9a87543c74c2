"""Keep every group at a fraction of the rows: large groups are thinned, small and new ones are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jettison.core.durations import Duration
from jettison.core.plan import HUGE_PLAN_BYTES, DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.errors import refuse
from jettison.policies.base import ColumnOrSql, listed
from jettison.policies.groups.allocation import MIN_ROWS
from jettison.policies.groups.group_books import GroupBooks, GroupPolicy
from jettison.policies.groups.group_setting import GroupDrop, GroupSpec, bytes_of_groups, groups_within
from jettison.policies.groups.window_rates import WindowRates, window_rates
from jettison.policies.groups.window_tally import WindowTally
from jettison.policies.window.window_grid import Grid, grid_of


@dataclass(frozen=True, slots=True)
class ConceptDrop(GroupPolicy):
    r"""Thin large groups and spare small ones, by what each window's own rows say about their groups.

    In expectation no more rows are processed than the budget allows, batch by batch. Within it, a group that the
    window has not shown before is kept whole, and no group is thinned below `min_rows` a pane while the budget has that
    many for each. Answers stay unbiased however wrong the counts are.

    When promises conflict: the latency bound and the row budget hold; with `exact_counts` every group appears with its
    count, whatever was dropped; then every group has a value; then the accuracy is met. What gave way stands in the
    plan's cause, and so in the ledger.

    Parameters
    ----------
    group
        What the query groups by, one or several: a name, SQL over the rows as they come, or a Spark column. It should
        read the group out of a row without parsing the rest of it, such as
        `"regexp_extract(value, '\"route\":\"([^\"]*)', 1)"`.
    time
        The event time, likewise.
    window
        Length and slide as in Spark's `window`; one duration for windows that do not overlap.
    rows
        Most rows of a window to process; the latency bound alone, unless given. On top come rows of groups that are new
        in the window, until they are counted (a micro-batch or two), and the query's first micro-batch. A budget spent
        early goes on at a tenth of its pace, because a row without any chance to be kept would bias the answer.
    error, confidence
        Relative error of a group's mean that is good enough. Rows beyond it are dropped even when there is time.
    variation
        Coefficient of variation of values within a group, from which the rows for `error` follow. Without `value` it is
        taken as given, and the plan's cause says so.
    value
        The value that the query aggregates, likewise. Where given, the rows for `error` follow from the mean and variance
        of the rows kept, all groups together, as soon as there are some.
    min_rows
        Rows of a group and pane below which it is not thinned.
    strict
        Put a value for every group above the latency bound while a pane is new: its first rows are then kept whole
        until counts arrive, at the price of about one batch a pane that exceeds the budget.
    exact_counts
        Dropped rows stay in the stream, so that the query counts them: of a dropped row only the columns that `group` and
        `time` are made of are left, everything else is null, `jt_weight` too. Every group then appears in the answer, with
        its exact count, whatever the budget. A dropped row costs more than one that is gone.

    Examples
    --------
    >>> policy = ConceptDrop(group="route", time="time", window=("30 minutes", "10 minutes"))
    >>> policy.groups.book("rides").add([0, 0], [11, 22], [9000, 30], newest_us=5 * 60 * 10**6)  # half of the first pane
    >>> seen = Stats(4, 0.0, 1.0, {"rides": PointStats(900, 900)})
    >>> setting = policy.plan(seen, Budget(0.1, 0.1, 3.0, "ten times too many rows")).points["rides"]
    >>> setting.groups, setting.keeps, setting.others
    (((11,),), ((0.097,),), (1.0,))

    Notes
    -----
    Departures from the paper [1]_: it scans a window twice, when it closes; here rows pass once, and rates follow from
    the window's earlier micro-batches. Its proportional rule is not the default, because equal caps have the smaller mean
    relative error. Its shed bias b sizes a sample and not the rows processed; here the budget is the rows processed.

    References
    ----------
    .. [1] Katsipoulakis, Labrinidis, Chrysanthis: Concept-Driven Load Shedding. IEEE Big Data, 2018.
    """

    group: ColumnOrSql | Sequence[ColumnOrSql]
    time: ColumnOrSql
    window: Duration | tuple[Duration, Duration]
    rows: int | None = None
    error: float | None = None
    confidence: float = 0.95
    variation: float = 1.0
    value: ColumnOrSql | None = None
    min_rows: float = MIN_ROWS
    strict: bool = False
    exact_counts: bool = False
    groups: GroupBooks = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._begin("min_rows", "variation", group=self.group, time=self.time)
        if self.grid.size % self.grid.slide or self.grid.offset:
            hint = "groups are counted from slide to slide, which must add up to whole windows"
            refuse("the window must be a multiple of its slide, without an offset", repr(self.window), hint=hint)

    @property
    def grid(self) -> Grid:
        return grid_of(self.window)

    @property
    def plan_bytes(self) -> int:
        """Room for 10,000 groups, or for all that the open windows have shown; a channel gives it to some 43,000.

        Drop points that have shown groups share it evenly, so that each has room for as many as the one with most of them.
        """
        known = self.groups.known.values()
        return max(HUGE_PLAN_BYTES, bytes_of_groups(len(known) * max(known, default=0)))

    @property
    def spec(self) -> GroupSpec:
        columns = listed(self.group, "group")
        return GroupSpec(columns, self.time, self.pane_us, self.value, dropped_rows_stay=self.exact_counts)

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """Give each drop point the shares that spend the budget best, by the groups of its open windows."""
        remarks: list[str] = []
        known = {name: groups for name, groups in self.groups.known.items() if name in stats.points}
        room = groups_within(stats.plan_bytes or self.plan_bytes) // max(len(known), 1)
        points = {name: self._setting(name, point, budget, room, remarks) for name, point in stats.points.items()}
        if any(points[name].named_groups == room < groups for name, groups in known.items()):
            remarks.append(f"the plan has room for {room:,} groups a drop point")
        if self.error is not None and self.value is None:
            remarks.append(f"the error assumes a variation of {self.variation:g}, unmeasured without `value`")
        return DropPlan(version=0, points=points, cause="; ".join([budget.cause, *remarks]))

    def _setting(self, name: str, point: PointStats, budget: Budget, room: int, remarks: list[str]) -> GroupDrop:
        share, setting, enough = self._spend(budget, point.protected_share)
        if point.protected_share > budget.share:
            remarks.append(f"protected rows alone exceed the budget at {name}")
        if enough:
            return setting
        known = [tally for tally in self.groups.tallies(name) if tally.progress > 0.0 and tally.rows > 0.0]
        made: dict[int, WindowRates] = {}
        # Those that most rows are still to come of take their room in the plan first.
        for tally in sorted(known, key=_rows_to_come, reverse=True):
            made[tally.start_us] = self._rates(tally, share, room, name, remarks)
            room -= len(made[tally.start_us].keys)
        rates = [made[tally.start_us] for tally in known]
        pane_rows = max((tally.rows / min(tally.progress, 1.0) for tally in known), default=0.0)
        new = 1.0 if self.strict else self._new_share(share, pane_rows)
        return setting.naming(
            self.pane_us,
            [(tally.start_us, rate.other, rate.keys, rate.keep) for tally, rate in zip(known, rates, strict=True)],
            keep_fraction=_expected_share(known, rates, share if self.strict else new),
            new=new,
        )

    def _rates(self, tally: WindowTally, share: float, room: int, name: str, remarks: list[str]) -> WindowRates:
        left, panes = tally.time_left, self.grid.size // self.grid.slide
        allowed, rows_bind = self._allowed_rows(share / tally.overspent, tally.kept, left, _rows_to_come(tally))
        variation, enough, accuracy = self.groups.variation(name) or self.variation, None, self.accuracy
        if accuracy is not None:
            # A window's rows of a group come evenly from all of its panes: this is the part of one that is to come.
            part = left / (tally.progress + left)
            enough = accuracy.rows(variation, panes) * part
        rates = window_rates(tally, allowed, left=left, min_rows=self.min_rows, max_named=room, enough_rows=enough)
        if rates.crowded:
            remarks.append(f"more groups than rows to keep at {name}: about {rates.cap:.2g} rows a group and pane")
        if rows_bind and rates.expected_rows > 0.999 * allowed:
            remarks.append(f"the row budget of {self.rows:,} a window binds at {name}")
        if accuracy is not None and enough is not None and rates.cap < enough * (1 - 1e-9):
            expected = accuracy.expected(panes * rates.cap / part, variation)
            remarks.append(f"an error of {expected:.2g} instead of {self.error:g} is to be expected at {name}")
        return rates


def _rows_to_come(tally: WindowTally) -> float:
    return tally.rows * tally.time_left / tally.progress


def _expected_share(known: Sequence[WindowTally], rates: Sequence[WindowRates], new: float) -> float:
    left = sum(rate.rows_left for rate in rates)
    kept = sum(rate.expected_rows * tally.overspent for tally, rate in zip(known, rates, strict=True))
    return min(1.0, kept / left) if left > 0 else new
