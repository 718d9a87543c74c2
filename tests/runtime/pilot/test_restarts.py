"""Restarts: plan, controller and books go on where they were."""

from __future__ import annotations

import json
import time
import zlib
from dataclasses import replace

import pytest

from jettison.control.controller import Controller
from jettison.core.plan import DropPlan
from jettison.errors import DamagedPlan
from jettison.policies import UniformDrop
from jettison.policies.base import STATE_BYTES
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime.ledger import Ledger, Totals
from jettison.runtime.schedule import EVERYWHERE, NOWHERE, Schedule
from pilot_parts import FilePublisher, ScriptedController, counted, fly_by, records, shed, warnings


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


def test_the_first_batch_after_a_restart_may_have_the_plan_of_its_first_attempt(fly, folder):
    first = fly(FilePublisher(folder))
    shed(first, 0.25)
    first.close()
    second = fly(FilePublisher(folder))
    assert second.running_plan is None
    second.batch(counted(1, version=1))
    assert second.running_plan is not None


def test_restarts_in_a_row_do_not_pile_up_in_the_cause(fly, folder):
    shed(fly(FilePublisher(folder)), 0.25)
    for _ in range(3):
        last = fly(FilePublisher(folder))
    assert last.plan.cause == "restored after a restart: start"


def test_the_real_controller_comes_back_with_all_it_has_learned(fly, folder, monkeypatch):
    fly_by(monkeypatch, Controller)
    first = fly(FilePublisher(folder))
    durations_s = [1.0, 3.0, 9.0, 27.0]  # three seconds of work arrive a second
    started_s = time.time() - sum(durations_s)  # the controller plans on by the clock
    for number, duration_s in enumerate(durations_s):
        rows = round(200_000 * duration_s)
        times = {"started_s": started_s, "duration_s": duration_s}
        first.batch(replace(counted(number, rows=rows, version=first.plan.version), **times))
        started_s += duration_s
    first.close()
    second = fly(FilePublisher(folder), start=False)
    assert not first.plan.keeps_everything, "the load was meant to be too high"
    assert second.plan.points["rows"].keep_fraction == first.plan.points["rows"].keep_fraction
    saved, restored = json.loads(folder.read("controller.json")), json.loads(json.dumps(second.controller.to_dict()))
    assert restored["arrivals"]["rows_per_s"] == saved["arrivals"]["rows_per_s"]
    assert second.controller.model.costs.per_kept_row_s == first.controller.model.costs.per_kept_row_s


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
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"keep": 1',
        b"\xff\xfe",
        b'{"model": 3}',
        b'{"keep": NaN}',
        b'{"keep": 1e999}',
        b'{"keep": "0.5"}',
        b'{"keep": -1}',
        b'{"keep": [[]]}',
        b"[" * 100_000,
    ],
    ids=lambda state: repr(state)[1:30],
)
@pytest.mark.parametrize("controller", [ScriptedController, Controller], ids=["scripted", "real"])
def test_a_damaged_controller_state_on_restart_means_a_fresh_start(fly, folder, caplog, monkeypatch, state, controller):
    first = fly(FilePublisher(folder))
    shed(first, 0.25)
    first.close()
    folder.replace("controller.json", state)
    fly_by(monkeypatch, controller)
    second = fly(FilePublisher(folder))
    assert second.plan.points["rows"].keep_fraction == 1.0
    assert second.plan.version == first.plan.version + 1
    assert second.faults == {"state": 1}
    assert len(warnings(caplog)) == 1
    second.batch(counted(1, version=second.plan.version))
    assert second.faults == {"state": 1}


@pytest.mark.parametrize("state", [None, "offsets", "commits"])
def test_without_files_of_ours_beside_sparks_own_state_all_answers_are_in_doubt(fly, folder, tmp_path, state):
    if state is not None:
        (tmp_path / state).mkdir()
        (tmp_path / state / "0").write_bytes(b"")
    pilot = fly(FilePublisher(folder), start=False)
    assert pilot.doubts == (NOWHERE if state is None else EVERYWHERE)


def test_a_first_start_is_not_called_a_restart(fly, folder):
    publisher = FilePublisher(folder)
    publisher.publish(Schedule.of(DropPlan(0, cause="not started")))
    pilot = fly(publisher)
    assert (pilot.plan.version, pilot.plan.cause) == (1, "start")


def test_a_drop_point_that_is_gone_is_not_restored(fly, folder):
    publisher = FilePublisher(folder)
    folder.replace("controller.json", b'{"keep": 0.5}')
    publisher.publish(Schedule.of(DropPlan(7, {"rows": RandomDrop(0.5), "gone": RandomDrop(0.1)}, "why")))
    pilot = fly(publisher)
    assert dict(pilot.plan.points) == {"rows": RandomDrop(0.5, 0.5, 3.0)}
    assert pilot.plan.version == 8


def test_a_lost_ledger_does_not_let_versions_go_back(fly, folder):
    publisher = FilePublisher(folder)
    publisher.publish(Schedule.of(DropPlan(41, {"rows": RandomDrop(0.5)}, "why")))
    assert fly(publisher).plan.version == 42


def shorten(document, path, value):
    """The document with what lies at `path` replaced."""
    if not path:
        return value
    if isinstance(document, dict):
        return {key: shorten(old, path[1:], value) if key == path[0] else old for key, old in document.items()}
    return [shorten(old, path[1:], value) if number == path[0] else old for number, old in enumerate(document)]


def places(document, path=()):
    """The way to everything in a document; of a list, to its first and its last part."""
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    if isinstance(document, list):
        parts = list(parts)[:1] + list(enumerate(document))[1:][-1:]
    for key, part in parts:
        yield (*path, key)
        yield from places(part, (*path, key))


