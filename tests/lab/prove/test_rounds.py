"""Whose turn it is, what is stored of a run and read again, and what becomes of an entrant that dies."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from jettison.errors import InvalidSetting
from jettison.lab.bench.result import save
from jettison.lab.machine import this_machine
from jettison.lab.prove.judge import Figures
from jettison.lab.prove.prove import _config, one_round, prove, warm_and_tune
from jettison.lab.prove.record import Record, records
from jettison.lab.prove.rivals import RIVALS, entrants
from jettison.lab.prove.rivals.rival import SAFE, Rival
from jettison.lab.prove.saturated import MOST_RUNS, Settled, best_of, settled
from jettison.lab.prove.trial import Trial as TheTrial
from jettison.lab.prove.turns import turns
from jettison.lab.prove.workloads import all_workloads, every_name

QUIET = Console(quiet=True)


def test_turns_go_round_until_the_time_would_be_over() -> None:
    now = [0.0]

    def clock() -> float:
        return now[0]

    taken = []
    for name in turns({"a": 0, "b": 0}, rounds=1, minutes=1.0, clock=clock):
        taken.append(name)
        now[0] += 14.0
    assert taken == ["a", "b", "a", "b"], "a fifth would end after 70 s"


def test_a_workload_that_is_taken_out_has_no_further_turn() -> None:
    done = {"a": 0, "b": 0}
    taken = []
    for name in turns(done, rounds=2):
        taken.append(name)
        done.pop("a", None)
    assert taken == ["a", "b", "b"]


def test_capacity_is_measured_until_two_runs_agree_and_not_for_ever() -> None:
    cold = iter([40.0, 70.0, 95.0, 100.0, 500.0])
    found = settled(lambda guess: next(cold), 1.0)
    assert found.agrees
    assert found.rows_per_s == pytest.approx(97.5)
    noisy = settled(lambda guess: guess * 2.0, 1.0)
    assert not noisy.agrees
    assert len(noisy.runs) == MOST_RUNS


def test_a_workload_is_stored_with_whether_its_capacity_agreed_its_rounds_and_all_that_can_run() -> None:
    workload = all_workloads()["taxi-mean"]
    config = _config(workload, Settled(95.0, (40.0, 90.0, 100.0)), 60.0, 5)
    assert (config["capacity_agrees"], config["rounds"], config["rivals"]) == (
        False,
        5,
        ["plain", "capped", "constant", "tail", "pid"],
    )
    assert _config(workload, Settled(97.0, (95.0, 99.0)), 60.0, None)["capacity_agrees"]


def test_what_is_stored_goes_on_where_it_ended(tmp_path: Path) -> None:
    runs = {"jettison (X)": [Figures(utility=0.9), Figures(utility=0.8)], "plain": [Figures(recovery_s=math.inf)]}
    record = Record({"workload": "taxi", "bound_s": 5.0}, {"jettison (X)": None, "plain": 3.5}, runs)
    save(record.results(), tmp_path / "taxi.json")
    again = records(json.loads((tmp_path / "taxi.json").read_text()))["taxi"]
    assert (again.config, again.settings, again.rounds) == (record.config, record.settings, 2)
    assert again.runs["jettison (X)"][1].utility == 0.8
    assert again.runs["plain"][0].recovery_s == math.inf
    assert math.isnan(again.runs["plain"][0].utility)


class Trial:
    """Runs nothing: tells who ran, and dies where it is told to."""

    def __init__(self, dies: str = "") -> None:
        self.done: list[str] = []
        self.dies = dies
        self.load = SimpleNamespace(peak_rows_per_s=300.0)
        self.capacity_rows_per_s = 100.0

    def tuned(self, rival: Rival) -> float | None:
        self._note(f"tunes {rival.name}" if rival.is_set else f"warms {rival.name}")
        return 42.0 if rival.is_set else None

    def run(self, rival: Rival, setting: float | None) -> Figures:
        self._note(rival.name)
        return Figures(utility=0.5)

    def _note(self, what: str) -> None:
        self.done.append(what)
        if self.dies and self.dies in what:
            raise RuntimeError("no memory")


def test_no_setting_is_chosen_before_every_entrant_without_one_has_run_once() -> None:
    """A cold process is slower than any setting can make up for."""
    trial: Any = Trial()
    settings = warm_and_tune(QUIET, trial, [RIVALS["constant"], RIVALS["pid"]], {})
    assert trial.done == ["warms pid", "tunes constant"]
    assert settings == {"constant": 42.0, "pid": None}


def test_settings_that_are_known_are_not_looked_for_again() -> None:
    trial: Any = Trial()
    assert warm_and_tune(QUIET, trial, [RIVALS["constant"]], {"constant": 7.0}) == {"constant": 7.0}
    assert trial.done == []


def test_a_rival_that_dies_while_it_is_tuned_does_not_end_the_workload() -> None:
    trial: Any = Trial(dies="tunes constant")
    settings = warm_and_tune(QUIET, trial, [RIVALS["constant"], RIVALS["tail"]], {})
    assert settings == {"constant": None, "tail": 42.0}


def test_a_rival_that_died_without_a_setting_has_none_in_a_later_command() -> None:
    """Its earlier runs died without one: all its runs are of one kind."""
    trial: Any = Trial()
    assert warm_and_tune(QUIET, trial, [RIVALS["constant"]], {"constant": None}) == {"constant": None}
    assert trial.done == []


@pytest.mark.parametrize(("runs", "unsettled"), [([90.0, 95.0], []), ([10.0, 20.0] * 3, ["constant", "tail"])])
def test_rivals_that_were_set_to_what_no_two_runs_agreed_on_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runs: list[float], unsettled: list[str]
) -> None:
    """What they process is measured once where it is the same query."""
    given = iter(runs)
    monkeypatch.setattr(TheTrial, "saturated", lambda self: SimpleNamespace(processes=lambda enter: next(given)))
    workload = all_workloads()["taxi"]
    trial = TheTrial(None, tmp_path, workload, workload.shape(100.0, 60.0), 5.0, 100.0)  # type: ignore[arg-type]
    settings = [trial.tuned(RIVALS[name]) for name in ("constant", "tail")]
    assert settings == [pytest.approx(SAFE * sum(runs[-2:]) / 2)] * 2
    assert trial.unsettled == unsettled


def test_one_lucky_run_of_a_cap_decides_nothing_and_sizes_take_turns() -> None:
    taken: list[float] = []

    def measure(size: float) -> float:
        taken.append(size)
        return 100.0 if len(taken) == 1 else 10.0 + size

    assert best_of((0.5, 1.0, 2.5), measure) == 2.5
    assert taken == [0.5, 1.0, 2.5] * 3


def test_rounds_alternate_and_a_rival_whose_rows_pile_up_runs_twice() -> None:
    trial: Any = Trial(dies="tail")
    entered = [RIVALS["constant"], RIVALS["plain"], RIVALS["tail"]]
    record = Record({}, dict.fromkeys((one.name for one in entered), None))
    for _ in range(3):
        one_round(QUIET, trial, entered, record)
    assert trial.done == ["constant", "plain", "tail", "tail", "plain", "constant", "constant", "tail"]
    assert {name: len(runs) for name, runs in record.runs.items()} == {"constant": 3, "plain": 2, "tail": 3}
    assert math.isnan(record.runs["tail"][0].utility)
    assert record.rounds == 3


def test_below_the_capacity_nobody_is_hopeless() -> None:
    load: Any = SimpleNamespace(peak_rows_per_s=70.0)
    assert not RIVALS["plain"].is_hopeless(load, 100.0)
    assert RIVALS["plain"].is_hopeless(load, 60.0)
    assert not RIVALS["constant"].is_hopeless(load, 60.0)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"bound_s": 4.0}, "bound"),
        ({"seconds": 30.0}, "length of a run"),
        ({"machine": "another"}, "machine"),
        ({"entered": "tail"}, "entrants"),
        ({"rivals": ["constant"]}, "rivals that there are"),
    ],
)
def test_runs_that_would_not_stand_beside_the_earlier_ones_are_refused(change: dict[str, Any], what: str) -> None:
    rivals = (change.pop("entered", "constant"),)
    names = [one.name for one in entrants(all_workloads()["nexmark-q7"], ["constant"])]
    every = [name for name, rival in RIVALS.items() if rival.fits(all_workloads()["nexmark-q7"])]
    config = {
        "workload": "nexmark-q7",
        "rivals": every,
        "bound_s": 5.0,
        "seconds": 60.0,
        "machine": this_machine(),
        **change,
    }
    earlier = Record(config, dict.fromkeys(names, None), {name: [Figures()] for name in names})
    rows = list(map(asdict, earlier.results()))
    with pytest.raises(InvalidSetting, match=f"--resume needs the {what}"):
        next(prove(QUIET, "nexmark-q7", 5, rivals, earlier=rows))


def test_there_are_sixteen_workloads_whatever_data_is_here() -> None:
    names = every_name()
    assert len(names) == len(set(names)) == 16
    assert set(all_workloads()) <= set(names)
