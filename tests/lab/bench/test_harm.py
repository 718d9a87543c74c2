"""Which cases run, with what load, how they are judged, and what is left out where there is no Kafka. Starts no Spark."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from jettison.errors import InvalidSetting, JettisonError, Unsupported
from jettison.lab.bench import harm
from jettison.lab.bench.harm import bound_holds_from_s, dropped_share, kept_of_arrivals
from jettison.lab.bench.harm_run import Case
from jettison.lab.bench.result import save
from jettison.lab.demo import verdict
from jettison.lab.demo.experiment import Batch, Run
from jettison.lab.demo.landing import Landing
from jettison.lab.demo.rides import RideBook
from jettison.lab.demo.schedule import Phase, Schedule

START_S = 1000.0


def run_of(*batches: tuple[float, float, float, float], duration_s: float = 10.0, rows_per_s: float = 100.0) -> Run:
    """A run of batches, each with its start, its length, until when the rows arrived that it takes, and the share kept."""
    landing = Landing(Schedule.from_phases([Phase(duration_s, rows_per_s)]), RideBook(), int(START_S * 1e6))
    made: list[Batch] = []
    for number, (at_s, took_s, arrived_s, kept) in enumerate(batches):
        first, last = made[-1].last if made else 0, landing.schedule.rows_by(arrived_s * 1e6)
        made.append(Batch(number, START_S + at_s, START_S + at_s + took_s, first, last, kept))
    rows, ended_s = landing.schedule.rows, START_S + duration_s
    return Run("x", landing, START_S, START_S, ended_s, made, landed=rows, load_average=1.0)


@pytest.fixture
def measured() -> list[tuple[str, str, float]]:
    """What capacities were measured: source, work and load."""
    return []


@pytest.fixture
def ran(measured: list[tuple[str, str, float]], monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Cases that ran, on a query that processes 1,000 rows/s and keeps all that it sees."""
    ran: list[Case] = []

    @contextmanager
    def broker() -> Iterator[str]:
        yield "127.0.0.1:1"

    def run_cold(case: Case, address: str | None) -> Run:
        ran.append(case)
        seconds = range(1, int(case.duration_s) + 1)
        return run_of(*((s, 1.0, s, 1.0) for s in seconds), duration_s=case.duration_s)

    def capacity(source: str, work: str, load: float, address: str | None) -> float:
        measured.append((source, work, load))
        return 1000.0

    monkeypatch.setattr(harm, "run_cold", run_cold)
    monkeypatch.setattr(harm, "capacity", capacity)
    monkeypatch.setattr(harm, "broker", broker)
    return ran


def test_every_case_runs_under_the_load_that_it_names(ran: list[Case]) -> None:
    results = [result for found in harm.harm(Console(file=io.StringIO())) for result in found]
    rates = {case.name: case.rows_per_s for case in ran}
    assert list(rates) == list(harm.TRIALS)
    assert [rates[name] for name in ("files-below", "kafka-3x", "files-10x", "fixed-cost")] == [500, 3000, 10_000, 100]
    # There is no guard in the one, and of a network its graphs say what is best kept.
    judged = [result for result in results if "constant" not in result.name and "outputs" not in result.name]
    assert len(judged) == len(results) - 3
    assert all(result.required and result.bar for result in judged)
    assert [case.constant_share for case in ran if case.bound_s is None] == [pytest.approx(0.2), pytest.approx(0.8 / 3)]


def test_each_capacity_is_measured_once(ran: list[Case], measured: list[tuple[str, str, float]]) -> None:
    list(harm.harm(Console(file=io.StringIO())))
    assert len(set(measured)) == len(measured) == 8


def test_keeping_all_meets_every_bar_on_what_is_dropped(ran: list[Case]) -> None:
    results = [result for found in harm.harm(Console(file=io.StringIO())) for result in found]
    assert all(result.holds for result in results if "dropped" in result.name)


def test_a_clock_that_is_off_is_judged_by_when_rows_come_out_too() -> None:
    """From the settled time on: a slow start is not of the clock's making."""
    clocks = [trial.case for trial in harm.TRIALS.values() if trial.judge is harm._clock]
    assert [(case.arrival_behind_s, case.wild_one_in) for case in clocks] == [(4.0, 0), (3600.0, 0), (0.0, 30_000)]
    (case, *_), seconds = clocks, range(20, 31)
    for took_s, holds in ((2.0, True), (7.0, False)):
        run = run_of((1, 19, 10, 1.0), *((s, took_s, s, 1.0) for s in seconds), duration_s=31.0)
        dropped, in_time = (harm._result(case, run, *figure) for figure in harm._clock(case, run, 1.0))
        assert (dropped.holds, in_time.holds) == (True, holds)


def test_no_case_arrives_for_longer_than_it_may_take() -> None:
    assert all(trial.case.duration_s <= 200.0 for trial in harm.TRIALS.values())


def test_one_case_runs_alone(ran: list[Case]) -> None:
    list(harm.harm(Console(file=io.StringIO()), "fixed-cost"))
    assert [case.name for case in ran] == ["fixed-cost"]


def test_an_unknown_case_is_refused(ran: list[Case]) -> None:
    with pytest.raises(InvalidSetting, match="did you mean 'files-3x'"):
        list(harm.harm(Console(file=io.StringIO()), "file-3x"))
    assert ran == []


