"""Random windows on real streams: whatever is delivered is what the query without shedding gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jettison.reproduce.window.subset import make_case, run_case


@pytest.mark.parametrize("seed", range(15))
def test_every_delivered_answer_is_the_one_without_shedding(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    case = make_case(seed)
    outcome = run_case(spark, case, tmp_path)
    assert outcome.plain
    assert outcome.wrong == []
    assert outcome.lost(case.levels[-1]) == []
    assert outcome.changed == 0
    assert outcome.gap <= case.max_gap
