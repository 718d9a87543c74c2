"""The plan that a batch reads: a function of its time, and none where no plan on file is old enough or readable."""

from __future__ import annotations

import json
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jettison.core.plan import MOST_PLAN_BYTES, DropPlan
from jettison.core.storage import Folder
from jettison.errors import PlanTooLarge
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.policies.window.window_drop import WindowDrop
from jettison.runtime import plan_file
from jettison.runtime.plan_board import PlanBoard
from jettison.runtime.schedule import EVERYWHERE, NOWHERE, Doubts, Entry, Schedule
from jettison.spark.channel import Channel, version_read
from jettison.spark.mechanisms import RandomMechanism, WindowMechanism

pytestmark = pytest.mark.spark


def now_us() -> int:
    return int(time.time() * 1e6)


def drop(version: int, share: float = 0.5) -> DropPlan:
    return DropPlan(version, {"rows": RandomDrop(share)})


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel(Folder(tmp_path / "jettison"), lease_s=60.0, size=4096)


def forge(channel: Channel, body: str) -> None:
    """A file with a checksum and a lease that fit, whatever it says."""
    checked = f"{now_us() + 60_000_000:016d} 00016 {0:010d} {body}".encode()
    channel._folder.replace("plan", f"{zlib.crc32(checked):010d} ".encode() + checked)


def shares(spark: SparkSession, channel: Channel) -> list[float]:
    """The weights' inverse in the plan that is read, if one is."""
    rows = channel.plan_row(spark, {"rows": RandomMechanism()}, metric="plan").collect()
    return [1 / row.jt_plan.rows.weight for row in rows]


def test_a_batch_takes_the_newest_plan_that_is_not_younger(spark: SparkSession, channel: Channel) -> None:
    channel.publish(
        Schedule(
            (Entry(0, drop(1, 0.25)), Entry(now_us() - 1, drop(2)), Entry(now_us() + 3_600_000_000, drop(3, 0.75)))
        )
    )
    assert shares(spark, channel) == [0.5]


def test_a_batch_older_than_all_plans_has_none(spark: SparkSession, channel: Channel) -> None:
    """As after a clock was set back, or on a host that is behind: nothing is dropped, and the query goes on."""
    schedule = Schedule((Entry(now_us() + 3_600_000_000, drop(1)),))
    channel.publish(schedule)
    assert shares(spark, channel) == []
    assert schedule.at(now_us()) is None


FORGED: dict[str, Any] = {
    "none": [],
    "null": None,
    "nulls": [None, None],
    "without times": [{"version": 1, "points": {"rows": {"kind": "random", "keep_fraction": 0.5}}}],
    "text": "much",
    "a plan that is none": [{"from_us": 0}],
}


@pytest.mark.parametrize("plans", FORGED)
def test_plans_on_file_that_make_no_sense_drop_nothing(spark: SparkSession, channel: Channel, plans: str) -> None:
    forge(channel, json.dumps({"doubtful_until_us": 0, "doubts": "0;", "plans": FORGED[plans]}))
    assert shares(spark, channel) in ([], [1.0])
    windows = WindowMechanism(WindowDrop(time="at", window="10 seconds").spec)
    newest = channel.newest_plan(spark, "rows", windows)
    assert spark.range(1).select(newest.alias("plan")).first() is not None


def test_a_plan_of_any_length_is_read_whole_but_no_file_beyond_the_room_for_plans(
    spark: SparkSession, channel: Channel
) -> None:
    """The query is built over a file of one length, and reads files of others."""
    channel.publish(Schedule.of(drop(1)))
    read = channel.plan_row(spark, {"rows": RandomMechanism()}, metric="plan")
    assert [1 / row.jt_plan.rows.weight for row in read.collect()] == [0.5]
    longer = DropPlan(2, {"rows": RandomDrop(0.25), **{f"p{number}": RandomDrop(0.5) for number in range(30)}})
    for plan, share in ((longer, 0.25), (drop(3, 0.75), 0.75)):
        channel.publish(Schedule.of(plan))
        assert [1 / row.jt_plan.rows.weight for row in read.collect()] == [share]
    newest = json.loads((channel._folder.read("plan") or b"")[plan_file.BODY_START :])
    forge(channel, json.dumps(newest))
    assert [1 / row.jt_plan.rows.weight for row in read.collect()] == [0.75]
    forge(channel, json.dumps(newest) + 4 * MOST_PLAN_BYTES * " ")
    assert read.collect() == []


