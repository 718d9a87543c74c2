"""Counts: expected ones first, exact ones as soon as they are known, and no row unaccounted for."""

from __future__ import annotations

import threading

import pytest

from jettison.runtime.ledger import Ledger, Totals
from pilot_parts import PATIENCE_S, FakePublisher, counted, records, report, shed, warnings


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
    pilot.batch(report(0, rows=0, nothing_new=True))
    pilot.close()
    assert asked == []
    assert records(folder, "batch")[0]["points"]["rows"] == {"seen": 0, "kept": 0, "dropped": 0, "exact": True}


def test_a_batch_that_spark_counted_no_rows_of_is_not_called_exact_for_that(fly, folder):
    pilot = fly(FakePublisher(), exact_counts=lambda of: {})
    pilot.batch(report(0, rows=0, any_runs=True))
    pilot.close()
    assert records(folder, "batch")[0]["points"]["rows"] == {"seen": 0, "kept": 0, "dropped": 0, "exact": False}


def test_counts_that_are_not_certain_are_called_estimates_and_that_is_said_once(fly, folder, caplog):
    pilot = fly(FakePublisher(), exact_counts=lambda of: {"rows": (22, 10, False)})
    for number in range(3):
        pilot.batch(report(number, any_runs=True))
    pilot.close()
    assert [batch["points"]["rows"]["exact"] for batch in records(folder, "batch")] == [False] * 3
    assert pilot.faults == {"estimate": 1}
    assert len(warnings(caplog)) == 1
    assert Ledger(folder / "ledger").totals() == Totals(3, 66, 30, estimated=3)


def test_counts_that_came_with_the_report_are_estimates_where_the_sink_may_run_the_plan_at_will(fly, folder):
    pilot = fly(FakePublisher())
    pilot.batch(counted(0, rows=500, kept=300, any_runs=True))
    pilot.close()
    assert records(folder, "batch")[0]["points"]["rows"] == {"seen": 500, "kept": 300, "dropped": 200, "exact": False}


def test_books_that_fall_behind_go_on_with_estimates(fly, folder):
    begun, go_on = threading.Event(), threading.Event()

    def slow(of):
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return {"rows": (of.input_rows, of.input_rows)}

    pilot = fly(FakePublisher(), exact_counts=slow)
    pilot.batch(report(0))
    assert begun.wait(PATIENCE_S)
    for number in range(1, 100):
        pilot.batch(report(number))
    go_on.set()
    pilot.close()
    exact = [batch["points"]["rows"]["exact"] for batch in records(folder, "batch")]
    assert len(exact) == 100
    assert exact == [True] + [False] * 67 + [True] * 32, "until they had caught up"


def test_books_are_not_called_complete_while_a_batch_is_not_on_record(fly, monkeypatch):
    pilot = fly(FakePublisher())
    take_down = pilot.ledger.batch

    def fails_once(stats, **facts):
        if stats.batch_id == 1:
            raise OSError("disk full")
        return take_down(stats, **facts)

    monkeypatch.setattr(pilot.ledger, "batch", fails_once)
    for number in range(3):
        pilot.batch(counted(number))
    pilot.close()
    assert not pilot.await_close(PATIENCE_S)


def test_books_are_not_called_complete_where_no_report_came_of_a_batch(fly, folder, caplog):
    pilot = fly(FakePublisher())
    pilot.batch(counted(0))
    pilot.missed(range(1, 4), "no event told of it")
    pilot.batch(counted(4))
    pilot.close()
    assert not pilot.await_close(PATIENCE_S)
    assert pilot.faults == {"report": 1}
    assert records(folder, "fault")[0]["detail"] == "batches 1 to 3: no event told of it"


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


def test_the_last_latency_outlives_batches_without_rows(fly):
    pilot = fly(FakePublisher())
    pilot.batch(counted(0))
    before = pilot.tally.last_latency_s
    pilot.batch(counted(1, rows=0))
    assert pilot.tally.last_latency_s == before == 0.5


def test_observed_counts_are_exact_only_where_all_rows_were_taken(fly, folder):
    pilot = fly(FakePublisher())
    cut_short = {"rows": 1000, "seen": {"rows": 10}, "kept": {"rows": 10}}
    pilot.batch(report(0, **cut_short))  # as behind a limit
    pilot.batch(report(1, **cut_short | {"rows": 10}))
    pilot.close()
    assert [batch["points"]["rows"]["exact"] for batch in records(folder, "batch")] == [False, True]


def test_what_a_query_leaves_out_before_its_guard_is_no_row_missed(fly, folder):
    pilot = fly(FakePublisher())
    pilot.facts.takes_every_row = True  # as its plan shows
    pilot.batch(report(0, rows=1000, seen={"rows": 10}, kept={"rows": 4}))
    pilot.close()
    assert records(folder, "batch")[0]["points"]["rows"] == {"seen": 10, "kept": 4, "dropped": 6, "exact": True}


def test_behind_a_limit_the_sources_own_count_says_nothing(fly, folder):
    pilot = fly(FakePublisher())
    pilot.facts.takes_every_row = False  # a file is read as far as needed, and Spark reports as many rows
    pilot.batch(report(0, rows=10, seen={"rows": 10}, kept={"rows": 10}))
    pilot.close()
    assert not records(folder, "batch")[0]["points"]["rows"]["exact"]


@pytest.mark.parametrize(
    ("kept", "options", "said"),
    [
        (4_900, {}, False),
        (0, {}, True),
        (10_000, {}, True),
        (10_000, {"protected": frozenset({"rows"})}, False),
        (0, {"protected": frozenset({"rows"})}, True),
    ],
)
def test_rows_that_are_kept_or_dropped_in_lumps_are_equal_in_their_identity_and_that_is_said_once(
    fly, folder, kept, options, said
):
    pilot = fly(FakePublisher(), **options)
    shed(pilot, 0.5, number=0)
    for number in range(1, 8):
        pilot.batch(counted(number, kept=kept, version=2))
    pilot.close()
    faults = [fault["detail"] for fault in records(folder, "fault") if fault["kind"] == "identity"]
    assert ["are equal in `row_id`" in fault for fault in faults] == [True] * said


def test_few_rows_and_counts_that_are_estimates_tell_nothing_of_identities(fly, folder):
    pilot = fly(FakePublisher())
    shed(pilot, 0.5, number=0)
    for number in range(1, 8):
        pilot.batch(counted(number, rows=100, kept=0, version=2))
        pilot.batch(report(10 + number, version=2))
    pilot.close()
    assert not records(folder, "fault")
