"""Which queries can be settled window by window, by their plans alone: whatever else would be called exact and be wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import jettison as jt
from jettison.errors import InvalidInput, Unsupported
from jettison.settle.answer_shape import Shape, shape_of

pytestmark = pytest.mark.spark
ROWS = StructType().add("id", "long").add("key", "string").add("at", "timestamp").add("value", "double")
Query = Callable[..., DataFrame]


def by_window(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.window("at", "10 seconds"), "key").agg(jt.count(window="window").alias("n"))


def answers(rows: DataFrame) -> DataFrame:
    return by_window(rows.withWatermark("at", "10 seconds"))


def shape(spark: SparkSession, query: Query, sources: int = 1) -> Shape:
    return shape_of(spark, query, [ROWS] * sources)


@pytest.mark.parametrize(
    ("query", "sources"),
    [
        (lambda a, b: by_window(a.withWatermark("at", "10 seconds").unionByName(b)), 2),
        (lambda a: by_window(a.withWatermark("at", "10 seconds").union(a.where("value > 3"))), 1),
    ],
)
def test_rows_that_pass_no_watermark_are_refused(spark: SparkSession, query: Query, sources: int) -> None:
    """Their event times are on no record, so a batch with rows of the window may not be read for it."""
    with pytest.raises(Unsupported, match="rows that pass no watermark"):
        shape(spark, query, sources)
    shape(spark, lambda a, b: answers(a.unionByName(b)), 2)


@pytest.mark.parametrize(
    "query",
    [
        lambda rows: answers(rows).groupBy(F.window("window", "1 minute"), "key").count(),
        lambda rows: answers(rows).groupBy("window").agg(F.sum("n.value").alias("n")),
    ],
)
def test_a_second_aggregate_is_refused(spark: SparkSession, query: Query) -> None:
    """A window of windows is not made of its own rows alone: others of them may not be settled."""
    with pytest.raises(Unsupported, match="a second aggregate"):
        shape(spark, query)


@pytest.mark.parametrize(
    "expression",
    [
        "at < current_timestamp()",
        "at < now()",
        "to_date(at) < current_date()",
        "at < localtimestamp()",
        "unix_timestamp() > 0",
        "rand() < 2",
        "random(3) < 2",
        "randn() < 9",
        "uuid() <> key",
        "size(shuffle(array(id, 1))) > 1",
        "monotonically_increasing_id() < 100",
        "spark_partition_id() < 1",
    ],
)
def test_clocks_and_chance_are_refused_by_name(spark: SparkSession, expression: str) -> None:
    with pytest.raises(Unsupported, match="differs from one run to the next"):
        shape(spark, lambda rows: answers(rows.where(expression)))


def test_clocks_and_chance_are_refused_wherever_they_decide(spark: SparkSession) -> None:
    """Among keys and in tables that are joined; above the aggregate they decide on no row."""
    static = spark.createDataFrame([("a", 1)], "key string, size int")

    def keyed(rows: DataFrame) -> DataFrame:
        marked = rows.withWatermark("at", "10 seconds")
        return marked.groupBy(F.window("at", "10 seconds"), F.current_date()).count()

    def joined(rows: DataFrame) -> DataFrame:
        return answers(rows.join(static.where("size < rand()"), "key"))

    for query in (keyed, joined):
        with pytest.raises(Unsupported, match="differs from one run to the next"):
            shape(spark, query)
    shape(spark, lambda rows: answers(rows).withColumn("made_at", F.current_timestamp()))
    shape(spark, lambda rows: answers(rows.join(static, "key").where("key <> 'now' and size > 0")))


@pytest.mark.parametrize("rebuilt", ["from_utc_timestamp(window.{0}, 'Asia/Tokyo')", "window.{0}"])
def test_a_window_that_was_put_together_again_is_refused(spark: SparkSession, rebuilt: str) -> None:
    """It may be another than the one whose rows were looked for."""
    edges = [F.expr(rebuilt.format(edge)).alias(edge) for edge in ("start", "end")]
    with pytest.raises(InvalidInput, match=r"as `F\.window` makes it"):
        shape(spark, lambda rows: answers(rows).select(F.struct(*edges).alias("window"), "key", "n"))
    renamed = shape(spark, lambda rows: answers(rows).select(F.col("window").alias("during"), "key", "n"))
    assert renamed.window == "during"


@pytest.fixture
def few_fields(spark: SparkSession) -> Iterator[None]:
    """Spark writes no more than so many fields of an operator out."""
    spark.conf.set("spark.sql.debug.maxToStringFields", "5")
    yield
    spark.conf.unset("spark.sql.debug.maxToStringFields")


@pytest.mark.usefixtures("few_fields")
def test_queries_that_differ_have_other_fingerprints(spark: SparkSession) -> None:
    """Also in the last of many columns, or in a table that is joined; the same query has the same one."""
    static = spark.createDataFrame([("a", 1)], "key string, size int")

    def wide(rows: DataFrame, last: int) -> DataFrame:
        return answers(rows.select("*", *[F.lit(n if n < 40 else last).alias(f"c{n}") for n in range(41)]))

    def joined(rows: DataFrame, size: int) -> DataFrame:
        return answers(rows.join(static.where(f"size < {size}"), "key"))

    for query in (wide, joined):
        one, same, other = (
            shape(spark, lambda rows, n=n, query=query: query(rows, n)).fingerprint  # type: ignore[misc]
            for n in (1, 1, 2)
        )
        assert one == same != other
