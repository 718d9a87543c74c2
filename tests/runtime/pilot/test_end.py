"""The dry run, and the end of a query: the books are closed and no thread is left."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from jettison.policies import UniformDrop
from jettison.runtime.ledger import Ledger
from jettison.runtime.schedule import NOWHERE
from pilot_parts import PATIENCE_S, FakePublisher, counted, records, report


def test_in_a_dry_run_the_controller_learns_from_the_rows_really_processed(fly, folder):
    pilot = fly(FakePublisher(), dry_run=True)
    pilot.batch(replace(counted(0, rows=1000), kept={"rows": 100}))
    pilot.close()
    assert pilot.controller.stepped[-1].kept == 1000
    assert Ledger(folder / "ledger").totals().kept == 100


def test_close_finishes_the_books_and_ends_all_threads(fly, folder):
    pilot = fly(FakePublisher(lease_s=0.03), exact_counts=lambda of: {"rows": (7, 7)})
    threads = [thread for thread in threading.enumerate() if thread in pilot._threads]
    assert sorted(thread.name for thread in threads) == ["jettison-lease", "jettison-ledger", "jettison-plan"]
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


def test_a_dry_run_leaves_no_answer_in_doubt(fly):
    """Its batches run under plans that would drop rows: the next batch's answers were called unconfirmed."""
    publisher = FakePublisher()
    pilot = fly(publisher, dry_run=True)
    pilot.controller.keep = 0.5
    pilot.batch(counted(0, version=pilot.plan.version))
    publisher.wait_for(2)
    assert not publisher.plans[-1].keeps_everything
    pilot.batch(counted(1, version=publisher.plans[-1].version))
    pilot.close()
    assert pilot.doubts == NOWHERE


def test_a_policy_is_told_of_a_dry_run(fly):
    class Student(UniformDrop):
        def learn(self, lesson):
            taught.append((lesson.counted and lesson.counted.kept, lesson.dry_run))

    taught = []
    pilot = fly(FakePublisher(), dry_run=True, policy=Student())
    pilot.batch(counted(0, rows=1000, kept=100))
    pilot.close()
    assert taught == [(None, True), (100, True)]
