"""The ledger: append-only, readable at any moment, each batch once, no row unaccounted for."""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jettison.control.budget_figures import BudgetFigures
from jettison.control.causes import why_shed
from jettison.control.control_settings import ControlSettings
from jettison.control.load_model import Costs
from jettison.control.outlook import Ahead, Outlook
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.core.storage import Folder
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime.ledger import SCHEMA_VERSION, Ledger, Totals


def batch(number: int, seen: int = 10, kept: int = 4, **changes) -> Stats:
    return Stats(number, 1e9 + number, 0.5, {"rides": PointStats(seen, kept)}, plan_version=1, **changes)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "ledger")


def written(folder: Folder) -> list[str]:
    return [name for name in folder.names() if name.endswith(".jsonl")]


def fill(ledger: Ledger) -> None:
    """One record of every kind."""
    ledger.start(1.0, policy="UniformDrop", points=["rides"])
    ledger.plan(2.0, DropPlan(3, {"rides": RandomDrop(0.4, 0.1, 3.0)}, "twice too many rows"))
    ledger.batch(batch(0), latency_s=1.25)
    ledger.fault(4.0, "plan", "no valid plan\nat all")
    ledger.stop(5.0, faults={"plan": 1}, error=None)


def test_records_hold_what_the_documentation_says(folder):
    fill(Ledger.open(folder))
    assert list(Ledger(folder).records()) == [
        {"record": "start", "at_s": 1.0, "schema": SCHEMA_VERSION, "policy": "UniformDrop", "points": ["rides"]},
        {
            "record": "plan",
            "at_s": 2.0,
            "version": 3,
            "points": {
                "rides": {"kind": "random", "keep_fraction": 0.4, "late_keep_fraction": 0.1, "late_after_s": 3.0}
            },
            "cause": "twice too many rows",
            "decision": None,
        },
        {
            "record": "batch",
            "at_s": 1e9 + 0.5,
            "batch_id": 0,
            "plan_version": 1,
            "started_s": 1e9,
            "duration_s": 0.5,
            "latency_s": 1.25,
            "points": {"rides": {"seen": 10, "kept": 4, "dropped": 6, "exact": True}},
        },
        {"record": "fault", "at_s": 4.0, "kind": "plan", "detail": "no valid plan\nat all"},
        {"record": "stop", "at_s": 5.0, "faults": {"plan": 1}, "error": None},
    ]


def test_a_decision_is_on_record_beside_the_counts_of_the_batches_that_ran_under_it(folder):
    ledger = Ledger.open(folder)
    outlook = Outlook(ControlSettings(3.0), Costs(0.2, 1e-6, 1e-5), 1000.0)
    for version, share in ((1, 1.0), (2, 0.4)):
        decision = BudgetFigures.of(Budget(share, 0.1, 3.0, "why"), outlook, Ahead(1.0, 10.0, 0.0), 5.0, 0.5)
        ledger.plan(2.0, DropPlan(version, {"rides": RandomDrop(share)}, "why"), decision)
    for number, version in ((0, 1), (1, 2), (2, 2), (3, None)):
        ledger.batch(replace(batch(number), plan_version=version), latency_s=1.0)
    first, second = Ledger(folder).decisions()
    assert [one["batch_id"] for one in first[1]] == [0]
    assert [one["batch_id"] for one in second[1]] == [1, 2]
    assert second[0]["decision"] == {
        "share": 0.4,
        "late_share": 0.1,
        "late_after_s": 3.0,
        "rows_per_s": 1000.0,
        "waiting_rows": 5,
        "costs": {"fixed_s": 0.2, "per_seen_row_s": 1e-6, "per_kept_row_s": 1e-5},
        "noise": 0.0,
        "starts_in_s": 0.5,
        "expected": {"rows": 10, "kept_rows": 4, "latency_s": pytest.approx(1.20005)},
        "capacity_rows_per_s": outlook.capacity_rows_per_s,
    }
    assert f"{outlook.capacity_rows_per_s:,.0f} rows/s can be processed" in why_shed(
        outlook, Ahead(1.0, 10.0, 0.0), 0.4
    )