def test_without_kafka_its_cases_are_left_out_with_one_line(
    ran: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise Unsupported("no mvn on PATH")

    monkeypatch.setattr(harm, "broker", none)
    console = Console(file=io.StringIO(), width=200)
    results = [result for found in harm.harm(console) for result in found]
    assert {case.source for case in ran} == {"files"}
    assert console.file.getvalue().count("left out: no mvn on PATH") == 1  # type: ignore[attr-defined]
    # What did not run has neither value nor verdict, but it is there.
    save(results, tmp_path / "results.json")
    rows = [row for row in json.loads((tmp_path / "results.json").read_text()) if row["name"].endswith(": not run")]
    on_kafka = [name for name, trial in harm.TRIALS.items() if trial.case.source == "kafka"]
    assert [row["name"] for row in rows] == [f"{name}: not run" for name in on_kafka]
    assert all(row["value"] is row["holds"] is None and row["config"]["left_out"] == "no mvn on PATH" for row in rows)


def test_a_case_that_fails_is_a_bar_missed_and_the_others_run(ran: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    well = harm.run_cold

    def run_cold(case: Case, address: str | None) -> Run:
        if case.name == "fixed-cost":
            raise JettisonError("it ended badly")
        return well(case, address)

    monkeypatch.setattr(harm, "run_cold", run_cold)
    results = [result for found in harm.harm(Console(file=io.StringIO())) for result in found]
    assert [result.holds for result in results if "fixed-cost" in result.name] == [False]
    assert len(ran) == len(harm.TRIALS) - 1


def test_rows_dropped_are_counted_by_the_start_of_their_batch() -> None:
    run = run_of((1, 1, 1, 0.5), (2, 1, 2, 0.9), (3, 1, 3, 1.0))
    assert dropped_share(run) == pytest.approx(60 / 300)
    assert dropped_share(run, to_s=2.0) == pytest.approx(0.5)
    assert dropped_share(run, from_s=3.0) == 0.0


def test_without_a_batch_or_its_exact_count_there_is_no_verdict() -> None:
    assert math.isnan(dropped_share(run_of((1, 1, 1, 1.0), (2, 1, 2, math.nan))))
    assert math.isnan(dropped_share(run_of()))
    assert math.isnan(dropped_share(run_of((1, 1, 1, 1.0)), from_s=60.0))


def test_the_share_kept_is_put_beside_the_ideal_one() -> None:
    """From the settled time on, as in the simulator, and from when the bound holds where that is later."""
    seconds = range(1, 31)
    settled = run_of(*((s, 1, s, 0.0 if s <= harm.SETTLED_S else 0.3) for s in seconds), duration_s=30.0)
    assert figures(settled) == {"bound holds from": 0.0, "kept of the ideal": pytest.approx(0.3 * 3)}
    late = run_of((24, 1, 24, 0.0), *((s, 1, s, 0.3) for s in range(25, 31)), duration_s=30.0)
    assert figures(late) == {"bound holds from": 23.0, "kept of the ideal": pytest.approx((0.0 + 6 * 0.3) / 7 * 3)}


def figures(run: Run) -> dict[str, float]:
    return {what: value for what, value, _ in harm._overload(Case("x", bound_s=2.5), run, 1 / 3)}


def test_rows_below_capacity_are_looked_at_for_a_minute_after_the_first() -> None:
    below = [trial.case for trial in harm.TRIALS.values() if trial.judge is harm._below]
    assert [case.duration_s for case in below] == [verdict.MINUTE_S + 70.0] * 2


def test_rows_kept_are_counted_by_their_arrival() -> None:
    """A batch that starts late with rows of before is judged by those that came since."""
    run = run_of((1, 4, 1, 1.0), (5, 1, 5, 0.1), (6, 1, 6, 0.4))
    assert kept_of_arrivals(run, 4.0) == pytest.approx((0.1 + 0.4) / 2)
    assert kept_of_arrivals(run, 5.0) == pytest.approx(0.4)
    assert math.isnan(kept_of_arrivals(run, 6.0))
    assert math.isnan(kept_of_arrivals(run, math.inf))


def latencies(run: Run, from_s: float) -> verdict.RowLatencies:
    return verdict.row_latencies(run, run.batches).between(run.query_started_s + from_s)


def test_latency_is_from_arrival_to_commit_of_rows_that_arrived_once_settled() -> None:
    rows = latencies(run_of((0, 2, 1, 1.0), (2, 3, 4, 1.0), duration_s=4.0), 2.0)
    assert rows.quantile(1.0) == pytest.approx(3.0, abs=0.02)
    assert rows.quantile(0.5) == pytest.approx(2.0, abs=0.02)


def test_rows_that_still_wait_count_with_their_wait_so_far() -> None:
    assert latencies(run_of((0, 1, 1, 1.0)), 0.0).quantile(1.0) == pytest.approx(9.0)
    assert latencies(run_of(), 0.0).quantile(1.0) == pytest.approx(10.0)


def test_without_a_row_since_then_latency_has_no_verdict() -> None:
    assert latencies(run_of((0, 1, 10, 1.0)), 20.0).quantile(0.95) is None


def test_the_bound_holds_from_when_the_last_rows_that_break_it_arrived() -> None:
    run = run_of((2, 6, 2, 1.0), (8, 1, 8, 1.0), *((at, 1, at, 1.0) for at in range(9, 21)), duration_s=20.0)
    assert 3.0 <= bound_holds_from_s(run, 5.0) <= 6.0
    assert bound_holds_from_s(run, 10.0) == 0.0
    assert bound_holds_from_s(run, 0.5) == math.inf
