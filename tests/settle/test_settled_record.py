"""The record beside the checkpoint, Spark's log of files, and when not to work."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from jettison.core import storage
from jettison.core.documents import encode
from jettison.core.stats import PointStats, Stats
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, InvalidSetting, Unsupported
from jettison.runtime.ledger import Ledger
from jettison.runtime.owner import Owner, Sign, place
from jettison.settle import working_hours
from jettison.settle.delta_table import _is_held
from jettison.settle.file_log import FileLog, base_path
from jettison.settle.settled_record import Part, Settled, load, save, stretches, summary
from jettison.settle.touched_windows import Look, Lost, Window
from jettison.settle.working_hours import Manners, sheds


def test_the_record_comes_back_as_it_was(tmp_path: Path) -> None:
    home = storage.home(tmp_path)
    assert load(home) == Settled()
    assert summary(load(home)) is None
    windows = tuple(Window(10 * n, 10 * n + 10) for n in range(6))
    record = Settled(
        to="exact",
        query="ab",
        looks=(Look(3, 4, windows),),
        parts=(
            Part(number=1, windows=windows[:2], through=9, rows_read=5, at_s=1.0),
            Part(number=2, windows=windows[2:3], through=9),
        ),
        lost=(Lost(3, 3, "a file is gone", 45, 52),),
    )
    save(home, record)
    again = load(home)
    assert again == record
    assert again.settled == set(windows[:2]), "a part that is under way is not settled"
    assert again.unsettled == {windows[2], windows[3]}
    assert again.lost_windows == {windows[4], windows[5]}
    said = "of 6 windows that rows were dropped from: 2 settled, 2 open, 2 lost"
    assert summary(again) == f"{said}; exact by reconciliation since 1970-01-01 00:00:01+00:00"
    assert [(state, note) for state, _, _, note in stretches(again, 9)] == [
        ("settled", "1970-01-01 00:00:01+00:00"),
        ("open", ""),
        ("lost", "a file is gone"),
    ]


def test_what_was_only_assumed_is_looked_at_by_a_run_that_does_not_assume_it() -> None:
    windows = tuple(Window(10 * n, 10 * n + 10) for n in range(3))
    looks = Look(3, 4, windows[:2], assumed=True), Look(6, 7, windows[2:])
    record = Settled(looks=looks, parts=(Part(number=1, windows=windows[:1], through=9, at_s=1.0),))
    assert record.begun("exact", "ab", in_order=True).looks == looks
    again = record.begun("exact", "ab", in_order=False)
    assert again.looks == looks[1:]
    assert again.settled == {windows[0]}, "for good"
    assert str(summary(again)).startswith("of 2 windows that rows were dropped from: 1 settled, 1 open, 0 lost")


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    home = storage.home(tmp_path)
    (home / "settle").replace("settled.json", b'{"parts": 3}')
    with pytest.raises(InvalidInput, match="must be readable"):
        load(home)


def test_files_are_found_in_sparks_log_compacted_or_not(tmp_path: Path) -> None:
    folder = tmp_path / "sources" / "0"
    folder.mkdir(parents=True)
    (tmp_path / "in put").mkdir()

    def line(number: int) -> str:
        (tmp_path / "in put" / f"{number}.json").write_text("x" * number)
        path = f"file://{tmp_path}/in%20put/{number}.json"
        return json.dumps({"path": path, "timestamp": 1, "batchId": number}) + "\n"

    (folder / "0").write_text("v1\n" + line(0))
    (folder / "1.compact").write_text("v1\n" + line(0) + line(1))
    (folder / "2").write_text("v1\n" + line(2))
    (folder / ".3.tmp").write_text("v1\n" + line(3))
    log = FileLog(Folder(tmp_path), 0)
    assert [path.rpartition("/")[2] for path in log.files(-1, 2)] == ["0.json", "1.json", "2.json"]
    assert [path.rpartition("/")[2] for path in log.files(1, 2)] == ["2.json"]
    assert log.is_known(-1, 2)
    assert not log.is_known(1, 3)
    (second,) = log.files(1, 2)
    there = log.now(second)
    assert there is not None
    assert there.size == 2
    assert log.now(second + ".gone") is None


def test_it_works_no_faster_and_at_no_other_hours_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        hour = 20.0

        def now(self) -> datetime:
            return datetime(2026, 1, 1, int(self.hour))

        def sleep(self, seconds: float) -> None:
            self.hour += seconds / 3600
            slept.append(seconds)

    slept, said, clock = list[float](), list[str](), Clock()
    monkeypatch.setattr(working_hours, "datetime", clock)
    monkeypatch.setattr(working_hours.time, "sleep", clock.sleep)
    manners = Manners(rows_per_s=100.0, hours=(22, 6))
    assert manners.reason_to_stop(storage.home(tmp_path), lambda doing, rows, of: said.append(doing)) == ""
    assert clock.hour == pytest.approx(22.0, abs=0.01)
    assert set(said) == {"waiting until 22:00"}
    slept.clear()
    manners.rest(1000, took_s=4.0)
    manners.rest(1000, took_s=40.0)
    assert slept == [6.0, 0.0]
    assert manners.at_once(10**7) == 6000, "what it may read in a minute: then it holds within a part"
    assert (Manners().at_once(50), manners.at_once(50)) == (50, 50)


@pytest.mark.parametrize("rows_per_s", [0.0, -1.0, float("nan")])
def test_no_rows_a_second_are_refused(rows_per_s: float) -> None:
    with pytest.raises(InvalidSetting, match="`rows_per_s` must be a positive number"):
        Manners(rows_per_s)


def test_it_stops_for_a_live_query_that_sheds(tmp_path: Path) -> None:
    home = storage.home(tmp_path)
    ledger = Ledger(home / "ledger", run="run-000001")
    ledger.batch(Stats(0, 1e9, 1.0, {"rows": PointStats(10, 4)}), latency_s=1.0)
    assert not sheds(home, 1e9 + 2), "no query runs"
    owner = Owner(home)
    owner.claim(lambda _: None)
    try:
        assert sheds(home, 1e9 + 2)
        assert not sheds(home, 1e9 + 1000), "that was long ago"
        ledger.batch(Stats(7, 1e9, 400.0, {"rows": PointStats(10, 4)}), latency_s=1.0)
        assert sheds(home, 1e9 + 1000), "its batches take that long"
        ledger.start(1e9, dry_run=True)
        assert not sheds(home, 1e9 + 2), "it only counts what it would drop"
        ledger.start(1e9, dry_run=False)
        assert sheds(home, 1e9 + 2)
        ledger.batch(Stats(1, 1e9 + 3, 1.0, {"rows": PointStats(10, 10)}), latency_s=1.0)
        assert not sheds(home, 1e9 + 5), "everything is kept again"
    finally:
        owner.release()


def test_a_file_that_was_changed_is_told_from_one_that_was_not(tmp_path: Path) -> None:
    """By milliseconds where both tell them, otherwise by seconds."""
    file = tmp_path / "a.json"
    file.write_text("x")
    log = FileLog(Folder(tmp_path), 0)

    def is_changed(at_ms: int, found_ms: int) -> bool:
        os.utime(file, ns=(at_ms * 10**6 + 999, at_ms * 10**6 + 999))
        log.look_again()
        return log.is_changed(str(file), found_ms)

    assert not is_changed(1_700_000_000_123, 1_700_000_000_123)
    assert is_changed(1_700_000_000_123, 1_700_000_000_124)
    assert not is_changed(1_700_000_000_123, 1_700_000_000_000)
    assert not is_changed(1_700_000_000_000, 1_700_000_000_123)
    assert is_changed(1_700_000_001_000, 1_700_000_000_123)


def test_columns_begin_below_one_folder() -> None:
    paths = ["/rides/day=1/hour=2/a.json", "/rides/day=2/hour=1/b.json"]
    assert base_path(paths, ["Day", "hour"]) == "/rides"
    with pytest.raises(Unsupported, match="must all lie in one folder"):
        base_path([*paths, "/others/day=2/c.json"], ["day"])
    with pytest.raises(Unsupported, match="files outside of such folders"):
        base_path([*paths, "/rides/c.json"], ["day"])
    assert base_path([], ["day"]) is None


def test_a_query_that_was_killed_does_not_run(tmp_path: Path) -> None:
    home = storage.home(tmp_path)
    assert not _is_held(home)
    owner = Owner(home)
    owner.claim(lambda _: None)
    try:
        assert _is_held(home)
    finally:
        owner.release()
    ended = subprocess.Popen(["true"])
    ended.wait()
    home.replace("owner.json", encode(Sign(run="killed", **place(), pid=ended.pid)).encode())
    assert not _is_held(home)
