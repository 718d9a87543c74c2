"""What boxes make of missing rows, read from Spark's plans: what is not understood is not cleared."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.spark.box_facts import BoxFacts, box_facts

pytestmark = pytest.mark.spark

PAIRS = "key = other and other_at between at and at + interval 1 minute"
BoxFunction = Callable[..., DataFrame]


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> DataFrame:
    rate = spark.readStream.format("rate").load()
    return rate.selectExpr(
        "value as id",
        "string(value % 7) as key",
        "double(value) as value",
        "timestamp as at",
        "array(1, 2) as parts",
        "double(1) as jt_weight",
    )


@pytest.fixture(scope="module")
def static(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("1", 2)], "key string, x int")


def facts(function: BoxFunction, *entering: DataFrame) -> BoxFacts:
    return box_facts(function, [(rows, {"jt_weight", "jt_weight_right"}) for rows in entering], value="value")


def windows(rows: DataFrame) -> GroupedData:
    return rows.withWatermark("at", "10 seconds").groupBy(F.window("at", "1 minute"), "key")


def paired(kind: str) -> BoxFunction:
    def join(left: DataFrame, right: DataFrame) -> DataFrame:
        others = right.selectExpr("key as other", "at as other_at", "jt_weight as jt_weight_right")
        sides = left.withWatermark("at", "1 second"), others.withWatermark("other_at", "1 second")
        return sides[0].join(sides[1], F.expr(PAIRS), kind)

    return join


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: rows.where("value > 3"),
        lambda rows: rows.withColumn("part", F.explode("parts")),
        lambda rows: rows.withColumn("same", F.udf(lambda key: key)("key")),
        lambda rows: rows.withColumn("odd", F.lit("a, b] AS jt_weight#1")),
        lambda rows: windows(rows).agg(F.sum(F.expr("value * jt_weight")).alias("s"), F.sum("jt_weight").alias("n")),
        lambda rows: windows(rows).agg(F.expr("sum(value * jt_weight) / sum(jt_weight)").alias("mean")),
        lambda rows: windows(rows.withColumnRenamed("jt_weight", "w")).agg(F.sum("w").alias("n")),
        lambda rows: rows.groupBy(F.upper("key").alias("k")).agg(F.sum("jt_weight").alias("n")),
        lambda rows: windows(rows.select("*", *[F.lit(n).alias(f"c{n}") for n in range(60)])).agg(
            F.sum("jt_weight").alias("n")
        ),
    ],
)
def test_rows_one_by_one_and_sums_of_weights_bear_losses_and_have_no_bounds(stream: DataFrame, function) -> None:
    found = facts(function, stream)
    assert (found.because, found.bounds) == ("", False)


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: windows(rows).agg(jt.sum("value").alias("s"), jt.count().alias("n")),
        lambda rows: windows(rows).agg(jt.avg("value").alias("mean")),
        lambda rows: windows(rows).agg(F.sum(F.expr("jt_weight * (jt_weight - 1)")).alias("variance")),
        lambda rows: windows(rows).agg(F.expr("stddev(value * jt_weight)").alias("spread")),
    ],
)
def test_answers_with_bounds_are_recognised(stream: DataFrame, function) -> None:
    found = facts(function, stream)
    assert (found.because, found.bounds) == ("", True)


@pytest.mark.parametrize(
    ("function", "because"),
    [
        (lambda rows: windows(rows).agg(F.sum("value")), "`sum(value)` does not use `jt_weight`"),
        (lambda rows: windows(rows).agg(F.count("key")), "`count(key)` does not use"),
        (lambda rows: windows(rows).agg(F.sum("jt_weight"), F.max("value")), "`max(value)` does not use"),
        (lambda rows: rows.groupBy("jt_weight").count(), "`count(1)` does not use"),
        (
            lambda rows: (
                windows(rows).agg(F.sum("jt_weight").alias("n")).groupBy("window").agg(F.count("n"), F.sum("n"))
            ),
            "",
        ),
        (lambda rows: windows(rows).agg(F.sum("jt_weight")).groupBy("window").count(), "`count(1)` does not use"),
        (lambda rows: rows.dropDuplicates(["key"]), "what `Deduplicate [key]` makes of missing rows is not known"),
        (lambda rows: rows.distinct(), "what `Deduplicate"),
        (lambda rows: rows.limit(3), "Limit 3` makes of missing rows is not known"),
        (lambda rows: rows.mapInArrow(lambda parts: parts, rows.schema), "what `MapInArrow"),
        (lambda rows: rows.withColumn("jt_weight", F.lit(1.0)), "its `jt_weight` is not made of those that enter"),
        (
            lambda rows: rows.alias("a").join(rows.alias("b"), F.expr("a.key = b.key")).select("a.*"),
            "joins rows with themselves",
        ),
        (lambda rows: rows.sparkSession.range(3), "the rows that enter are not in Spark's plan of it"),
        (lambda rows: rows.where("key <> '== Optimized Logical Plan =='"), "Spark's plan of it cannot be read"),
    ],
)
def test_what_needs_all_rows_is_named(stream: DataFrame, function, because: str) -> None:
    assert because in facts(function, stream).because
    assert bool(facts(function, stream).because) == bool(because)


@pytest.mark.parametrize(
    ("kind", "stays_right"), [("inner", True), ("left", False), ("right", False), ("full", False), ("left_semi", False)]
)
def test_a_join_of_streams_bears_losses_if_it_is_inner(stream: DataFrame, kind: str, stays_right: bool) -> None:
    assert bool(facts(paired(kind), stream, stream).because) != stays_right


@pytest.mark.parametrize(
    ("kind", "stays_right"),
    [("inner", True), ("left", True), ("left_anti", True), ("left_semi", True), ("right", False), ("full", False)],
)
def test_each_row_is_looked_up_in_a_table_by_itself(stream: DataFrame, static, kind: str, stays_right: bool) -> None:
    assert bool(facts(lambda rows: rows.join(static, "key", kind), stream).because) != stays_right


def test_the_value_and_the_estimates_are_followed_under_new_names(stream: DataFrame) -> None:
    renamed = facts(lambda rows: rows.withColumnRenamed("value", "v").withColumnRenamed("v", "VALUE"), stream)
    assert (renamed.keeps_value, renamed.estimates) == (True, {"jt_weight"})
    changed = facts(lambda rows: rows.withColumn("value", F.col("value") * 2), stream)
    assert not changed.keeps_value
    counted = facts(lambda rows: windows(rows).agg(F.sum("jt_weight").alias("n"), F.max("key").alias("k")), stream)
    assert counted.estimates == {"n"}


def test_the_session_is_left_as_it_was(spark: SparkSession, stream: DataFrame) -> None:
    facts(lambda rows: rows, stream)
    assert spark.conf.get("spark.sql.debug.maxToStringFields") == "25"
