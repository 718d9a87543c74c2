"""Nothing that is called exact is wrong: small groups, plans that change inside windows, a restart, protected rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jettison.core.stats import Budget
from jettison.lab.bench.exactness import Judged, judge
from jettison.lab.bench.scripted import keep
from jettison.lab.bench.scripted_queries import START
from public_policies import public_policies
from spark_since import cases

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]


def at(changes: dict[int, Budget]) -> Callable[[int], Budget]:
    """Budgets that hold from the report of a batch on; a run begins by keeping everything."""

    def budget(batch: int) -> Budget:
        return next((changes[start] for start in sorted(changes, reverse=True) if start <= batch), keep(1.0))

    return budget


def test_every_policy_is_put_to_these_tests() -> None:
    assert public_policies() == {*START}


@pytest.mark.parametrize("policy", cases(START, quick=("UniformDrop", "ConceptDrop", "WindowDrop")))
def test_groups_of_three_rows_of_which_some_are_dropped(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    """Nine of ten groups that had lost their late rows said "exact, 1" once. Late rows are thinned in two batches here."""
    thinned = {0: keep(0.2), 1: keep(1.0, late=0.0), 3: keep(1.0)}
    if policy == "WindowDrop":  # windows are marked once there is a watermark, and late rows are as good as others
        found = judge(spark, tmp_path, policy, at({0: keep(0.4), 5: keep(1.0)}), groups=1000, files=14)
    else:
        found = judge(spark, tmp_path, policy, at(thinned), groups=1000, files=11)
    assert found.rows_dropped > 0
    assert found.wrong == 0
    assert found.called_exact > 1000, (
        "once the rows are kept again and the watermark has passed, answers are exact again"
    )
    assert found.called_exact < found.group_windows, "answers of windows that lost rows are not"


def test_while_nothing_is_dropped_every_answer_is_exact(spark: SparkSession, tmp_path: Path) -> None:
    found = judge(spark, tmp_path, "UniformDrop", at({}), groups=1000, files=4)
    windows = found.group_windows
    assert found == Judged(windows, answered=windows, called_exact=windows, wrong=0, rows_dropped=0)