def test_whatever_is_wrong_in_the_controllers_state_the_query_starts(fly, folder, monkeypatch):
    fly_by(monkeypatch, Controller)
    first = fly(FilePublisher(folder))
    for number in range(4):
        first.batch(replace(counted(number, rows=600_000, version=first.plan.version), duration_s=1.9))
    first.close()
    state = json.loads(folder.read("controller.json"))
    for place in places(state):
        for wrong in (float("nan"), "x", [], {}, -1e300, None):
            folder.replace("controller.json", json.dumps(shorten(state, place, wrong)).encode())
            started = fly(FilePublisher(folder), start=False)
            assert 0.0 <= started.plan.points["rows"].keep_fraction <= 1.0, (place, wrong)


def test_damage_in_the_ledger_is_said_once_and_keeps_no_query_from_starting(fly, folder, caplog):
    first = fly(FilePublisher(folder))
    shed(first, 0.25)
    first.close()
    ledger = folder / "ledger"
    lines = ledger.read("run-000001.jsonl").splitlines()
    spoilt = [line.replace(b'"version"', b'"vession"').replace(b'"kept"', b'"keft"') for line in lines]
    ledger.replace("run-000001.jsonl", b"\n".join([*spoilt, b'{"record": "plan", "version": NaN}', b"[" * 99_999, b""]))
    (ledger / ".").delete("run-000001.summary.json")
    second = fly(FilePublisher(folder))
    assert second.plan.version == first.plan.version + 1, "from the plan on file"
    assert second.faults == {"ledger": 1}
    assert ["damaged records" in warning for warning in warnings(caplog)] == [True]
    second.close()
    assert not fly(FilePublisher(folder)).faults


def test_no_secret_of_an_error_goes_anywhere(fly, folder, caplog):
    publisher = FilePublisher(folder)
    pilot = fly(publisher)
    pilot.controller.error = ConnectionError("jdbc:postgresql://ann:hunter2@db/rides?password=hunter2")
    pilot.batch(counted(0))
    pilot.close(error="password=hunter2")
    assert "hunter2" not in str(records(folder)) + str(warnings(caplog)) + publisher.published().newest.cause


class Learner(UniformDrop):
    """Counts the batches that it is told of, and says so in its plans; it fails at more than a thousand."""

    state_type = dict[str, int]

    def __init__(self):
        object.__setattr__(self, "learned", {"batches": 0})

    def learn(self, lesson):
        self.learned["batches"] += lesson.counted is None

    def state(self):
        return self.learned

    def restore(self, state):
        object.__setattr__(self, "learned", dict(state))

    def plan(self, stats, budget):
        if self.learned["batches"] > 1000:
            raise ValueError("so many batches")
        return replace(super().plan(stats, budget), cause=f"{self.learned['batches']} batches")


def run_before(fly, folder, policy):
    """A run of two batches, and what it has saved."""
    first = fly(FilePublisher(folder), policy=policy)
    shed(first, 0.25)
    shed(first, 0.25, number=1)
    first.close()
    return json.loads(folder.read("controller.json"))


def test_what_a_policy_has_learned_is_there_again_after_a_restart(fly, folder):
    run_before(fly, folder, Learner())
    second = fly(FilePublisher(folder), policy=Learner())
    assert second.plan.cause == "restored after a restart: 2 batches"
    assert not second.faults


def sealed(state):
    """A state of the policy that says so itself, whatever it holds."""
    return {"state": json.dumps(state), "crc": zlib.crc32(json.dumps(state).encode())}


@pytest.mark.parametrize(
    "learned",
    [
        None,
        3,
        [],
        {},
        {"of": 3},
        {"state": 3},
        {"state": '{"batches":3}'},
        {"crc": None},
        sealed({"batches": "two"}),
        sealed({"batches": None}),
        sealed({}),
        sealed([]),
        sealed({"batches": 1001}),
    ],
    ids=repr,
)
def test_whatever_is_wrong_in_the_policys_state_the_query_starts_and_the_controller_is_restored(
    fly, folder, caplog, learned
):
    state = run_before(fly, folder, Learner())
    known = {**state["policy"], **learned} if isinstance(learned, dict) and learned else learned
    folder.replace("controller.json", json.dumps({**state, "policy": known}).encode())
    second = fly(FilePublisher(folder), policy=Learner())
    assert second.plan.cause == "restored after a restart: 0 batches"
    assert second.plan.points["rows"].keep_fraction == 0.25
    is_another = learned is None or learned == {"of": 3}
    assert second.faults == ({} if is_another else {"state": 1})
    assert len(warnings(caplog)) == len(second.faults)


def test_a_damaged_state_of_the_controller_does_not_cost_what_the_policy_has_learned(fly, folder):
    state = run_before(fly, folder, Learner())
    folder.replace("controller.json", json.dumps({"policy": state["policy"]}).encode())
    second = fly(FilePublisher(folder), policy=Learner())
    assert (second.plan.cause, second.faults) == ("2 batches", {"state": 1})


def test_what_another_policy_has_learned_is_left_alone(fly, folder):
    run_before(fly, folder, Learner())
    second = fly(FilePublisher(folder), policy=UniformDrop())
    assert second.plan.cause == "restored after a restart: start"
    assert not second.faults


def test_a_state_that_is_too_large_is_said_and_not_saved(fly, folder, caplog):
    policy = Learner()
    policy.learned.update((f"group {number}", number) for number in range(STATE_BYTES // 10))
    state = run_before(fly, folder, policy)
    assert state == {"keep": 0.25}
    assert len(warnings(caplog)) == 1
