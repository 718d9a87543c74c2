"""Faults: whatever fails, every row is kept, it is counted and said once, and the query goes on."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

from msgspec.structs import replace as replace_struct

from jettison.core.answer_bounds import AnswerBounds
from jettison.policies import UniformDrop
from jettison.runtime.faults import Faults
from jettison.runtime.ledger import Ledger
from jettison.runtime.patience import Patience
from pilot_parts import PATIENCE_S, FakePublisher, FilePublisher, counted, records, report, shed, warnings


def test_when_the_controller_fails_every_row_is_kept_and_the_next_batch_works_again(fly, folder, caplog):
    publisher = FakePublisher()
    pilot = fly(publisher)
    shed(pilot, 0.25, number=0)
    pilot.controller.error = ZeroDivisionError("no rate")
    pilot.batch(counted(1, version=2))
    assert publisher.plans[-1].keeps_everything
    assert publisher.plans[-1].cause == "controller failed: no rate"
    assert pilot.faults == {"controller": 1}
    shed(pilot, 0.5, number=2)
    assert publisher.plans[-1].points["rows"].keep_fraction == 0.5
    assert [plan.version for plan in publisher.plans] == [1, 2, 3, 4]
    pilot.close()
    assert [batch["batch_id"] for batch in records(folder, "batch")] == [0, 1, 2], "the failed batch is on record too"
    assert records(folder, "stop")[0]["faults"] == {"controller": 1}


def test_a_fault_that_repeats_is_counted_and_recorded_each_time_but_warned_of_once(fly, folder, caplog):
    pilot = fly(FakePublisher())
    for number in range(3):
        pilot.controller.error = ZeroDivisionError("no rate")
        pilot.batch(counted(number))
    assert pilot.faults == {"controller": 3}
    assert len(warnings(caplog)) == 1
    assert "no rate" in warnings(caplog)[0]
    assert [fault["kind"] for fault in records(folder, "fault")] == ["controller"] * 3


def test_whatever_is_found_of_a_column_is_told_once_and_so_is_what_is_found_later(fly, folder, caplog):
    pilot = fly(FakePublisher())
    behind, none = "the arrival column is {} s behind the clock", "the arrival column cannot be one of arrivals"
    for number, said in enumerate([behind.format("3.1"), behind.format("3.2"), none, "", none]):
        pilot.controller.said_of_arrivals = said
        pilot.batch(counted(number))
    assert [fault["detail"] for fault in records(folder, "fault")] == [behind.format("3.1"), none]
    assert warnings(caplog) == [f"jettison: {behind.format('3.1')}", f"jettison: {none}"]
    assert pilot.faults == {"arrival": 2}


def test_the_first_fault_of_a_kind_is_said_though_another_is_counted_at_the_same_time(folder, caplog):
    class Between:
        """A lock that lets another thread in as soon as it is free."""

        others = 1

        def __enter__(self):
            pass

        def __exit__(self, *_):
            if self.others:
                self.others -= 1
                faults("publish", "disk full")

    faults = Faults(Ledger.open(folder / "ledger"), Between())
    faults("publish", "disk full")
    assert faults.counts == {"publish": 2}
    assert len(warnings(caplog)) == 1


def test_a_ledger_that_cannot_record_its_own_fault_counts_it_once(folder, caplog, monkeypatch):
    ledger = Ledger.open(folder / "ledger")
    monkeypatch.setattr(ledger, "fault", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    faults = Faults(ledger, threading.RLock())
    faults("ledger", "disk full")
    assert faults.counts == {"ledger": 1}
    assert len(warnings(caplog)) == 1


def test_a_controller_that_fails_when_idle_keeps_everything(fly):
    publisher = FakePublisher()
    pilot = fly(publisher)
    shed(pilot, 0.25)
    pilot.controller.error = RuntimeError("lost")
    pilot.idle(1e9 + 60)
    assert publisher.plans[-1].keeps_everything
    assert pilot.faults == {"controller": 1}


def test_a_policy_that_fails_keeps_everything(fly):
    class Failing(UniformDrop):
        def plan(self, stats, budget):
            if budget.share < 0.3:
                raise LookupError("never heard of it")
            return super().plan(stats, budget)

    publisher = FakePublisher()
    pilot = fly(publisher, policy=Failing())
    shed(pilot, 0.5, number=0)
    shed(pilot, 0.25, number=1)
    assert publisher.plans[-1].keeps_everything
    assert pilot.faults == {"controller": 1}


def test_a_batch_that_found_no_valid_plan_is_a_fault_and_gets_the_plan_published_again(fly, caplog):
    publisher = FakePublisher()
    pilot = fly(publisher)
    shed(pilot, 0.5)
    before = len(publisher.plans)
    pilot.batch(counted(1, version=None))
    pilot.batch(counted(2, version=None))
    assert publisher.plans[before:] == [pilot.plan, pilot.plan]
    assert pilot.faults == {"plan": 2}
    assert len(warnings(caplog)) == 1


def test_a_batch_without_rows_needs_no_plan(fly):
    publisher = FakePublisher()
    pilot = fly(publisher)
    pilot.batch(report(0, rows=0, version=None))
    assert not pilot.faults
    assert len(publisher.plans) == 1


def test_a_plan_that_cannot_be_published_is_replaced_by_one_that_keeps_everything(fly, folder):
    publisher = FakePublisher()
    pilot = fly(publisher)
    publisher.refuses = lambda plan: not plan.keeps_everything
    shed(pilot, 0.25)
    assert [plan.keeps_everything for plan in publisher.plans] == [True, True]
    assert pilot.plan is publisher.plans[-1]
    assert pilot.faults == {"controller": 1}
    versions = [record["version"] for record in records(folder, "plan")]
    assert versions == [1, 2, 3], "the refused plan is on record, under a version of its own"


def test_a_plan_too_large_for_its_file_is_replaced_by_one_that_keeps_everything(fly, folder, caplog):
    class Verbose(UniformDrop):
        def plan(self, stats, budget):
            made = super().plan(stats, budget)
            return replace(made, cause="words " * 1000) if budget.share < 1.0 else made

    publisher = FilePublisher(folder, size=1024)
    pilot = fly(publisher, policy=Verbose())
    shed(pilot, 0.25)
    assert publisher.published().newest.keeps_everything
    assert publisher.published().newest.version == pilot.plan.version == 3
    assert pilot.faults == {"controller": 1}
    assert "must fit its file" in warnings(caplog)[0]


def test_a_first_plan_too_large_for_its_file_does_not_stop_the_query(fly, folder):
    class Verbose(UniformDrop):
        def plan(self, stats, budget):
            return replace(super().plan(stats, budget), cause="words " * 1000)

    publisher = FilePublisher(folder, size=1024)
    pilot = fly(publisher, policy=Verbose())
    assert publisher.published().newest.keeps_everything
    assert pilot.faults == {"controller": 1}


def test_while_nothing_can_be_published_the_lease_runs_out_and_afterwards_everything_is_kept(fly, caplog):
    publisher = FakePublisher(lease_s=0.03)
    pilot = fly(publisher)
    shed(pilot, 0.25)
    publisher.error = OSError("disk gone")
    shed(pilot, 0.5, number=1)
    before = len(publisher.plans)
    assert pilot.faults["publish"] >= 1
    publisher.error = None
    publisher.wait_for(before + 2)  # by the thread that renews
    assert all(plan.keeps_everything for plan in publisher.plans[before:])
    assert sum("lease will run out" in warning for warning in warnings(caplog)) == 1
    shed(pilot, 0.5, number=2)
    publisher.wait_for(before + 3)
    assert pilot.plan.points["rows"].keep_fraction == 0.5, "it works again"


def test_a_lease_that_ran_out_is_on_file_when_the_plan_is_published_again(fly):
    """Batches that found it run out kept everything. Repeated, they are to do so again."""
    publisher = FakePublisher(lease_s=3600.0)
    pilot = fly(publisher)
    shed(pilot, 0.25)
    ended_us = publisher.valid_until_us
    pilot._board._clock = lambda: time.time() + 7200.0
    pilot.batch(counted(1, version=None))
    published = publisher.schedules[-1]
    assert [entry.plan.version for entry in published.entries] == [0, 1, 2, 0, 2]
    assert (published.at(ended_us - 1).version, published.at(ended_us).version) == (2, 0)


def test_a_full_file_does_not_keep_a_plan_that_keeps_everything_from_being_published(fly):
    publisher = FakePublisher()
    pilot = fly(publisher)
    shed(pilot, 0.25)
    publisher.fits = lambda schedule: len(schedule.entries) < 2
    shed(pilot, 0.5, number=1)
    assert publisher.plans[-1].points["rows"].keep_fraction == 0.25, "there was no room"
    shed(pilot, 1.0, number=2)
    assert publisher.plans[-1].keeps_everything


def test_a_plan_that_keeps_everything_finds_room_however_long_the_error_is(fly, folder):
    publisher = FilePublisher(folder)
    pilot = fly(publisher)
    shed(pilot, 0.25)
    pilot.controller.error = RuntimeError("words " * 10_000)
    pilot.batch(counted(1, version=2))
    assert publisher.published().newest.keeps_everything
    assert pilot.faults == {"controller": 1}


def test_a_plan_that_cannot_be_put_on_record_is_not_used(fly, monkeypatch):
    publisher = FakePublisher(lease_s=0.03)
    pilot = fly(publisher)
    shed(pilot, 0.5)
    monkeypatch.setattr(pilot.ledger, "plan", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    shed(pilot, 0.25, number=1)
    before = len(publisher.plans)
    publisher.wait_for(before + 2)
    assert all(plan.points["rows"].keep_fraction != 0.25 for plan in publisher.plans if plan.points)
    assert all(plan.keeps_everything for plan in publisher.plans[before:])


def test_a_plan_that_drops_is_not_renewed_once_nothing_is_heard_of_the_query(fly, monkeypatch):
    publisher = FakePublisher(lease_s=0.03)
    pilot = fly(publisher)
    shed(pilot, 0.25)
    publisher.wait_for(len(publisher.plans) + 1)  # renewed while reports come
    monkeypatch.setattr("jettison.runtime.patience.monotonic", lambda: time.monotonic() + 3600.0)
    deadline = time.monotonic() + 120.0
    while not pilot.faults["silence"] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert pilot.faults["silence"] == 1
    before = len(publisher.plans)
    time.sleep(0.1)  # several renewals' worth
    assert len(publisher.plans) == before
    shed(pilot, 0.5, number=1)
    assert publisher.plans[-1].points["rows"].keep_fraction == 0.5, "a report brings it back"


def test_each_silence_is_complained_of_once(monkeypatch):
    patience = Patience(lease_s=1.0)
    now_s = time.monotonic()
    monkeypatch.setattr("jettison.runtime.patience.monotonic", lambda: now_s + 11.0)
    assert [patience.ran_out() for _ in range(3)] == [True, False, False]
    patience.heard()
    assert not patience.ran_out()
    monkeypatch.setattr("jettison.runtime.patience.monotonic", lambda: now_s + 30.0)
    assert [patience.ran_out() for _ in range(2)] == [True, False]


def test_a_failing_renewal_is_a_fault_and_leaves_plan_and_controller_alone(fly):
    publisher = FakePublisher(lease_s=0.03)
    pilot = fly(publisher)
    shed(pilot, 0.25)
    controller = pilot.controller
    failed = threading.Event()
    publisher.refuses = lambda plan: failed.set() or True
    assert failed.wait(10.0)
    publisher.refuses = lambda plan: False
    publisher.wait_for(len(publisher.plans) + 2)
    assert publisher.plans[-1].points["rows"].keep_fraction == 0.25
    assert pilot.controller is controller
    assert set(pilot.faults) == {"publish"}


def test_a_ledger_that_fails_is_a_fault_and_the_loop_goes_on(fly, folder, caplog, monkeypatch):
    publisher = FakePublisher()
    pilot = fly(publisher)
    whole = pilot.ledger.batch

    def fail_once(stats, **facts):
        if stats.batch_id == 0:
            raise OSError("disk full")
        return whole(stats, **facts)

    monkeypatch.setattr(pilot.ledger, "batch", fail_once)
    shed(pilot, 0.5, number=0)
    shed(pilot, 0.25, number=1)
    pilot.close()
    assert [batch["batch_id"] for batch in records(folder, "batch")] == [1]
    assert pilot.faults == {"ledger": 1}
    assert publisher.plans[-1].points["rows"].keep_fraction == 0.25


def test_answers_that_cannot_be_put_on_record_cost_no_batch_its_record(fly, folder):
    pilot = fly(FakePublisher())
    odd = AnswerBounds(answers=1, bounded=1, few_rows=0, median=float("nan"), p95=0.1)
    pilot.batch(counted(0, answers={"fare": odd}))
    pilot.batch(counted(1, answers={"fare": replace_struct(odd, median=0.05)}))
    pilot.close()
    assert pilot.faults == {"answers": 1}
    assert ["answers" in batch for batch in records(folder, "batch")] == [False, True]


def test_a_fault_that_cannot_be_put_on_record_is_still_counted(fly, monkeypatch):
    pilot = fly(FakePublisher())
    monkeypatch.setattr(pilot.ledger, "fault", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    pilot.batch(counted(0, version=None))
    assert pilot.faults == {"plan": 1, "ledger": 1}


class Forgetful(UniformDrop):
    """Fails at learning, and nowhere else."""

    def learn(self, lesson):
        raise KeyError(f"batch {lesson.batch_id}")


def test_a_policy_that_fails_to_learn_costs_no_batch_its_record(fly, folder):
    pilot = fly(FakePublisher(), policy=Forgetful())
    pilot.batch(counted(0))
    pilot.batch(counted(1))
    pilot.close()
    assert [record["batch_id"] for record in records(folder, "batch")] == [0, 1]
    assert pilot.faults == {"policy": 4}


def test_while_nothing_can_be_put_on_record_nothing_is_shed_and_that_is_said(fly, folder):
    pilot = fly(FakePublisher())
    shed(pilot, 1.0, number=0)
    assert until(lambda: records(folder, "batch"))
    assert not pilot.why_not_shedding
    ledger = Path(folder.located[1]) / "ledger"
    shutil.move(ledger, ledger.with_name("elsewhere"))
    ledger.write_text("no folder")
    shed(pilot, 1.0, number=1)
    assert until(lambda: pilot.why_not_shedding)
    assert "Not a directory" in pilot.why_not_shedding
    ledger.unlink()
    shed(pilot, 1.0, number=2)
    assert until(lambda: not pilot.why_not_shedding)
    assert pilot.faults["ledger"] >= 1


def test_what_fails_stands_until_it_works_again(fly):
    publisher = FakePublisher()
    pilot = fly(publisher)
    shed(pilot, 0.5, number=0)
    pilot.batch(counted(1, version=None))
    assert pilot.why_not_shedding == "batch 1 found no valid plan and kept every row"
    pilot.batch(counted(2, version=2))
    assert not pilot.why_not_shedding
    pilot.ledger.batch = lambda *_, **__: (_ for _ in ()).throw(OSError("disk full"))
    pilot.batch(counted(3, version=2))
    assert until(lambda: pilot.faults["ledger"])
    assert not pilot.why_not_shedding, "the plan that drops goes on"
    publisher.error = OSError("disk gone")
    shed(pilot, 0.25, number=4)
    assert pilot.why_not_shedding == "OSError: disk gone; the plan's lease will run out"


def test_a_query_without_its_guard_is_not_said_to_shed(fly):
    pilot = fly(FakePublisher())
    shed(pilot, 0.5, number=0)
    pilot.facts.unguarded()
    assert "does not read this shedder's plan" in pilot.why_not_shedding


def until(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not (found := holds()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
