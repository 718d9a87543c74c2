from __future__ import annotations

import io

import pytest
from rich.console import Console

from jettison.lab import time_left as shown
from jettison.lab.time_left import time_left


def last_line(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("second_s", "passed_s", "said"),
    [
        (300.0, 20.0, "first (1 of 2)"),
        (300.0, 20.0, "about 6 min left"),
        (300.0, 90.0, "longer than usual, about 5 min left"),
        (None, 90.0, "so far, nobody knows how much longer"),
    ],
)
def test_it_says_how_long_all_parts_still_take(
    monkeypatch: pytest.MonkeyPatch, second_s: float | None, passed_s: float, said: str
) -> None:
    now = [1000.0]
    monkeypatch.setattr(shown.time, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with time_left(console, {"first": 60.0, "second": second_s}) as begin:
        begin("first")
        now[0] += passed_s
    assert said in last_line(console)


def test_it_says_at_least_how_long_where_a_later_part_is_known() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with time_left(console, {"first": None, "second": 300.0}) as begin:
        begin("first")
    assert "0 s so far, at least 5 min left" in last_line(console)


def test_it_says_at_most_how_long_where_parts_may_be_left_out() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with time_left(console, {"first": 60.0, "second": 300.0}, at_most=True) as begin:
        begin("first")
    assert "at most 6 min left" in last_line(console)


def test_what_is_no_terminal_shows_nothing() -> None:
    console = Console(file=io.StringIO())
    with time_left(console, {"first": 60.0}) as begin:
        begin("first")
    assert last_line(console) == ""
