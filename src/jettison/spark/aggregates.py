"""Aggregates over shed rows as native Spark columns: a value, its bounds, and how far to trust them.

They stand wherever Spark's own aggregates stand, in batch and in streaming queries, and are made of Spark's own
aggregates only. Spark computes equal sums once, so that `avg` and `sum` of one column share most of their work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from jettison import estimate
from jettison.errors import InvalidSetting, explain
from jettison.estimate import Core, Estimate, Estimator, Moments, Weights
from jettison.spark import doubts
from jettison.spark.let import let

EXACT = "exact"
BOUNDED = "bounded"
FEW_ROWS = "few rows"
DEPENDENT_ROWS = "dependent rows"
UNCONFIRMED = "unconfirmed"
_PARTS = 100  # of a row: frequencies are whole numbers, weights are not; even, so that medians stay exact


class SparkOps:
    """`jettison.estimate.Ops` for columns: no operation raises in ANSI mode."""

    def sqrt(self, x: Any) -> Column:
        """Square root."""
        return F.sqrt(x)

    def exp(self, x: Any) -> Column:
        """Exponential."""
        return F.exp(x)

    def divide(self, x: Any, y: Any) -> Column:
        """Quotient; null where y is 0."""
        return F.try_divide(x, y)

    def where(self, condition: Any, x: Any, y: Any) -> Column:
        """Choose by condition."""
        return F.when(condition, x).otherwise(y)

    def larger(self, x: Any, y: Any) -> Column:
        """The larger; null is passed over."""
        return F.greatest(_column(x), _column(y))

    def smaller(self, x: Any, y: Any) -> Column:
        """The smaller; null is passed over."""
        return F.least(_column(x), _column(y))

    def present(self, x: Any, otherwise: float) -> Column:
        """Replace null."""
        return F.coalesce(x, F.lit(otherwise))


def count(
    column: Column | str | None = None,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Rows that there were before shedding, or rows with a value in `column` if one is given.

    Parameters
    ----------
    column
        Count only rows in which this is not null, as Spark's `count(column)` does.
    window
        The window that the answers are grouped by, as a column or by its name. Then only answers whose window overlaps a
        time at which rows were dropped are in doubt; without it, all answers are from the first drop on.
    confidence
        Share of windows in which the true answer shall lie between the bounds.
    weight
        Inverse of the probability that the row was kept, 1 or more; null on a row that was dropped and is only counted.

    Returns
    -------
    Column
        A struct: `value` in the type of Spark's own aggregate and to its last digit while nothing was dropped, else the
        estimate rounded into that type, null where it does not fit; `lower` and `upper` (double: a bound of a long need
        not be one); `kept` (long: the rows that the answer rests on); and `status`: 'exact' when no row of the window
        can have been dropped; 'unconfirmed', without bounds, when rows of the window may have been dropped but none that
        could have been is left in this group; 'bounded'; 'few rows' when too few rows were kept for the bounds to be
        trusted; 'dependent rows' when rows that share one decision were taken for several, so that the bounds are too
        short.

    Examples
    --------
    >>> rides.groupBy("route").agg(count().alias("rides"))  # doctest: +SKIP

    Notes
    -----
    A group of which no row was kept is not in the result at all.
    """
    z, inverse = estimate.quantile(confidence), _column_named(weight)
    counted = inverse.isNotNull() if column is None else inverse.isNotNull() & _column_named(column).isNotNull()
    value = F.when(counted, F.lit(1.0))
    return _answer(estimate.count_estimate, _weights(value, inverse), Moments(), z, window, plain=F.count(value))


