"""docs/rivals.md is what the stored results give, and says no more than they do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jettison.errors import InvalidSetting
from jettison.lab.bench.result import save
from jettison.lab.prove.judge import Figures
from jettison.lab.prove.page import page, stored
from jettison.lab.prove.record import Record

DOCS = Path(__file__).parents[3] / "docs"
CONFIG = {
    "workload": "taxi",
    "what": "fares by zone",
    "capacity_rows_per_s": 100_000,
    "capacity_agrees": True,
    "unsettled": [],
    "rounds": 5,
    "rivals": ["constant"],
    "peak_rows_per_s": 300_000,
    "bound_s": 5.0,
    "seconds": 60.0,
    "window_s": 5.0,
    "left_out": {"JoinDrop": "nothing is joined"},
    "machine": "2 cores",
}


def figures(error: float, late: float, utility: float, p95: float) -> Figures:
    return Figures(
        latency_p95_s=p95,
        late_windows=late,
        error_mean=error,
        utility=utility,
        recovery_s=float("inf"),
        load_average=1.0,
    )


def rows(folder: Path, config: Mapping[str, Any] = CONFIG, **runs: list[Figures]) -> list[dict]:
    """Stored results, ours first; names as they are on the page."""
    named = {name.replace("_", " "): of for name, of in runs.items()}
    found = Record(config, dict.fromkeys(named, None), named).results()
    save(found, folder / "taxi.json")
    return json.loads((folder / "taxi.json").read_text())


def spread(error: float, late: float, utility: float, p95: float, runs: int = 5) -> list[Figures]:
    return [figures(error + place / 1000, late, utility, p95) for place in range(runs)]


def test_the_page_in_the_docs_is_the_one_that_its_results_give() -> None:
    assert (DOCS / "rivals.md").read_text() == page(stored(DOCS / "rivals"))


def test_what_the_pairs_say_stands_beside_each_rival_and_how_often_chance_would_say_so(tmp_path: Path) -> None:
    good, poor = spread(0.01, 0.0, 0.95, 4.0), spread(0.05, 0.0, 0.9, 4.0)
    text = page(rows(tmp_path, jettison=good, constant=poor))
    assert "better (utility), better (error mean)" in text
    assert "make 3 comparisons" in text
    assert "worse (utility), worse (error mean)" in page(rows(tmp_path, jettison=poor, constant=good))
    assert "1 of 16 measured" in text


def test_a_rival_that_ran_less_often_says_so(tmp_path: Path) -> None:
    text = page(rows(tmp_path, jettison=spread(0.01, 0.0, 0.9, 4.0), plain=spread(0.0, 1.0, 0.0, 30.0, runs=2)))
    assert "| plain, n=2 |" in text
    assert "better (utility)" in text


def test_where_judged_figures_stand_it_is_the_mean_that_the_interval_is_of(tmp_path: Path) -> None:
    runs = [figures(0.01, late, 0.9, 4.0) for late in (0.0, 0.0, 0.0, 0.1, 0.4)]
    assert "| 10.0% (0.0% to 31.5%) |" in page(rows(tmp_path, jettison=runs))


def test_a_capacity_on_which_no_runs_agreed_and_rounds_that_were_not_fixed_are_said(tmp_path: Path) -> None:
    good = spread(0.01, 0.0, 0.9, 4.0)
    assert "capacity 100,000 rows/s, at most" in page(rows(tmp_path, jettison=good))
    assert "unless it says otherwise, 5 fixed beforehand;" in page(rows(tmp_path, jettison=good))
    loose = {**CONFIG, "capacity_agrees": False, "unsettled": ["tail"], "rounds": None}
    text = page(rows(tmp_path, loose, jettison=good))
    assert "capacity 100,000 rows/s (no two runs agreed), at most" in text
    assert "unless it says otherwise, as many as the time allowed;" in text
    assert "load average 1.0; no two runs agreed on what these process: tail." in text


def test_results_of_two_measurements_are_not_shown_as_one(tmp_path: Path) -> None:
    good = spread(0.01, 0.0, 0.9, 4.0)
    other = rows(tmp_path, {**CONFIG, "capacity_runs": [90_000, 100_000]}, constant=good)
    with pytest.raises(InvalidSetting, match="must have the same capacity_runs"):
        page([*rows(tmp_path, {**CONFIG, "capacity_runs": [50_000]}, jettison=good), *other])


def test_a_rival_that_can_run_and_did_not_leaves_the_goal_open(tmp_path: Path) -> None:
    assert "open: taxi (constant, utility)" in page(rows(tmp_path, jettison=spread(0.01, 0.0, 0.9, 4.0)))


def test_one_run_says_nothing(tmp_path: Path) -> None:
    text = page(rows(tmp_path, jettison=[figures(0.01, 0.0, 0.9, 4.0)], constant=[figures(0.5, 1.0, 0.1, 4.0)]))
    assert "better" not in text.split("## taxi")[1]
    assert "| never |" in text


def test_policies_on_one_stream_have_a_table_and_those_that_cannot_run_a_reason(tmp_path: Path) -> None:
    ran = {f"jettison_({name})": spread(0.01, 0.0, 0.9, 4.0) for name in ("UniformDrop", "ConceptDrop")}
    text = page(rows(tmp_path, **ran))
    assert "## All policies on one stream: taxi" in text
    assert "Not among them: `JoinDrop` nothing is joined." in text
    assert "All policies on one stream" not in page(rows(tmp_path, jettison=spread(0.01, 0.0, 0.9, 4.0)))


def test_without_results_the_page_says_so() -> None:
    assert "Nothing has been measured yet" in page([])
