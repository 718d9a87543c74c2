"""Policies whose plans build on each other, and those that learn from batches."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from jettison.core.plan import DropPlan
from jettison.core.stats import EventTimes, PointStats
from jettison.policies import UniformDrop
from jettison.policies.window.window_drop import WindowDrop
from pilot_parts import FakePublisher, FilePublisher, counted, records, report

WINDOWS = WindowDrop(time="at", window=10e-6, max_gap=4)


def at(number, newest, version, watermark_lag=30):
    times = EventTimes(newest, 10, newest - watermark_lag)
    return replace(counted(number, version=version), event_times=times, duration_s=0.0)


def marked(plan):
    """Mark by window, of the only query."""
    setting = plan.points["rows"]
    return dict(enumerate(setting.marks[0], start=setting.first[0])) if setting.first else {}


def shed_windows(pilot, batches=4, first=1000):
    pilot.controller.keep = 0.3
    for number in range(batches):
        pilot.batch(at(number, first + 10 * number, pilot.plan.version))


def test_decisions_are_carried_from_plan_to_plan(fly):
    publisher = FakePublisher()
    pilot = fly(publisher, policy=WINDOWS)
    shed_windows(pilot, batches=12)
    so_far = {}
    for plan in publisher.plans:
        for window, mark in marked(plan).items():
            assert so_far.setdefault(window, mark) == mark
    assert "d" in so_far.values()


def test_a_controller_that_fails_leaves_decided_windows_as_they_are_and_drops_no_further_one(fly):
    publisher = FakePublisher()
    pilot = fly(publisher, policy=WINDOWS)
    shed_windows(pilot)
    before = marked(pilot.plan)
    pilot.controller.error = ZeroDivisionError("no rate")
    pilot.batch(at(9, 1100, pilot.plan.version))
    assert publisher.plans[-1].cause == "controller failed: no rate"
    assert marked(publisher.plans[-1]) == before


@pytest.mark.parametrize("lost", ["nothing", "plan", "plan and state", "ledger"])
def test_decisions_survive_a_restart_whatever_file_is_lost(fly, folder, tmp_path, lost):
    first = fly(FilePublisher(folder), policy=WINDOWS)
    shed_windows(first)
    before = marked(first.plan)
    first.close()
    if "plan" in lost:
        (tmp_path / "jettison" / "plan").unlink()
    if "state" in lost:
        (tmp_path / "jettison" / "controller.json").unlink()
    if lost == "ledger":
        for file in (tmp_path / "jettison" / "ledger").iterdir():
            file.unlink()
    second = fly(FilePublisher(folder), policy=WINDOWS)
    assert marked(second.plan) == before
    assert "d" in before.values()


def test_a_decision_on_record_stands_even_if_it_could_not_be_published(fly, folder):
    publisher = FakePublisher()
    pilot = fly(publisher, policy=WINDOWS)
    publisher.refuses = lambda plan: "d" in marked(plan).values()
    shed_windows(pilot, batches=1)
    on_record = [DropPlan.from_json(json.dumps(record)) for record in records(folder, "plan")]
    decided = {window: mark for plan in on_record for window, mark in marked(plan).items()}
    assert "d" in decided.values()
    publisher.refuses = lambda plan: False
    shed_windows(pilot, batches=4, first=1010)
    assert "d" in marked(publisher.plans[-1]).values()
    for window, mark in marked(publisher.plans[-1]).items():
        assert decided.get(window, mark) == mark


def test_the_newest_row_is_that_of_all_batches(fly):
    pilot = fly(FakePublisher(), policy=WINDOWS)
    pilot.batch(at(0, 1000, 1))
    pilot.batch(at(1, 400, 1))
    assert pilot.controller.stepped[-1].event_times.newest_us == 1000


def test_kept_rows_are_expected_from_the_times_that_they_carry(fly):
    pilot = fly(FakePublisher(), policy=WINDOWS)
    shed_windows(pilot)
    marks = pilot.plan.points["rows"]
    dropped = next(window for window, mark in marked(pilot.plan).items() if mark == "d")
    times = EventTimes(10 * dropped + 9, 9, 900)
    pilot.batch(report(9, rows=1000, version=pilot.plan.version, event_times=times))
    assert marks.dropped(0, dropped)
    assert pilot.controller.stepped[-1].points["rows"].kept == 0
    times = EventTimes(10 * dropped + 9, 20, 900)
    pilot.batch(report(10, rows=1000, version=pilot.plan.version, event_times=times))
    assert 300 < pilot.controller.stepped[-1].points["rows"].kept < 700


def test_a_policy_that_weighs_load_tells_the_controller_what_a_batch_was_worth(fly, folder):
    class Weighs(UniformDrop):
        def workload(self, stats, plan):
            assert plan is not None
            return replace(stats, points={"work": PointStats(stats.seen, stats.seen // 10)})

        def input_share(self, point):
            return 0.25

    pilot = fly(FakePublisher(), policy=Weighs())
    expected = pilot._statistics.of(report(rows=1000), None)
    assert expected.seen == 250  # and not all of it, as one drop point would suggest
    pilot.batch(counted(rows=1000, kept=800))
    (weighed,) = pilot.controller.stepped
    assert (weighed.seen, weighed.kept) == (1000, 100)
    pilot.close()
    (batch,) = records(folder, "batch")
    assert batch["points"]["rows"]["kept"] == 800  # the books keep to rows
