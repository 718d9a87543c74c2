"""The ledger stays small, is not read whole at a restart, and no damage keeps anybody from reading or writing it."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.plan import DropPlan
from jettison.core.stats import PointStats, Stats
from jettison.core.storage import Folder
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime.ledger import Ledger, Totals
from jettison.runtime.ledger_summary import Ranges
from jettison.runtime.standing import standing


class Counting(Folder):
    """Counts the bytes of records that are read."""

    bytes_read = 0

    def read(self, name, start=0):
        content = super().read(name, start)
        if name.endswith(".jsonl"):
            self.bytes_read += len(content or b"")
        return content


def batch(number: int, seen: int = 10, kept: int = 4) -> Stats:
    return Stats(number, 1e9 + number, 0.5, {"rides": PointStats(seen, kept)}, plan_version=1)


def written(folder: Folder) -> list[str]:
    return [name for name in folder.names() if name.endswith(".jsonl")]


@pytest.fixture
def folder(tmp_path):
    return Counting(tmp_path / "ledger")


def test_a_run_that_writes_much_goes_on_in_further_files_and_nothing_is_lost(folder):
    ledger = Ledger.open(folder, segment_bytes=1000)
    for number in range(40):
        assert ledger.batch(batch(number), latency_s=None)
    assert not ledger.batch(batch(3), latency_s=None), "recorded in a file that is closed"
    assert len(written(folder)) > 5
    assert written(folder)[:2] == ["run-000001.jsonl", "run-000001.0002.jsonl"]
    assert [record["batch_id"] for record in Ledger(folder).records("batch")] == list(range(40))
    assert Ledger(folder).totals() == Totals(40, 400, 160)
    assert Ledger.open(folder)._run == "run-000002"


def test_the_oldest_files_go_and_their_totals_stay(folder):
    number = 0
    for _ in range(6):
        ledger = Ledger.open(folder, segment_bytes=1000, keep_bytes=3000)
        ledger.plan(1.0, DropPlan(number + 1, {"rides": RandomDrop(0.5)}, "why"))
        for _ in range(20):
            assert ledger.batch(batch(number), latency_s=None)
            number += 1
        assert not ledger.batch(batch(0), latency_s=None), "its file is long gone"
    assert sum(size for name, size in folder.sizes().items() if name.endswith(".jsonl")) < 3000 + 2 * 1000
    reader = Ledger(folder)
    assert reader.totals() == Totals(120, 1200, 480)
    assert reader.totals_by_point() == {"rides": Totals(120, 1200, 480)}
    assert reader.gaps() == []
    assert max(reader.latest_plans()) == 101
    assert next(iter(reader.records("batch")))["batch_id"] > 60


def test_many_short_runs_do_not_pile_up(folder, monkeypatch):
    monkeypatch.setattr("jettison.runtime.ledger._MOST_SEGMENTS", 5)
    for number in range(12):
        Ledger.open(folder).batch(batch(number), latency_s=None)
    assert len(folder.names()) <= 2 * 6 + 1
    assert Ledger(folder).totals() == Totals(12, 120, 48)


def test_a_restart_reads_only_what_has_no_summary_yet(folder):
    ledger = Ledger.open(folder, segment_bytes=1000)
    for number in range(100):
        ledger.batch(batch(number), latency_s=None)
    folder.bytes_read = 0
    second = Ledger.open(folder)
    assert folder.bytes_read < 2000
    folder.bytes_read = 0
    third = Ledger.open(folder)
    assert folder.bytes_read == 0
    assert not second.batch(batch(7), latency_s=None)
    assert not third.batch(batch(99), latency_s=None)
    assert third.batch(batch(100), latency_s=None)


def test_files_that_a_crash_left_behind_after_they_were_counted_are_not_counted_again(folder, monkeypatch):
    for start in (0, 20):
        ledger = Ledger.open(folder, segment_bytes=1000, keep_bytes=2000)
        monkeypatch.setattr(Folder, "delete", lambda self, name: None)  # as if killed before
        for number in range(start, start + 20):
            ledger.batch(batch(number), latency_s=None)
        monkeypatch.undo()
        assert Ledger(folder).totals() == Totals(start + 20, 10 * start + 200, 4 * start + 80)
    Ledger.open(folder, segment_bytes=1000, keep_bytes=2000)
    assert Ledger(folder).totals() == Totals(40, 400, 160)
    assert len(written(folder)) < 10


def test_a_writer_that_has_not_ended_is_not_taken_for_closed(folder):
    first = Ledger.open(folder, writer="function")
    first.counted("function", 1.0, 0, "score", 10, 4)
    Ledger.open(folder, writer="function")
    first.counted("function", 2.0, 1, "score", 10, 4)
    assert Ledger(folder).totals("function") == Totals(2, 20, 8)


def test_rows_are_counted_once_where_drop_points_follow_one_another(folder):
    ledger = Ledger.open(folder, entrance=("rides",))
    points = {"rides": PointStats(100, 60), "fares": PointStats(60, 30), "tips": PointStats(60, 10, exact=False)}
    ledger.batch(Stats(0, 1e9, 0.5, points), latency_s=None)
    assert Ledger(folder).totals() == Totals(1, 100, 60, estimated=1)
    assert Ledger(folder).totals_by_point() == {
        "rides": Totals(1, 100, 60),
        "fares": Totals(1, 60, 30),
        "tips": Totals(1, 60, 10, estimated=1),
    }


DAMAGE = {
    "a key renamed": lambda record: {("betch_id" if key == "batch_id" else key): record[key] for key in record},
    "no kind": lambda record: {key: value for key, value in record.items() if key != "record"},
    "kind is a list": lambda record: record | {"record": []},
    "number for a text": lambda record: record | {"batch_id": "7"},
    "a huge number": lambda record: record | {"batch_id": 10**40},
    "negative": lambda record: record | {"batch_id": -1},
    "true": lambda record: record | {"batch_id": True},
    "points are a list": lambda record: record | {"points": [1]},
    "counts are texts": lambda record: record | {"points": {"rides": {"seen": "1", "kept": 0, "dropped": 1}}},
    "counts do not add up": lambda record: record | {"points": {"rides": {"seen": 1, "kept": 2, "dropped": -1}}},
    "NaN": lambda record: record | {"at_s": float("nan")},
    "infinity": lambda record: record | {"latency_s": float("inf")},
    "entrance is a number": lambda record: record | {"entrance": 3},
    "entrance is null": lambda record: record | {"entrance": None},
    "null": lambda record: None,
    "plan without version": lambda record: {"record": "plan", "at_s": 1.0, "points": {}, "cause": ""},
    "plan of version NaN": lambda record: {"record": "plan", "at_s": 1.0, "version": float("nan"), "points": {}},
    "plan of a huge version": lambda record: {"record": "plan", "at_s": 1.0, "version": 10**30, "points": {}},
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_record_is_skipped_and_counted_once(folder, how):
    Ledger.open(folder).batch(batch(0), latency_s=None)
    line = folder.read("run-000001.jsonl")
    spoilt = json.dumps(DAMAGE[how](json.loads(line))).encode() + b"\n"
    deep = b'{"record":' * 100_000 + b"\n"
    folder.replace("run-000001.jsonl", spoilt + line + deep)
    ledger = Ledger.open(folder)
    assert ledger.damaged == 2
    assert ledger.latest_plans() == {}
    assert ledger.totals() == Totals(1, 10, 4)
    assert ledger.gaps() == []
    assert Ledger.open(folder).damaged == 0, "said once"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"bytes": 1}',
        b'{"through": "run-000009"}',
        b'{"through": 1, "summary": 3}',
        b'{"bytes": 400, "through": "run-000009", "summary": {"totals": {"batch": [1, 2]}}}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_summary_is_made_anew(folder, content):
    ledger = Ledger.open(folder, segment_bytes=500)
    for number in range(10):
        ledger.batch(batch(number), latency_s=None)
    for name in folder.names():
        if name.endswith(".summary.json"):
            folder.replace(name, content)
    folder.replace("run.pruned.json", content)
    assert Ledger(folder).totals() == Totals(10, 100, 40)
    again = Ledger.open(folder)
    assert not again.batch(batch(5), latency_s=None)
    assert again.totals() == Totals(10, 100, 40)


@given(st.lists(st.integers(0, 60)))
def test_ranges_hold_what_was_put_into_them(numbers):
    ranges = Ranges.of(numbers)
    assert [n for n in range(-2, 64) if n in ranges] == sorted(set(numbers))
    assert ranges.missing(0) == sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers))
    stretches = ranges.stretches
    assert all(b[0] - a[1] > 1 for a, b in itertools.pairwise(stretches))


def test_no_secret_goes_on_record(folder):
    ledger = Ledger.open(folder)
    ledger.fault(1.0, "controller", "ConnectionError: jdbc:x://ann:hunter2@db")
    ledger.stop(2.0, faults={}, error="sasl.jaas.config=PlainLoginModule required password='hunter2';")
    ledger.plan(3.0, DropPlan(1, {}, "controller failed: password=hunter2"))
    assert b"hunter2" not in folder.read("run-000001.jsonl")


def test_a_reader_that_looks_again_reads_only_what_was_added(tmp_path):
    folder = Counting(tmp_path)
    writer, reader = Ledger.open(Folder(tmp_path), segment_bytes=2000), Ledger(folder)
    for number in range(30):
        writer.batch(batch(number), latency_s=0.1)
    assert reader.totals().batches == 30
    folder.bytes_read = 0
    assert reader.totals().batches == 30
    assert folder.bytes_read == 0
    writer.batch(batch(30), latency_s=0.1)
    assert reader.totals() == Ledger(tmp_path).totals()
    assert 0 < folder.bytes_read < 400
    for number in range(31, 60):  # the file that it had read in part is closed, and others follow
        writer.batch(batch(number), latency_s=0.1)
    assert reader.totals() == Ledger(tmp_path).totals()
    assert reader.totals_by_point() == Ledger(tmp_path).totals_by_point()


def test_what_stands_is_known_after_its_files_are_gone_also_to_one_that_reads_after_a_kill(folder):
    ledger = Ledger.open(folder, segment_bytes=1000, keep_bytes=3000)
    ledger.start(1.0, latency_bound_s=3.0, policy="UniformDrop", dry_run=True)
    ledger.order(2.0, "a bound of 7 s", 7.0, {})
    ledger.plan(3.0, DropPlan(1, {"rides": RandomDrop(0.5)}, "why"))
    before = [Ledger(folder).last(kind) for kind in ("start", "order", "plan")]
    for number in range(60):
        ledger.batch(batch(number), latency_s=None)
        if number % 20 == 0:  # what has been written by now is all that a killed one leaves
            reader = Ledger(folder)
            assert [reader.last(kind) for kind in ("start", "order", "plan")] == before
            assert reader.last("start", "order") == before[1]
    assert [*Ledger(folder).records("start"), *Ledger(folder).records("plan")] == [], "said once, and gone"
    again = Ledger.open(folder, segment_bytes=1000, keep_bytes=3000)
    again.start(9.0, latency_bound_s=5.0)
    for number in range(60, 120):
        again.batch(batch(number), latency_s=None)
    assert [Ledger(folder).last(kind)["at_s"] for kind in ("start", "order", "plan")] == [9.0, 2.0, 3.0]
    folder.replace("run.standing.json", b"{damaged\n")
    assert Ledger(folder).last("start") is None


def test_what_stands_is_written_down_before_a_reader_of_the_newest_records_could_miss_it(folder):
    """Where every record is a file of its own, readers take the newest 2,000."""
    ledger = Ledger.open(folder)
    ledger.start(1.0, latency_bound_s=3.0)
    for number in range(500):
        ledger.batch(batch(number), latency_s=None)
    assert [record["record"] for record in standing(folder)] == ["start"]


def full(folder: Folder) -> Ledger:
    """A new run that fills its files soon, and keeps few of them."""
    return Ledger.open(folder, segment_bytes=40_000, keep_bytes=200_000)


def filled(ledger: Ledger, records: int, after_s: float) -> None:
    for number in range(records):
        ledger.fault(after_s + number / 1e4, "x", "y" * 50)


def stands(folder: Folder) -> tuple[object, object]:
    order, plan = (Ledger(folder).last(kind) for kind in ("order", "plan"))
    return order and order["text"], plan and plan["version"]


@pytest.mark.parametrize("lost", [(), (".summary.json",)], ids=["whole", "summaries lost"])
def test_what_was_said_last_before_a_restart_stands_after_its_file_has_gone(folder, lost):
    first = full(folder)
    first.order(2.0, "keep every row", 5.0, {"shed": False})
    first.plan(2.5, DropPlan(7, {"rides": RandomDrop(0.1)}, "old"))
    filled(first, 600, 3.0)
    first.order(700.0, "shed again", 5.0, {})
    first.plan(701.0, DropPlan(8, {"rides": RandomDrop(1.0)}, "keeps all"))
    filled(first, 50, 702.0)
    assert standing(folder)[0]["text"] == "keep every row", "this run says no more of it"
    for name in folder.names():
        if name.endswith(lost):
            folder.delete(name)
    second = full(folder)
    assert stands(folder) == ("shed again", 8)
    assert [record["at_s"] for record in standing(folder)] == [700.0, 701.0]
    filled(second, 6000, 901.0)
    assert next(Ledger(folder).records("order"), None) is None, "its file has gone"
    assert stands(folder) == ("shed again", 8)


def test_a_file_that_is_read_again_brings_nothing_back_that_was_said_before(folder):
    """Its summary is damaged, and it is older than others that have one."""
    ledger = Ledger.open(folder, segment_bytes=1)
    for at_s, text in ((1.0, "first"), (2.0, "second"), (3.0, "third")):
        ledger.order(at_s, text, 5.0, {})
    ledger.batch(batch(1), latency_s=None)
    assert len(written(folder)) == 4, "each order stands in a file that is closed"
    folder.replace("run-000001.summary.json", b"{damaged")
    again = Ledger.open(folder, segment_bytes=1, keep_bytes=1)
    for number in range(10, 14):
        again.batch(batch(number), latency_s=None)
    assert next(Ledger(folder).records("order"), None) is None, "its file has gone"
    assert stands(folder) == ("third", None)


def test_a_record_is_written_although_what_stands_cannot_be(folder, tmp_path):
    ledger = Ledger.open(folder, segment_bytes=1000, keep_bytes=2000)
    ledger.order(1.0, "keep every row", 5.0, {"shed": False})
    in_the_way = tmp_path / "ledger" / "run.standing.json"
    in_the_way.mkdir()
    for number in range(60):
        assert ledger.batch(batch(number), latency_s=None)
    assert [record["batch_id"] for record in Ledger(folder).records("batch")] == list(range(60))
    assert stands(folder)[0] == "keep every row", "no file has gone, whatever they take together"
    in_the_way.rmdir()
    for number in range(60, 120):
        assert ledger.batch(batch(number), latency_s=None)
    assert next(Ledger(folder).records("order"), None) is None
    assert stands(folder)[0] == "keep every row"
    assert Ledger(folder).totals() == Totals(120, 1200, 480)
