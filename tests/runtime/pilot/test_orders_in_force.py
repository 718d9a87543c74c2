"""Orders that a person gives while the query runs: followed by the next plan, on record, and across restarts."""

from __future__ import annotations

import time

import pytest

from jettison.control.budget_figures import BudgetFigures
from jettison.core.stats import EventTimes
from jettison.policies import UniformDrop
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.policies.window.window_drop import WindowDrop
from jettison.runtime import orders
from jettison.runtime.orders import LatencyOrder, Order, Orders, Terms
from pilot_parts import SETTINGS, FakePublisher, FilePublisher, counted, records, shed, warnings

BY = {"author": "ann", "reason": "audit", "at_s": 0.0}
KEEP_ALL = Orders(keep_everything=Order(**BY))
TRY_OUT = Orders(dry_run=Order(**BY))


def bound(seconds):
    return Orders(latency=LatencyOrder(**BY, seconds=seconds))


def until(holds):
    deadline_s = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def give(folder, pilot, given):
    given = orders.write(folder, given)
    until(lambda: pilot.orders == given)
    with pilot._lock:  # a tick follows them and plans under one lock
        return given


@pytest.mark.parametrize(
    ("given", "order"), [(KEEP_ALL, "keep everything (set by ann: audit)"), (TRY_OUT, "dry run (set by ann: audit)")]
)
def test_the_figures_of_a_plan_name_the_order_that_overrides_them(fly, folder, given, order):
    pilot = fly(FakePublisher())
    pilot.controller.decision = BudgetFigures(0.5, 0.05, 3.0)
    shed(pilot, 0.5)
    give(folder, pilot, given)
    assert pilot.plan.keeps_everything
    dropped, kept = (one["decision"] for one in records(folder, "plan")[-2:])
    assert "overridden_by" not in dropped
    assert (kept["share"], kept["overridden_by"]) == (0.5, order)


class Stubborn(UniformDrop):
    """Drops half whatever the budget."""

    def plan(self, stats, budget):
        return super().plan(stats, budget.__class__(0.5, 0.5, 3.0, budget.cause))


@pytest.mark.parametrize("policy", [UniformDrop(), Stubborn()])
def test_told_to_keep_everything_the_next_plan_does_until_that_is_cleared(fly, folder, policy):
    publisher = FakePublisher()
    pilot = fly(publisher, policy=policy)
    shed(pilot, 0.5)
    assert not pilot.plan.keeps_everything
    give(folder, pilot, KEEP_ALL)
    assert pilot.plan.keeps_everything
    assert pilot.plan.cause == "keep everything (set by ann: audit)"
    assert pilot.controller.dry_run, "it knows that what it decides is not done"
    for number in range(1, 4):
        pilot.batch(counted(number, version=pilot.plan.version))
    assert pilot.plan.keeps_everything
    give(folder, pilot, Orders())
    until(lambda: not pilot.plan.keeps_everything)
    assert pilot.plan.points["rows"].keep_fraction == 0.5
    assert not pilot.controller.dry_run
    told = [(record["text"], record["latency_bound_s"]) for record in records(folder, "order")]
    said = "keep everything (set by ann: audit)"
    assert told == [(said, 3.0), (f"no longer: {said}", 3.0)]


def test_a_dry_run_says_what_would_be(fly, folder):
    pilot = fly(FakePublisher())
    shed(pilot, 0.5)
    give(folder, pilot, TRY_OUT)
    pilot.batch(counted(1, version=pilot.plan.version))
    assert pilot.plan.keeps_everything
    assert pilot.cause.startswith("dry run (set by ann: audit): without it ")
    assert records(folder, "order")[-1]["orders"]["dry_run"] == {"author": "ann", "reason": "audit", "at_s": 0.0}


def test_another_bound_reaches_the_controller_and_ends_with_its_order(fly, folder):
    pilot = fly(FakePublisher())
    give(folder, pilot, bound(7.0))
    assert pilot.controller.settings.latency_bound_s == pilot.latency_bound_s == 7.0
    pilot.controller.error = ZeroDivisionError("no rate")
    pilot.batch(counted())
    assert pilot.latency_bound_s == 7.0, "a controller that fails does not undo an order"
    give(folder, pilot, Orders())
    assert pilot.controller.settings == SETTINGS
    assert [record["latency_bound_s"] for record in records(folder, "order")] == [7.0, 3.0]