def test_how_far_the_source_was_ahead_is_on_record_as_far_as_it_is_known(folder):
    ledger = Ledger.open(folder)
    ledger.batch(replace(batch(0), waiting_rows=7), latency_s=1.0)
    ledger.batch(batch(1), latency_s=1.0, lag=(0, 0.0))
    ledger.batch(batch(2), latency_s=1.0)
    of_lag = [
        {name: one[name] for name in ("waiting_rows", "lag_rows", "lag_s") if name in one}
        for one in Ledger(folder).records("batch")
    ]
    assert of_lag == [{"waiting_rows": 7}, {"lag_rows": 0, "lag_s": 0.0}, {}]


def test_a_plan_of_an_older_release_is_read_although_a_figure_had_another_name(folder):
    old = b'{"record":"plan","at_s":1,"version":1,"points":{},"cause":"","decision":%s}\n'
    folder.append("run-000001.jsonl", old % b'{"share":1,"late_share":1,"late_after_s":3,"lag_s":0.5}')
    assert next(Ledger(folder).records("plan"))["decision"]["lag_s"] == 0.5


def test_records_of_one_kind_can_be_asked_for(folder):
    fill(Ledger.open(folder))
    assert [record["kind"] for record in Ledger(folder).records("fault")] == ["plan"]
    assert list(Ledger(folder).records("unheard of")) == []


def test_an_empty_ledger_reads_as_nothing(folder):
    ledger = Ledger(folder)
    assert list(ledger.records()) == []
    assert ledger.totals() == Totals(0, 0, 0)
    assert ledger.gaps() == []
    assert folder.names() == [], "reading writes nothing"


def test_a_path_will_do_for_reading(folder, tmp_path):
    fill(Ledger.open(folder))
    assert Ledger(tmp_path / "ledger").totals() == Ledger(str(tmp_path / "ledger")).totals() == Totals(1, 10, 4)


def test_a_batch_is_recorded_once_within_a_run(folder):
    ledger = Ledger.open(folder)
    assert ledger.batch(batch(0), latency_s=None)
    assert not ledger.batch(batch(0, seen=99), latency_s=None)
    assert ledger.totals() == Totals(1, 10, 4)


def test_a_batch_that_a_restarted_query_repeats_is_not_counted_again(folder):
    Ledger.open(folder).batch(batch(0), latency_s=None)
    later = Ledger.open(folder)
    assert not later.batch(batch(0), latency_s=None)
    assert later.batch(batch(1), latency_s=None)
    assert Ledger(folder).totals() == Totals(2, 20, 8)


def test_many_threads_record_a_batch_once(folder):
    ledger = Ledger.open(folder)
    ready, news = threading.Barrier(8), []

    def record():
        ready.wait(timeout=120)
        news.append(ledger.batch(batch(0), latency_s=None))

    threads = [threading.Thread(target=record) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert sorted(news) == [False] * 7 + [True]
    assert len(list(ledger.records("batch"))) == 1


def test_each_run_writes_a_file_of_its_own_and_touches_no_other(folder):
    fill(Ledger.open(folder))
    (first,) = folder.names()
    before = folder.read(first)
    fill(Ledger.open(folder))
    assert folder.read(first) == before
    assert written(folder) == ["run-000001.jsonl", "run-000002.jsonl"]


def test_a_run_never_reuses_the_file_of_another_even_when_older_ones_were_archived(folder, tmp_path):
    for _ in range(2):
        Ledger.open(folder).fault(1.0, "x", "")
    (tmp_path / "ledger" / "run-000001.jsonl").unlink()
    Ledger.open(folder).fault(1.0, "x", "")
    assert written(folder) == ["run-000002.jsonl", "run-000003.jsonl"]


def test_what_was_written_stays_as_it_was(folder):
    ledger = Ledger.open(folder)
    contents = [b""]
    for number in range(5):
        ledger.batch(batch(number), latency_s=None)
        contents.append(folder.read("run-000001.jsonl"))
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(contents))


def test_a_file_cut_at_any_byte_yields_the_whole_records_before_the_cut(folder):
    fill(Ledger.open(folder))
    content = folder.read("run-000001.jsonl")
    whole = list(Ledger(folder).records())
    for length in range(len(content) + 1):
        folder.replace("run-000001.jsonl", content[:length])
        assert list(Ledger(folder).records()) == whole[: content[:length].count(b"\n")], length


def test_after_a_killed_driver_the_next_run_records_the_batch_that_was_cut_short(folder):
    ledger = Ledger.open(folder)
    ledger.batch(batch(0), latency_s=None)
    ledger.batch(batch(1), latency_s=None)
    folder.replace("run-000001.jsonl", folder.read("run-000001.jsonl")[:-5])
    later = Ledger.open(folder)
    assert later.batch(batch(1), latency_s=None)
    assert later.totals() == Totals(2, 20, 8)


