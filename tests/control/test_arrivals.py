"""The arrival rate against known ones, and what the arrival column is believed."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from jettison.control.arrivals import Arrivals
from jettison.core.documents import plain, restored
from jettison.core.stats import PointStats, Stats


def batch(number: int, started_s: float, seen: int, oldest: float | None = None, newest: float | None = None) -> Stats:
    points = {"p": PointStats(seen, seen)}
    return Stats(number, started_s, 1.0, points, oldest_arrival_s=oldest, newest_arrival_s=newest)


def test_a_jump_of_the_rate_is_followed_at_once_and_noise_is_smoothed() -> None:
    arrivals = Arrivals()
    for number, seen in enumerate((1000, 1000, 1000, 1100)):
        arrivals.observe(batch(number, float(number), seen))
    assert arrivals.rows_per_s is not None
    assert 1000 < arrivals.rows_per_s < 1060
    arrivals.observe(batch(4, 4.0, 10_000))
    assert arrivals.rows_per_s == 10_000
    arrivals.observe(batch(5, 5.0, 100))
    assert arrivals.rows_per_s == 100


def test_a_step_late_in_a_batch_shows_in_its_last_second() -> None:
    arrivals = Arrivals()
    for number in range(4):
        arrivals.observe(replace(batch(number, 4.0 * number, 4000), recent_rows_per_s=1000.0))
    # 3.2 s at 1,000 rows/s and 0.8 s at 6,000: the average says 2,000, the last second 5,000.
    arrivals.observe(replace(batch(4, 16.0, 8000), recent_rows_per_s=5000.0))
    assert arrivals.rows_per_s == 5000.0
    # And back down again: 3 s at 6,000 and 1 s at 1,000.
    arrivals.observe(replace(batch(5, 20.0, 24_000), recent_rows_per_s=6000.0))
    arrivals.observe(replace(batch(6, 24.0, 19_000), recent_rows_per_s=1000.0))
    assert arrivals.rows_per_s == 1000.0


@pytest.mark.parametrize("recent", [0.0, 200.0, 5000.0])
def test_bursts_within_batches_of_equal_size_are_no_step(recent: float) -> None:
    arrivals = Arrivals()
    for number in range(4):
        arrivals.observe(replace(batch(number, 4.0 * number, 4000), recent_rows_per_s=1000.0))
    arrivals.observe(replace(batch(4, 16.0, 4100), recent_rows_per_s=recent))
    assert arrivals.rows_per_s == pytest.approx(1000.0, rel=0.05)


def test_without_arrivals_the_first_batch_tells_no_rate() -> None:
    arrivals = Arrivals()
    arrivals.observe(batch(0, 100.0, 5_000_000))
    assert arrivals.rows_per_s is None


def test_rows_left_behind_by_an_unknown_cap_are_noticed() -> None:
    """Each batch takes rows that had been waiting at the trigger before, ever older ones."""
    arrivals = Arrivals()
    for n in range(6):
        arrivals.observe(batch(n, 100.0 + 2 * n, 1000, oldest=99.0 + n, newest=100.0 + n))
    assert (arrivals.served_until_s, arrivals.cap_for_next()) == (105.0, 1000.0)
    assert arrivals.rows_per_s == pytest.approx(1000.0)


def test_the_source_itself_tells_of_rows_left_behind() -> None:
    arrivals = Arrivals()
    arrivals.observe(replace(batch(0, 100.0, 1000, oldest=40.0, newest=50.0), waiting_rows=5000))
    assert (arrivals.rows_per_s, arrivals.served_until_s, arrivals.cap_for_next()) == (100.0, 50.0, 1000.0)
    arrivals.observe(replace(batch(1, 101.0, 1000, oldest=50.0, newest=60.0), waiting_rows=4100))
    assert (arrivals.rows_per_s, arrivals.served_until_s) == (100.0, 60.0)
    arrivals.observe(replace(batch(2, 102.0, 4200, oldest=60.0, newest=102.0), waiting_rows=0))
    assert (arrivals.served_until_s, arrivals.cap_for_next()) == (102.0, math.inf)


def test_a_source_that_paused_before_the_trigger_is_no_backlog() -> None:
    arrivals = Arrivals()
    arrivals.observe(batch(0, 100.0, 1000, oldest=99.5, newest=99.9))
    arrivals.observe(batch(1, 105.0, 1000, oldest=100.1, newest=101.0))
    assert arrivals.served_until_s == 105.0
    assert arrivals.cap_for_next() == math.inf


def test_delivery_time_is_learned_and_proves_no_cap() -> None:
    """Rows are offered 0.4 s after they have arrived."""
    arrivals = Arrivals()
    for n in range(40):
        arrivals.observe(batch(n, 100.0 + n, 1000, oldest=98.6 + n, newest=99.6 + n))
        assert arrivals.cap_for_next() == math.inf
    assert arrivals.offset_s == pytest.approx(0.4, abs=0.02)
    arrivals.observe(batch(40, 144.0, 1000, oldest=138.6, newest=139.6))
    assert arrivals.cap_for_next() == math.inf  # nothing was passed over at the trigger before
    arrivals.observe(batch(41, 148.0, 1000, oldest=139.6, newest=140.6))
    assert arrivals.cap_for_next() == 1000.0


def test_a_backlog_that_grows_slowly_is_not_learned_as_delivery_time() -> None:
    arrivals = Arrivals()
    for n in range(12):  # 1.2 s between triggers, rows of 0.9 s taken at each
        arrivals.observe(batch(n, 100.0 + 1.2 * n, 1000, oldest=99.0 + 0.9 * n, newest=99.9 + 0.9 * n))
    assert arrivals.cap_for_next() == 1000.0
    assert arrivals.offset_s < 0.6


def test_a_silent_second_before_a_capped_batch_is_not_taken_for_the_end_of_the_load() -> None:
    """A long batch before it: all rows of the next one are older than a second, because a cap leaves the rest behind."""
    arrivals = Arrivals()
    arrivals.observe(batch(0, 10.0, 50_000, oldest=9.0, newest=10.0))
    arrivals.observe(batch(1, 11.0, 50_000, oldest=10.0, newest=11.0))
    silent = replace(batch(2, 20.0, 150_000, oldest=11.0, newest=14.0), recent_rows_per_s=0.0)
    arrivals.observe(silent)
    assert arrivals.rows_per_s == pytest.approx(50_000)


def test_a_known_cap_is_noticed_in_the_first_full_batch() -> None:
    arrivals = Arrivals(given_cap=1000)
    arrivals.observe(batch(0, 10.0, 500, oldest=9.0, newest=10.0))
    arrivals.observe(batch(1, 11.0, 1000, oldest=10.0, newest=10.5))
    assert (arrivals.rows_per_s, arrivals.served_until_s) == (2000.0, 10.5)


def test_silence_ends_the_rate() -> None:
    arrivals = Arrivals()
    arrivals.observe(batch(0, 1.0, 1000))
    arrivals.observe(batch(1, 2.0, 1000))
    arrivals.idle(60.0)
    assert (arrivals.rows_per_s, arrivals.served_until_s) == (0.0, 60.0)
    assert restored(json.loads(json.dumps(plain(arrivals))), Arrivals) == arrivals


@pytest.mark.parametrize("span_s", [0.0, 0.022, 0.9])
def test_a_first_batch_of_a_moment_tells_no_rate(span_s: float) -> None:
    """44,697 rows that arrived within 22 ms are what the source had at hand, and not two million rows a second."""
    arrivals = Arrivals()
    arrivals.observe(batch(0, 100.0, 44_697, oldest=100.0 - span_s, newest=100.0))
    assert arrivals.rows_per_s is None
    arrivals.observe(batch(1, 108.0, 480_000, oldest=100.0, newest=108.0))
    assert arrivals.rows_per_s == pytest.approx(60_000)


def test_a_batch_repeated_after_a_restart_is_not_divided_by_the_time_since() -> None:
    arrivals = Arrivals()
    for n in range(3):
        arrivals.observe(batch(n, 100.0 + n, 22_000, oldest=99.0 + n, newest=100.0 + n))
    arrivals = restored(json.loads(json.dumps(plain(arrivals))), Arrivals)
    arrivals.begin()
    arrivals.observe(batch(3, 105.4, 22_000, oldest=102.0, newest=103.0))  # repeated 3.4 s after the last trigger
    assert arrivals.rows_per_s == pytest.approx(22_000)
    arrivals.observe(batch(4, 107.0, 88_000, oldest=103.0, newest=107.0))  # all that came during the downtime
    assert arrivals.rows_per_s == pytest.approx(22_000)


@pytest.mark.parametrize("behind_s", [-7200.0, -1.5, 1.0, 2.0, 3600.0])
def test_another_clock_is_found_and_taken_out(behind_s: float) -> None:
    arrivals, shifted = Arrivals(), Arrivals()
    for n in range(10):
        start_s, rows = 1e6 + 1.3 * n + 0.1 * (n % 3), 1000 + 50 * (n % 4)
        arrivals.observe(batch(n, start_s, rows, start_s - 1.3, start_s - 0.01))
        shifted.observe(batch(n, start_s, rows, start_s - 1.3 - behind_s, start_s - 0.01 - behind_s))
    assert shifted.offset_s == pytest.approx(behind_s + 0.01)
    assert shifted.rows_per_s == pytest.approx(arrivals.rows_per_s)
    assert shifted.served_until_s == arrivals.served_until_s
    assert shifted.cap_for_next() == math.inf


def test_large_files_whose_rows_are_of_various_age_are_no_backlog() -> None:
    """A file of two seconds of rows lands every two seconds; batches of 0.7 s find none or one."""
    arrivals = Arrivals()
    for n in range(30):
        landed_s = 100.0 + 2 * n
        arrivals.observe(batch(n, landed_s + 0.23 * (n % 4), 2000, oldest=landed_s - 2.0, newest=landed_s - 0.01))
        assert arrivals.cap_for_next() == math.inf


@pytest.mark.parametrize(
    "stamps",
    [
        [(5.0, 5.0)] * 12,
        [(1e9 * (-1) ** n, 1e9 * (-1) ** n + 1) for n in range(12)],
        [(86_400.0 * n, 86_400.0 * n + 10) for n in range(12)],
        [(1e6 + n - 4e7, 1e6 + n - 4e7 + 0.9) for n in range(12)],
    ],
    ids=["constant", "to and fro", "a day a batch", "years off"],
)
def test_a_column_that_cannot_be_one_of_arrivals_is_ignored(stamps: list[tuple[float, float]]) -> None:
    arrivals = Arrivals()
    for n, (oldest, newest) in enumerate(stamps):
        arrivals.observe(batch(n, 1e6 + n, 1000, oldest, newest))
    assert arrivals.incredible
    assert not arrivals.observed
    assert arrivals.rows_per_s == pytest.approx(1000)
    assert arrivals.served_until_s == 1e6 + 11
    assert arrivals.cap_for_next() == math.inf


def test_a_column_that_has_come_to_reason_is_believed_again() -> None:
    arrivals = Arrivals()
    for n in range(4):
        arrivals.observe(batch(n, 1e6 + n, 1000, 1e9 * (-1) ** n, 1e9 * (-1) ** n))
    assert arrivals.incredible
    for n in range(4, 40):
        arrivals.observe(batch(n, 1e6 + n, 1000, 1e6 + n - 1.2, 1e6 + n - 0.2))
    assert arrivals.observed
    assert arrivals.offset_s == pytest.approx(0.2)
