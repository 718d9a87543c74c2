"""The policy over whole courses of a stream: a small model of Spark's windows stands in for the engine.

Rows arrive in micro-batches, out of order within the watermark's delay; plans reach the engine with a lag that varies;
budgets change all the time; now and then the driver is killed and comes back with the last plan on record.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, EventTimes, PointStats, Stats
from jettison.errors import InvalidSetting
from jettison.policies.window import horizon
from jettison.policies.window.query_fan import Branch
from jettison.policies.window.window_drop import WindowDrop
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_marks import DROP, WindowMarks
from jettison.policies.window.window_needs import Pipeline

MICROSECOND = 1e-6


@dataclass
class Engine:
    """Windows as Spark evaluates them in append mode: late rows go, closed windows are delivered, marks are followed."""

    policy: WindowDrop
    delay: int
    watermark: int | None = None
    newest: int = -(10**9)
    contents: dict = field(default_factory=lambda: defaultdict(list))
    delivered: dict = field(default_factory=dict)
    seen: int = 0
    kept: int = 0

    def batch(self, rows: list[int], plan: DropPlan | None) -> Stats:
        """Process rows, each its own time; `plan` None stands for an engine without Jettison."""
        marks = plan.points.get("rows", WindowMarks()) if plan is not None else WindowMarks()
        for time in rows:
            self.seen += 1
            if plan is not None and not marks.needs(self.policy.fan, time):
                continue
            self.kept += 1
            self._take(time)
        self._deliver(marks)
        self.newest = max([self.newest, *rows])
        advance = 2 * (max(rows) - sum(rows) // len(rows)) if rows else 0
        times = EventTimes(self.newest, advance, self.watermark) if rows else None
        self.watermark = max(self.watermark or self.newest - self.delay, self.newest - self.delay)
        return Stats(0, 0.0, 0.0, {"rows": PointStats(len(rows), len(rows))}, event_times=times)

    def _take(self, time: int) -> None:
        for place, branch in enumerate(self.policy.fan.branches):
            for n in range(branch.pipeline.first_holding(time), branch.pipeline.last_holding(time) + 1):
                # A row that is not late at the first level may still miss an answer that has been given.
                closed = self.watermark is not None and branch.pipeline.final.end(n) <= self.watermark
                if branch.pipeline.holds(n, time) and not closed:
                    self.contents[place, n].append(time)

    def _deliver(self, marks: WindowMarks) -> None:
        for place, n in [key for key in self.contents if self._closed(*key)]:
            rows = sorted(self.contents.pop((place, n)))
            before_marks = bool(marks.first) and n < marks.first[place]
            if not marks.dropped(place, n) and not before_marks:
                self.delivered[place, n] = rows

    def _closed(self, place: int, n: int) -> bool:
        end = self.policy.fan.branches[place].pipeline.final.end(n)
        return self.watermark is not None and end <= self.watermark


@st.composite
def policies(draw: st.DrawFn) -> WindowDrop:
    def grid() -> Grid:
        size = draw(st.integers(1, 8))
        return Grid(size, draw(st.integers(1, size)), draw(st.integers(-5, 5)))

    branches = tuple(
        Branch(f"q{i}", Pipeline(tuple(grid() for _ in range(draw(st.integers(1, 3))))), draw(st.integers(1, 30)))
        for i in range(draw(st.integers(1, 2)))
    )
    return WindowDrop(time="at", queries=branches)


def course(seed: int, batches: int, jitter: int, hole: bool) -> list[list[int]]:
    """Rows of each batch: time goes on, with some rows late, now and then a jump, now and then nothing at all."""
    chance = random.Random(seed)
    now, result = 1000, []
    for number in range(batches):
        step = chance.choice([0, 1, 2, 5]) if number else 5
        if hole and chance.random() < 0.05:
            now += 60
        now += step
        rows = [now - chance.randint(0, jitter) for _ in range(chance.choice([0, 1, 5, 12]) if number else 5)]
        result.append(rows)
    return result


def run(policy: WindowDrop, batches: list[list[int]], delay: int, seed: int) -> tuple[Engine, Engine, list[DropPlan]]:
    chance = random.Random(seed)
    plain, shed = Engine(policy, delay), Engine(policy, delay)
    on_record = [DropPlan(0, {"rows": WindowMarks()})]
    budgets = [1.0, 0.0, 0.2, 0.5, 0.9]
    keep = 0.5
    in_force = 0
    for rows in batches:
        plain.batch(rows, None)
        # The engine reads the newest plan, or one that was in force up to two batches ago; never one older than it has read.
        in_force = max(in_force, len(on_record) - 1 - chance.choice([0, 0, 1, 2]))
        stats = shed.batch(rows, on_record[in_force])
        if chance.random() < 0.2:
            keep = chance.choice(budgets)
        previous = DropPlan.from_json(on_record[-1].to_json())  # as after a restart
        on_record.append(policy.continued(previous, stats, Budget(keep, keep, 3.0, "course")))
    return plain, shed, on_record


SHORT_BESIDE_LONG = WindowDrop(
    time="at", queries=(Branch("q0", Pipeline((Grid(7, 3, 1),)), 1), Branch("q1", Pipeline((Grid(1, 1),)), 1))
)
"""A unit stays open for the long window after the short ones in it, here of a query that is shut, have closed."""


@pytest.mark.long
@given(policies(), st.integers(0, 10**6), st.integers(0, 10), st.booleans())
@example(SHORT_BESIDE_LONG, 23806, 0, True)
@settings(max_examples=250, deadline=None)
def test_every_answer_is_the_one_without_shedding_no_gap_is_longer_than_allowed_and_no_mark_changes(
    policy: WindowDrop, seed: int, delay: int, hole: bool
) -> None:
    plain, shed, plans = run(policy, course(seed, 60, delay, hole), delay, seed)
    for key, rows in shed.delivered.items():
        assert rows == plain.delivered[key]
    for place, branch in enumerate(policy.fan.branches):
        marked: dict[int, str] = {}
        for plan in plans:
            setting = plan.points.get("rows")
            if not isinstance(setting, WindowMarks) or not setting.first:
                continue
            for n, letter in enumerate(setting.marks[place], start=setting.first[place]):
                assert marked.setdefault(n, letter) == letter, "a mark has changed"
        gap = 0
        shut = any(branch.name in plan.points["rows"].shut for plan in plans if "rows" in plan.points)
        for n in range(min(marked, default=0), max(marked, default=0) + 1):
            if branch.pipeline.void(n):
                continue
            gap = gap + 1 if marked.get(n) == DROP else 0
            assert shut or gap <= branch.max_gap


@given(policies(), st.integers(0, 10**6), st.integers(-30, 60))
@settings(max_examples=150, deadline=None)
def test_a_row_is_dropped_exactly_when_all_its_answers_are(policy: WindowDrop, seed: int, ahead: int) -> None:
    _, engine, plans = run(policy, course(seed, 30, 3, False), 3, seed)
    marks = plans[-1].points.get("rows", WindowMarks())
    assert isinstance(marks, WindowMarks)
    time = engine.newest + ahead
    holders = [
        (place, n)
        for place, branch in enumerate(policy.fan.branches)
        for n in range(branch.pipeline.first_holding(time), branch.pipeline.last_holding(time) + 1)
        if branch.pipeline.holds(n, time)
    ]
    if any(marks.first and n < marks.first[place] for place, n in holders):
        return  # closed: late rows are the engine's to discard
    assert marks.needs(policy.fan, time) == any(not marks.dropped(place, n) for place, n in holders)


def steady(policy: WindowDrop, keep: float, batches: int = 1200, rows_per_unit: int = 1) -> tuple[Engine, Engine]:
    """One batch for each unit of time, rows in order, no lag but the policy's own foresight."""
    length = policy.fan.length
    plain, shed = Engine(policy, 0), Engine(policy, 0)
    plan = DropPlan(0, {"rows": WindowMarks()})
    for number in range(batches):
        rows = [number * length + length * i // rows_per_unit for i in range(rows_per_unit)]
        plain.batch(rows, None)
        stats = shed.batch(rows, plan)
        plan = policy.continued(plan, stats, Budget(keep, keep, 3.0, "steady"))
    return plain, shed


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("windows", [[(10, 10)], [(20, 10)], [(20, 10), (40, 20)]])
def test_the_budget_is_met_in_rows_where_the_gap_allows_it(windows: list[tuple[int, int]], keep: float) -> None:
    levels = [(size * MICROSECOND, slide * MICROSECOND) for size, slide in windows]
    policy = WindowDrop.for_query(time="at", windows=levels, max_gap=20)
    _, shed = steady(policy, keep, rows_per_unit=10)
    assert shed.kept / shed.seen == pytest.approx(max(keep, 1 / 21), abs=0.03)


def test_beyond_the_gap_one_answer_in_gap_plus_one_is_still_delivered() -> None:
    policy = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4)
    plain, shed = steady(policy, keep=0.0)
    assert len(shed.delivered) / len(plain.delivered) == pytest.approx(1 / 5, abs=0.01)


