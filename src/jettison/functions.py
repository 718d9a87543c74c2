"""Aggregates over shed rows, in the manner of `pyspark.sql.functions`: `from jettison import functions as jf`."""

from jettison.answers.borrowed import Borrower
from jettison.policies.window.interpolate import interpolate
from jettison.spark.aggregates import avg, count, evidence, percentile, stddev, sum, variance
from jettison.spark.join_totals import join_side, join_totals, pair_weight

__all__ = [
    "Borrower",
    "avg",
    "count",
    "evidence",
    "interpolate",
    "join_side",
    "join_totals",
    "pair_weight",
    "percentile",
    "stddev",
    "sum",
    "variance",
]