def test_orders_that_cannot_be_followed_change_nothing_and_whoever_gave_them_can_read_why(fly, folder, caplog):
    pilot = fly(FakePublisher(), terms=Terms(SETTINGS, least_bound_s=1.0))
    followed = give(folder, pilot, bound(7.0))
    refused = orders.write(folder, bound(0.5))
    until(lambda: records(folder, "order")[-1].get("refused") == refused.mark)
    assert pilot.orders == followed
    assert pilot.latency_bound_s == 7.0
    last = records(folder, "order")[-1]
    assert last["text"].startswith("refused: a latency bound above 1 s, got 0.5 s.")
    assert (last["latency_bound_s"], last["orders"]["mark"]) == (7.0, followed.mark), "what stands"
    assert not records(folder, "fault")
    assert any("an order is refused: a latency bound" in line for line in warnings(caplog))


def test_what_stood_stands_after_a_restart_and_that_is_said(fly, folder, caplog):
    first = fly(FilePublisher(folder))
    shed(first, 0.5)
    give(folder, first, Orders(latency=bound(7.0).latency, keep_everything=KEEP_ALL.keep_everything))
    first.close()
    second = fly(FilePublisher(folder))
    assert second.plan.keeps_everything
    assert second.latency_bound_s == 7.0
    (still,) = [line for line in warnings(caplog) if "still in force" in line]
    assert "a latency bound of 7 s (set by ann: audit)" in still
    assert "`jettison set CHECKPOINT --clear all` ends it" in still
    assert records(folder, "start")[-1]["latency_bound_s"] == 7.0
    assert records(folder, "order")[-1]["text"].startswith("still in force: ")


@pytest.mark.parametrize("content", [b"rubbish", None])
def test_after_damage_the_last_orders_on_record_stand_but_a_document_that_was_removed_has_none(fly, folder, content):
    first = fly(FilePublisher(folder))
    give(folder, first, KEEP_ALL)
    first.close()
    folder.delete(orders.FILE)
    if content is not None:
        folder.replace(orders.FILE, content)
    second = fly(FilePublisher(folder))
    assert (second.orders.keep_everything is None) == (content is None)
    assert second.faults["order"] == (content is not None)


def test_refused_on_start_the_last_orders_that_were_followed_stand(fly, folder):
    first = fly(FilePublisher(folder))
    give(folder, first, bound(7.0))
    first.close()
    orders.write(folder, bound(0.5))
    second = fly(FilePublisher(folder), terms=Terms(SETTINGS, least_bound_s=1.0))
    assert second.latency_bound_s == 7.0
    assert second.faults["order"] == 1


def test_windows_that_were_decided_stay_so_and_no_further_one_is_dropped(fly, folder):
    pilot = fly(FakePublisher(), policy=WindowDrop(time="at", window=10e-6, max_gap=4))

    def batch(number):
        times = EventTimes(1000 + 10 * number, 10, 970 + 10 * number)
        pilot.batch(counted(number, version=pilot.plan.version, event_times=times))

    pilot.controller.keep = 0.3
    for number in range(6):
        batch(number)
    before = pilot.plan.points["rows"]
    give(folder, pilot, KEEP_ALL)
    for number in range(6, 30):
        batch(number)
    after = pilot.plan.points["rows"]

    def dropped(setting):
        return {setting.first[0] + place for place, mark in enumerate(setting.marks[0]) if mark == "d"}

    assert dropped(before)
    assert dropped(after) <= dropped(before)


def test_a_plan_that_was_not_executed_is_not_remembered_as_one(fly, folder, monkeypatch):
    """Once orders are cleared, the controller must know that the batch that runs kept everything."""
    from jettison.control.controller import Controller
    from jettison.core.stats import Budget

    controller = Controller(SETTINGS)
    controller.budget = Budget(0.4, 0.1, 3.0, "twice too many rows")
    controller.dry_run = True
    controller.planned(1, 10.0)
    controller.dry_run = False
    assert controller._in_force(11.0).share == 1.0


def test_a_plan_in_force_is_the_ground_that_a_new_one_stands_on(fly, folder):
    """Nothing is taken back: the plan before the order stays on file for batches that have begun."""
    publisher = FakePublisher()
    pilot = fly(publisher)
    shed(pilot, 0.5)
    give(folder, pilot, KEEP_ALL)
    entries = publisher.schedules[-1].entries
    assert isinstance(entries[-2].plan.points["rows"], RandomDrop)
    assert entries[-2].plan.points["rows"].keep_fraction == 0.5
    assert entries[-2].from_us < entries[-1].from_us