def test_where_windows_do_not_overlap_drops_are_spread_and_else_come_in_runs() -> None:
    tumbling, _ = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4), None
    _, shed = steady(tumbling, keep=0.5)
    missing = [n for n in range(100, 1000) if (0, n) not in shed.delivered]
    assert not any(n + 1 in missing for n in missing)
    sliding = WindowDrop(time="at", window=(20 * MICROSECOND, 10 * MICROSECOND), max_gap=4)
    _, shed = steady(sliding, keep=0.5)
    assert any(all((0, n + i) not in shed.delivered for i in range(4)) for n in range(100, 900))


def test_a_gap_shorter_than_a_window_drops_answers_but_no_row_and_says_so() -> None:
    policy = WindowDrop(time="at", window=(10 * MICROSECOND, 1 * MICROSECOND), max_gap=3)
    plan = DropPlan(0, {"rows": WindowMarks()})
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(1, 1)}, event_times=EventTimes(1000, 2, 990))
    plan = policy.continued(plan, stats, Budget(0.5, 0.5, 3.0, "overload"))
    assert "every row is still needed" in plan.cause
    assert not plan.keeps_everything
    _, shed = steady(policy, keep=0.5)
    assert shed.kept == shed.seen


def test_windows_that_rows_may_have_reached_are_kept() -> None:
    policy = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4)
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(9, 9)}, event_times=EventTimes(1000, 10, 970))
    marks = policy.continued(DropPlan(0), stats, Budget(0.1, 0.1, 3.0, "overload")).points["rows"]
    assert isinstance(marks, WindowMarks)
    # The newest row is at 1000, so the window that starts there has begun.
    assert [marks.dropped(0, n) for n in (99, 100, 101)] == [False, False, True]


