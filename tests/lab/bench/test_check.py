"""Stored ratios against new ones: worse, as good, or cannot tell, and no more rounds than it takes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from jettison.errors import InvalidSetting
from jettison.lab.bench.check import ROUNDS, Checked, Stored, Verdict, as_result, check, stored_ratios
from jettison.lab.bench.result import Result, failed, save

LOWER, HIGHER = Stored("cost", "cost", 1.2, 0.0, True), Stored("speed", "cost", 0.9, 0.0, False)


def rounds(of: Stored, ratios: Iterator[float]) -> list[Checked]:
    return check([of], lambda benchmark, case: [Result(of.name, 1.0, "s", 1.0, next(ratios))])


@pytest.mark.parametrize(
    ("stored", "now", "verdict"),
    [
        (LOWER, [1.2, 1.21, 1.19], Verdict.AS_GOOD),
        (LOWER, [1.5, 1.51, 1.49], Verdict.WORSE),
        (LOWER, [0.8, 0.81, 0.79], Verdict.AS_GOOD),
        (HIGHER, [0.7, 0.71, 0.69], Verdict.WORSE),
        (HIGHER, [1.3, 1.31, 1.29], Verdict.AS_GOOD),
    ],
)
def test_three_steady_rounds_decide(stored: Stored, now: list[float], verdict: Verdict) -> None:
    (checked,) = rounds(stored, cycle(now))
    assert (checked.verdict, len(checked.ratios)) == (verdict, 3)
    assert bool(failed([as_result(checked)])) == (verdict is Verdict.WORSE)


def test_noise_takes_all_rounds_and_is_no_failure() -> None:
    (checked,) = rounds(LOWER, cycle([0.7, 2.0, 1.3]))
    assert (checked.verdict, len(checked.ratios)) == (Verdict.CANNOT_TELL, ROUNDS)
    assert not failed([as_result(checked)])
    assert as_result(checked).verdict == "cannot tell"


def test_a_stored_ratio_that_is_not_known_to_ten_percent_decides_nothing_close_to_it() -> None:
    wide = Stored("cost", "cost", 1.2, math.log(1.3), True)
    (checked,) = rounds(wide, cycle([1.2, 1.21, 1.19]))
    assert checked.verdict is Verdict.CANNOT_TELL
    (checked,) = rounds(wide, cycle([2.0, 2.01, 1.99]))
    assert checked.verdict is Verdict.WORSE


def test_a_ratio_that_is_not_measured_any_more_is_not_as_good() -> None:
    (checked,) = check([LOWER], lambda benchmark, case: [])
    assert checked.verdict is Verdict.CANNOT_TELL


def test_only_cases_that_are_undecided_are_measured_again() -> None:
    quick, noisy = (Stored(name, "cost", 1.2, 0.0, True, name) for name in ("quick", "noisy"))
    asked: list[str | None] = []
    wild = cycle([0.7, 2.0, 1.3])

    def measure(benchmark: str, case: str | None) -> list[Result]:
        asked.append(case)
        return [Result(str(case), 1.0, "s", 1.0, 1.2 if case == "quick" else next(wild))]

    check([quick, noisy], measure)
    assert (asked.count("quick"), asked.count("noisy")) == (3, ROUNDS)


def test_a_stored_ratio_without_an_interval_is_measured_once() -> None:
    (checked,) = rounds(Stored("cost", "cost", 1.2, math.inf, True), cycle([1.2]))
    assert (checked.verdict, len(checked.ratios)) == (Verdict.CANNOT_TELL, 1)


def test_of_a_file_those_are_checked_that_have_a_ratio_a_benchmark_and_one_bar(tmp_path: Path) -> None:
    path = tmp_path / "stored.json"
    about = {"benchmark": "cost", "case": "native"}
    save(
        [
            Result("a", 1.0, "s", 1.0, 1.1, at_most=1.2, config=about, interval=(1.0, 1.21)),
            Result("b", 1.0, "s", 1.0, 0.9, at_least=0.8, config=about),
            Result("no bar", 1.0, "s", 1.0, 1.1, config=about),
            Result("no ratio", 1.0, "s", at_most=1.2, config=about),
            Result("no name", 1.0, "s", 1.0, 1.1, at_most=1.2),
            Result("one pair", 1.0, "s", 1.0, 1.1, at_most=1.2, config=about, interval=(0.0, math.inf)),
        ],
        path,
    )
    found = {one.name: one for one in stored_ratios(path)}
    assert list(found) == ["a", "b", "one pair"]
    assert found["a"].case == "native"
    assert found["a"].half == pytest.approx(math.log(1.21) / 2)
    assert (found["a"].lower_is_better, found["b"].lower_is_better) == (True, False)
    assert math.isinf(found["one pair"].half)


def test_a_file_without_ratios_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text(json.dumps([]))
    for name in ("empty.json", "gone.json"):
        with pytest.raises(InvalidSetting, match="--check needs"):
            stored_ratios(tmp_path / name)
