"""Drop whole windows: fewer answers, every one of them exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from jettison.core.plan import DropPlan
from jettison.core.setting import Setting
from jettison.core.stats import Budget, EventTimes, Stats
from jettison.errors import did_you_mean, refuse
from jettison.policies.base import ColumnOrSql, Policy
from jettison.policies.window import horizon
from jettison.policies.window.query_fan import Admission, Branch, Fan, admit
from jettison.policies.window.window_choice import DecisionState, Runs, highest_share
from jettison.policies.window.window_grid import Window, grid_of, grids_of
from jettison.policies.window.window_marks import WindowMarks, WindowSpec
from jettison.policies.window.window_needs import Pipeline

ONLY_QUERY = "answers"
_PROBES = 64  # times at which a batch's kept share is looked up
_BATCHES_AHEAD = 3  # batches that a plan decides for: it may come one batch late, and so may the next one


@dataclass(frozen=True)
class WindowDrop(Policy):
    """Drop some windows altogether and keep all rows of the others, so that every delivered answer is exact.

    At most `max_gap` consecutive windows are ever missing. Each window is decided once, ahead of its rows, and the
    decision stays: across plans, late rows and restarts. A row is dropped exactly when every answer that it takes part
    in is dropped. Shedding can begin only with windows that no row has reached yet, so windows should be
    short beside the latency bound.

    Parameters
    ----------
    time
        The column that the windows are over, by its name or as a Spark column; it must carry the watermark.
    window
        Size, or size and slide, or size, slide and offset, as given to Spark's `window`.
    max_gap
        Most consecutive windows that may be missing; the paper's B.
    run
        Least length of a run of dropped windows, at most `max_gap`; more counts as that. By default `max_gap` where
        windows overlap, since rows between two kept windows can only be dropped in longer runs; where they do not, drops
        are spread evenly.
    queries
        In place of `window` and `max_gap`: nested windows and several queries, from `for_query`.

    Examples
    --------
    >>> policy = WindowDrop(time="at", window=("10 seconds", "5 seconds"), max_gap=10)
    >>> policy.fan.branches[0].pipeline.final
    Grid(size=10000000, slide=5000000, offset=0)

    Notes
    -----
    Departures from [1]_. Windows are decided by runs with error-diffused keeps rather than by coins (`window_choice.py`).
    What nested windows need is derived for Spark (`window_needs.py`). Tuples carry no marks; the plan does, and
    answers of dropped windows are held back where they leave the query.

    References
    ----------
    .. [1] N. Tatbul, S. Zdonik: Window-Aware Load Shedding for Aggregation Queries over Data Streams. VLDB 2006.
    """

    takes_protected: ClassVar[bool] = False  # a window with dropped rows is not delivered, whatever rows are left of it

    time: ColumnOrSql
    window: Window | None = None
    max_gap: int = 1
    run: int | None = None
    queries: tuple[Branch, ...] = ()

    def __post_init__(self) -> None:
        if (self.window is None) != bool(self.queries):
            got = "neither" if self.window is None else "both"
            hint = "use `WindowDrop.for_query` for nested windows and for several queries"
            refuse("either `window` or `queries` must be given", got, hint=hint)
        if self.fan.max_gap >= 1:
            self.decider(self.fan)  # refuses what is wrong with `run`

    @cached_property
    def fan(self) -> Fan:
        if self.window is None:
            return Fan(self.queries)
        return Fan((Branch(ONLY_QUERY, Pipeline((grid_of(self.window),)), self.max_gap),))

    @property
    def spec(self) -> WindowSpec:
        return WindowSpec(self.time, self.fan)

    def outline(self) -> dict[str, Any]:
        """The windows of each query, from the epoch, in microseconds."""
        grids = [(branch, branch.pipeline.final) for branch in self.fan.branches]
        return {
            "windows": [
                {
                    "name": branch.name,
                    "size_us": grid.size,
                    "slide_us": grid.slide,
                    "offset_us": grid.offset,
                    "max_gap": branch.max_gap,
                }
                for branch, grid in grids
            ]
        }

    @property
    def unavoidable_share(self) -> float:
        """What the largest gaps leave while no query is shut down."""
        return self._shares(self.fan, 0.0, 0)[1] if self.fan.max_gap >= 1 else 1.0

    @classmethod
    def for_query(
        cls,
        *,
        time: ColumnOrSql,
        windows: Sequence[Window] | Mapping[str, Sequence[Window]],
        max_gap: int | Mapping[str, int],
        cost: Mapping[str, float] | None = None,
        run: int | None = None,
    ) -> WindowDrop:
        """Derive what to keep from the aggregates behind the guard.

        Parameters
        ----------
        time
            The column that the first level's windows are over.
        windows
            A list with the window of each level, from the input to the answers; or such lists by name, for several queries
            that share the input.
        max_gap
            Most consecutive answers that may be missing, for all or by name of the query.
        cost
            Work of each query relative to the others. When no drop of windows is enough, the costliest query is shut down.
        run
            As for the class.

        Examples
        --------
        Five-minute sums, every minute, and their hourly maximum:

        >>> policy = WindowDrop.for_query(time="at", windows=[("5 minutes", "1 minute"), "1 hour"], max_gap=3)
        >>> low, high = policy.fan.branches[0].pipeline.need(1)
        >>> low / 60e6, high / 60e6
        (56.0, 120.0)
        """
        named = windows if isinstance(windows, Mapping) else {ONLY_QUERY: windows}
        gaps = max_gap if isinstance(max_gap, Mapping) else dict.fromkeys(named, max_gap)
        _refuse_unknown("max_gap", gaps, named)
        _refuse_unknown("cost", cost or {}, named)
        if without := [name for name in named if name not in gaps]:
            expected, got = f"`max_gap` must be given for every query ({', '.join(named)})", f"none for {without[0]!r}"
            refuse(expected, got, hint="pass one number to allow all of them the same")
        branches = tuple(
            Branch(name, Pipeline(grids_of(levels, query=name)), gaps[name], (cost or {}).get(name, 1.0))
            for name, levels in named.items()
        )
        return cls(time=time, run=run, queries=branches)

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """The plan before any other: nothing is decided yet."""
        return self.continued(DropPlan(0), stats, budget)

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        """The next plan: all marks of `previous`, and marks for the windows that come into sight."""
        points, notes = {}, []
        for name in stats.points:
            before = previous.points.get(name)
            points[name], note = self._next(before if isinstance(before, WindowMarks) else None, stats, budget)
            if note and note not in notes:
                notes.append(note)
        return DropPlan(0, points, "; ".join([budget.cause, *notes]))

    def expected_share(self, setting: Setting, times: EventTimes) -> float:
        """Share of a batch's rows that the marks keep, were its times spread evenly."""
        if not isinstance(setting, WindowMarks) or setting.keeps_everything:
            return 1.0
        probes = [times.newest_us - times.advance_us * i // _PROBES for i in range(_PROBES)]
        return sum(setting.needs(self.fan, time) for time in probes) / _PROBES

    def _next(self, before: WindowMarks | None, stats: Stats, budget: Budget) -> tuple[WindowMarks, str]:
        marks, times = WindowMarks() if before is None else before, stats.event_times
        if times is None or times.watermark_us is None:
            return marks, "" if budget.share >= 1.0 else "no window can be decided before there is a watermark"
        begun = self.fan.first_unit_after(times.newest_us)
        if budget.share >= 1.0:
            rested = self._at_rest(marks, begun, times.watermark_us)
            return rested, "" if rested.keeps_everything else "windows that were decided before stay dropped"
        admission = admit(self.fan, budget.share, already_shut=marks.shut)
        open_fan = self.fan.without(admission.shut)
        if open_fan.max_gap < 1:
            return marks, f"no window is dropped: {_too_short(open_fan)}"
        # Where rows carry the present time, the next batch covers as much of it as the last one took.
        ahead_us = _BATCHES_AHEAD * max(times.advance_us, round(stats.duration_s * 1e6))
        until = max(begun + 1, self.fan.first_unit_after(times.newest_us + ahead_us))
        return self._shed(marks, open_fan, admission, times.watermark_us, begun, until)

    def _at_rest(self, marks: WindowMarks, begun: int, watermark: int) -> WindowMarks:
        """Nothing is to be shed: no new marks, and none at all once every dropped window has closed."""
        decided_ahead = marks.next_unit is not None and marks.next_unit > begun
        if not marks.first or decided_ahead or horizon.drops_open_at(self.fan, marks, watermark):
            return marks
        return WindowMarks(next_unit=marks.next_unit)  # what was decided once is not decided again

    def _shed(
        self, marks: WindowMarks, open_fan: Fan, admission: Admission, watermark: int, begun: int, until: int
    ) -> tuple[WindowMarks, str]:
        if marks.next_unit is not None and marks.next_unit >= until:
            kept = (
                "all of them kept"
                if marks.keeps_everything
                else f"{1.0 - marks.window_share:.2f} of them to be dropped"
            )
            return marks, f"the windows that come next were decided before, {kept}"
        decider = self.decider(open_fan)
        trimmed = marks if not marks.first else horizon.trim(self.fan, marks, watermark)
        if not any(trimmed.marks):
            trimmed = self._after_closed(marks, decider, watermark)
            begun = begun if marks.next_unit is None else max(begun, marks.next_unit)
        until = min(until, horizon.furthest_unit(self.fan, trimmed))
        if until <= begun:
            return marks, "too many windows are open at once to mark them all: none is dropped"
        drop_share, row_share = self._shares(open_fan, admission.share, begun)
        wanted = replace(trimmed, window_share=1.0 - drop_share, row_share=row_share, shut=admission.shut)
        extended = horizon.extend(self.fan, wanted, decider, begun=begun, until=until, drop_share=drop_share)
        # A unit is open while any query's window in it is: others of its windows may have been decided and closed before.
        return horizon.trim(self.fan, extended, watermark), _note(self.fan, open_fan, admission, drop_share, row_share)

    def _after_closed(self, marks: WindowMarks, decider: Runs, watermark: int) -> WindowMarks:
        """Marks from the first open window on, when those before have all closed."""
        fresh = horizon.begin(self.fan, watermark)
        if marks.next_unit is None:
            return fresh
        # The window that holds the newest row lies in between and is kept, so no gap goes on from the marks before.
        state = decider.kept(DecisionState(marks.run, marks.owed))
        return replace(fresh, run=state.run, owed=state.owed)

    def _shares(self, fan: Fan, kept_share: float, unit: int) -> tuple[float, float]:
        """Share of windows to drop so that `kept_share` of the rows remain, and the share of rows that then do.

        Where overlapping windows need every row even in the longest run allowed, only the aggregate's own work can be
        saved, and windows are dropped in proportion.
        """
        run = self._run_length(fan)
        spared = fan.spared(unit, run) / (run * fan.length)
        most = highest_share(fan.max_gap)
        if spared <= 0.0:
            return min(1.0 - kept_share, most), 1.0
        share = min((1.0 - kept_share) / spared, most)
        return share, max(1.0 - share * spared, 0.0)

    def _run_length(self, fan: Fan) -> int:
        if self.run is not None:
            return min(self.run, fan.max_gap)
        return fan.max_gap if fan.has_overlap else 1

    def decider(self, fan: Fan) -> Runs:
        """What decides the units of `fan`, which holds some or all of the queries."""
        return Runs(fan.max_gap, self._run_length(fan))


def _note(all_queries: Fan, fan: Fan, admission: Admission, drop_share: float, row_share: float) -> str:
    notes = [f"{drop_share:.2f} of the windows are dropped"]
    if row_share >= 1.0:
        notes.append("every row is still needed: the largest gap is shorter than a window")
    if admission.shut:
        notes.append(f"shut down, costliest first: {', '.join(admission.shut)}")
        if all_queries.max_gap < 1:
            notes.append(_too_short(all_queries))
    if not admission.enough:
        notes.append(f"a largest gap of {fan.max_gap} allows no more, so the latency bound may not be held")
    return "; ".join(notes)


def _too_short(fan: Fan) -> str:
    """Which queries cannot miss what all of them would miss together, and the way out."""
    short = [f"{b.name} (raise it to {fan.windows_in_unit(b)})" for b in fan.branches if fan.gap_in_units(b) < 1]
    return f"the largest gap is shorter than the common slide of all queries for {', '.join(short)}"


def _refuse_unknown(argument: str, given: Mapping[str, object], queries: Mapping[str, object]) -> None:
    for name in given:
        if name not in queries:
            expected = f"`{argument}` must name queries of `windows` ({', '.join(queries)})"
            hint = did_you_mean(name, queries, otherwise="name the queries alike in all arguments")
            refuse(expected, repr(name), hint=hint)