def test_of_two_files_the_later_writing_counts_whatever_clocks_say_and_a_damaged_one_is_passed_over(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an object store, where Spark and this process must take the same one, or a repeated batch would differ."""
    monkeypatch.setattr(Folder, "keeps_readers", False)
    channel = Channel(Folder(tmp_path / "jettison"), lease_s=60.0, size=4096)
    channel.prepare()
    for version, share, lease_us in ((3, 0.25, 90_000_000), (2, 0.5, 60_000_000), (2, 0.75, 60_000_000)):
        channel.publish(Schedule.of(drop(version, share)), now_us() + lease_us)
        assert shares(spark, channel) == [share]
        assert (found := channel.published()) is not None
        assert found.newest == drop(version, share)
    again = Channel(channel._folder, lease_s=60.0, size=4096)
    again.prepare()
    again.publish(Schedule.of(drop(4, 0.2)))
    assert shares(spark, again) == [0.2]
    for name in again._files:
        if b'"version":4' in (again._folder.read(name) or b""):
            again._folder.replace(name, b"damaged")
    assert shares(spark, again) == [0.75]
    assert not again.damage


@pytest.mark.parametrize("version", [4, 5])
def test_a_damaged_one_of_two_files_is_told_of_and_a_batch_that_is_repeated_keeps_every_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Its plan may have stood in that file alone, so it must not run under the plan before."""
    monkeypatch.setattr(Folder, "keeps_readers", False)
    channel = Channel(Folder(tmp_path / "jettison"), lease_s=60.0, size=4096)
    channel.prepare()
    for number in (4, 5):
        channel.publish(Schedule.of(drop(number)))
    for name in channel._files:
        if f'"version":{version}'.encode() in (channel._folder.read(name) or b""):
            channel._folder.replace(name, b"damaged")
    again = Channel(channel._folder, lease_s=60.0, size=4096)
    again.prepare()
    assert again.damage is not None
    assert "damaged" in again.damage
    assert shares(spark, again) == [1.0]
    published = again.published()
    assert published is not None
    assert published.doubts == EVERYWHERE
    again.publish(published.followed_by(drop(6, 0.2), now_us()))
    assert shares(spark, again) == [0.2]


def test_a_plan_of_nobody_counts_as_none(spark: SparkSession) -> None:
    assert [version_read({"plan": {"version": read}}, "plan") for read in (None, 0, 1)] == [None, None, 1]
    assert version_read({}, "plan") is None


def test_what_fits_leaves_room_for_a_plan_that_keeps_everything(channel: Channel) -> None:
    large = DropPlan(1, {"rows" * 900: RandomDrop(0.5)})
    schedule = Schedule.of(large)
    while channel.fits(longer := schedule.followed_by(large, 0)):
        schedule = longer
    assert len(schedule.entries) == 4
    channel.publish(schedule.followed_by(large.released(2, "words " * 30), 0))


def test_room_for_one_plan_does_not_grow_with_the_number_of_plans_on_file(channel: Channel) -> None:
    large = DropPlan(1, {"rows" * 900: RandomDrop(0.5)})
    schedule = Schedule.of(large)
    while channel.fits(longer := schedule.followed_by(large, 0)):
        schedule = longer
    channel.publish(schedule)
    for _ in range(3):
        again = Channel(channel._folder, lease_s=60.0, size=64)
        again.prepare()
        assert again.published() == schedule
        assert again.fits(schedule)
        assert again.plan_bytes <= channel.plan_bytes
        again.publish(schedule)
    channel.publish(Schedule.of(large))
    alone = Channel(channel._folder, lease_s=60.0, size=64)
    alone.prepare()
    alone.publish(schedule)


def test_a_short_plan_with_long_doubts_is_taken_up_by_one_that_wants_less_room(channel: Channel) -> None:
    schedule = Schedule.of(drop(3), Doubts(77, 77, {f"mark {number}": 0 for number in range(500)}))
    channel.publish(schedule)
    again = Channel(channel._folder, lease_s=60.0, size=64)
    again.prepare()
    assert (again.published() or schedule).newest == drop(3)
    assert again.plan_bytes <= channel.plan_bytes


def test_what_is_on_file_stays_when_another_policy_follows_and_a_lease_that_ended_stays_so(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "jettison")
    before = Channel(folder, lease_s=60.0, size=2048)
    schedule = Schedule.of(drop(3), Doubts(77, 77))
    before.publish(schedule, now_us() - 1_000_000)
    ended_us = before.lease_ends_us()
    channel = Channel(folder, lease_s=60.0, size=4096)
    channel.prepare()
    assert channel.published() == schedule
    assert channel.lease_ends_us() == ended_us
    PlanBoard(channel, schedule).renew()
    assert [entry.plan.version for entry in (channel.published() or schedule).entries] == [3, 0, 3]


EARLIER = {
    "ledger": "jettison/ledger/run-000001.jsonl",
    "Spark's state": "offsets/0",
    "a damaged plan": "jettison/plan",
}


@pytest.mark.parametrize(("earlier", "doubts"), [(None, NOWHERE), *((each, EVERYWHERE) for each in EARLIER)])
def test_a_lost_file_leaves_all_answers_of_an_earlier_run_in_doubt(
    tmp_path: Path, channel: Channel, earlier: str | None, doubts: Doubts
) -> None:
    if earlier is not None:
        (tmp_path / EARLIER[earlier]).parent.mkdir(parents=True)
        (tmp_path / EARLIER[earlier]).write_bytes(b"")
    channel.prepare()
    published = channel.published()
    assert published is not None
    assert (published.newest.version, published.doubts) == (0, doubts)


def test_a_damaged_file_stops_no_start(spark: SparkSession, channel: Channel) -> None:
    channel.publish(Schedule.of(drop(1)))
    whole = channel._folder.read("plan") or b""
    channel._folder.replace("plan", b"\xff" + whole[1:])
    channel.prepare()
    assert channel.damage is not None
    assert channel.read_cost_s(spark) > 0.0
    assert channel.published() == Schedule.of(DropPlan(0, cause="not started"), EVERYWHERE)


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"0000000000 9999999999999999 {}"])
def test_a_damaged_file_has_no_lease(channel: Channel, content: bytes) -> None:
    assert channel.lease_ends_us() is None
    channel._folder.replace("plan", content)
    assert channel.lease_ends_us() is None


