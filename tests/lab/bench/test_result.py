"""A benchmark is judged by its ratio where it has one, else by its value."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from jettison.lab.bench.result import Result, failed, loaded, save


@pytest.mark.parametrize(
    ("result", "holds"),
    [
        (Result("a", value=9.0, unit="s", ratio=1.02, at_most=1.03), True),
        (Result("a", value=0.1, unit="s", ratio=1.04, at_most=1.03), False),
        (Result("a", value=59.0, unit="ms", at_most=60.0), True),
        (Result("a", value=61.0, unit="ms", at_most=60.0), False),
        (Result("a", value=5.0, unit="rows/s", ratio=0.96, at_least=0.97), False),
        (Result("a", value=5.0, unit="s"), None),
    ],
)
def test_the_verdict_follows_from_ratio_or_value(result: Result, holds: bool | None) -> None:
    assert result.holds is holds


@pytest.mark.parametrize(
    ("interval", "holds", "verdict"),
    [
        ((1.01, 1.03), True, "holds"),
        ((1.04, 1.09), False, "fails"),
        ((1.01, 1.09), None, "cannot tell"),
        ((-math.inf, math.inf), None, "cannot tell"),
        ((math.nan, math.nan), False, "fails"),
    ],
)
def test_an_interval_is_judged_as_a_whole(
    interval: tuple[float, float], holds: bool | None, verdict: str, tmp_path: Path
) -> None:
    result = Result("a", value=1.0, unit="s", ratio=1.02, at_most=1.03, required=True, interval=interval)
    assert (result.holds, result.verdict) == (holds, verdict)
    assert bool(failed([result])) is (verdict == "fails")
    save([result], tmp_path / "results.json")
    (row,) = json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail)
    assert (row["holds"], row["verdict"]) == (holds, verdict)


def test_without_a_bar_there_is_no_verdict() -> None:
    assert Result("a", value=5.0, unit="s", interval=(4.0, 6.0)).verdict == ""


def test_results_that_miss_their_bar_are_saved_as_such(tmp_path: Path) -> None:
    save([Result("a", value=61.0, unit="ms", at_most=60.0)], tmp_path / "results.json")
    (row,) = json.loads((tmp_path / "results.json").read_text())
    assert (row["name"], row["value"], row["bar"], row["holds"]) == ("a", 61.0, "<= 60", False)


def test_only_bars_that_must_be_met_make_a_failure() -> None:
    missed = Result("a", value=61.0, unit="ms", at_most=60.0)
    required = [replace(missed, value=value, required=True) for value in (60.0, 61.0, math.nan)]
    assert failed([missed, *required]) == required[1:]


def test_a_figure_that_could_not_be_measured_is_saved_as_null_and_holds_nothing(tmp_path: Path) -> None:
    never = Result("b", value=1.0, unit="s", baseline=0.0, ratio=math.inf, at_most=2.0)
    save([Result("a", value=math.nan, unit="ms", at_most=60.0), never], tmp_path / "results.json")
    not_measured, not_met = json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail)
    assert (not_measured["value"], not_measured["holds"]) == (None, False)
    assert (not_met["ratio"], not_met["holds"]) == (None, False)


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    known = Result("a", 1.0, "s", 2.0, 0.5, at_most=1.0, config={"of": [1]}, required=True, interval=(0.4, 0.6))
    wide = Result("b", value=math.nan, unit="s", interval=(-math.inf, math.inf))
    save([known, wide], tmp_path / "results.json")
    again, lost = loaded(tmp_path / "results.json")
    assert again == known
    assert math.isnan(lost.value)
    assert lost.interval == wide.interval
