"""Which cases of `jettison bench cost` run, and how a live one is judged. Starts no Spark."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from jettison.errors import InvalidSetting
from jettison.lab.bench import cost, cost_live
from jettison.lab.bench.compiled import _classes, _threads
from jettison.lab.bench.driver_process import JIT
from jettison.lab.bench.harm_run import Case
from jettison.lab.bench.result import Result, failed
from jettison.lab.bench.steady import Steady
from jettison.lab.demo.experiment import Batch, Run
from jettison.lab.demo.landing import Landing
from jettison.lab.demo.rides import RideBook
from jettison.lab.demo.schedule import Phase, Schedule

START_S = 1000.0


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Cases that ran in a process of their own, with their pairs; `sinks` dies, and live ones find nothing."""
    ran: list[tuple[str, int]] = []

    def in_fresh_process(within_s: float, function: object, name: str, pairs: int) -> list[Result]:
        ran.append((name, pairs))
        if name == "sinks":
            raise RuntimeError("it ended badly")
        return [Result(name, 1.0, "s")]

    monkeypatch.setattr(cost, "in_fresh_process", in_fresh_process)
    live = {name: lambda pairs, name=name: ran.append((name, pairs)) or [] for name in cost.LIVE}
    monkeypatch.setattr(cost, "LIVE", live)
    return ran


def test_each_result_says_of_which_case_it_is(ran: list[tuple[str, int]]) -> None:
    """So that this one alone can be measured again."""
    assert [one.config["case"] for one in results("native")] == ["native"]


def results(only: str | None = None, pairs: int = 5) -> list[Result]:
    return [one for found in cost.cost(Console(file=io.StringIO()), only, pairs) for one in found]


def test_all_cases_run_and_one_that_dies_misses_a_bar(ran: list[tuple[str, int]]) -> None:
    found = results()
    assert [name for name, _ in ran] == list(cost.CASES)
    assert [one.name for one in failed(found)] == ["sinks: runs to its end"]


@pytest.mark.parametrize("only", ["native", "readme-3s"])
def test_one_case_runs_alone_with_as_many_pairs_as_told(ran: list[tuple[str, int]], only: str) -> None:
    results(only, pairs=7)
    assert ran == [(only, 7)]


def test_an_unknown_case_is_refused(ran: list[tuple[str, int]]) -> None:
    with pytest.raises(InvalidSetting, match="did you mean 'small-batch'"):
        results("smal-batch")
    assert ran == []


def test_one_run_proves_nothing_of_what_a_query_leaves_behind() -> None:
    found = {side: [Steady({JIT: 1.0}, {}, classes=0, threads=100)] for side in ("plain", "guard")}
    assert [_classes(found, "", 0.0, {}).verdict, _threads(found, {}).verdict] == ["cannot tell"] * 2
    twice = {side: runs * 2 for side, runs in found.items()}
    assert [_classes(twice, "", 0.0, {}).verdict, _threads(twice, {}).verdict] == ["holds"] * 2


def run_of(kept: float, batch_s: float = 1.0, seconds: int = 60, first_s: float = 1.0) -> Run:
    """Rows that arrive at 100 rows/s, in batches of one length, the first of another; each waits for the one before."""
    landing = Landing(Schedule.from_phases([Phase(seconds, 100.0)]), RideBook(), int(START_S * 1e6))
    batches: list[Batch] = []
    at_s, took_s = 1.0, first_s
    while at_s + took_s <= seconds:
        last = landing.schedule.rows_by(at_s * 1e6)
        first = batches[-1].last if batches else 0
        batches.append(Batch(len(batches), START_S + at_s, START_S + at_s + took_s, first, last, kept))
        at_s, took_s = at_s + took_s, batch_s
    rows = landing.schedule.rows
    return Run("x", landing, START_S, START_S, START_S + seconds, batches, landed=rows, load_average=1.0)


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Case, float]]:
    """Cases that were run live, on a plain query of 1,000 rows/s; what they give is set by `gives`."""
    asked: list[tuple[Case, float]] = []

    def run_after_plain(case: Case, load: float) -> tuple[float, Run]:
        asked.append((case, load))
        return 1000.0 + len(asked), GIVEN[(len(asked) - 1) % len(GIVEN)]

    monkeypatch.setattr(cost_live, "run_after_plain", run_after_plain)
    return asked


GIVEN: list[Run] = []


def test_rows_kept_are_judged_over_all_pairs(live: list[tuple[Case, float]]) -> None:
    GIVEN[:] = [run_of(0.25), run_of(0.26), run_of(0.27)]
    (kept,) = cost_live.readme_3s(3)
    assert [(case.bound_s, case.work, load) for case, load in live] == [(3.0, "readme", 3.0)] * 3
    assert kept.value == pytest.approx(0.78)
    assert (kept.verdict, kept.config["pairs"], kept.config["plain_rows_per_s"]) == ("holds", 3, [1001, 1002, 1003])


def test_each_pair_stands_beside_the_plain_query_of_its_own_process(live: list[tuple[Case, float]]) -> None:
    GIVEN[:] = [run_of(0.3)]
    (three,), five = cost_live.readme_3s(2), cost_live.readme_5s(3)
    assert three.config["plain_rows_per_s"] == [1001, 1002]
    assert five[0].config["plain_rows_per_s"] == [1003, 1004, 1005]


def test_pairs_that_disagree_about_the_bar_cannot_tell(live: list[tuple[Case, float]]) -> None:
    GIVEN[:] = [run_of(0.10), run_of(0.30), run_of(0.33)]
    (kept,) = cost_live.readme_3s(3)
    assert (kept.holds, kept.verdict) == (None, "cannot tell")
    assert failed([kept]) == []


def test_the_worst_row_counts_once_settled(live: list[tuple[Case, float]]) -> None:
    GIVEN[:] = [run_of(0.3, first_s=8.0)] * 2
    _, worst = cost_live.readme_5s(2)
    assert worst.holds is True
    assert worst.config["worst_of_all_s"][0] > 8.0
    GIVEN[:] = [run_of(0.3, batch_s=4.0)] * 2
    assert cost_live.readme_5s(2)[1].holds is False


def test_ten_times_the_capacity_is_judged_from_the_second_batch_on(live: list[tuple[Case, float]]) -> None:
    GIVEN[:] = [run_of(0.1, batch_s=1.0, first_s=12.0)] * 2
    within, largest = cost_live.overload_10x(2)
    assert within.holds is False  # the second batch holds what came during the first
    assert largest.value == pytest.approx(12 * 10.0)
    GIVEN[:] = [run_of(0.1, batch_s=3.0, first_s=3.0)] * 2
    assert cost_live.overload_10x(2)[0].holds is True


def test_a_run_without_a_count_has_no_verdict_but_a_miss(live: list[tuple[Case, float]]) -> None:
    GIVEN[:] = [run_of(0.3), run_of(math.nan)]
    assert cost_live.readme_3s(2)[0].holds is False
