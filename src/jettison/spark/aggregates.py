"""Aggregates over shed rows as native Spark columns: a value, its bounds, and how far to trust them.

They stand wherever Spark's own aggregates stand, in batch and in streaming queries, and are made of Spark's own
aggregates only. Spark computes equal sums once, so that `avg` and `sum` of one column share most of their work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from jettison.answers import estimate
from jettison.answers.answer_status import BOUNDED, DEPENDENT_ROWS, EXACT, FEW_ROWS, UNCONFIRMED
from jettison.answers.estimate import Estimate, Estimator, Moments, Ops, Weights
from jettison.answers.ranks import percentile_estimate, percentile_ranks, plain_percentile
from jettison.errors import refuse
from jettison.spark import doubts
from jettison.spark.named_column import with_name, with_names
from jettison.spark.watched import foreseen, unmarked

_PARTS = 100  # of a row: frequencies are whole numbers, weights are not


def _column(x: Any) -> Column:
    return x if isinstance(x, Column) else F.lit(x)


def named(col: Column | str) -> Column:
    """A column, also by its name."""
    return F.col(col) if isinstance(col, str) else col


_OPS = Ops(  # none of them raises in ANSI mode
    sqrt=F.sqrt,
    exp=F.exp,
    log=F.log,
    floor=F.floor,
    divide=lambda x, y: F.try_divide(_column(x), _column(y)),
    where=lambda condition, x, y: F.when(condition, x).otherwise(y),
    larger=lambda x, y: F.greatest(_column(x), _column(y)),
    smaller=lambda x, y: F.least(_column(x), _column(y)),
    present=lambda x, otherwise: F.coalesce(x, F.lit(otherwise)),
    at=lambda values, place: F.get(values, _column(place).cast("int")),
    places=lambda values, x: (
        F.size(F.filter(values, lambda each: each < x)),
        F.size(F.filter(values, lambda each: each <= x)),
    ),
    once=lambda values, *steps: with_names([_column(value) for value in values], *steps),
)


def count(
    col: Column | str = "*",
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Rows that there were before shedding, or rows with a value in `col` if one is given.

    Parameters
    ----------
    col
        Count only rows in which this is not null, as Spark's `count(col)` does.
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
        not be one; null where there is none); `kept` (long: the rows that the answer rests on); and `status`: 'exact'
        when no row of the window can have been dropped; 'unconfirmed' when nobody can tell how far the answer may be off:
        rows of the window may have been dropped but none that could have been is left in this group, or numbers are not
        finite; 'bounded'; 'few rows' when too few rows were kept for the bounds to
        be trusted; 'dependent rows' when rows that share one decision were, or may have been, taken for several, so that
        the bounds are too short.

    Examples
    --------
    >>> rides.groupBy("route").agg(count().alias("rides"))  # doctest: +SKIP

    Notes
    -----
    A group of which no row was kept is not in the result at all.
    """
    counted = F.lit(1.0) if isinstance(col, str) and col == "*" else F.when(named(col).isNotNull(), F.lit(1.0))
    made = _Made(estimate.count_estimate, lambda x, w: Moments(), lambda weights, _: weights.kept * 1.0, F.count)
    answer = _aggregate(made, counted, window, confidence, weight)
    return answer.alias(f"count({col})")


