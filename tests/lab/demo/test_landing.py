from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from jettison.errors import InvalidSetting
from jettison.lab.demo.landing import Lander, Landing, land_all
from jettison.lab.demo.rides import RideBook
from jettison.lab.demo.schedule import Phase, Schedule


def test_records_are_shaped_like_kafkas(tmp_path: Path, read_landed: Callable) -> None:
    before_us = time.time_ns() // 1000
    landing = land_all(tmp_path / "in", 25_000, rows_per_file=10_000)
    landed = read_landed(tmp_path / "in")
    names = {field.name: field.type for field in landed.table.schema}
    assert names == {
        "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("us", tz="UTC"), "value": pa.string()
    }  # fmt: skip
    assert landed.table["offset"].to_pylist() == list(range(25_000))
    assert set(landed.table["partition"].to_pylist()) == {0}
    # Nothing arrives later than now, and the last file's interval ends now.
    assert before_us - 100_000 <= max(landed.arrivals_us) <= time.time_ns() // 1000
    assert landed.arrivals_us == [round(at_s * 1e6) for at_s in landing.arrival_of(range(25_000))]


def test_equal_seeds_land_equal_rides_whatever_the_start(tmp_path: Path, read_landed: Callable) -> None:
    schedule = Schedule.from_phases([Phase(0.3, 5_000)], event_speed=20)
    for name, seed, started_us in [("a", 7, 10**15), ("b", 7, 10**15 + 12_345), ("c", 8, 10**15)]:
        lander = Lander(tmp_path / name, Landing(schedule, RideBook(seed), started_us))
        assert [lander.land(file) for file in range(schedule.files)] == [500, 500, 500]
    a, b, c = (read_landed(tmp_path / name) for name in "abc")
    assert a.table["value"] == b.table["value"]
    assert a.table["value"] != c.table["value"]
    assert [late - early for early, late in zip(a.arrivals_us, b.arrivals_us, strict=True)] == [12_345] * 1500


def test_a_file_without_rows_is_left_out_but_time_goes_on(tmp_path: Path, read_landed: Callable) -> None:
    schedule = Schedule.from_phases([Phase(0.1, 50), Phase(0.2, 0), Phase(0.1, 50)])
    lander = Lander(tmp_path, Landing(schedule, RideBook(7), 10**15))
    assert [lander.land(file) for file in range(schedule.files)] == [5, 0, 0, 5]
    landed = read_landed(tmp_path)
    assert len(landed.files) == 2
    assert landed.files[-1].name == "rides-000003.parquet"
    assert landed.arrivals_us[5] == 10**15 + 300_000


def test_landing_order_is_the_order_of_modification_times(tmp_path: Path, read_landed: Callable) -> None:
    land_all(tmp_path, 50, rows_per_file=1)
    landed = read_landed(tmp_path)
    assert len({path.stat().st_mtime_ns // 10**6 for path in landed.files}) == 50
    assert landed.table["offset"].to_pylist() == list(range(50))


def test_a_directory_with_rides_is_refused(tmp_path: Path) -> None:
    land_all(tmp_path, 10)
    with pytest.raises(InvalidSetting, match="without rides"):
        land_all(tmp_path, 10)


def test_nothing_hidden_is_left(tmp_path: Path) -> None:
    land_all(tmp_path, 100, rows_per_file=10)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
