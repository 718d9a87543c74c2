"""Counts and sums over the pairs of a join whose inputs were shed, with bounds."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.answers import estimate
from jettison.spark import doubts
from jettison.spark.aggregates import fitted, named, of_estimate, of_whole
from jettison.spark.drop_point import WEIGHT
from jettison.spark.mechanisms.group_mechanism import WHOLE
from jettison.spark.watched import unmarked


def join_side(rows: DataFrame, side: str) -> DataFrame:
    """Rename what the guard has added, so that both sides of a join can be told apart: `left_weight`, `left_whole`."""
    return rows.withColumnsRenamed({WEIGHT: f"{side}_weight", WHOLE: f"{side}_whole"})


def pair_weight(left: str = "left", right: str = "right") -> Column:
    """The inverse of the probability that both rows of a pair were kept, for aggregates of your own over the pairs.

    Rows that were decided one by one are independent. Two rows whose key was decided as a whole were decided by one hash:
    both are kept if the one with the smaller share is.
    """
    one, other = _weights(left, right)
    together = F.col(f"{left}_whole") & F.col(f"{right}_whole")
    return F.when(together, F.greatest(one, other)).otherwise(one * other)


def _weights(left: str, right: str) -> tuple[Column, Column]:
    return unmarked(F.col(f"{left}_weight")), unmarked(F.col(f"{right}_weight"))


def join_totals(
    pairs: DataFrame,
    by: str | Column | Sequence[str | Column],
    key: str | Column,
    *,
    left_id: str | Column,
    right_id: str | Column,
    value: str | Column | None = None,
    left: str = "left",
    right: str = "right",
    confidence: float = 0.95,
) -> DataFrame:
    """Pairs that the join would have had without shedding, or the sum of `value` over them, with bounds.

    Unbiased for any rates. Bounds are by Goodman's variance of a product for keys decided row by row, by Horvitz and
    Thompson's for keys decided whole; the distinct rows of either side that this needs are counted approximately. Where
    a time range keeps rows of one key apart, they are taken to have about as many partners each.

    It runs over pairs that were written and inside a streaming query: group `by` a window of the event time then, and let
    the join have watermarks and a time range.

    Parameters
    ----------
    pairs
        The joined rows, with the columns of `join_side`.
    by
        Columns to group by, such as a window; aggregated by them and `key` first.
    key
        The join key.
    left_id, right_id
        Columns that tell the rows of either side apart.
    value
        Column of the left side to sum; without it pairs are counted.
    left, right
        The names that the two sides got from `join_side`.
    confidence
        Probability with which the bounds are to hold.

    Returns
    -------
    DataFrame
        The columns `by`, and value, lower, upper, kept (pairs) and status as `jt.count` has them. That pairs share rows
        is in the bounds, so the status is never 'dependent rows'; it is 'few rows' below 30 rows, or keys decided whole,
        on either side.
    """
    by = [by] if isinstance(by, (str, Column)) else by
    z = estimate.quantile(confidence)
    own = F.lit(1) if value is None else named(value)
    weight, amount = pair_weight(left, right), own.cast("double")
    one, other = _weights(left, right)
    whole = F.col(f"{left}_whole") & F.col(f"{right}_whole")
    by_row = F.when(~whole, F.lit(1.0))
    per_key = pairs.groupBy(*by, key).agg(
        F.sum(weight * amount).alias("total"),
        # A key decided whole contributes its squared total times (1 - p), whatever happened in it.
        F.sum(F.when(whole, weight * amount)).alias("whole_total"),
        F.max(F.when(whole, 1.0 - 1.0 / weight)).alias("whole_risk"),
        F.approx_count_distinct(F.when(~whole, named(left_id)), 0.02).alias("left_rows"),
        F.approx_count_distinct(F.when(~whole, named(right_id)), 0.02).alias("right_rows"),
        F.sum(by_row * one * amount).alias("left_total"),
        F.sum(by_row * one * (one - 1.0) * amount * amount).alias("left_risk"),
        F.sum(by_row * other).alias("right_total"),
        F.sum(by_row * other * (other - 1.0)).alias("right_risk"),
        F.sum(by_row * one * (one - 1.0) * other * (other - 1.0) * amount * amount).alias("pair_risk"),
        F.count(by_row).alias("pairs"),
        F.count(F.lit(1)).alias("kept"),
        (F.count(own) if value is None else F.try_sum(own)).alias("own"),
        F.max(weight).alias("largest"),
    )
    names = per_key.columns[: len(by)]
    # What the rows of one side come to together, for a row of the other: means over that other side.
    x, y = F.try_divide("left_total", "right_rows"), F.try_divide("right_total", "left_rows")
    # Over pairs a row is counted once for each of its partners.
    x_risk = F.try_divide(F.col("left_risk") * F.col("left_rows"), F.col("pairs"))
    y_risk = F.try_divide(F.col("right_risk") * F.col("right_rows"), F.col("pairs"))
    by_rows = F.coalesce(x * x * y_risk + y * y * x_risk - F.col("pair_risk"), F.lit(0.0))
    by_whole = F.coalesce(F.col("whole_total") * F.col("whole_total") * F.col("whole_risk"), F.lit(0.0))
    decided = F.least("left_rows", "right_rows") + F.col("whole_total").isNotNull().cast("int")
    variance = F.greatest(by_rows + by_whole, F.lit(0.0)).alias("variance")
    known = per_key.select(*names, "total", variance, decided.alias("decided"), "kept", "own", "largest")
    sums = known.groupBy(*names).agg(
        F.sum("total").alias("value"),
        F.sum("variance").alias("variance"),
        F.sum("decided").alias("decided"),
        F.sum("kept").alias("kept"),
        fitted(F.try_sum("own"), F.max("own")).alias("own"),  # sums of decimals get a wider type with every step
        F.max("largest").alias("largest"),
    )
    exact, margin, total = F.col("largest") <= 1.0, z * F.sqrt("variance"), F.col("value")
    enough = F.col("decided") >= estimate.FEW_ROWS
    found = estimate.Estimate(total, total - margin, total + margin, total, exact, enough)
    kept, own = F.col("kept"), F.col("own")
    certain = of_whole(own, F.coalesce(own.cast("double"), total), kept)
    answers = F.when(exact, certain).otherwise(of_estimate(found, kept, own, dependent=None))
    return sums.select(*names, F.get(answers, doubts.doubt(None)).alias("answer")).select(*names, "answer.*")
