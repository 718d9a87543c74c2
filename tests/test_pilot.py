"""The control loop: everything on record, and whatever fails, every row is kept and the query goes on."""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from jettison import pilot as pilot_module
from jettison import plan_file
from jettison.control import Controller, ControlSettings
from jettison.errors import DamagedPlan
from jettison.ledger import Ledger, Totals
from jettison.pilot import BatchReport, Pilot
from jettison.plan import DropPlan
from jettison.policies import UniformDrop
from jettison.policies.window_drop import WindowDrop
from jettison.settings import RandomDrop
from jettison.stats import Budget, EventTimes, PointStats
from jettison.storage import Folder

SETTINGS = ControlSettings(latency_bound_s=3.0)
PATIENCE_S = 10.0


class ScriptedController:
    """Answers with the keep fraction it is told, or raises; what it was asked is kept for the test."""

    def __init__(self, settings):
        self.keep = 1.0
        self.error: Exception | None = None
        self.stepped = []
        self.versions = []

    def initial(self):
        return self._budget("start")

    def step(self, stats):
        self.stepped.append(stats)
        if self.error is not None:
            raise self.error
        return self._budget(f"because of batch {stats.batch_id}")

    def idle(self, now_s):
        if self.error is not None:
            raise self.error
        self.keep = 1.0
        return self._budget("no rows arrive")

    def planned(self, version):
        self.versions.append(version)

    def to_dict(self):
        return {"keep": self.keep}

    @classmethod
    def from_dict(cls, settings, document):
        controller = cls(settings)
        controller.keep = document["keep"]
        return controller

    def _budget(self, cause):
        return Budget(self.keep, self.keep, 3.0, cause)


class FakePublisher:
    """Remembers what was published; fails while `error` is set, or for plans that `refuses` picks."""

    def __init__(self, lease_s=3600.0):
        self.lease_s = lease_s
        self.plans = []
        self.error: Exception | None = None
        self.refuses = lambda plan: False
        self.before_publish = lambda plan: None
        self._changed = threading.Condition()

    def publish(self, plan):
        if self.error is not None:
            raise self.error
        if self.refuses(plan):
            raise ValueError("this plan is refused")
        self.before_publish(plan)
        with self._changed:
            self.plans.append(plan)
            self._changed.notify_all()

    def published(self):
        return self.plans[-1] if self.plans else None

    def wait_for(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.plans) >= count, timeout=PATIENCE_S)


class FilePublisher(FakePublisher):
    """Writes a real plan file, as the backends do."""

    def __init__(self, folder, size=4096):
        super().__init__()
        self.folder, self.size = folder, size

    def publish(self, plan):
        self.folder.replace("plan", plan_file.encode(plan, valid_until_us=10**16, size=self.size))
        super().publish(plan)

    def published(self):
        content = self.folder.read("plan")
        return None if content is None else plan_file.decode(content)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "jettison")


@pytest.fixture
def scripted(monkeypatch):
    monkeypatch.setattr(pilot_module, "Controller", ScriptedController)


@pytest.fixture
def fly(folder):
    """Makes pilots over one folder, as restarts of one query would, and ends them all."""
    pilots = []

    def make(publisher, exact_counts=None, *, points=("rows",), policy=None, start=True, **options):
        made = Pilot(
            points,
            policy or UniformDrop(),
            SETTINGS,
            publisher,
            folder,
            Ledger.open(folder / "ledger"),
            exact_counts,
            **options,
        )
        pilots.append(made)
        if start:
            made.start()
        return made

    yield make
    for made in pilots:
        made.close()


def report(number=0, rows=10_000, version=1, **changes):
    return BatchReport("run", number, 1e9 + number, 0.5, rows, version, **changes)


def counted(number=0, rows=10_000, kept=None, version=1, **changes):
    """A report that brings its exact counts along."""
    kept = rows if kept is None else kept
    return report(number, rows, version, seen={"rows": rows}, kept={"rows": kept}, **changes)


def shed(pilot, keep, number=0):
    """Bring a plan into force that keeps `keep`."""
    pilot.controller.keep = keep
    pilot.batch(counted(number, version=pilot.plan.version))


def records(folder, kind=None):
    return list(Ledger(folder / "ledger").records(kind))


def warnings(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "jettison" and r.levelno >= logging.WARNING]


pytestmark = pytest.mark.usefixtures("scripted")


# The usual course


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


