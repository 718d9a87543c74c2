"""The newest records of a ledger, however long it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jettison.core.plan import DropPlan
from jettison.core.stats import PointStats, Stats
from jettison.core.storage import Folder
from jettison.page import recent as module
from jettison.page.panels.window_strip import WindowStrips
from jettison.page.recent import Recent
from jettison.page.thinned import thinned
from jettison.policies.window.window_marks import WindowMarks
from jettison.runtime.ledger import Ledger
from page_ledgers import NOW_S, query


class Counting(Folder):
    """Counts the bytes of records that are read."""

    bytes_read = 0

    def read(self, name: str, start: int = 0) -> bytes | None:
        content = super().read(name, start)
        self.bytes_read += len(content or b"")
        return content


def batch(number: int) -> Stats:
    return Stats(number, NOW_S + number, 0.9, {"rides": PointStats(10, 4)}, plan_version=1)


def test_a_long_ledger_is_read_from_its_end_and_later_only_what_was_added(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 20_000)
    ledger = Ledger.open(Folder(tmp_path), segment_bytes=4_000)
    for number in range(2_000):
        ledger.batch(batch(number), latency_s=1.0)
    folder = Counting(tmp_path)
    recent = Recent(folder)
    assert recent.look()
    assert folder.bytes_read <= 20_000 < sum(folder.sizes().values()) / 5
    numbers = [one["batch_id"] for one in recent.batches]
    assert numbers == list(range(numbers[0], 2_000))
    folder.bytes_read = 0
    assert not recent.look()
    assert folder.bytes_read == 0
    for number in range(2_000, 2_040):  # across the end of a file
        ledger.batch(batch(number), latency_s=1.0)
    assert recent.look()
    assert folder.bytes_read < 12_000
    assert [one["batch_id"] for one in recent.batches] == list(range(numbers[0], 2_040))


def test_no_more_batches_are_kept_in_mind_than_asked_for(tmp_path: Path) -> None:
    query(tmp_path, batches=50)
    recent = Recent(Folder(tmp_path) / "jettison" / "ledger", most_batches=7)
    recent.look()
    assert [one["batch_id"] for one in recent.batches] == list(range(43, 50))


def test_a_line_that_is_being_written_is_taken_when_it_is_whole(tmp_path: Path) -> None:
    Ledger.open(Folder(tmp_path)).batch(batch(0), latency_s=1.0)
    file = tmp_path / "run-000001.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + whole.replace(b'"batch_id":0', b'"batch_id":1')[:40])
    recent = Recent(Folder(tmp_path))
    recent.look()
    assert len(recent.batches) == 1
    file.write_bytes(whole + whole.replace(b'"batch_id":0', b'"batch_id":1'))
    recent.look()
    assert [one["batch_id"] for one in recent.batches] == [0, 1]


def test_the_fate_of_windows_is_put_together_from_plans(tmp_path: Path) -> None:
    ledger = Ledger.open(Folder(tmp_path))
    ledger.plan(1.0, DropPlan(1, {"a": WindowMarks((5,), ("kd",), ((None, 70),), next_unit=7)}))
    ledger.plan(2.0, DropPlan(2, {"a": WindowMarks((6,), ("dkd",), ((70, None, 90),), next_unit=9)}))
    strips = WindowStrips()
    Recent(Folder(tmp_path), tell=strips.take).look()
    assert [(strip.first, strip.marks) for strip in strips.panels({}, {})] == [(5, "kdkd")]


def test_windows_far_from_each_other_make_no_long_strip(tmp_path: Path) -> None:
    """As after a query stood for long, or one wild timestamp."""
    ledger = Ledger.open(Folder(tmp_path))
    ledger.plan(1.0, DropPlan(1, {"a": WindowMarks((5,), ("kd",), ((None, 70),), next_unit=7)}))
    ledger.plan(2.0, DropPlan(2, {"a": WindowMarks((10**6,), ("dk",), ((70, None),), next_unit=10**6 + 2)}))
    strips = WindowStrips()
    Recent(Folder(tmp_path), tell=strips.take).look()
    grid = {"name": "fares", "slide_us": 10, "offset_us": 0, "size_us": 20, "max_gap": None}
    (strip,) = strips.panels({}, {"windows": [grid]})
    assert (strip.first, strip.marks) == (10**6 - 398, "?" * 398 + "dk")
    assert len(strip.start_s) == 400
    assert strip.start_s[-1] == pytest.approx(10 * (10**6 + 1) / 1e6)


def test_thinning_loses_no_rows_and_no_peak(tmp_path: Path) -> None:
    query(tmp_path, batches=1000)
    batches = [*Ledger(tmp_path / "jettison" / "ledger").records("batch")]
    series = thinned(batches, most=99)
    assert len(series.at_s) <= 99
    assert max(latency for latency in series.latency_s if latency is not None) == 3.5
    assert (series.first[0], series.last[-1]) == (0, 999)
    starts = [batches[0]["started_s"] - batches[0]["duration_s"], *series.started_s]
    rows = sum(
        rate * (end - start) for rate, start, end in zip(series.kept_per_s["rides"], starts, starts[1:], strict=False)
    )
    assert abs(rows - (10 * 1000 + 990 * 500)) < 1.0


@pytest.mark.parametrize("wrong", [{"first": None}, {"first": [None]}, {"marks": ["kx"]}, {"marks": ["k", "d"]}])
def test_a_damaged_fate_of_windows_is_left_out(tmp_path: Path, wrong: dict[str, object]) -> None:
    setting = {"kind": "window", "first": [7], "marks": ["kd"], "opens_us": [[None, 90]]}
    good, bad = ({"rides": setting | change} for change in ({}, wrong))
    record = {"record": "plan", "at_s": 1.0, "version": 1, "cause": ""}
    lines = [json.dumps({**record, "points": points}) + "\n" for points in (good, bad)]
    (tmp_path / "run-000001.jsonl").write_text("".join(lines))
    strips = WindowStrips()
    assert Recent(Folder(tmp_path), tell=strips.take).look()
    assert [(strip.first, strip.marks) for strip in strips.panels({}, {})] == [(7, "kd")]
