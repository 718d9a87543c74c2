"""Random windows on real streams: whatever is delivered is what the query without shedding gives.

Some seeds; `jettison reproduce window --only subset` runs hundreds.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jettison.lab.reproduce.window.cases import Case, Outcome, make_case
from jettison.lab.reproduce.window.subset import run_cases

SEEDS = range(6)


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Case, Outcome]]:
    """All cases, some of them at a time: each by itself would leave the machine waiting."""
    done = run_cases(spark, [make_case(seed) for seed in SEEDS], tmp_path_factory.mktemp("cases"))
    return {case.seed: (case, outcome) for case, outcome in done}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_delivered_answer_is_the_one_without_shedding(
    outcomes: dict[int, tuple[Case, Outcome]], seed: int
) -> None:
    case, outcome = outcomes[seed]
    assert outcome.plain
    assert outcome.wrong == []
    assert outcome.lost(case.levels[-1]) == []
    assert outcome.changed == 0
    assert outcome.gap <= case.max_gap


def test_the_cases_do_drop(outcomes: dict[int, tuple[Case, Outcome]]) -> None:
    held_back = [len(outcome.plain) - len(outcome.shed) for _, outcome in outcomes.values()]
    dropped_rows = [outcome.rows_seen - outcome.rows_kept for _, outcome in outcomes.values()]
    assert sum(n > 0 for n in held_back) >= 4
    assert sum(n > 0 for n in dropped_rows) >= 2
