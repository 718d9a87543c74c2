"""docs/rivals.md is what the stored results give, and says no more than they do."""

from __future__ import annotations

import json
from pathlib import Path

from jettison.lab.bench.result import save
from jettison.lab.prove.judge import Figures
from jettison.lab.prove.page import page, stored
from jettison.lab.prove.prove import results

DOCS = Path(__file__).parents[3] / "docs"
CONFIG = {
    "workload": "taxi",
    "what": "fares by zone",
    "capacity_rows_per_s": 100_000,
    "peak_rows_per_s": 300_000,
    "bound_s": 5.0,
    "seconds": 60.0,
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


def rows(folder: Path, ours: list[Figures], other: list[Figures]) -> list[dict]:
    found = results({"jettison (X)": ours, "constant": other}, {"jettison (X)": None, "constant": 0.7}, CONFIG)
    save(found, folder / "taxi.json")
    return json.loads((folder / "taxi.json").read_text())


def test_the_page_in_the_docs_is_the_one_that_its_results_give() -> None:
    assert (DOCS / "rivals.md").read_text() == page(stored(DOCS / "rivals"))


def test_twice_as_good_at_equal_latency_is_said_and_worse_is_said_too(tmp_path: Path) -> None:
    good = [figures(0.01 + jitter, 0.0, 0.95, 4.0) for jitter in (0.0, 0.001, 0.002)]
    poor = [figures(0.05 + jitter, 0.0, 0.9, 4.0) for jitter in (0.0, 0.001, 0.002)]
    text = page(rows(tmp_path, good, poor))
    assert "| none is | holds |" in text
    assert "taxi (error mean) | holds |" in text
    assert "better (error mean), better (utility)" in text
    turned = page(rows(tmp_path, poor, good))
    assert "taxi (constant) | **misses** |" in turned
    assert "| none | **misses** |" in turned


def test_a_rival_that_breaks_the_bound_is_not_one_of_equal_latency(tmp_path: Path) -> None:
    late = [figures(0.0, 0.9, 0.97, 30.0)] * 3
    text = page(rows(tmp_path, [figures(0.05, 0.0, 0.95, 4.0)] * 3, late))
    assert "| none is | holds |" in text
    assert "taxi (late windows) | holds |" in text


def test_one_run_says_nothing(tmp_path: Path) -> None:
    text = page(rows(tmp_path, [figures(0.01, 0.0, 0.9, 4.0)], [figures(0.5, 1.0, 0.1, 4.0)]))
    assert "better" not in text.split("## taxi")[1]
    assert "| never |" in text


def test_without_results_the_page_says_so() -> None:
    assert "Nothing has been measured yet" in page([])
