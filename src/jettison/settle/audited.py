"""How good the answers were: every bound that was given, held against the settled truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.answers.answer_status import BOUNDED, EXACT, FEW_ROWS
from jettison.core import storage
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, refuse
from jettison.runtime.ledger import Ledger
from jettison.settle.answer_shape import SETTLED_AT, is_answer, window_column
from jettison.settle.history import history
from jettison.settle.settled_record import Settled, load

_ROUNDING = 1e-9
_CANCELLED = 1e-12
_SIZES = (30, 100, 1000, 10_000)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How answers of one kind, in some windows or groups, compare with the truth.

    Parameters
    ----------
    by, answer
        Which ones: a policy, a window or a size of groups; the column that holds them.
    compared, bounded
        Answers in settled windows; those of them whose bounds were to be trusted (`bounded`).
    coverage
        Share of the bounds that hold the truth; `None` without any.
    median_error, bias
        Median of the relative errors, and mean error over the mean of the truth, of all answers compared.
    missing, surplus
        Settled answers of groups of which no row was kept; answers of groups that the truth lacks.
    few_rows, few_coverage
        Answers made of too few rows for bounds to be trusted; share of these bounds that hold the truth.
    wrong_exact
        Answers that were called exact and are not: there must be none, unless rows came too late, which the truth counts.
    """

    by: str
    answer: str
    compared: int
    bounded: int
    coverage: float | None
    median_error: float | None
    bias: float | None
    missing: int
    surplus: int
    few_rows: int
    few_coverage: float | None
    wrong_exact: int


def audit(
    spark: SparkSession,
    checkpoint: str | Path,
    answers: str | Path | DataFrame,
    *,
    keys: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda made, of: None,
) -> list[Verdict]:
    """Compare the answers that a query gave with the settled ones: over all, by window, and by rows of the group.

    Parameters
    ----------
    spark
        Where they are compared.
    checkpoint
        Of the query.
    answers
        What it gave: the path of Parquet or of a Delta table, or a DataFrame, as of a table's earlier version.
    keys
        Columns that tell the answers of a window apart; by default all that are no answers with bounds.
    progress
        Told how many of the comparisons are made, of how many: three for each column of answers.
    """
    home = storage.home(checkpoint)
    record = load(home)
    if not record.settled:
        hint = "run `jettison reconcile` first"
        refuse("windows must be settled before they are audited", "none", hint=hint, error=InvalidInput)
    given = answers if isinstance(answers, DataFrame) else _read(spark, str(answers))
    exact = _confirmed(spark, record).drop(SETTLED_AT)
    window = window_column(given.schema)
    edges = [F.unix_micros(F.col(window)[edge]).alias(f"{edge}_us") for edge in ("start", "end")]
    settled = spark.createDataFrame(sorted(record.settled), "start_us bigint, end_us bigint")
    given = given.withColumns(dict(zip(settled.columns, edges, strict=True))).join(
        settled, settled.columns, "left_semi"
    )
    given = given.drop(*settled.columns)
    columns = [field.name for field in given.schema.fields if is_answer(field.dataType)]
    if not columns:
        hint = "pass the path to which the live query writes answers of `jt.` aggregates"
        refuse("answers must have bounds", f"columns {given.columns}", hint=hint, error=InvalidInput)
    apart = [window, *keys] if keys else [one for one in given.columns if one in exact.columns and one not in columns]
    ledger = Ledger(home / "ledger")
    policy = history(list(ledger.records()), ledger.pruned()).policy or "?"
    made = [one for name in columns for one in _comparisons(given, exact, apart, window, name, policy)]
    verdicts: list[Verdict] = []
    for number, comparison in enumerate(made):
        progress(number, len(made))
        verdicts += comparison
    return verdicts


def _confirmed(spark: SparkSession, record: Settled) -> DataFrame:
    """The settled answers, without those of parts that a run may be writing."""
    parts = [part for part in record.parts if part.at_s is not None]
    return spark.read.parquet(*[Folder(f"{record.to}/settlement={part.number}").glob_escaped for part in parts])


