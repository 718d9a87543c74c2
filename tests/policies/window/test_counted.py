from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.policies.window.counted_windows import CountWindows
from jettison.policies.window.window_choice import Runs
from jettison.policies.window.window_grid import Grid


def all_windows(rows: list[float], size: int, slide: int) -> dict[int, tuple[float, ...]]:
    starts = range(0, len(rows) - size + 1, slide)
    return {start // slide: tuple(rows[start : start + size]) for start in starts}


@st.composite
def machines(draw: st.DrawFn) -> CountWindows:
    size = draw(st.integers(1, 9))
    gap = draw(st.integers(1, 6))
    decider = draw(st.sampled_from([Runs(gap), Runs(gap, run=1)]))
    return CountWindows(Grid(size, draw(st.integers(1, size))), decider)


batches = st.lists(
    st.tuples(st.lists(st.floats(-10, 10), max_size=12), st.sampled_from([0.0, 0.3, 0.7, 1.0])), max_size=12
)


@given(machines(), batches)
@settings(max_examples=500)
def test_what_is_delivered_is_what_would_be_without_drops(machine: CountWindows, fed: list) -> None:
    state, answers = machine.start(), []
    for values, share in fed:
        state, more = machine.feed(state, values, share)
        answers += more
    rows = [value for values, _ in fed for value in values]
    whole = all_windows(rows, machine.grid.size, machine.grid.slide)
    assert dict(answers) == {n: whole[n] for n, _ in answers}
    assert len(dict(answers)) == len(answers)
    delivered = [n in dict(answers) for n in sorted(whole)]
    gaps = [len(list(run)) for there, run in itertools.groupby(delivered) if not there]
    assert max(gaps, default=0) <= machine.decider.max_gap


@given(machines(), batches)
def test_nothing_is_stored_but_what_open_windows_need(machine: CountWindows, fed: list) -> None:
    state = machine.start()
    for values, share in fed:
        state, _ = machine.feed(state, values, share)
        needed = state.seen - state.open[0] * machine.grid.slide if state.open else 0
        assert len(state.values) == needed


def test_with_nothing_to_shed_every_window_is_delivered() -> None:
    machine = CountWindows(Grid(4, 3), Runs(5))
    rows = [float(i) for i in range(40)]
    _, answers = machine.feed(machine.start(), rows, 0.0)
    assert dict(answers) == all_windows(rows, 4, 3)
