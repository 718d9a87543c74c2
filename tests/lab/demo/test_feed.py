from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jettison.errors import InvalidSetting, JettisonError
from jettison.lab.demo.feed import RideFeed
from jettison.lab.demo.schedule import Phase


def landed_s(path: Path) -> float:
    """When the file appeared: renaming sets the change time, which nobody can set otherwise."""
    return path.stat().st_ctime


def child(feed: RideFeed) -> int:
    assert feed._process is not None
    return feed._process.pid


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip()[:1] not in ("", "Z")


def eventually_gone(pid: int, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def test_the_schedule_is_kept_though_nobody_reads(tmp_path: Path, read_landed: Callable) -> None:
    phases = [Phase(0.4, 5_000), Phase(0.2, 0), Phase(0.4, 20_000)]
    with RideFeed(tmp_path, phases) as feed:
        report = feed.wait()
    landed = read_landed(tmp_path)
    assert report.rows == landed.table.num_rows == 10_000
    assert [pq.read_metadata(path).num_rows for path in landed.files] == [500] * 4 + [2000] * 4
    for path in landed.files:
        due_s = feed.started_s + feed.schedule.due_us(int(path.stem[-6:])) / 1e6
        # The kernel stamps files by a clock that lags a few milliseconds.
        assert due_s - 0.02 <= landed_s(path)
    assert landed.arrivals_us == [round(at_s * 1e6) for at_s in feed.landing.arrival_of(range(10_000))]
    assert landed.arrivals_us[0] == round(feed.started_s * 1e6)


def test_a_late_feed_catches_up_and_rows_keep_their_arrival(tmp_path: Path, read_landed: Callable) -> None:
    with RideFeed(tmp_path, [Phase(3.0, 10_000)]) as feed:
        os.kill(child(feed), signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(child(feed), signal.SIGCONT)
        report = feed.wait()
    landed = read_landed(tmp_path)
    assert report.worst_late_s > 0.7
    assert landed.table.num_rows == 30_000
    assert landed.arrivals_us == [round(at_s * 1e6) for at_s in feed.landing.arrival_of(range(30_000))]
    # A stretched schedule would be a second late with each of the last files, a busy machine with some of them.
    late_s = [
        landed_s(path) - feed.started_s - feed.schedule.due_us(int(path.stem[-6:])) / 1e6 for path in landed.files
    ]
    assert min(late_s[-15:]) < 0.6 * report.worst_late_s


def test_no_partial_file_is_ever_visible(tmp_path: Path) -> None:
    seen: dict[str, int] = {}
    with RideFeed(tmp_path, [Phase(1.0, 600_000)], interval_s=0.05) as feed:
        while len(seen) < feed.schedule.files and time.time() < feed.started_s + 60:
            for path in tmp_path.glob("*.parquet"):
                if path.name not in seen:
                    # Reading fails where the footer is not there yet.
                    seen[path.name] = pq.read_metadata(path).num_rows
    assert sorted(seen.values()) == [30_000] * 20


def test_stop_ends_the_process_and_the_truth_is_of_what_landed(tmp_path: Path, read_landed: Callable) -> None:
    feed = RideFeed(tmp_path, [Phase(60, 10_000)]).start()
    pid = child(feed)
    while len(list(tmp_path.glob("*.parquet"))) < 2:
        time.sleep(0.02)
    feed.stop()
    assert not alive(pid)
    landed = read_landed(tmp_path)
    rows = feed.wait().rows
    rides = sum(answer.rides for answer in feed.landing.truth(window_s=5, rows=rows).values())
    assert rows == landed.table.num_rows == rides < 600_000
    feed.stop()


def test_an_error_in_the_block_ends_the_process(tmp_path: Path) -> None:
    feed = RideFeed(tmp_path, [Phase(60, 100)])
    with pytest.raises(KeyError), feed:
        raise KeyError
    assert not alive(child(feed))


def test_ctrl_c_is_the_parents_business(tmp_path: Path) -> None:
    with RideFeed(tmp_path, [Phase(0.5, 1_000)]) as feed:
        os.kill(child(feed), signal.SIGINT)
        assert feed.wait().rows == 500


ORPHAN = """
import os, signal, sys, time
from jettison.lab.demo.feed import Phase, RideFeed
feed = RideFeed(sys.argv[1], [Phase(60, 1000)]).start()
worker = os.fork() if sys.argv[2] == "forked" else -1
if worker == 0:
    os.close(1)
    os.close(2)
    time.sleep(120)  # holds the feed's input open, as a forked worker would
    os._exit(0)
print(feed._process.pid, worker, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["plain", "forked"])
def test_the_feed_ends_with_its_parent(tmp_path: Path, kind: str) -> None:
    program = [sys.executable, "-c", ORPHAN, str(tmp_path), kind]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        feed, worker = map(int, parent.stdout.readline().split())
        assert parent.wait() == -signal.SIGKILL
        gone = eventually_gone(feed, within_s=100.0)
    if worker > 0:
        os.kill(worker, signal.SIGKILL)
    assert gone


def test_what_went_wrong_in_the_process_is_an_error_here(tmp_path: Path) -> None:
    feed = RideFeed(tmp_path, [Phase(60, 100)]).start()
    os.kill(child(feed), signal.SIGKILL)
    with pytest.raises(JettisonError, match="exit code -9"):
        feed.wait()


def test_a_feed_runs_once_and_into_a_fresh_directory(tmp_path: Path) -> None:
    with RideFeed(tmp_path, [Phase(0.1, 100)]) as feed:
        feed.wait()
    with pytest.raises(JettisonError, match="started before"):
        feed.start()
    with pytest.raises(InvalidSetting, match="without rides"):
        RideFeed(tmp_path, [Phase(0.1, 100)]).start()


def test_before_the_start_there_is_no_time(tmp_path: Path) -> None:
    feed = RideFeed(tmp_path, [Phase(0.1, 100)])
    with pytest.raises(JettisonError, match="call `start`"):
        _ = feed.landing
    with pytest.raises(JettisonError, match="call `start`"):
        feed.wait()
    feed.stop()