def test_the_lease_is_the_usual_one_unless_told_otherwise(channel: Channel) -> None:
    channel.publish(Schedule.of(drop(1)))
    assert abs((channel.lease_ends_us() or 0) - now_us() - 60_000_000) < 10_000_000
    channel.publish(Schedule.of(drop(1)), 5)
    assert channel.lease_ends_us() == 5
    assert plan_file.decode(channel._folder.read("plan") or b"") == Schedule.of(drop(1))


def test_a_plan_gets_the_room_that_is_wanted_up_to_a_limit_and_keeps_it_across_a_restart(
    spark: SparkSession, channel: Channel
) -> None:
    """A query that was built before goes on reading the file."""
    large = Schedule.of(DropPlan(7, {f"p{number}": RandomDrop(0.5) for number in range(500)}))
    channel.prepare()
    reading = channel.plan_row(spark, {"p499": RandomMechanism()}, metric="plan")
    with pytest.raises(PlanTooLarge):
        channel.publish(large)
    assert (channel.room(16 * 4096), channel.room(64), channel.room(10**9)) == (16 * 4096, 16 * 4096, MOST_PLAN_BYTES)
    channel.publish(large)
    assert [row.jt_plan.p499.weight for row in reading.collect()] == [2.0]
    again = Channel(channel._folder, lease_s=60.0, size=4096)
    for _ in range(2):
        again.prepare()
    assert again.published() == large
    again.publish(large)
