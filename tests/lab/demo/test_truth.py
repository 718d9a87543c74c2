from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.lab.demo.landing import Answer, Landing, _times_in_book, land_all
from jettison.lab.demo.rides import BOOK_ROWS, RideBook
from jettison.lab.demo.schedule import Schedule

Answers = dict[tuple[int, str], tuple[int, int]]


def parsed(rides: list[dict[str, object]]) -> list[tuple[int, str, int]]:
    """Event time, zone and cents of each ride, from nothing but the JSON."""
    return [
        (
            int(datetime.fromisoformat(str(ride["time"])).timestamp()),
            str(ride["zone"]),
            round(float(str(ride["fare"])) * 100),
        )
        for ride in rides
    ]


def brute_force(rides: list[tuple[int, str, int]], window_s: int) -> Answers:
    answers: Answers = {}
    for event_s, zone, fare_cents in rides:
        key = (event_s - event_s % window_s, zone)
        count, cents = answers.get(key, (0, 0))
        answers[key] = (count + 1, cents + fare_cents)
    return answers


def as_pairs(truth: dict[tuple[int, str], Answer]) -> Answers:
    return {key: (answer.rides, answer.fare_cents) for key, answer in truth.items()}


def test_truth_is_what_json_says_about_the_landed_files(tmp_path: Path, read_landed: Callable) -> None:
    rows = BOOK_ROWS + 2_501
    landing = land_all(tmp_path, rows, rows_per_file=1_000, event_speed=3.7)
    rides = parsed(read_landed(tmp_path).rides)
    # 7 does not divide the hour the clock starts at; 86,400 puts everything into one window.
    for window_s in (1, 7, 86_400):
        assert as_pairs(landing.truth(window_s=window_s)) == brute_force(rides, window_s)
    assert as_pairs(landing.truth(window_s=7, rows=4_567)) == brute_force(rides[:4_567], 7)


def test_the_mean_is_that_of_the_fares() -> None:
    schedule, book = Schedule.of_rows(1000, rows_per_file=1000), RideBook(7)
    for (_, zone), answer in Landing(schedule, book, 0).truth(window_s=60).items():
        fares = book.fare_cents[:1000][book.zone[:1000] == int(zone[1:]) - 1] / 100
        assert answer.rides == len(fares)
        assert answer.fare_mean == pytest.approx(fares.mean())


@settings(max_examples=30)
@given(st.integers(0, 3 * BOOK_ROWS), st.sampled_from([0, 1, 77, BOOK_ROWS - 1, BOOK_ROWS, BOOK_ROWS + 1, 250_001]))
def test_times_in_book_counts_each_place(start: int, length: int) -> None:
    expected = Counter((np.arange(start, start + length) % BOOK_ROWS).tolist())
    times = _times_in_book(range(start, start + length))
    assert {place: times[place] for place in np.flatnonzero(times).tolist()} == expected
