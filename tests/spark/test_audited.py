"""Which answers an audit calls wrong although they were called exact."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from jettison.settle.audited import _comparisons

pytestmark = pytest.mark.spark
START = datetime(2026, 1, 1)
WINDOW = START, START + timedelta(seconds=10)
KEYS = "window struct<start timestamp, end timestamp>, key string"
ANSWER = "struct<value double, lower double, upper double, kept bigint, status string>"


def test_what_rounding_leaves_of_a_sum_is_no_error_and_what_is_not_finite_hides_none(spark: SparkSession) -> None:
    truth = {"cancelled": 0.0, "rounded": 30.0, "off": 30.0, "small": 0.0, "infinite": math.inf, "none": math.nan}
    values = truth | {"cancelled": 3e-17, "rounded": 30.0 + 7e-15, "off": 30.001, "small": 1e-6}
    for more, wrong in (({}, 2), ({"infinite": 5.0, "none": 5.0}, 4)):
        said = [(WINDOW, key, (value, value, value, 9, "exact")) for key, value in (values | more).items()]
        given = spark.createDataFrame(said, f"{KEYS}, total {ANSWER}")
        exact = spark.createDataFrame([(WINDOW, *each) for each in truth.items()], f"{KEYS}, total double")
        (verdict,) = _comparisons(given, exact, ["window", "key"], "window", "total", "AnyPolicy")[0]
        assert (verdict.compared, verdict.wrong_exact) == (len(truth), wrong)