def _read(spark: SparkSession, path: str) -> DataFrame:
    is_delta = any((Folder(path) / "_delta_log").names())
    return spark.read.format("delta" if is_delta else "parquet").load(path)


def _comparisons(
    given: DataFrame, exact: DataFrame, keys: list[str], window: str, name: str, policy: str
) -> list[Iterator[Verdict]]:
    """Over all, by rows of the group, and by window; none is made yet."""
    kind = exact.schema[name].dataType
    truth = F.col(name)["value"] if is_answer(kind) else F.col(name)
    true = exact.select(*keys, truth.cast("double").alias("truth"), F.lit(True).alias("is_settled"))
    size = F.abs("truth")
    true = true.crossJoin(true.agg(F.max(F.when(size < math.inf, size)).alias("jt_largest")))
    # Null keys are keys like others.
    same = [F.col(f"given.{key}").eqNullSafe(F.col(f"exact.{key}")) for key in keys]
    on = same[0]
    for one in same[1:]:
        on = on & one
    joined = true.alias("exact").join(given.alias("given"), on, "full")
    answer = F.col(f"given.{name}")
    compared = joined.select(
        F.date_format(F.coalesce(f"exact.{window}", f"given.{window}")["start"], "yyyy-MM-dd HH:mm:ss").alias("window"),
        answer["value"].cast("double").alias("value"),
        answer["lower"].alias("lower"),
        answer["upper"].alias("upper"),
        answer["kept"].alias("kept"),
        answer["status"].alias("status"),
        "truth",
        "jt_largest",
        F.col("is_settled").isNotNull().alias("is_true"),
    )
    by = F.lit(policy), _size(), F.concat(F.lit("window "), F.col("window"))
    return [_grouped(compared, one, name) for one in by]


def _grouped(compared: DataFrame, by: Column, name: str) -> Iterator[Verdict]:
    error = F.col("value") - F.col("truth")
    covered = ((F.col("lower") <= F.col("truth")) & (F.col("truth") <= F.col("upper"))).cast("double")
    bounded, few = F.col("status") == BOUNDED, F.col("status") == FEW_ROWS
    # Sums of fractions differ in their last digits by the order of the rows; where these cancel out, nothing else is left.
    rounding = _ROUNDING * F.abs("truth") + _CANCELLED * F.col("jt_largest")
    is_near = (F.abs(error) <= rounding) & (F.abs("truth") < math.inf)  # to Spark, NaN is not more than NaN
    is_right = F.col("value").eqNullSafe(F.col("truth")) | is_near
    wrong = (F.col("status") == EXACT) & ~(F.col("is_true") & F.coalesce(is_right, F.lit(False)))
    found = compared.groupBy(by.alias("by")).agg(
        F.count(F.when(F.col("is_true"), F.col("value"))).alias("compared"),
        F.count_if(F.col("is_true") & bounded).alias("bounded"),
        F.avg(F.when(bounded, covered)).alias("coverage"),
        F.median(F.abs(F.try_divide(error, F.col("truth")))).alias("median_error"),
        F.try_divide(F.sum(error), F.sum(F.when(F.col("value").isNotNull(), F.abs(F.col("truth"))))).alias("bias"),
        F.count_if(F.col("is_true") & F.col("value").isNull()).alias("missing"),
        F.count_if(~F.col("is_true") & F.col("value").isNotNull()).alias("surplus"),
        F.count_if(F.col("is_true") & few).alias("few_rows"),
        F.avg(F.when(few, covered)).alias("few_coverage"),
        F.count_if(wrong).alias("wrong_exact"),
    )
    for row in found.orderBy("by").collect():
        yield Verdict(answer=name, **row.asDict())


def _size() -> Column:
    """The rows that an answer rests on, in words that sort by size."""
    size = F.when(F.col("kept").isNull(), "no rows kept")
    for most in _SIZES:
        size = size.when(F.col("kept") < most, f"under {most:>6,} rows kept")
    return size.otherwise(f"from {_SIZES[-1]:>7,} rows kept")
