from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.lab.demo.schedule import Phase, Schedule

phases = st.lists(
    st.builds(Phase, duration_s=st.floats(0.01, 3.0), rows_per_s=st.sampled_from([0, 1, 7, 333.3, 1000, 4999])),
    min_size=1,
    max_size=4,
)
schedules = st.builds(
    Schedule.from_phases, phases, interval_s=st.sampled_from([0.013, 0.1, 0.25, 5.0]), event_speed=st.floats(0.1, 600)
)


@given(phases, st.sampled_from([0.013, 0.1, 5.0]))
def test_all_rows_of_the_phases_are_scheduled_and_no_time_is_added(phases: list[Phase], interval_s: float) -> None:
    schedule = Schedule.from_phases(phases, interval_s=interval_s)
    assert schedule.rows == pytest.approx(sum(phase.duration_s * phase.rows_per_s for phase in phases), abs=1)
    assert schedule.duration_s == pytest.approx(sum(phase.duration_s for phase in phases), abs=1e-5)


@given(schedules)
def test_each_row_arrives_within_the_interval_of_its_file_and_in_order(schedule: Schedule) -> None:
    arrival_us = schedule.arrival_us(np.arange(schedule.rows))
    assert (np.diff(arrival_us) >= 0).all()
    for file in range(schedule.files):
        rows = schedule.file_rows(file)
        mine = arrival_us[rows.start : rows.stop]
        assert ((schedule.edges_us[file] <= mine) & (mine < schedule.due_us(file))).all()


@given(schedules, st.floats(0.0, 1.2))
def test_rows_by_a_time_are_those_that_arrive_before_it(schedule: Schedule, share: float) -> None:
    at_us = share * schedule.edges_us[-1]
    assert schedule.rows_by(at_us) == (schedule.arrival_us(np.arange(schedule.rows)) < at_us).sum()


@given(schedules)
def test_event_time_never_falls(schedule: Schedule) -> None:
    event_s = schedule.event_s(schedule.arrival_us(np.arange(schedule.rows)))
    assert (np.diff(event_s) >= 0).all()


def test_a_rate_holds_from_the_first_to_the_last_instant_of_its_phase() -> None:
    schedule = Schedule.from_phases([Phase(0.25, 1000), Phase(0.25, 0), Phase(0.3, 10)], interval_s=0.1)
    assert [len(schedule.file_rows(file)) for file in range(schedule.files)] == [100, 100, 50, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("rows", [1, 99, 100, 101, 250])
def test_of_rows_is_exact(rows: int) -> None:
    schedule = Schedule.of_rows(rows, rows_per_file=100)
    counts = [len(schedule.file_rows(file)) for file in range(schedule.files)]
    assert sum(counts) == rows
    assert max(counts) <= 100
    assert counts[:-1] == [100] * (len(counts) - 1)


@pytest.mark.parametrize("row", [-1, 10])
def test_a_row_that_never_arrives_has_no_arrival(row: int) -> None:
    with pytest.raises(InvalidSetting, match=r"\[0, 10\)"):
        Schedule.of_rows(10, rows_per_file=5).arrival_us([row])
