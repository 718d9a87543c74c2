"""docs/benchmarks.md says what the stored results give, and no more."""

from __future__ import annotations

import json
import re
from pathlib import Path

from jettison.lab.bench.fault_judge import ENDS
from jettison.lab.bench.fault_scenario import PLAN
from jettison.lab.bench.page import page, stored, table
from jettison.lab.bench.result import Result, save
from jettison.lab.experiments import BENCHMARKS

DOCS = Path(__file__).parents[3] / "docs"
ABOUT = {"benchmark": "cost", "machine": "2 cores"}


def kept(file: Path, *results: Result) -> list[dict]:
    save(results, file)
    return json.loads(file.read_text())


def test_the_tables_in_the_docs_are_those_that_their_results_give() -> None:
    text = (DOCS / "benchmarks.md").read_text()
    assert "<!-- results of scale -->" in text
    assert text == page(text, DOCS / "results")


def test_what_make_bench_measures_has_a_place_on_the_page() -> None:
    (names,) = re.findall(r"^MEASURED := (.*)$", (DOCS.parent / "Makefile").read_text(), re.MULTILINE)
    text = (DOCS / "benchmarks.md").read_text()
    assert sorted(names.split()) == sorted(re.findall(r"<!-- results of ([a-z-]+) -->", text))
    assert set(names.split()) <= set(BENCHMARKS)


def test_faults_of_several_commands_are_one_table(tmp_path: Path) -> None:
    for name, seeds in (("a", (0, 1)), ("b", (2,))):
        config = {"benchmark": "faults", "machine": name, "happened": [PLAN], "looked_at": {ENDS: 5}, "broken": {}}
        save(
            [Result(f"seed {seed}", 0.0, "of 5", config={**config, "seed": seed}) for seed in seeds],
            tmp_path / f"faults-{name}.json",
        )
    text = page("<!-- results of faults -->\n<!-- end of results -->", tmp_path)
    assert f"| {ENDS} |  | 0 of 15 | <= 0 | holds |" in text
    assert "| runs with a broken promise: plan damaged |  | 0 of 3 | <= 0 | holds |" in text
    assert "seed 0" not in text
    assert "Measured on a; b." in text


def test_a_ratio_stands_with_its_interval_and_its_pairs(tmp_path: Path) -> None:
    about = {**ABOUT, "pairs": 5}
    ratio = Result("native", 3.0, "s", 2.0, 1.5, at_most=1.1, config=about, required=True, interval=(1.4, 1.6))
    text = table(kept(tmp_path / "cost-a.json", ratio))
    assert "| native | 3 s to 2 | 1.5 (1.4 to 1.6, 5 pairs) | <= 1.1 | **fails** |" in text
    assert "Measured on 2 cores." in text


def test_all_runs_of_a_figure_stand_in_one_line_and_one_that_misses_is_not_hidden(tmp_path: Path) -> None:
    for name, value in (("cost-a", 4.0), ("cost-b", 6.0)):
        kept(tmp_path / f"{name}.json", Result("p95", value, "s", at_most=5.0, config=ABOUT))
    assert "| p95 |  | 4 s; 6 s | <= 5 | **holds in 1 of 2** |" in table(stored(tmp_path, "cost"))


def test_what_could_not_be_measured_is_unknown_and_nothing_stored_is_said(tmp_path: Path) -> None:
    lost = kept(tmp_path / "cost-a.json", Result("p95", float("nan"), "s", at_most=5.0, config=ABOUT))
    assert "| p95 |  | unknown | <= 5 | **fails** |" in table(lost)
    assert table([]) == "Not measured yet.\n"


def test_results_of_another_benchmark_stay_out(tmp_path: Path) -> None:
    kept(tmp_path / "cost-a.json", Result("p95", 4.0, "s", config={**ABOUT, "benchmark": "harm"}))
    assert stored(tmp_path, "cost") == []
