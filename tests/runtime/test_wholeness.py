"""A window that begins where answers are said to be whole again has lost no row, whatever the stream and the plans do."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, EventTimes, Stats
from jettison.policies import UniformDrop
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime.pilot import Pilot
from jettison.runtime.schedule import DEPENDENT_US, NEVER_US, UNKNOWN_US, Doubts, Schedule
from jettison.runtime.wholeness import Wholeness
from pilot_parts import SETTINGS, FakePublisher, ScriptedController, fly_by

KEPT, THINNED, LATE = RandomDrop(), RandomDrop(0.3), RandomDrop(1.0, late_keep_fraction=0.0, late_after_s=5.0)
NOTHING = RandomDrop(0.0)
COURSES = (KEPT, KEPT, KEPT, THINNED, LATE, NOTHING)
GROUPS = 40
_START_US = 10**15
judged: dict[str, int] = {"all": 0, "whole after a drop": 0}


class Course(UniformDrop):
    """A policy that follows a course, whatever the budget."""

    def __init__(self) -> None:
        self.setting = KEPT

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        return DropPlan(0, {"rows": self.setting}, "the course")


@pytest.fixture
def threadless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pilots under a clock that the test sets, and with no thread of their own: reports alone move them."""
    fly_by(monkeypatch, ScriptedController)
    monkeypatch.setattr(Pilot, "_run", lambda *_: None)


class Empty:
    """A checkpoint that Spark has not used."""

    def __truediv__(self, name: str) -> Empty:
        return self

    def names(self) -> list[str]:
        return []


def pilot_over(publisher: FakePublisher, policy: Any, **options: Any) -> Pilot:
    """A pilot that keeps no books and remembers nothing but what is published."""
    nothing = lambda *_, **__: None  # noqa: E731
    ledger: Any = SimpleNamespace(damaged=0, latest_plans=dict, start=nothing, plan=nothing, fault=nothing)
    folder: Any = SimpleNamespace(read=nothing, replace=nothing, parent=Empty())
    return Pilot(("rows",), policy, SETTINGS, publisher, folder, ledger, **options)