def test_a_plan_decides_for_the_next_batches_and_no_further() -> None:
    policy = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4)
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(9, 9)}, event_times=EventTimes(1000, 40, 970))
    marks = policy.continued(DropPlan(0), stats, Budget(0.1, 0.1, 3.0, "overload")).points["rows"]
    assert isinstance(marks, WindowMarks)
    assert marks.next_unit == 100 + 3 * 4 + 1, "three batches of 40 each"


def test_when_the_overload_ends_decided_windows_stay_dropped_and_then_all_marks_go() -> None:
    policy = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4)
    plan = DropPlan(0)
    for newest, keep in [(1000, 0.2), (1010, 1.0), (1020, 1.0)]:
        stats = Stats(0, 0.0, 0.0, {"rows": PointStats(9, 9)}, event_times=EventTimes(newest, 10, newest - 30))
        before, plan = plan, policy.continued(plan, stats, Budget(keep, keep, 3.0, "course"))
    assert plan.points == before.points
    assert not plan.keeps_everything
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(9, 9)}, event_times=EventTimes(2000, 10, 1970))
    at_rest = policy.continued(plan, stats, Budget(1.0, 1.0, 3.0, "rest")).points["rows"]
    assert (at_rest.marks, at_rest.keeps_everything) == ((), True)