def test_a_policy_is_shown_sampled_rows_before_it_plans_and_exact_counts_with_their_plan(fly):
    class Pupil:
        def __init__(self):
            self.told = []

        def plan(self, stats, budget):
            self.told.append(("plan", stats.batch_id))
            return UniformDrop().plan(stats, budget)

        def learn_rows(self, batch_id, rows):
            self.told.append(("rows", batch_id, rows["rows"].tolist()))

        def learn_pass_rate(self, stats, plan):
            self.told.append(("passed", stats.points["rows"].kept, plan.version))

    policy = Pupil()
    pilot = fly(FakePublisher(), policy=policy)
    pilot.batch(counted(0, kept=7_000, version=1, sampled={"rows": np.array([[1.0, 2.0]])}))
    pilot.batch(counted(1, version=None))  # it found no plan: nothing to compare with
    pilot.close()
    assert policy.told[1:3] == [("rows", 0, [[1.0, 2.0]]), ("plan", 0)]
    assert [one for one in policy.told if one[0] == "passed"] == [("passed", 7_000, 1)]


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


# Counts


def test_missing_counts_are_expected_from_the_plan_that_the_batch_ran_under(fly):
    pilot = fly(FakePublisher(), exact_counts=lambda of: {"rows": (1, 1)})
    shed(pilot, 0.25)  # version 2
    pilot.controller.keep = 0.5
    pilot.batch(report(1, rows=1000, version=2))  # makes version 3, but ran under 2
    expected = pilot.controller.stepped[-1].points["rows"]
    assert (expected.seen, expected.kept, expected.exact) == (1000, 250, False)


@pytest.mark.parametrize("version", [None, 99], ids=["no plan", "unknown plan"])
def test_without_a_known_plan_all_rows_are_expected_to_be_kept(fly, version):
    pilot = fly(FakePublisher())
    shed(pilot, 0.25)
    pilot.batch(report(1, rows=1000, version=version))
    assert pilot.controller.stepped[-1].points["rows"].kept == 1000


def test_expected_counts_are_replaced_by_exact_ones_on_record_and_in_the_totals(fly, folder):
    pilot = fly(FakePublisher(), exact_counts=lambda of: {"rows": (1000 + of.batch_id, 240)})
    shed(pilot, 0.25)
    pilot.batch(report(1, rows=1000, version=2))
    pilot.close()
    (batch,) = [record for record in records(folder, "batch") if record["batch_id"] == 1]
    assert batch["points"] == {"rows": {"seen": 1001, "kept": 240, "dropped": 761, "exact": True}}
    assert (pilot.tally.batches, pilot.tally.seen, pilot.tally.kept) == (2, 11_001, 10_240)
    assert Ledger(folder / "ledger").totals() == Totals(2, 11_001, 10_240)


def test_counts_that_came_with_the_report_are_not_asked_for_again(fly, folder):
    asked = []
    pilot = fly(FakePublisher(), exact_counts=asked.append)
    pilot.batch(counted(0, rows=500, kept=300))
    pilot.close()
    assert asked == []
    assert records(folder, "batch")[0]["points"]["rows"] == {"seen": 500, "kept": 300, "dropped": 200, "exact": True}


def test_a_batch_without_rows_is_exact_without_asking(fly, folder):
    asked = []
    pilot = fly(FakePublisher(), exact_counts=asked.append)
    pilot.batch(report(0, rows=0))
    pilot.close()
    assert asked == []
    assert records(folder, "batch")[0]["points"]["rows"] == {"seen": 0, "kept": 0, "dropped": 0, "exact": True}


def test_counts_of_some_points_leave_the_others_expected(fly, folder):
    pilot = fly(FakePublisher(), exact_counts=lambda of: {"a": (70, 60)}, points=("a", "b"))
    pilot.batch(report(0, rows=100))
    pilot.close()
    points = records(folder, "batch")[0]["points"]
    assert points["a"] == {"seen": 70, "kept": 60, "dropped": 10, "exact": True}
    assert points["b"] == {"seen": 50, "kept": 50, "dropped": 0, "exact": False}


