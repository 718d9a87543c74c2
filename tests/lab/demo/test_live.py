"""What people see while the demo runs: plain lines where the output is no terminal. Starts no Spark."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from jettison.lab.demo import live
from jettison.lab.demo.experiment import Moment
from jettison.lab.demo.live import shown

MOMENT = Moment(
    "shed", elapsed_s=20.0, total_s=66.0, arrival_rows_per_s=451_234.0, kept_fraction=0.321, latency_s=8.7, note="why"
)


class Clock:
    """Stands in for `time` in the view."""

    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(live, "time", clock)
    return clock


def test_without_a_terminal_a_line_says_progress_rate_share_and_latency(clock: Clock) -> None:
    console = Console(file=io.StringIO(), width=60)  # narrower than a line: lines must not be broken
    with shown(console, "2. Guarded", bound_s=10.0) as show:
        show(MOMENT)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines == [
        "2. Guarded",
        "     20 of 66 s  arriving   451,234 rows/s  kept  32.1%  latency   8.7 s (bound 10 s)",
    ]


def test_a_line_comes_every_four_seconds_however_often_it_is_told(clock: Clock) -> None:
    console = Console(file=io.StringIO())
    with shown(console, "title", bound_s=10.0) as show:
        for tick in range(17):
            clock.now_s = 100.0 + tick / 2
            show(replace(MOMENT, elapsed_s=tick / 2))
    assert len(console.file.getvalue().splitlines()) == 1 + 3  # type: ignore[attr-defined]


def test_a_latency_over_the_bound_is_called_so(clock: Clock) -> None:
    console = Console(file=io.StringIO(), width=200)
    with shown(console, "title", bound_s=10.0) as show:
        show(replace(MOMENT, latency_s=10.5))
    assert console.file.getvalue().endswith("latency  10.5 s (bound 10 s) OVER\n")  # type: ignore[attr-defined]


def test_a_terminal_gets_one_panel_with_the_cause() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with shown(console, "title", bound_s=10.0) as show:
        show(MOMENT)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "8.7 s of 10 s" in text
    assert "32.1%" in text
    assert "why" in text


def test_an_error_in_the_run_gives_the_terminal_back() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with pytest.raises(RuntimeError, match="the query died"), shown(console, "title", bound_s=10.0):
        raise RuntimeError("the query died")
    with shown(console, "again", bound_s=10.0) as show:  # rich allows one live display at a time
        show(MOMENT)