def test_the_cause_says_what_windows_that_were_decided_before_keep() -> None:
    policy = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4)
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(1, 1)}, event_times=EventTimes(1000, 2, 990))
    shed = policy.continued(DropPlan(0), stats, Budget(0.3, 0.3, 3.0, "keep 0.30"))
    assert shed.cause.startswith("keep 0.30; 0.70 of the windows are dropped")
    again = policy.continued(shed, stats, Budget(0.1, 0.1, 3.0, "keep 0.10"))
    assert again.points == shed.points
    assert again.cause == "keep 0.10; the windows that come next were decided before, 0.70 of them to be dropped"
    all_kept = DropPlan(1, {"rows": replace(WindowMarks(), next_unit=shed.points["rows"].next_unit)})
    kept = policy.continued(all_kept, stats, Budget(0.3, 0.3, 3.0, "keep 0.30"))
    assert kept.keeps_everything
    assert kept.cause == "keep 0.30; the windows that come next were decided before, all of them kept"
    rest = policy.continued(shed, stats, Budget(1.0, 1.0, 3.0, "keep all"))
    assert not rest.keeps_everything
    assert rest.cause == "keep all; windows that were decided before stay dropped"


def test_without_event_times_nothing_changes() -> None:
    policy = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4)
    marks = WindowMarks((3,), ("kd",), ((None, 60),), next_unit=5, row_share=0.5)
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(0, 0)})
    plan = policy.continued(DropPlan(7, {"rows": marks}), stats, Budget(0.1, 0.1, 3.0, "overload"))
    assert plan.points["rows"] == marks
    assert "watermark" in plan.cause


def test_too_many_open_windows_are_not_marked_and_nothing_is_dropped() -> None:
    policy = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4)
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(9, 9)}, event_times=EventTimes(10**6, 10, 100))
    plan = policy.continued(DropPlan(0), stats, Budget(0.1, 0.1, 3.0, "overload"))
    assert plan.keeps_everything
    assert "too many windows" in plan.cause


def test_a_long_batch_over_short_windows_is_decided_as_far_as_there_is_room() -> None:
    policy = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4)
    stats = Stats(0, 0.0, 60.0, {"rows": PointStats(9, 9)}, event_times=EventTimes(1000, 10, 970))
    marks = policy.continued(DropPlan(0), stats, Budget(0.1, 0.1, 3.0, "overload")).points["rows"]
    assert isinstance(marks, WindowMarks)
    assert len(marks.marks[0]) == horizon.MOST_MARKS


def test_admission_control_shuts_the_costliest_query_and_says_so() -> None:
    policy = WindowDrop.for_query(
        time="at",
        windows={"costly": [10 * MICROSECOND], "cheap": [10 * MICROSECOND]},
        max_gap={"costly": 1, "cheap": 9},
        cost={"costly": 9.0, "cheap": 1.0},
    )
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(9, 9)}, event_times=EventTimes(1000, 10, 970))
    plan = policy.continued(DropPlan(0), stats, Budget(0.05, 0.05, 3.0, "overload"))
    marks = plan.points["rows"]
    assert isinstance(marks, WindowMarks)
    assert marks.shut == ("costly",)
    assert "shut down, costliest first: costly" in plan.cause
    plain, shed = steady(policy, keep=0.05)
    by_query = [sum(1 for place, _ in shed.delivered if place == i) for i in range(2)]
    assert by_query[0] < 20 < by_query[1]
    assert all(rows == plain.delivered[key] for key, rows in shed.delivered.items())


