"""The usual course: every batch leads to a plan, on record before it is published."""

from __future__ import annotations

import time
from dataclasses import replace

from jettison.policies import UniformDrop
from pilot_parts import PATIENCE_S, FakePublisher, counted, records, shed


def test_the_first_plan_is_in_force_when_start_returns(fly, folder):
    publisher = FakePublisher()
    pilot = fly(publisher)
    assert publisher.plans == [pilot.plan]
    assert (pilot.plan.version, pilot.plan.cause, pilot.plan.keeps_everything) == (1, "start", True)
    start, plan = records(folder)
    assert start["record"] == "start"
    assert (start["latency_bound_s"], start["points"]) == (3.0, ["rows"])
    assert (plan["record"], plan["version"]) == ("plan", 1)


def test_a_plan_is_on_record_before_it_is_published(fly, folder):
    publisher = FakePublisher()
    on_record = []
    publisher.before_publish = lambda plan: on_record.append(
        plan.version in [record["version"] for record in records(folder, "plan")]
    )
    shed(fly(publisher), 0.5)
    assert on_record == [True, True]


def test_a_batch_leads_to_the_next_plan_and_every_plan_carries_its_cause(fly, folder):
    publisher = FakePublisher()
    pilot = fly(publisher)
    shed(pilot, 0.5, number=0)
    shed(pilot, 0.25, number=1)
    assert [plan.version for plan in publisher.plans] == [1, 2, 3]
    assert [plan.points["rows"].keep_fraction for plan in publisher.plans] == [1.0, 0.5, 0.25]
    assert [record["cause"] for record in records(folder, "plan")] == [
        "start",
        "because of batch 0",
        "because of batch 1",
    ]
    assert pilot.controller.versions == [1, 2, 3]


def test_a_budget_that_changes_nothing_makes_no_new_plan(fly):
    publisher = FakePublisher()
    pilot = fly(publisher)
    shed(pilot, 0.5, number=0)
    shed(pilot, 0.5, number=1)
    assert [plan.version for plan in publisher.plans] == [1, 2]
    assert pilot.plan.cause == "because of batch 0"
    assert pilot.cause in ("because of batch 1", "on the clock"), "why it still stands"


def test_a_policy_is_shown_sampled_rows_before_it_plans_and_exact_counts_with_their_plan(fly):
    class Pupil(UniformDrop):
        def __init__(self):
            self.told = []

        def plan(self, stats, budget):
            self.told.append(("plan", stats.batch_id))
            return UniformDrop().plan(stats, budget)

        def learn(self, lesson):
            if lesson.counted is None:
                self.told.append(("rows", lesson.batch_id, lesson.observed.get("rows")))
            else:
                self.told.append(("passed", lesson.counted.points["rows"].kept, lesson.plan and lesson.plan.version))

    policy = Pupil()
    pilot = fly(FakePublisher(), policy=policy)
    pilot.batch(counted(0, kept=7_000, version=1, observed={"rows": "some rows"}))
    pilot.batch(counted(1, version=None))
    pilot.close()
    assert policy.told[1:3] == [("rows", 0, "some rows"), ("plan", 0)]
    assert [one for one in policy.told if one[0] == "passed"] == [("passed", 7_000, 1), ("passed", 10_000, None)]


def test_idle_returns_to_keeping_everything_once(fly):
    publisher = FakePublisher()
    pilot = fly(publisher)
    shed(pilot, 0.5)
    pilot.idle(1e9 + 60)
    pilot.idle(1e9 + 70)
    assert [plan.keeps_everything for plan in publisher.plans] == [True, False, True]
    assert publisher.plans[-1].cause == "no rows arrive"


def test_the_lease_is_renewed_without_any_batch_and_renewals_are_not_on_record(fly, folder):
    publisher = FakePublisher(lease_s=0.03)
    pilot = fly(publisher)
    shed(pilot, 0.5)
    publisher.wait_for(len(publisher.plans) + 3)
    assert publisher.plans[-1] is pilot.plan
    assert [record["version"] for record in records(folder, "plan")] == [1, 2]
    assert not pilot.faults


def test_the_batch_that_runs_is_known_to_run_under_an_older_plan(fly):
    pilot = fly(FakePublisher())
    assert pilot.running_plan == pilot.plan, "nothing was planned since the start"
    pilot.batch_runs = lambda: True
    pilot.controller.keep = 0.25
    pilot.batch(now_ended(0))
    assert not pilot.plan.keeps_everything
    assert pilot.running_plan.keeps_everything, "the next batch began when this one ended, before the plan counts"
    time.sleep(0.3)
    assert 0.2 < pilot.runs_for_s < 30
    pilot.batch(now_ended(1, version=2))
    assert pilot.running_plan == pilot.plan


def test_a_batch_that_has_not_begun_runs_under_the_newest_plan(fly):
    pilot = fly(FakePublisher())
    pilot.batch_runs = lambda: False
    pilot.controller.keep = 0.25
    pilot.batch(now_ended(0))
    deadline = time.monotonic() + PATIENCE_S
    while pilot.running_plan != pilot.plan and time.monotonic() < deadline:
        time.sleep(0.05)
    assert pilot.running_plan == pilot.plan
    assert not pilot.plan.keeps_everything


def now_ended(number, **changes):
    return replace(counted(number, **changes), started_s=time.time() - 0.5)


def test_how_far_the_source_is_ahead_is_on_record_with_each_batch(fly, folder):
    pilot = fly(FakePublisher())
    shed(pilot, 0.5, number=0)
    pilot.controller.behind = 250, 1.5
    pilot.batch(counted(1, waiting_rows=40))
    pilot.close()
    behind = [[one.get(name) for name in ("waiting_rows", "lag_rows", "lag_s")] for one in records(folder, "batch")]
    assert behind == [[None, None, None], [40, 250, 1.5]]