def sum(
    col: Column | str,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Sum of `col` over all rows, dropped ones included. Parameters and result as for `count`."""
    made = _Made(estimate.sum_estimate, _raw_moments, lambda _, moments: moments.weighted_sum, F.try_sum)
    answer = _aggregate(made, col, window, confidence, weight)
    return answer.alias(f"sum({col})")


def avg(
    col: Column | str,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Mean of `col` over all rows, dropped ones included. Parameters and result as for `count`.

    Examples
    --------
    >>> rides.groupBy("route").agg(avg("fare").alias("fare")).select("fare.value", "fare.upper")  # doctest: +SKIP
    """
    made = _Made(estimate.mean_estimate, _raw_moments, _plain_mean, F.try_avg)
    answer = _aggregate(made, col, window, confidence, weight)
    return answer.alias(f"avg({col})")


def variance(
    col: Column | str,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Sample variance of `col`, as Spark's `var_samp`. Parameters and result as for `count`."""
    made = _Made(estimate.variance_estimate, _spread_moments, lambda _, moments: moments.plain_variance)
    answer = _aggregate(made, col, window, confidence, weight)
    return answer.alias(f"variance({col})")


def stddev(
    col: Column | str,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Sample standard deviation of `col`, as Spark's `stddev_samp`. Parameters and result as for `count`."""
    made = _Made(estimate.stddev_estimate, _spread_moments, lambda _, moments: F.sqrt(moments.plain_variance))
    answer = _aggregate(made, col, window, confidence, weight)
    return answer.alias(f"stddev({col})")


def percentile(
    col: Column | str,
    percentage: float,
    *,
    window: Column | str | None = None,
    confidence: float = 0.95,
    weight: Column | str = "jt_weight",
) -> Column:
    """Percentile of `col` over all rows, dropped ones included, as Spark's exact `percentile`: 0.5 for the median.

    Each kept row counts as often as it weighs, to half a percent. A bound that lies beyond all kept rows is null, and the
    status is 'few rows' then. Other parameters and result as for `count`.

    Examples
    --------
    >>> rides.groupBy("route").agg(percentile("fare", 0.5).alias("median"))  # doctest: +SKIP

    Notes
    -----
    All distinct values of a group are held twice, once with their weights: the price of an answer that is Spark's own
    while nothing is dropped.
    """
    if not 0.0 <= percentage <= 1.0:
        refuse("`percentage` must lie in [0, 1]", repr(percentage), hint="0.95 for the 95th percentile")
    moments = partial(_percentile_moments, percentile_ranks(percentage))
    made = _Made(percentile_estimate(percentage), moments, lambda _, known: plain_percentile(_OPS, known))
    answer = _aggregate(made, col, window, confidence, weight)
    return answer.alias(f"percentile({col})")


def evidence(col: Column | str, *, weight: Column | str = "jt_weight") -> Column:
    """What `Borrower` must know of a group's rows, as a struct: aggregate it beside the answer that is to borrow.

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
    x, w = named(col).cast("double"), unmarked(named(weight))
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


@dataclass(frozen=True, slots=True)
class _Made:
    """How an answer is made.

    Parameters
    ----------
    estimator, moments
        The formulas, and what they read of the values, by column and weight.
    plain
        The answer where nothing was dropped, as a double; there the formulas are not even evaluated.
    own
        Spark's own aggregate, whose type the value has. A double without it.
    """

    estimator: Estimator
    moments: Callable[[Column, Column], Moments]
    plain: Callable[[Weights, Moments], Column]
    own: Callable[[Column], Column] | None = None


@foreseen
def _aggregate(
    made: _Made, col: Column | str, window: Column | str | None, confidence: float, weight: Column | str
) -> Column:
    """The answer's struct."""
    z, w, x = estimate.quantile(confidence), named(weight), named(col)
    own = None if made.own is None else made.own(_kept(x, w))
    # Doubles of weight 1 add up to what Spark's own aggregate finds, to the bit, so that it need not be computed.
    needed = None if own is None else F.when(~_is_double(own), own)

    def answers(weights: Weights, moments: Moments, own: Column | None) -> Column:
        value = double = made.plain(weights, moments)
        if own is not None:
            value = F.when(_is_double(own), fitted(double, own)).otherwise(own)
            double = F.coalesce(own.cast("double"), double)
        estimated = made.estimator(_OPS, weights, moments, z, lambda _, found: of_estimate(found, weights.kept, own))
        return F.when(weights.certain, of_whole(value, double, weights.kept)).otherwise(estimated)

    found = _with_names((_weights(x.cast("double"), w), made.moments(x, w)), answers, needed)
    # Chosen out here, because Spark refuses subqueries inside the function that names are made with.
    return F.get(found, doubts.doubt(window))


def _plain_mean(weights: Weights, moments: Moments) -> Column:
    return F.try_divide(moments.weighted_sum, weights.kept)


def _kept(x: Column, w: Column) -> Column:
    return F.when(w.isNotNull(), x)  # rows that were dropped may keep some columns


def _is_double(own: Column) -> Column:
    return F.typeof(own) == "double"  # known before anything is planned


def _weights(x: Column, w: Column) -> Weights:
    more = w - 1.0
    of_value = F.when(x.isNotNull(), more)
    # Null if all rows are certain. A row without a weight was dropped and only counted: then the answer is never exact.
    excess = F.sum(F.when(w.isNull() | (w > 1.0), F.coalesce(of_value, F.lit(0.0))))
    squared = F.sum(F.when(x.isNotNull(), more * more))
    return Weights(F.count(_kept(x, w)), excess.isNull(), F.coalesce(excess, F.lit(0.0)), squared)


def _raw_moments(column: Column, w: Column) -> Moments:
    """The same for a sum and a mean, so that Spark adds them up once. A product without a weight is null."""
    x = column.cast("double")
    weighted = w * x
    risk = (w - 1.0) * weighted
    return Moments(
        weighted_sum=F.sum(weighted), risk_sum=F.sum(risk), risk_square=F.sum(risk * x), risk_cube=F.sum(risk * x * x)
    )


def _spread_moments(column: Column, w: Column) -> Moments:
    x = _kept(column, w).cast("double")
    risky = F.when(w > 1.0, x)
    return Moments(
        plain_mean=F.avg(x),
        plain_variance=F.var_samp(x),
        about_weight=F.regr_sxy(w, x),
        about_weighted=F.regr_sxy(w * x, x),
        at_risk=F.count(risky),
        kurtosis=F.kurtosis(risky),
    )


def _percentile_moments(ranks: Sequence[float], column: Column, w: Column) -> Moments:
    x, times = _kept(column, w).cast("double"), F.round(w * float(_PARTS)).cast("bigint")
    shares = F.expr(f"array({', '.join(f'{rank!r}D' for rank in ranks)})")  # in one call to the JVM, not hundreds
    return Moments(percentiles=F.percentile(x, shares, times), plain_percentiles=F.percentile(x, shares))


def _with_names(parts: tuple[Any, ...], body: Callable[..., Column], own: Column | None) -> Column:
    """Apply `body` to the same dataclasses, and to `own`, with every column replaced by a name for it.

    Without names, formulas that use their sums ten times would take Spark seconds to plan.
    """
    columns = {field.name: getattr(part, field.name) for part in parts for field in fields(part)} | {"own": own}
    present = {name: _column(column).alias(name) for name, column in columns.items() if column is not None}

    def apply(known: Column) -> Column:
        names = {name: known[name] if name in present else None for name in columns}
        made = (type(part)(**{field.name: names[field.name] for field in fields(part)}) for part in parts)
        return body(*made, names["own"])

    return with_name(F.struct(*present.values()), apply)


def of_whole(value: Column, double: Column, kept: Column) -> Column:
    """The answer's struct, of rows of which none could have been dropped, for each number that `doubts.doubt` may give.

    Of such a group nothing is known when rows may be missing: it is whole, or all rows that might have been dropped have.
    """

    def named(value: Column, double: Column) -> Column:
        def struct(doubt: Column) -> Column:
            known, status = F.when(doubt < 1, double), F.when(doubt < 1, EXACT).otherwise(UNCONFIRMED)
            return _struct(value, known, known, kept, status)

        return F.transform(_doubts(), struct)

    return with_names((value, double), named)


def of_estimate(found: Estimate, kept: Column, own: Column | None, *, dependent: str | None = DEPENDENT_ROWS) -> Column:
    """The same of an estimate.

    Parameters
    ----------
    found, kept
        The answer, and the rows that it rests on.
    own
        Spark's own aggregate: the value has its type. A double if `None`.
    dependent
        Status of an answer over rows that share decisions; `None` if its bounds take that into account.
    """
    value, found = found.value, found.finite(_OPS)
    if own is not None:
        rounded = F.when(F.typeof(own) == "bigint", F.round(value)).otherwise(value)  # reading a long would only cut
        value = fitted(rounded, own)

    status = F.when(found.enough, F.when(found.clear, BOUNDED).otherwise(UNCONFIRMED)).otherwise(FEW_ROWS)

    def named(value: Column, lower: Column, upper: Column, status: Column) -> Column:
        def struct(doubt: Column) -> Column:
            doubted = F.when(doubt > 1, dependent).otherwise(status) if dependent else status
            return _struct(value, lower, upper, kept, doubted)

        return F.transform(_doubts(), struct)

    return with_names((value, found.lower, found.upper, status), named)


def _doubts() -> Column:
    return F.array(*map(F.lit, range(3)))


def _struct(*parts: Column) -> Column:
    names = ("value", "lower", "upper", "kept", "status")
    return F.struct(*[part.alias(name) for part, name in zip(parts, names, strict=True)])


def fitted(value: Column, like: Column) -> Column:
    """A number in the type of another column, which is known to Spark only; null where it does not fit.

    Spark has no cast to the type of a column. A variant can be read as a type whose name is a constant, and the name of
    a column's type is one.
    """
    return F.call_function("try_variant_get", value.cast("variant"), F.lit("$"), F.typeof(like))
