"""A window that begins where answers are said to be whole again has lost no row, whatever the stream and the plans do."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jettison.plan import DropPlan
from jettison.schedule import NEVER_US, UNKNOWN_US, Schedule
from jettison.settings import RandomDrop
from jettison.stats import EventTimes
from jettison.touched import TouchedTimes

KEPT, THINNED, LATE = RandomDrop(), RandomDrop(0.3), RandomDrop(1.0, late_keep_fraction=0.0, late_after_s=5.0)
NOTHING = RandomDrop(0.0)
COURSES = (KEPT, KEPT, KEPT, THINNED, LATE, NOTHING)
GROUPS = 40
_START_US = 10**15
judged: dict[str, int] = {"all": 0, "whole after a drop": 0}


@dataclass
class Query:
    """Spark's side of a guarded query with an append-mode aggregate, and the pilot's rule for whole answers.

    The watermark is that of the rows kept; Spark counts in milliseconds, rounded down, and reports a batch while the next
    one may be running already.
    """

    delay_us: int
    window_us: int
    schedule: Schedule = field(default_factory=lambda: Schedule.of(DropPlan(0, {"rows": KEPT})))
    touched: TouchedTimes = field(default_factory=TouchedTimes)
    newest_kept_us: int | None = None
    watermark_us: int = 0
    reports: list[tuple[int, int, EventTimes | None]] = field(default_factory=list)

    def publish(self, setting: RandomDrop, batch: int) -> None:
        plan = DropPlan(self.schedule.newest.version + 1, {"rows": setting})
        if plan.leaves_partial_answers:
            self.touched.open()
        self.schedule = self.schedule.followed_by(plan, batch)

    def restart(self) -> None:
        """What is on file stays; what was observed is forgotten, and reports that nobody heard are lost."""
        self.touched = TouchedTimes(self.touched.until_us)
        self.reports.clear()

    def run(self, batch: int, kept_us: np.ndarray, version: int) -> None:
        """The watermark moves before the batch, by what was kept before it."""
        if self.newest_kept_us is not None:
            self.watermark_us = max(self.watermark_us, self.newest_kept_us // 1000 * 1000 - self.delay_us)
        times = None
        if len(kept_us):
            newest = int(kept_us.max())
            self.newest_kept_us = max(newest, self.newest_kept_us or newest)
            times = EventTimes(newest // 1000 * 1000 + 999, 0, self.watermark_us or None)
        self.reports.append((batch, version, times))

    def report(self, *, lost: bool) -> None:
        """What the pilot does when it hears of a batch, if it does."""
        batch, version, times = self.reports.pop(0)
        if lost:
            return
        self.touched.observe(batch, times)
        if not self.touched.is_open or times is None:
            return
        later = [entry.plan for entry in self.schedule.entries if entry.plan.version >= version]
        if not any(plan.leaves_partial_answers for plan in later):
            self.touched.close()


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
    change=st.sampled_from([0.05, 0.2, 0.5]),
    lag=st.integers(0, 2),
    restarts=st.sampled_from([0.0, 0.05, 0.2]),
    protected=st.sampled_from([0.0, 0.1]),
    losses=st.sampled_from([0.0, 0.0, 0.3]),
    bursty=st.booleans(),
)
def search(
    seed: int,
    delay_ms: int,
    window_us: int,
    span_us: int,
    change: float,
    lag: int,
    restarts: float,
    protected: float,
    losses: float,
    bursty: bool,
) -> None:
    random = np.random.default_rng(seed)
    query = Query(delay_ms * 1000, window_us)
    open_windows: dict[tuple[int, int], bool] = {}  # by window and group: whether a row is missing
    for batch, at_us in enumerate(stream(random, query.delay_us, 60, span_us, bursty=bursty)):
        if random.random() < restarts:
            query.restart()
        if random.random() < change:  # counts now, or only for a later batch
            query.publish(COURSES[random.integers(len(COURSES))], batch + int(random.integers(0, 3)))
        plan = query.schedule.at(batch)
        assert plan is not None
        setting = plan.points["rows"]
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
        until_us = query.touched.until_us
        closed = [key for key in open_windows if (key[0] + 1) * window_us <= query.watermark_us]
        for window, group in closed:
            lost = open_windows.pop((window, group))
            whole = window * window_us >= until_us
            assert not (lost and whole), (window * window_us, until_us, group)
            judged["all"] += 1
            judged["whole after a drop"] += whole and until_us > NEVER_US


def test_a_window_that_is_called_whole_lost_no_row() -> None:
    """Among enough of them, so many after a drop that the search can find one."""
    judged.update(dict.fromkeys(judged, 0))
    search()
    assert judged["all"] >= 100_000, judged
    assert judged["whole after a drop"] >= 5_000, judged


def test_while_nothing_is_dropped_all_answers_are_whole() -> None:
    touched = TouchedTimes()
    for batch, newest in enumerate(range(0, 10**6, 10**5)):
        touched.observe(batch, EventTimes(newest, 0, newest - 10))
        assert touched.until_us == NEVER_US


def test_a_report_that_was_lost_does_not_shorten_the_delay() -> None:
    """The watermark was set by rows that nobody told of: it says nothing beside the newest time that is known."""
    touched = TouchedTimes()
    touched.observe(1, EventTimes(1_000, 0))
    touched.open()
    touched.observe(3, EventTimes(9_000, 0, watermark_us=8_000 - 5_000))  # batch 2 had a row of 8,000
    touched.close()
    assert touched.until_us == UNKNOWN_US
    touched.observe(4, EventTimes(9_500, 0, watermark_us=9_000 - 5_000))
    touched.close()
    assert touched.until_us == 9_500 + 5_000 + 1


def test_without_a_watermark_doubt_never_ends() -> None:
    touched = TouchedTimes()
    touched.open()
    touched.observe(0, EventTimes(100, 0))
    touched.observe(1, EventTimes(200, 0))
    touched.close()
    assert touched.until_us == UNKNOWN_US