def test_when_counting_fails_the_expected_counts_stand_and_say_so(fly, folder, caplog):
    def fail(of):
        raise ConnectionError("no web interface")

    pilot = fly(FakePublisher(), exact_counts=fail)
    for number in range(2):
        pilot.batch(report(number, rows=1000))
    pilot.close()
    batches = records(folder, "batch")
    assert [batch["points"]["rows"]["exact"] for batch in batches] == [False, False]
    assert [batch["points"]["rows"]["seen"] for batch in batches] == [1000, 1000]
    assert pilot.faults == {"accounting": 2}
    assert len(warnings(caplog)) == 1
    assert ["no web interface" in fault["detail"] for fault in records(folder, "fault")] == [True, True]


def test_the_next_plan_does_not_wait_for_slow_counts(fly, folder):
    counting, go_on = threading.Event(), threading.Event()
    counted_by = []

    def slow(of):
        counted_by.append(threading.current_thread())
        counting.set()
        assert go_on.wait(PATIENCE_S)
        return {"rows": (of.input_rows, of.input_rows)}

    publisher = FakePublisher()
    pilot = fly(publisher, exact_counts=slow)
    pilot.batch(report(0))
    assert counting.wait(PATIENCE_S)
    pilot.controller.keep = 0.5
    pilot.batch(report(1))
    assert publisher.plans[-1].points["rows"].keep_fraction == 0.5
    assert records(folder, "batch") == [], "the count was still under way when the plan was published"
    go_on.set()
    pilot.close()
    assert threading.current_thread() not in counted_by
    assert [batch["batch_id"] for batch in records(folder, "batch")] == [0, 1]


