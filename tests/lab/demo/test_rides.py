from __future__ import annotations

import json
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.lab.demo.rides import BOOK_ROWS, ZONES, RideBook, RideWriter, zone_name

BOOK = RideBook(seed=7)
WRITER = RideWriter(BOOK, max_rows=2 * BOOK_ROWS + 10)


def texts(page: np.ndarray) -> list[str]:
    return [bytes(row).decode("ascii") for row in page]


@given(st.integers(-3, 3), st.sampled_from([0, 1, 17, 999_999]), st.lists(st.integers(0, 2), min_size=1, max_size=8))
def test_every_row_is_the_right_ride_across_the_end_of_the_book(shift: int, round_: int, steps: list[int]) -> None:
    first = max(0, round_ * BOOK_ROWS + shift)
    event_s = 1_772_438_400 + np.cumsum(steps)
    for number, second, text in zip(range(first, 10**9), event_s, texts(WRITER.write(first, event_s)), strict=False):
        ride, place = json.loads(text), number % BOOK_ROWS
        assert ride["ride_id"] == f"r{number:011d}"
        assert datetime.fromisoformat(ride["time"]).timestamp() == second
        assert ride["zone"] == zone_name(int(BOOK.zone[place]))
        assert ride["fare"] == int(BOOK.fare_cents[place]) / 100


def test_one_call_may_go_more_than_once_through_the_book() -> None:
    page = WRITER.write(BOOK_ROWS - 5, np.full(2 * BOOK_ROWS + 10, 1_772_438_400))
    ids = [text[12:24] for text in texts(page)]
    assert ids == [f"r{number:011d}" for number in range(BOOK_ROWS - 5, 3 * BOOK_ROWS + 5)]


def test_no_rows_is_no_text() -> None:
    assert WRITER.write(3, np.array([], dtype=np.int64)).shape[0] == 0


def test_rides_are_about_150_bytes_of_json_with_all_fields() -> None:
    ride = json.loads(texts(BOOK.text[:1])[0])
    fields = ["ride_id", "time", "zone", "dropoff", "distance_km", "fare", "tip", "payment", "passengers"]
    assert list(ride) == fields
    assert 140 <= WRITER.width <= 175


def test_fares_have_the_intended_distribution() -> None:
    variable = (BOOK.fare_cents / 100 - 2.5) / 1.75
    # Log-normal with the zone's scale, which averages about 1: the median is near exp(0.9).
    assert np.log(np.median(variable)) == pytest.approx(0.9, abs=0.15)
    means = [BOOK.fare_cents[BOOK.zone == zone].mean() for zone in range(10)]
    assert max(means) / min(means) > 1.1


def test_zones_follow_zipf() -> None:
    counts = np.bincount(BOOK.zone, minlength=ZONES)
    assert counts.min() > 0
    assert counts[0] / counts[9] == pytest.approx(10, rel=0.2)


def test_equal_seeds_give_equal_books_and_the_text_changes_no_number() -> None:
    with_text, without = RideBook(seed=11), RideBook(seed=11)
    assert with_text.text.shape[0] == BOOK_ROWS
    assert (with_text.fare_cents == without.fare_cents).all()
    assert (with_text.zone == without.zone).all()
    assert (with_text.text == without.text).all()
    assert (RideBook(seed=12).fare_cents != without.fare_cents).any()
