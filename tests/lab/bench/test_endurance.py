"""How an hour is judged. Starts no Spark: run and looks are made up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from demo_runs import START_S
from jettison.lab.bench.endurance import Look, judged, minutes_held
from jettison.lab.bench.result import Result
from jettison.lab.demo.experiment import Batch, Run
from jettison.lab.demo.landing import Landing
from jettison.lab.demo.rides import RideBook
from jettison.lab.demo.schedule import Phase, Schedule
from jettison.runtime.ledger import KEEP_BYTES

HOUR_S, MINUTES = 3600.0, 60
STEADY = Look(0.0, 1e9, 2e9, 3e8, 80, 12, 2**20)


def run_of(minutes: Sequence[float], rows_per_s: float = 10.0, length_s: float = HOUR_S) -> Run:
    """Batches of 1.5 s, as many as an hour has; those of a minute are answered so many seconds after their last row."""
    schedule = Schedule.from_phases([Phase(length_s, rows_per_s)], interval_s=0.1)
    landing = Landing(schedule, RideBook(7), int(START_S * 1e6))
    ends_s = START_S + np.arange(1.5, length_s + 1.0, 1.5)
    edges = [0, *np.searchsorted(landing.arrival_of(np.arange(schedule.rows)), ends_s).tolist()]
    batches = []
    for number, end_s in enumerate(ends_s.tolist()):
        begin_s, waited_s = end_s - 1.5, minutes[int((end_s - START_S - 1.5) // 60.0)]
        batches.append(Batch(number, begin_s, end_s + waited_s, *edges[number : number + 2], 0.5))
    return Run("hour", landing, START_S, START_S, START_S + length_s, batches, landed=schedule.rows)


def looks(change: Callable[[Look, float], Look] = lambda look, at_s: look) -> list[Look]:
    return [change(replace(STEADY, at_s=at_s), at_s) for at_s in np.arange(0.0, HOUR_S, 5.0).tolist()]


def named(results: Sequence[Result], name: str) -> Result:
    (found,) = [one for one in results if one.name.startswith(name)]
    return found


HELD = [1.0] * MINUTES


class TestMinutes:
    def test_each_minute_of_an_hour_of_short_batches_is_judged(self) -> None:
        late = [1.0] * 20 + [7.0] * 3 + [1.0] * 37
        run = run_of(late)
        assert len(run.batches) == 2400, "more than Spark keeps the progress of"
        assert [minute for minute, held in enumerate(minutes_held(run, HOUR_S)) if not held] == [20, 21, 22]

    def test_rows_that_wait_at_the_end_are_over_the_bound(self) -> None:
        run = run_of(HELD)
        stuck = replace(run, batches=run.batches[:2000])
        held = minutes_held(stuck, HOUR_S)
        assert held[:50] == [True] * 50
        assert held[50:] == [False] * 10

    def test_a_minute_without_rows_says_nothing(self) -> None:
        run = run_of(HELD[:10], length_s=600.0)
        assert minutes_held(run, 720.0) == [True] * 10 + [None] * 2


class TestVerdicts:
    def test_a_steady_hour_holds_everything(self) -> None:
        results = judged(run_of(HELD), looks(), HOUR_S)
        assert all(one.required and one.holds for one in results), results

    @pytest.mark.parametrize(("late", "holds"), [(0, True), (1, False)])
    def test_one_minute_in_sixty_is_too_many(self, late: int, holds: bool) -> None:
        result = named(judged(run_of([7.0] * late + HELD[late:]), looks(), HOUR_S), "minutes")
        assert (result.value, result.holds) == (1.0 - late / MINUTES, holds)

    def test_minutes_without_a_verdict_count_neither_as_held_nor_as_missed(self) -> None:
        run = run_of(HELD[:10], length_s=600.0)
        unknown = named(judged(run, looks(), 660.0), "minutes")
        assert (unknown.value, unknown.holds) == (1.0, None)
        missed = named(judged(run_of([7.0] * 10, length_s=600.0), looks(), 660.0), "minutes")
        assert missed.holds is False, "whatever that of the last one is"
        nothing = named(judged(replace(run, batches=[], landed=0), looks(), HOUR_S), "minutes")
        assert math.isnan(nothing.value)
        assert nothing.holds is None

    @pytest.mark.parametrize(
        ("part", "name"), [("jvm_bytes", "memory of the JVM"), ("python_bytes", "memory of Python")]
    )
    def test_memory_that_grows_by_a_twentieth_an_hour_fails(self, part: str, name: str) -> None:
        grown = looks(lambda look, at_s: replace(look, **{part: getattr(look, part) * (1.0 + 0.05 * at_s / HOUR_S)}))
        results = judged(run_of(HELD), grown, HOUR_S)
        assert [one.name for one in results if one.holds is False] == [f"{name}: growth an hour"]

    def test_garbage_is_not_growth(self) -> None:
        sawtooth = looks(lambda look, at_s: replace(look, heap_bytes=1e9 + 5e7 * (at_s % 30.0) * at_s / HOUR_S))
        assert named(judged(run_of(HELD), sawtooth, HOUR_S), "heap").holds

    def test_warm_up_is_not_growth(self) -> None:
        warming = looks(lambda look, at_s: replace(look, jvm_bytes=2e9 * min(1.0, 0.2 + at_s / 600.0)))
        assert named(judged(run_of(HELD), warming, HOUR_S), "memory of the JVM").holds

    @pytest.mark.parametrize(("most", "holds"), [(KEEP_BYTES, True), (KEEP_BYTES + 16 * 2**20, False)])
    def test_bytes_are_judged_against_what_the_ledger_keeps(self, most: int, holds: bool) -> None:
        growing = looks(lambda look, at_s: replace(look, beside_bytes=round(most * at_s / (HOUR_S - 5.0))))
        assert named(judged(run_of(HELD), growing, HOUR_S), "most bytes").holds is holds

    @pytest.mark.parametrize("gone", [slice(300, None), slice(200, 300)])
    def test_an_hour_that_nobody_watched_to_its_end_fails(self, gone: slice) -> None:
        seen = looks()
        del seen[gone]
        results = judged(run_of(HELD), seen, HOUR_S)
        assert [one.name for one in results if one.holds is False] == ["longest time without a look at the driver"]

    def test_no_look_at_all_fails_too(self) -> None:
        assert named(judged(run_of(HELD), [], HOUR_S), "longest time").holds is False

    def test_a_thread_for_each_minute_fails(self) -> None:
        leaking = looks(lambda look, at_s: replace(look, jvm_threads=80 + int(at_s / 60.0)))
        assert named(judged(run_of(HELD), leaking, HOUR_S), "threads of the JVM").holds is False
