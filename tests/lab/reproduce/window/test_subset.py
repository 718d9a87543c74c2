"""The policy of the random cases: it decides ahead of the first row, and goes on from there."""

from __future__ import annotations

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, EventTimes, PointStats, Stats
from jettison.lab.reproduce.window.cases import MS, START_MS
from jettison.lab.reproduce.window.subset import ChangingBudget
from jettison.policies.window.window_marks import WindowMarks

STEP_US = 30_000_000
POLICY = ChangingBudget(
    time="at", window="1 second", max_gap=4, keep=0.4, begins_us=START_MS * MS, step_us=STEP_US, budget_seed=1
)


def planned(previous: DropPlan, batch: int, times: EventTimes | None) -> tuple[DropPlan, dict[int, str]]:
    stats = Stats(batch, 0.0, 1.0, {"rows": PointStats(1, 1)}, event_times=times)
    plan = POLICY.continued(previous, stats, Budget(1.0, 1.0, 1.0, "replaced"))
    setting = plan.points["rows"]
    assert isinstance(setting, WindowMarks)
    return plan, dict(enumerate(setting.marks[0], start=setting.first[0])) if setting.first else {}


def test_windows_are_decided_before_the_first_row_and_later_plans_add_to_them() -> None:
    start_s = START_MS // 1000
    plan, before = planned(DropPlan(0), -1, None)
    dropped = [window for window, mark in before.items() if mark == "d"]
    assert start_s <= dropped[0]
    assert start_s + 50 < max(before) < start_s + 70, "two batches, and no more"
    _, after = planned(plan, 0, EventTimes(START_MS * MS + STEP_US, STEP_US))  # Spark has no watermark yet
    assert {window: after[window] for window in before} == before
    assert max(after) > max(before)


def test_reports_with_a_watermark_are_taken_as_they_are() -> None:
    plan, before = planned(DropPlan(0), -1, None)
    watermark = START_MS * MS + 2 * STEP_US
    _, after = planned(plan, 2, EventTimes(watermark + STEP_US, STEP_US, watermark))
    assert min(before) < min(after), "windows long before the watermark are forgotten"