def test_no_row_is_unaccounted_for_whatever_the_counts_come_from(fly, folder):
    def sometimes(of):
        if of.batch_id % 3 == 0:
            raise TimeoutError("too slow")
        return {"rows": (of.input_rows + 3, of.input_rows // 7)}

    pilot = fly(FakePublisher(), exact_counts=sometimes)
    for number in range(12):
        pilot.controller.keep = (0.9, 0.33, 0.01)[number % 3]
        make = counted if number % 4 == 0 else report
        pilot.batch(make(number, rows=997 * number, version=pilot.plan.version))
    pilot.close()
    rows = [batch["points"]["rows"] for batch in records(folder, "batch")]
    assert len(rows) == 12
    assert all(row["seen"] == row["kept"] + row["dropped"] and row["dropped"] >= 0 for row in rows)
    totals = Ledger(folder / "ledger").totals()
    assert (totals.seen, totals.kept) == (pilot.tally.seen, pilot.tally.kept)
    assert totals.seen == totals.kept + totals.dropped


def test_the_protected_share_is_learned_from_exact_counts_and_paid_for_by_other_rows(fly):
    learned = threading.Event()

    def exact(of):
        # A fifth of all rows is protected: at keep fraction 0.5 there remain 0.2 + 0.8 * 0.5.
        return {"rows": (10_000, 6_000)} if of.plan_version == 2 else {"rows": (10_000, 10_000)}

    pilot = fly(FakePublisher(), exact, protected=frozenset({"rows"}))
    take_down = pilot.ledger.batch
    pilot.ledger.batch = lambda stats, **facts: (take_down(stats, **facts), stats.batch_id == 1 and learned.set())
    shed(pilot, 0.5, number=0)
    pilot.batch(report(1, version=2))
    assert learned.wait(PATIENCE_S)
    pilot.controller.keep = 0.4
    pilot.batch(report(2, version=2))
    expected = pilot.controller.stepped[-1].points["rows"]
    assert expected.protected_share == pytest.approx(0.2)
    assert expected.kept == 6_000
    assert pilot.plan.points["rows"].keep_fraction == pytest.approx((0.4 - 0.2) / (1 - 0.2))


def test_latency_is_observed_where_arrivals_are_and_else_inferred_from_the_trigger_before(fly, folder):
    pilot = fly(FakePublisher())
    pilot.batch(counted(0))
    pilot.batch(counted(1))
    pilot.batch(counted(2, rows=0))
    pilot.batch(counted(3, oldest_arrival_s=1e9 + 1.25))
    pilot.close()
    # Batches start a second apart and take half a second.
    assert [batch["latency_s"] for batch in records(folder, "batch")] == [0.5, 1.5, None, 2.25]
    assert pilot.tally.last_latency_s == 2.25


# Faults


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
            if budget.keep_fraction < 0.3:
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
            return replace(made, cause="words " * 1000) if budget.keep_fraction < 1.0 else made

    publisher = FilePublisher(folder, size=1024)
    pilot = fly(publisher, policy=Verbose())
    shed(pilot, 0.25)
    assert publisher.published().keeps_everything
    assert publisher.published().version == pilot.plan.version == 3
    assert pilot.faults == {"controller": 1}
    assert len(folder.read("plan")) == 1024
    assert "must fit its file" in warnings(caplog)[0]


def test_a_first_plan_too_large_for_its_file_does_not_stop_the_query(fly, folder):
    class Verbose(UniformDrop):
        def plan(self, stats, budget):
            return replace(super().plan(stats, budget), cause="words " * 1000)

    publisher = FilePublisher(folder, size=1024)
    pilot = fly(publisher, policy=Verbose())
    assert publisher.published().keeps_everything
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


def test_a_fault_that_cannot_be_put_on_record_is_still_counted(fly, monkeypatch):
    pilot = fly(FakePublisher())
    monkeypatch.setattr(pilot.ledger, "fault", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    pilot.batch(counted(0, version=None))
    assert pilot.faults == {"plan": 1, "ledger": 1}


# Restarts


def test_after_a_restart_plan_and_controller_are_those_of_the_run_before(fly, folder):
    first = fly(FilePublisher(folder))
    shed(first, 0.25)
    first.close()
    second = fly(FilePublisher(folder))
    assert second.plan.points == first.plan.points == {"rows": RandomDrop(0.25, 0.25, 3.0)}
    assert second.plan.version == first.plan.version + 1
    assert second.plan.cause == "restored after a restart: start"
    assert second.controller.keep == 0.25
    assert [record["restored"] for record in records(folder, "start")] == [False, True]
    assert not second.faults
    assert [record["version"] for record in records(folder, "plan")] == [1, 2, 3]


def test_restarts_in_a_row_do_not_pile_up_in_the_cause(fly, folder):
    shed(fly(FilePublisher(folder)), 0.25)
    for _ in range(3):
        last = fly(FilePublisher(folder))
    assert last.plan.cause == "restored after a restart: start"


def test_the_real_controller_comes_back_with_all_it_has_learned(fly, folder, monkeypatch):
    monkeypatch.setattr(pilot_module, "Controller", Controller)
    first = fly(FilePublisher(folder))
    for number in range(6):
        times = {"started_s": 1e9 + 2.0 * number, "duration_s": 1.9}
        first.batch(replace(counted(number, rows=600_000, version=first.plan.version), **times))
    first.close()
    second = fly(FilePublisher(folder), start=False)
    assert not first.plan.keeps_everything, "the load was meant to be too high"
    assert second.plan.points["rows"].keep_fraction == first.plan.points["rows"].keep_fraction
    saved, restored = json.loads(folder.read("controller.json")), json.loads(json.dumps(second.controller.to_dict()))
    assert restored["arrivals"] == saved["arrivals"]
    assert second.controller.model.per_kept_row_s == first.controller.model.per_kept_row_s


def test_a_batch_that_a_restarted_query_repeats_is_recorded_once(fly, folder):
    first = fly(FilePublisher(folder))
    first.batch(counted(0, rows=100))
    first.batch(counted(1, rows=200))
    first.close()
    second = fly(FilePublisher(folder))
    second.batch(counted(1, rows=200))
    second.batch(counted(2, rows=300))
    second.close()
    ledger = Ledger(folder / "ledger")
    assert [batch["batch_id"] for batch in ledger.records("batch")] == [0, 1, 2]
    assert ledger.totals() == Totals(3, 600, 600)
    assert ledger.gaps() == []


def test_a_damaged_plan_on_restart_is_made_again_under_a_higher_version(fly, folder, caplog):
    first = fly(FilePublisher(folder))
    shed(first, 0.25)
    first.close()
    content = bytearray(folder.read("plan"))
    content[40] ^= 1
    folder.replace("plan", bytes(content))
    with pytest.raises(DamagedPlan):
        FilePublisher(folder).published()
    second = fly(FilePublisher(folder))
    assert second.plan.points["rows"].keep_fraction == 0.25
    assert second.plan.version == first.plan.version + 1
    assert second.faults == {"plan": 1}
    assert len(warnings(caplog)) == 1


def test_a_missing_plan_on_restart_is_made_again_under_a_higher_version(fly, folder, tmp_path):
    first = fly(FilePublisher(folder))
    shed(first, 0.25)
    first.close()
    (tmp_path / "jettison" / "plan").unlink()
    second = fly(FilePublisher(folder))
    assert second.plan.points["rows"].keep_fraction == 0.25
    assert second.plan.version == first.plan.version + 1


@pytest.mark.parametrize(
    "state",
    [b"", b"{", b"[]", b"null", b"{}", b'{"keep": 1', b"\xff\xfe", b'{"model": 3}'],
    ids=lambda state: repr(state)[1:],
)
@pytest.mark.parametrize("controller", [ScriptedController, Controller], ids=["scripted", "real"])
def test_a_damaged_controller_state_on_restart_means_a_fresh_start(fly, folder, caplog, monkeypatch, state, controller):
    first = fly(FilePublisher(folder))
    shed(first, 0.25)
    first.close()
    folder.replace("controller.json", state)
    monkeypatch.setattr(pilot_module, "Controller", controller)
    second = fly(FilePublisher(folder))
    assert second.plan.points["rows"].keep_fraction == 1.0
    assert second.plan.version == first.plan.version + 1
    assert second.faults == {"state": 1}
    assert len(warnings(caplog)) == 1
    second.batch(counted(1, version=second.plan.version))
    assert second.faults == {"state": 1}


def test_a_first_start_is_not_called_a_restart(fly, folder):
    publisher = FilePublisher(folder)
    publisher.publish(DropPlan(0, cause="not started"))
    pilot = fly(publisher)
    assert (pilot.plan.version, pilot.plan.cause) == (1, "start")


def test_a_drop_point_that_is_gone_is_not_restored(fly, folder):
    publisher = FilePublisher(folder)
    folder.replace("controller.json", b'{"keep": 0.5}')
    publisher.publish(DropPlan(7, {"rows": RandomDrop(0.5), "gone": RandomDrop(0.1)}, "why"))
    pilot = fly(publisher)
    assert dict(pilot.plan.points) == {"rows": RandomDrop(0.5, 0.5, 3.0)}
    assert pilot.plan.version == 8


def test_a_lost_ledger_does_not_let_versions_go_back(fly, folder):
    publisher = FilePublisher(folder)
    publisher.publish(DropPlan(41, {"rows": RandomDrop(0.5)}, "why"))
    assert fly(publisher).plan.version == 42


# Dry run


def test_in_a_dry_run_the_controller_learns_from_the_rows_really_processed(fly, folder):
    pilot = fly(FakePublisher(), dry_run=True)
    pilot.batch(replace(counted(0, rows=1000), kept={"rows": 100}))
    pilot.close()
    assert pilot.controller.stepped[-1].kept == 1000
    assert Ledger(folder / "ledger").totals().kept == 100


# The end


def test_close_finishes_the_books_and_ends_all_threads(fly, folder):
    pilot = fly(FakePublisher(lease_s=0.03), exact_counts=lambda of: {"rows": (7, 7)})
    threads = [thread for thread in threading.enumerate() if thread in pilot._threads]
    assert sorted(thread.name for thread in threads) == ["jettison-lease", "jettison-ledger"]
    for number in range(20):
        pilot.batch(report(number))
    pilot.close(error="it broke")
    assert not any(thread.is_alive() for thread in threads)
    assert len(records(folder, "batch")) == 20
    last = records(folder)[-1]
    assert (last["record"], last["error"], last["faults"]) == ("stop", "it broke", {})


def test_closing_twice_is_closing_once(fly, folder):
    pilot = fly(FakePublisher())
    pilot.close(error=None)
    pilot.close(error="again")
    assert [record["error"] for record in records(folder, "stop")] == [None]


def test_closing_does_not_wait_for_the_lease(fly):
    pilot = fly(FakePublisher(lease_s=3600.0))
    started = time.monotonic()
    pilot.close()
    assert time.monotonic() - started < PATIENCE_S


def test_a_ledger_that_fails_at_the_end_does_not_keep_the_query_from_ending(fly, monkeypatch):
    pilot = fly(FakePublisher())
    monkeypatch.setattr(pilot.ledger, "stop", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    pilot.close()
    assert pilot.faults == {"ledger": 1}


# Policies whose plans build on each other


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
    assert pilot._expected(report(rows=1000)).seen == 250  # and not all of it, as one drop point would suggest
    pilot.batch(counted(rows=1000, kept=800))
    (weighed,) = pilot.controller.stepped
    assert (weighed.seen, weighed.kept) == (1000, 100)
    pilot.close()
    (batch,) = records(folder, "batch")
    assert batch["points"]["rows"]["kept"] == 800  # the books keep to rows