class FullDisk(Folder):
    """Writes half of what it is given, then fails, as often as told."""

    failures = 0

    def append(self, name, content):
        if self.failures:
            self.failures -= 1
            super().append(name, content[: len(content) // 2])
            raise OSError("no space left on device")
        super().append(name, content)


def test_a_write_that_fails_half_way_costs_that_record_only(tmp_path):
    folder = FullDisk(tmp_path / "ledger")
    ledger = Ledger.open(folder)
    ledger.batch(batch(0), latency_s=None)
    folder.failures = 2
    for number in (1, 2):
        with pytest.raises(OSError, match="no space"):
            ledger.batch(batch(number), latency_s=None)
    ledger.batch(batch(3), latency_s=None)
    assert [record["batch_id"] for record in Ledger(folder).records("batch")] == [0, 3]
    assert Ledger(folder).gaps() == [1, 2]


def test_a_batch_whose_write_failed_can_be_recorded_after_all(tmp_path):
    folder = FullDisk(tmp_path / "ledger")
    ledger = Ledger.open(folder)
    folder.failures = 1
    with pytest.raises(OSError, match="no space"):
        ledger.batch(batch(0), latency_s=None)
    assert ledger.batch(batch(0), latency_s=None)
    assert ledger.totals() == Totals(1, 10, 4)


def test_a_number_that_json_does_not_know_is_refused_and_nothing_is_written(folder):
    with pytest.raises(ValueError, match="JSON"):
        Ledger.open(folder).fault(float("nan"), "x", "")
    assert folder.names() == []


def test_it_can_be_read_while_it_is_written(folder):
    ledger = Ledger.open(folder)
    count, strange, reads = 400, [], []

    def read():
        last = 0
        while last < count and not strange:
            records = list(Ledger(folder).records("batch"))
            if [record["batch_id"] for record in records] != list(range(len(records))) or len(records) < last:
                strange.append(records)
            last = len(records)
            reads.append(last)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for number in range(count):
        ledger.batch(batch(number), latency_s=None)
    reader.join(timeout=120)
    assert not strange
    assert reads[-1] == count


def test_gaps_are_the_batches_up_to_the_last_one_that_are_not_on_record(folder):
    ledger = Ledger.open(folder)
    assert ledger.gaps() == []
    for number in (7, 3, 4):
        ledger.batch(batch(number), latency_s=None)
    assert ledger.gaps() == [0, 1, 2, 5, 6]


@st.composite
def points(draw):
    seen = draw(st.integers(min_value=0, max_value=10**12))
    return PointStats(seen, draw(st.integers(min_value=0, max_value=seen)), exact=draw(st.booleans()))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(batches=st.lists(st.dictionaries(st.text(), points(), max_size=3), max_size=6))
def test_seen_is_kept_plus_dropped_in_every_batch_and_in_total(tmp_path_factory, batches):
    ledger = Ledger.open(Folder(tmp_path_factory.mktemp("ledger")))
    for number, of_points in enumerate(batches):
        ledger.batch(Stats(number, 1e9, 1.0, of_points), latency_s=None)
    rows = [point for record in ledger.records("batch") for point in record["points"].values()]
    assert len(rows) == sum(map(len, batches))
    assert all(row["seen"] == row["kept"] + row["dropped"] for row in rows)
    totals = ledger.totals()
    assert totals.seen == totals.kept + totals.dropped
    assert totals.dropped == sum(row["dropped"] for row in rows)
    assert totals.batches == len(batches)


@given(name=st.text(st.characters(exclude_categories=())), detail=st.text(st.characters(exclude_categories=())))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_a_record_is_one_line_whatever_its_words(tmp_path_factory, name, detail):
    folder = Folder(tmp_path_factory.mktemp("ledger"))
    ledger = Ledger.open(folder)
    ledger.plan(1.0, DropPlan(1, {name: RandomDrop(0.5)}, detail))
    ledger.fault(2.0, name, detail)
    assert folder.read("run-000001.jsonl").count(b"\n") == 2
    plan, fault = ledger.records()
    assert DropPlan.from_json(json.dumps(plan)) == DropPlan(1, {name: RandomDrop(0.5)}, detail)
    assert (fault["kind"], fault["detail"]) == (name, detail)
