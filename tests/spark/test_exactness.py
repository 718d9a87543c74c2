"""Nothing that is called exact is wrong: small groups, plans that change inside windows, a restart, protected rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from jettison.core.stats import Budget
from jettison.lab.bench.exactness import Judged, judge, judged
from jettison.lab.bench.scripted import keep
from jettison.lab.bench.scripted_queries import MEASURES, START
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


@pytest.mark.parametrize("policy", cases(START, quick=("UniformDrop",)))
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


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("told", [None, 8.0], ids=["null", "another"])
def test_each_answer_is_judged_and_one_that_is_null_is_no_right_one(
    spark: SparkSession, measure: str, told: float | None
) -> None:
    """Of three groups one has every answer right, one a wrong one that is called exact, and one a wrong one that is not."""
    right = dict.fromkeys(MEASURES, 7.0)
    truth = [("w", key, *right.values()) for key in range(3)]
    wrong = right | {measure: told}
    found = [(0, right, "exact"), (1, wrong, "exact"), (2, wrong, "ok")]
    true = spark.createDataFrame(
        truth, f"window STRING, key INT, {', '.join(f'true_{one} DOUBLE' for one in MEASURES)}"
    )
    answers = _answers(
        spark, [("w", key, *((values[one], status) for one in MEASURES)) for key, values, status in found]
    )
    assert judged(true, answers, 5) == Judged(group_windows=3, answered=3, called_exact=2, wrong=1, rows_dropped=5)


def test_a_true_answer_that_is_null_is_right_where_it_is_told_so(spark: SparkSession) -> None:
    nothing = dict.fromkeys(MEASURES)
    truth = spark.createDataFrame(
        [("w", 0, *nothing.values()), ("w", 1, *nothing.values())],
        f"window STRING, key INT, {', '.join(f'true_{one} DOUBLE' for one in MEASURES)}",
    )
    told = _answers(spark, [("w", key, *((value, "exact") for _ in MEASURES)) for key, value in ((0, None), (1, 1.0))])
    assert judged(truth, told, 0).wrong == 1


def _answers(spark: SparkSession, rows: list[tuple[object, ...]]) -> DataFrame:
    return spark.createDataFrame(
        rows, f"window STRING, key INT, {', '.join(f'{one} STRUCT<value: DOUBLE, status: STRING>' for one in MEASURES)}"
    )