def sum(
    column: Column | str,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Sum of `column` over all rows, dropped ones included. Parameters and result as for `count`."""
    return _aggregate(estimate.sum_estimate, _sum_moments, column, window, confidence, weight, F.try_sum)


def avg(
    column: Column | str,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Mean of `column` over all rows, dropped ones included. Parameters and result as for `count`.

    Examples
    --------
    >>> rides.groupBy("route").agg(avg("fare").alias("fare")).select("fare.value", "fare.upper")  # doctest: +SKIP
    """
    return _aggregate(estimate.mean_estimate, _mean_moments, column, window, confidence, weight, F.try_avg)


def variance(
    column: Column | str,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Sample variance of `column`, as Spark's `var_samp`. Parameters and result as for `count`."""
    return _aggregate(estimate.variance_estimate, _spread_moments, column, window, confidence, weight)


def stddev(
    column: Column | str,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Sample standard deviation of `column`, as Spark's `stddev_samp`. Parameters and result as for `count`."""
    return _aggregate(estimate.stddev_estimate, _spread_moments, column, window, confidence, weight)


def percentile(column: Column | str, percentage: float, *, weight: Column | str = "jt_weight") -> Column:
    """Percentile of `column` over all rows, dropped ones included, as Spark's exact `percentile`: a plain double, no bounds.

    Each kept row counts as often as it weighs, to half a percent. Without weights, times of a window at which more rows
    were kept would count for more. Where nothing was dropped the median is exact, and other percentiles lie between the same
    two neighbouring values as Spark's.

    Examples
    --------
    >>> rides.groupBy("route").agg(percentile("fare", 0.5).alias("median"))  # doctest: +SKIP
    """
    if not 0.0 <= percentage <= 1.0:
        raise InvalidSetting(
            explain("`percentage` must lie in [0, 1]", repr(percentage), hint="0.95 for the 95th percentile")
        )
    times = F.round(_column_named(weight) * float(_PARTS)).cast("bigint")
    return F.percentile(_double(column), percentage, times)


def evidence(column: Column | str, *, weight: Column | str = "jt_weight") -> Column:
    """What `jt.Borrower` needs to know of a group's rows, as a struct.

    Returns
    -------
    Column
        `mean` (weighted), `variance` (of the rows kept), `kept` (long), `effective_rows` (double: rows that the mean is
        worth; null where no kept row could have been dropped) and `rows` (double: all rows of the group, dropped ones
        included; exact where dropped rows are counted, else estimated).

    Examples
    --------
    >>> rides.groupBy("window", "route").agg(avg("fare").alias("fare"), evidence("fare").alias("seen"))  # doctest: +SKIP
    """
    x, w = _double(column), _column_named(weight)
    valued = F.when(x.isNotNull(), w)
    total = F.sum(valued)
    counted = F.count(F.lit(1)) > F.count(w)  # rows without a weight were dropped and only counted
    return F.struct(
        F.try_divide(F.sum(w * x), total).alias("mean"),
        F.var_samp(x).alias("variance"),
        F.count(x).alias("kept"),
        F.try_divide(total * total, F.sum(valued * (valued - 1.0))).alias("effective_rows"),
        F.when(counted, F.count(F.lit(1)).cast("double")).otherwise(F.sum(w)).alias("rows"),
    )


def _aggregate(
    estimator: Estimator,
    moments: Callable[[Column, Column], Moments],
    column: Column | str,
    window: Column | str | None,
    confidence: float,
    weight: Column | str,
    plain: Callable[[Column], Column] | None = None,
) -> Column:
    z, inverse = estimate.quantile(confidence), _column_named(weight)
    value = F.when(inverse.isNotNull(), _column_named(column))  # rows that were dropped may keep some columns
    own = None if plain is None else plain(value)
    return _answer(estimator, _weights(_double(value), inverse), moments(value, inverse), z, window, plain=own)


def _weights(x: Column, w: Column) -> Weights:
    u = w * (w - 1.0)
    total, risk, risk_squared, risk_excess = (
        F.sum(F.when(x.isNotNull(), part)) for part in (w, u, u * u, u * (w - 1.0))
    )
    # A row without a weight was dropped and only counted: then the answer is never exact, whatever the others weigh.
    largest = F.max(F.coalesce(w, F.lit(float("inf"))))
    return Weights(F.count(x), F.count(F.when(w > 1.0, x)), total, risk, risk_squared, risk_excess, largest)


def _sum_moments(column: Column, w: Column) -> Moments:
    x = _double(column)
    risky, weighted = F.when(w > 1.0, x), F.sum(w * x)
    return Moments(
        # Of the column itself: longs and decimals add up exactly. Where they do not fit, bounds still tell how much it is.
        plain_sum=F.coalesce(F.try_sum(column).cast("double"), weighted),
        weighted_sum=weighted,
        risk_square=F.sum(w * (w - 1.0) * x * x),
        risk_mean=F.avg(risky),
        risk_variance=F.var_pop(risky),
        skewness=F.skewness(risky),
    )


def _mean_moments(column: Column, w: Column) -> Moments:
    x = _double(column)
    u = w * (w - 1.0)
    return Moments(
        plain_mean=F.try_avg(column).cast("double"),
        cov_weight=F.covar_pop(w, x),
        cov_risk=F.covar_pop(u, x),
        cov_risked=F.covar_pop(u * x, x),
        skewness=F.skewness(F.when(w > 1.0, x)),
    )


def _spread_moments(column: Column, w: Column) -> Moments:
    x = _double(column)
    return Moments(
        plain_mean=F.avg(x),
        plain_variance=F.var_samp(x),
        cov_weight=F.covar_pop(w, x),
        cov_weighted=F.covar_pop(w * x, x),
        kurtosis=F.kurtosis(F.when(w > 1.0, x)),
    )


def _answer(
    estimator: Estimator,
    weights: Weights,
    moments: Moments,
    z: float,
    window: Column | str | None,
    *,
    plain: Column | None = None,
) -> Column:
    """The answer's struct.

    Parameters
    ----------
    window
        The window of the answer, where it is known.
    plain
        Spark's own aggregate, which the value is while nothing was dropped; the value has its type. A double if `None`.
    """
    ops = SparkOps()

    def answer(of_weights: Weights, of_moments: Moments, own: Column | None) -> Column:
        numbers = estimator.core(ops, of_weights, of_moments, z)

        def finished(core: Core, own: Column | None) -> Column:
            found = estimator.bounds(ops, core)
            return let(
                _parts(found, core.kept, own), lambda parts: F.array(*[_struct(parts, doubt) for doubt in range(3)])
            )

        return _named((numbers,), finished, own)

    made = _named((weights, moments), answer, plain)
    # Chosen out here, because Spark refuses subqueries inside the function that names are made with.
    return F.get(made, doubts.doubt(window))


def _named(parts: tuple[Any, ...], body: Callable[..., Column], own: Column | None) -> Column:
    """Apply `body` to the same dataclasses, and to `own`, with every column replaced by a name for it.

    Without names, formulas that use their sums ten times would take Spark seconds to plan.
    """
    columns = {field.name: getattr(part, field.name) for part in parts for field in fields(part)} | {"own": own}
    named = {name: _column(column).alias(name) for name, column in columns.items() if column is not None}

    def apply(known: Column) -> Column:
        names = {name: known[name] if name in named else None for name in columns}
        made = (type(part)(**{field.name: names[field.name] for field in fields(part)}) for part in parts)
        return body(*made, names["own"])

    return let(F.struct(*named.values()), apply)


def _parts(answer: Estimate, kept: Column, own: Column | None) -> Column:
    """What the answer's struct is made of, however much is in doubt."""
    value = answer.value if own is None else F.when(answer.exact, own).otherwise(_fitted(answer.value, own))
    return F.struct(
        value.alias("value"),
        answer.lower.alias("lower"),
        answer.upper.alias("upper"),
        kept.alias("kept"),
        answer.exact.alias("exact"),
        answer.enough.alias("enough"),
    )


def _struct(parts: Column, doubt: int) -> Column:
    """The struct for an answer about which so much is in doubt, as `doubts.doubt` says it."""
    bounded = F.lit(DEPENDENT_ROWS) if doubt > 1 else F.when(parts["enough"], BOUNDED).otherwise(FEW_ROWS)
    # Of a group with no row left that could have been dropped nothing is known: whole, or all such rows have gone.
    lower, upper = (F.when(~parts["exact"], parts[end]) if doubt else parts[end] for end in ("lower", "upper"))
    return F.struct(
        parts["value"].alias("value"),
        lower.alias("lower"),
        upper.alias("upper"),
        parts["kept"].alias("kept"),
        F.when(parts["exact"], UNCONFIRMED if doubt else EXACT).otherwise(bounded).alias("status"),
    )


def _fitted(value: Column, like: Column) -> Column:
    """A double, rounded into the type of another column, which is known to Spark only; null where it does not fit.

    Spark has no cast to the type of a column. A variant can be read as a type whose name is a constant, and the name of
    a column's type is one.
    """
    kind = F.typeof(like)
    whole = F.when(kind == "bigint", F.round(value)).otherwise(value)  # reading a long would cut the fraction off
    return F.call_function("try_variant_get", whole.cast("variant"), F.lit("$"), kind)


def _column(x: Any) -> Column:
    return x if isinstance(x, Column) else F.lit(x)


def _column_named(x: Column | str) -> Column:
    return F.col(x) if isinstance(x, str) else x


def _double(column: Column | str) -> Column:
    return _column_named(column).cast("double")