def test_when_the_gap_allows_no_more_the_plan_says_so() -> None:
    policy = WindowDrop(time="at", window=10 * MICROSECOND, max_gap=4)
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(9, 9)}, event_times=EventTimes(1000, 10, 970))
    enough = policy.continued(DropPlan(0), stats, Budget(0.2, 0.2, 3.0, "overload"))
    beyond = policy.continued(DropPlan(0), stats, Budget(0.1, 0.1, 3.0, "overload"))
    assert beyond.cause == (
        "overload; 0.80 of the windows are dropped; "
        "a largest gap of 4 allows no more, so the latency bound may not be held"
    )
    assert enough.cause == "overload; 0.80 of the windows are dropped"


def test_a_gap_shorter_than_the_common_slide_is_named_with_the_one_that_would_do() -> None:
    windows = {"ten": [10 * MICROSECOND], "fifteen": [15 * MICROSECOND]}
    stats = Stats(0, 0.0, 0.0, {"rows": PointStats(9, 9)}, event_times=EventTimes(1000, 10, 970))

    def planned(max_gap: dict[str, int]) -> DropPlan:
        policy = WindowDrop.for_query(time="at", windows=windows, max_gap=max_gap)
        return policy.continued(DropPlan(0), stats, Budget(0.5, 0.5, 3.0, "overload"))

    assert "shut down, costliest first: ten;" in planned({"ten": 2, "fifteen": 2}).cause
    assert "common slide of all queries for ten (raise it to 3)" in planned({"ten": 2, "fifteen": 2}).cause
    both = planned({"ten": 2, "fifteen": 1})
    assert both.keeps_everything
    assert "no window is dropped" in both.cause
    assert "common slide" not in planned({"ten": 3, "fifteen": 2}).cause


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"max_gap": {"fast": 3}}, "must be given for every query .*got none for 'slow'"),
        ({"max_gap": {"fast": 3, "slow": 1, "slwo": 1}}, "`max_gap` must name queries .*did you mean 'slow'"),
        ({"cost": {"fats": 3.0}}, "`cost` must name queries .*did you mean 'fast'"),
        ({"windows": {"fast": "1 s", "slow": ["2 s"]}}, "must be a list.*query 'fast'"),
        ({"windows": ("2 s", "1 s"), "max_gap": 2}, "must be a list"),
        ({"windows": {}, "max_gap": 2}, "got neither"),
        ({"windows": {"fast": ["1 s"], "slow": ["session"]}}, "session windows"),
    ],
)
def test_queries_that_are_not_fully_described_are_refused(changes: dict, complaint: str) -> None:
    described = {"windows": {"fast": ["1 s"], "slow": ["2 s"]}, "max_gap": {"fast": 3, "slow": 1}}
    with pytest.raises(InvalidSetting, match=complaint):
        WindowDrop.for_query(time="at", **(described | changes))


def test_a_window_and_queries_at_once_are_refused() -> None:
    queries = (Branch("a", Pipeline((Grid(10, 10),)), 3),)
    with pytest.raises(InvalidSetting, match="got both"):
        WindowDrop(time="at", window="10 seconds", queries=queries)


def test_windows_are_read_as_spark_reads_them() -> None:
    policy = WindowDrop(time="at", window=("10 minutes", "5 minutes", "-15 seconds"), max_gap=3)
    assert policy.fan.branches[0].pipeline.final == Grid(600_000_000, 300_000_000, -15_000_000)


@pytest.mark.parametrize(
    ("window", "complaint"),
    [
        (None, "either `window` or `queries` must be given, got neither"),
        (("5 minutes", "10 minutes"), "slide"),
        ("session", "session windows"),
        ((), "must be a size"),
        ("-5 minutes", "positive duration"),
    ],
)
def test_impossible_windows_are_refused(window: object, complaint: str) -> None:
    with pytest.raises(InvalidSetting, match=complaint):
        WindowDrop(time="at", window=window, max_gap=3)  # type: ignore[arg-type]