@dataclass
class Query:
    """Spark's side of a guarded query with an append-mode aggregate, under a real pilot.

    The watermark is that of the rows kept; Spark counts in milliseconds, rounded down, and reports a batch while the next
    one may be running already. Plans count some batches after they are made, if batches are short.
    """

    delay_us: int
    batch_s: float
    publisher: FakePublisher = field(default_factory=FakePublisher)
    policy: Course = field(default_factory=Course)
    clock_s: float = 1e9
    newest_kept_us: int | None = None
    watermark_us: int = 0
    reports: list[BatchReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """What is on file stays; what was observed is forgotten, and reports that nobody heard are lost."""
        self.pilot = pilot_over(self.publisher, self.policy)
        self.pilot._board._clock = lambda: self.clock_s
        self.pilot.start()
        self.reports.clear()

    def change(self, setting: RandomDrop) -> None:
        self.policy.setting = setting
        self.pilot.idle(self.clock_s)

    def plan_is_read(self) -> None:
        self.pilot.facts.answers_found({"ours": 0}, self.delay_us)

    def plan(self) -> DropPlan:
        """What the batch finds that starts now; one older than all plans on file keeps everything."""
        return self.publisher.schedules[-1].at(int(self.clock_s * 1e6)) or DropPlan(0)

    def run(self, batch: int, kept_us: np.ndarray, version: int) -> None:
        """The watermark moves before the batch, by what was kept before it."""
        if self.newest_kept_us is not None:
            self.watermark_us = max(self.watermark_us, self.newest_kept_us // 1000 * 1000 - self.delay_us)
        times = None
        if len(kept_us):
            newest = int(kept_us.max())
            self.newest_kept_us = max(newest, self.newest_kept_us or newest)
            times = EventTimes(newest // 1000 * 1000 + 999, 0, self.watermark_us or None)
        self.reports.append(
            BatchReport("run", batch, self.clock_s, self.batch_s, len(kept_us), version, event_times=times)
        )
        self.clock_s += self.batch_s

    def report(self, *, lost: bool) -> None:
        """The pilot hears of a batch, or does not."""
        report = self.reports.pop(0)
        if not lost:
            self.pilot.batch(report)

    def doubtful_until_us(self) -> int:
        """As the answer finds it on file."""
        doubts = self.publisher.schedules[-1].doubts
        return doubts.until_us if "ours" in doubts.margins_us else doubts.otherwise_us


def kept_by(setting: RandomDrop, late: np.ndarray, protected: np.ndarray, random: np.random.Generator) -> np.ndarray:
    share = np.full(len(late), setting.keep_fraction)
    if setting.late_keep_fraction is not None:
        share[late] = setting.late_keep_fraction
    return protected | (random.random(len(late)) < share)


def stream(random: np.random.Generator, delay_us: int, batches: int, span_us: int, *, bursty: bool) -> list[np.ndarray]:
    """Times by batch, so that no row is older than an earlier one by more than the delay; it is met to the microsecond."""
    sizes = random.integers(0, random.choice([4, 60]), batches)
    steps = random.exponential(1.0, sizes.sum()) * (random.random(sizes.sum()) < 0.05 if bursty else 1.0)
    ahead = _START_US + np.cumsum(steps * span_us * random.choice([0.03, 1.0])).astype(np.int64)
    # Whole batches of rows that are as old as they may be hide how far the rows dropped before them went.
    behind = np.repeat(random.choice([0, 0, delay_us], batches), sizes)
    some = random.random(len(ahead)) < random.choice([0.0, 0.3])
    behind[some] = random.integers(0, delay_us + 1, some.sum())
    at = np.maximum(ahead - behind, _START_US)
    return np.split(at, np.cumsum(sizes)[:-1])


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32 - 1),
    delay_ms=st.sampled_from([0, 1, 50, 2_000, 30_000]),
    window_us=st.sampled_from([700, 1_000, 333_000, 2_000_000, 10_000_000]),
    span_us=st.sampled_from([1_500, 400_000, 5_000_000]),
    batch_s=st.sampled_from([0.04, 1.0]),
    change=st.sampled_from([0.05, 0.2, 0.5]),
    lag=st.integers(0, 2),
    restarts=st.sampled_from([0.0, 0.05, 0.2]),
    unread=st.sampled_from([0.0, 0.5]),
    protected=st.sampled_from([0.0, 0.1]),
    losses=st.sampled_from([0.0, 0.0, 0.3]),
    bursty=st.booleans(),
    clock_steps=st.sampled_from([0.0, 0.05, 0.3]),
)
def search(
    seed: int,
    delay_ms: int,
    window_us: int,
    span_us: int,
    batch_s: float,
    change: float,
    lag: int,
    restarts: float,
    unread: float,
    protected: float,
    losses: float,
    bursty: bool,
    clock_steps: float,
) -> None:
    random = np.random.default_rng(seed)
    query = Query(delay_ms * 1000, batch_s)
    open_windows: dict[tuple[int, int], bool] = {}  # by window and group: whether a row is missing
    for batch, at_us in enumerate(stream(random, query.delay_us, 60, span_us, bursty=bursty)):
        if random.random() < restarts:
            query.restart()
        if random.random() < clock_steps:
            query.clock_s += random.choice([-0.1, -0.5 * batch_s, -1.5 * batch_s, -4.0, -3600.0, 3.0])
        if random.random() >= unread:
            query.plan_is_read()
        if random.random() < change:
            query.change(COURSES[random.integers(len(COURSES))])
        plan = query.plan()
        setting = plan.points.get("rows", KEPT)
        assert isinstance(setting, RandomDrop)
        late, safe = random.random(len(at_us)) < 0.5, random.random(len(at_us)) < protected
        kept = kept_by(setting, late, safe, random)
        query.run(batch, at_us[kept], plan.version)
        for time_us, group, stays in zip(at_us, random.integers(0, GROUPS, len(at_us)), kept, strict=True):
            key = int(time_us) // window_us, int(group)
            open_windows[key] = open_windows.get(key, False) or not stays
        while len(query.reports) > (random.integers(0, lag + 1) if lag else 0):
            query.report(lost=random.random() < losses)
        # Answers are made while the batch runs; what is on file may be older or newer than its report.
        until_us = query.doubtful_until_us()
        closed = [key for key in open_windows if (key[0] + 1) * window_us <= query.watermark_us]
        for window, group in closed:
            lost = open_windows.pop((window, group))
            whole = window * window_us >= until_us
            assert not (lost and whole), (window * window_us, until_us, group)
            judged["all"] += 1
            judged["whole after a drop"] += whole and until_us > NEVER_US


@pytest.mark.long
def test_a_window_that_is_called_whole_lost_no_row(threadless: None) -> None:
    """Among enough of them, so many after a drop that the search can find one."""
    judged.update(dict.fromkeys(judged, 0))
    search()
    assert judged["all"] >= 100_000, judged
    assert judged["whole after a drop"] >= 5_000, judged


def test_while_nothing_is_dropped_all_answers_are_whole(threadless: None) -> None:
    query = Query(delay_us=10_000, batch_s=1.0)
    for batch in range(20):
        query.run(batch, np.array([_START_US + batch * 10**6]), query.plan().version)
        query.report(lost=False)
        assert query.publisher.schedules[-1].doubts == Doubts()


def test_without_a_watermark_doubt_never_ends() -> None:
    whole, kept_all = Wholeness(), BatchReport("run", 0, 1e9, 1.0, 1, 2, event_times=EventTimes(100, 0))
    whole.planned(DropPlan(1, {"rows": THINNED}), Schedule.of(DropPlan(0)))
    whole.planned(DropPlan(2), Schedule.of(DropPlan(0)))
    whole.batch(kept_all, DropPlan(2))
    assert whole.doubts.until_us == UNKNOWN_US
    whole.delay_us = 7
    whole.batch(kept_all, DropPlan(2))
    assert whole.doubts.until_us == 108


def test_a_clock_that_is_set_back_to_a_plan_that_drops_ends_no_doubt() -> None:
    """Batch 7 has kept all. Its report finds that batch 8 has begun: at a time at which the plan before still counts."""
    whole, dropping, keeping = Wholeness(), DropPlan(1, {"rows": THINNED}), DropPlan(2)
    whole.delay_us = 0
    whole.planned(dropping, Schedule.of(DropPlan(0)))
    whole.planned(keeping, Schedule.of(dropping))
    assert not whole.wants_a_new_version(Schedule.of(dropping).followed_by(keeping, 1))
    whole.batch(BatchReport("run", 7, 1e9, 1.0, 1, 2, event_times=EventTimes(100, 0)), keeping)
    assert whole.doubts.until_us == UNKNOWN_US
    assert whole.wants_a_new_version(Schedule.of(keeping))
    whole.planned(DropPlan(3), Schedule.of(keeping))
    whole.batch(BatchReport("run", 8, 1e9 - 2, 1.0, 1, 1, event_times=EventTimes(200, 0)), dropping)
    assert whole.doubts.until_us == UNKNOWN_US
    whole.planned(DropPlan(4), Schedule.of(DropPlan(3)))
    whole.batch(BatchReport("run", 9, 1e9, 1.0, 1, 4, event_times=EventTimes(300, 0)), DropPlan(4))
    assert whole.doubts.until_us == 301


def test_what_an_earlier_run_knew_of_its_windows_is_not_believed() -> None:
    """The query may have been changed since."""
    assert Wholeness(Doubts(10**15)).doubts.until_us == UNKNOWN_US
    assert Wholeness().doubts.until_us == NEVER_US


@pytest.mark.parametrize("least_us", [UNKNOWN_US, DEPENDENT_US])
def test_where_others_drop_rows_every_answer_is_in_doubt(threadless: None, least_us: int) -> None:
    publisher = FakePublisher()
    pilot = pilot_over(publisher, Course(), least_doubt_us=least_us)
    pilot.start()
    pilot.facts.answers_found({"ours": 0}, 1_000)
    pilot.batch(BatchReport("run", 0, 1e9, 1.0, 1, pilot.plan.version, event_times=EventTimes(_START_US, 0)))
    assert all(each.doubts.until_us == each.doubts.otherwise_us == least_us for each in publisher.schedules)


def test_another_query_under_the_same_plans_leaves_no_answer_certain(threadless: None) -> None:
    publisher = FakePublisher()
    pilot = pilot_over(publisher, Course())
    pilot.start()
    pilot.facts.answers_found({"ours": 0}, 1_000)
    assert publisher.schedules[-1].doubts.until_us == NEVER_US
    pilot.facts.shared("theirs")
    doubts = publisher.schedules[-1].doubts
    assert doubts.until_us == doubts.otherwise_us == UNKNOWN_US
    assert pilot.faults == {"guard": 1}


def test_that_rows_share_decisions_is_remembered_until_the_plan_shows_none(threadless: None) -> None:
    publisher = FakePublisher()
    publisher.publish(Schedule.of(DropPlan(3), Doubts(DEPENDENT_US, DEPENDENT_US)))
    pilot = pilot_over(publisher, Course())
    pilot.start()
    assert pilot.doubts == publisher.schedules[-1].doubts == Doubts(DEPENDENT_US, DEPENDENT_US)
    pilot.facts.rows_are_independent()
    assert pilot.doubts == publisher.schedules[-1].doubts == Doubts(UNKNOWN_US, UNKNOWN_US)
