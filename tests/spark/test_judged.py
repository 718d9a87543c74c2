"""Which answers of a query may be judged by their windows; what the plan does not clear may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.policies import WindowDrop
from jettison.spark import doubts
from jettison.spark.drop_point import DropPoint
from jettison.spark.explained import analyzed_plan, explained
from jettison.spark.judged import judged

pytestmark = pytest.mark.spark
SECOND_US = 1_000_000
Query = Callable[[DataFrame], DataFrame]


def ten(time: str = "at") -> F.Column:
    return F.window(time, "10 seconds").alias("window")


def counted(rows: DataFrame, window: F.Column | str | None = "window", *by: F.Column | str) -> DataFrame:
    return rows.groupBy(*(by or (ten(), "key"))).agg(jt.count(window=window).alias("n"))


def wet(rows: DataFrame, column: str = "at", delay: str = "2 seconds") -> DataFrame:
    return rows.withWatermark(column, delay)


def static(rows: DataFrame) -> DataFrame:
    return rows.sparkSession.range(7).select(F.col("id").cast("string").alias("key"), F.lit("n").alias("name"))


def sessions(gap: F.Column | str) -> Query:
    return lambda g: counted(wet(g), "window", F.session_window("at", gap).alias("window"), "key")


def in_sql(rows: DataFrame, query: str) -> DataFrame:
    rows.createOrReplaceTempView("rides")
    return rows.sparkSession.sql(query)


def titled(rows: DataFrame) -> DataFrame:
    return rows.withColumn("m", F.lit("a\n== Title ==\nb"))


def by_row(rows: DataFrame) -> DataFrame:
    return rows.groupBy(ten(), "key", "id").agg(F.max("jt_weight").alias("jt_weight"))


JUDGED: dict[str, tuple[Query, int]] = {
    "tumbling": (lambda g: counted(wet(g)), 0),
    "sliding": (lambda g: counted(wet(g), "w", F.window("at", "10 seconds", "3 seconds").alias("w")), 0),
    "given as a column": (lambda g: counted(wet(g), F.window("at", "10 seconds"), F.window("at", "10 seconds")), 0),
    "by another name": (lambda g: counted(wet(g).select("*", ten().alias("a b")), "a b", "a b", "key"), 0),
    "of a renamed column": (lambda g: counted(wet(g).withColumnRenamed("at", "t"), "window", ten("t")), 0),
    "watermark before a filter": (lambda g: counted(wet(g).where("value > 3")), 0),
    "joined with a table": (lambda g: counted(wet(g).join(static(g), "key", "left")), 0),
    "exploded": (lambda g: counted(wet(g).select("*", F.explode(F.array("id", "id")))), 0),
    "repartitioned and observed": (lambda g: counted(wet(g).repartition(3).observe("o", F.count("*"))), 0),
    "one row of each decision first": (
        lambda g: by_row(wet(g)).groupBy("window", "key").agg(jt.count(window="window")),
        0,
    ),
    "the same, renamed in between": (
        lambda g: by_row(wet(g)).select(F.col("window").alias("w"), "jt_weight").groupBy("w").agg(jt.count(window="w")),
        0,
    ),
    "united before the watermark": (lambda g: counted(wet(g.union(g))), 0),
    "sessions": (sessions("10 minutes"), 600 * SECOND_US),
    "a temporary view": (lambda g: counted(in_sql(wet(g), "SELECT * FROM rides WHERE value > 3")), 0),
    "a name for a query": (
        lambda g: counted(in_sql(wet(g), "WITH some AS (SELECT * FROM rides) SELECT * FROM some")),
        0,
    ),
    "a literal that looks like a title": (lambda g: counted(titled(wet(g))), 0),
}


def twice(rows: DataFrame) -> DataFrame:
    hours = wet(rows).groupBy(F.window("at", "1 hour", "10 minutes").alias("hour"))
    inner = hours.agg(F.max("jt_weight").alias("jt_weight"))
    return inner.groupBy(F.window(F.window_time("hour"), "10 minutes").alias("w")).agg(jt.count(window="w"))


def grouped_by_hand(rows: DataFrame) -> DataFrame:
    schema = "at timestamp, key string, jt_weight double"

    def one(key: object, frames: Iterator[pd.DataFrame], state: object) -> Iterator[pd.DataFrame]:
        yield from frames

    made = wet(rows).groupBy("key").applyInPandasWithState(one, schema, "n int", "append", "EventTimeTimeout")
    return counted(made)


def joined_streams(rows: DataFrame) -> DataFrame:
    others = rows.sparkSession.readStream.format("rate").load().select(F.col("value").alias("id"))
    return counted(wet(rows).join(others, "id"))


def window_of_a_windows_end(rows: DataFrame) -> DataFrame:
    """A row at the beginning of an hour is filed under the minutes in which the hour ends."""
    hours = wet(rows).withColumn("hour", F.window("at", "1 hour"))
    return counted(hours.withColumn("ends", F.window_time("hour")), "w", F.window("ends", "10 minutes").alias("w"))


def due_dates(rows: DataFrame) -> DataFrame:
    """A table that a query with a watermark has written has the watermark's mark in its schema."""
    due = F.lit("2026-01-01").cast("timestamp").alias("due", metadata={"spark.watermarkDelayMs": 2000})
    return static(rows).select("key", due)


def under_another_schema(rows: DataFrame) -> DataFrame:
    marked = wet(rows)
    return counted(marked.drop("at").withColumnRenamed("other", "at").to(marked.drop("other").schema))


def two_events_of_a_row(rows: DataFrame) -> DataFrame:
    marked = wet(rows)
    first, second = marked.select("at", "other", "key", "jt_weight"), marked.select("other", "at", "key", "jt_weight")
    return counted(first.union(second))


NOT_JUDGED: dict[str, Query] = {
    "a window of a window's end": window_of_a_windows_end,
    "the time of a table": lambda g: counted(wet(g).join(due_dates(g), "key"), "w", ten("due").alias("w")),
    "another column under the watermark's schema": under_another_schema,
    "columns that a union has put into another place": two_events_of_a_row,
    "a cast time": lambda g: counted(
        wet(g).select("*", F.col("at").cast("timestamp_ntz").alias("t")), "w", ten("t").alias("w")
    ),
    "no window": lambda g: g.groupBy("key").agg(jt.count()),
    "no watermark": counted,
    "another column": lambda g: counted(wet(g), "window", ten("other"), "key"),
    "a window of a computed time": lambda g: counted(
        wet(g), "w", F.window(F.col("at") + F.expr("interval 1 day"), "1 day").alias("w")
    ),
    "a struct that only looks like a window": lambda g: counted(
        wet(g), "w", F.struct(F.col("other").alias("start"), F.col("other").alias("end")).alias("w"), ten()
    ),
    "the other of two windows": lambda g: counted(wet(g).select("*", ten("other").alias("w")), "w", ten(), "w"),
    "some window of the group": lambda g: (
        wet(g).select("*", ten()).groupBy("key", F.window("at", "1 day")).agg(jt.count(window=F.max("window")))
    ),
    "two watermarks": lambda g: counted(wet(g).union(wet(g))),
    "two watermarks of two delays": lambda g: counted(wet(g).union(wet(g, delay="3 seconds"))),
    "a part that never passes the watermark": lambda g: counted(wet(g).union(g)),
    "duplicates dropped": lambda g: counted(wet(g).dropDuplicates(["id"])),
    "duplicates dropped in a view": lambda g: counted(wet(in_sql(g.dropDuplicates(["id"]), "SELECT * FROM rides"))),
    "duplicates dropped in a query with a name": lambda g: counted(
        wet(in_sql(g, "WITH some AS (SELECT DISTINCT * FROM rides) SELECT * FROM some"))
    ),
    "duplicates dropped below a literal that looks like a title": lambda g: counted(
        wet(titled(g.dropDuplicates(["id"])))
    ),
    "duplicates dropped within the watermark": lambda g: counted(wet(g).dropDuplicatesWithinWatermark(["id"])),
    "limit": lambda g: counted(wet(g).limit(100)),
    "windows of windows": twice,
    "state of one's own": grouped_by_hand,
    "joined streams": joined_streams,
    "sessions whose gap depends on the row": lambda g: sessions(
        F.when(F.col("value") > 3, "5 minutes").otherwise("1 minute")
    )(g),
    "sessions with a gap in other words": sessions("1 minute 30 seconds"),
    "rollup": lambda g: wet(g).select("*", ten()).rollup("window", "key").agg(jt.count(window="window")),
}


def found_in(
    shedder: jt.Shedder, query: DataFrame, *names: str, held_back: bool = False
) -> tuple[dict[str, int | None], int | None]:
    points = [shedder._assembly.points[name] for name in names or ("rows",)]
    marks, reads = [mark(point) for point in points], [point.plan_metric for point in points]
    return judged(analyzed_plan(explained(query.explain)), marks, reads, held_back=held_back)


def mark(point: DropPoint) -> str:
    return point.metric if point.observed else point.kept_mark


@pytest.fixture
def shedder(tmp_path: Path) -> Iterator[jt.Shedder]:
    with jt.Shedder(latency="1 minute", checkpoint=tmp_path / "checkpoint") as made:
        yield made


@pytest.fixture
def stream(source, spark: SparkSession) -> DataFrame:
    return source.stream().withColumn("other", F.col("at"))


@pytest.fixture(scope="module")
def once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[jt.Shedder, DataFrame]:
    """One guard for all queries that only have to be looked at."""
    folder = tmp_path_factory.mktemp("once")
    shedder = jt.Shedder(latency="1 minute", checkpoint=folder / "checkpoint")
    (folder / "in").mkdir()
    rows = spark.readStream.schema("id long, key string, value double, at timestamp").json(str(folder / "in"))
    return shedder, shedder.guard(rows.withColumn("other", F.col("at")), row_id="id")


@pytest.fixture
def guarded(once: tuple[jt.Shedder, DataFrame], own_doubts: None) -> tuple[jt.Shedder, DataFrame]:
    shedder, rows = once
    doubts.register(rows.sparkSession, shedder._assembly._channel)  # each test has forgotten all that were
    return once


@pytest.mark.parametrize("case", JUDGED)
def test_what_treats_rows_one_by_one_is_judged(guarded: tuple[jt.Shedder, DataFrame], case: str) -> None:
    shedder, rows = guarded
    query, margin_us = JUDGED[case]
    margins_us, delay_us = found_in(shedder, query(rows))
    assert list(margins_us.values()) == [margin_us]
    assert delay_us == 2 * SECOND_US


# Spark 4.0 does not analyse these two at all.
_REFUSED = {"a cast time", "a struct that only looks like a window"}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.since(4, 1)] if case in _REFUSED else []) for case in NOT_JUDGED]
)
def test_what_is_not_cleared_is_not_judged(guarded: tuple[jt.Shedder, DataFrame], case: str) -> None:
    shedder, rows = guarded
    margins_us, _ = found_in(shedder, NOT_JUDGED[case](rows))
    assert list(margins_us.values()) == [None]


def test_the_watermark_may_stand_before_the_guard(shedder: jt.Shedder, stream: DataFrame) -> None:
    before = wet(stream.dropDuplicates(["id"])).select("*", ten())
    margins_us, _ = found_in(shedder, counted(shedder.guard(before, row_id="id"), "window", "window"))
    assert list(margins_us.values()) == [0], "what happens before the guard happens to all rows"


def test_between_two_guards_rows_are_missing_too(shedder: jt.Shedder, stream: DataFrame) -> None:
    first = shedder.guard(stream, row_id="id")
    whole = shedder.guard(wet(first), row_id="id", name="second")
    distinct = shedder.guard(wet(first).dropDuplicates(["id"]), row_id="id", name="third")
    assert list(found_in(shedder, counted(whole), "rows", "second")[0].values()) == [0]
    assert list(found_in(shedder, counted(distinct), "rows", "third")[0].values()) == [None]


def test_an_aggregate_that_is_used_twice_is_judged_by_its_worse_use(shedder: jt.Shedder, stream: DataFrame) -> None:
    answer = jt.count(window="window").alias("n")
    rows = wet(shedder.guard(stream, row_id="id"))
    both = rows.groupBy(ten()).agg(answer).union(rows.dropDuplicates(["id"]).groupBy(ten()).agg(answer))
    assert list(found_in(shedder, both)[0].values()) == [None]


def test_guards_and_functions_of_others_leave_answers_out(
    shedder: jt.Shedder, stream: DataFrame, tmp_path: Path
) -> None:
    rows = wet(shedder.guard(stream, row_id="id"))
    with jt.Shedder(latency="1 minute", checkpoint=tmp_path / "other") as other:
        assert found_in(shedder, counted(other.guard(rows, row_id="id", name="theirs")))[0] == {}
    assert found_in(shedder, counted(rows.mapInArrow(lambda batches: batches, rows.schema)))[0] == {}


def test_answers_of_windows_that_may_be_dropped_must_be_held_back(stream: DataFrame, tmp_path: Path) -> None:
    policy = WindowDrop(time="at", window="10 seconds", max_gap=2)
    with jt.Shedder(latency="1 minute", checkpoint=tmp_path / "checkpoint", policy=policy) as shedder:
        answers = counted(shedder.guard(wet(stream), row_id="id"), "window", ten())
        assert list(found_in(shedder, answers, held_back=True)[0].values()) == [None]
        assert list(found_in(shedder, shedder.deliver(answers), held_back=True)[0].values()) == [0]


@pytest.mark.long
def test_a_plan_that_spark_cuts_short_leaves_answers_in_doubt(shedder: jt.Shedder, stream: DataFrame) -> None:
    """From the 26th column of an operator on, Spark prints no more."""
    many = [jt.count(window="window").alias(f"n{i}") for i in range(30)]
    margins_us, _ = found_in(shedder, wet(shedder.guard(stream, row_id="id")).groupBy(ten()).agg(*many))
    assert 0 < len(margins_us) < 30
    assert set(margins_us.values()) == {0}


def test_a_plan_that_ends_early_is_not_judged(shedder: jt.Shedder, stream: DataFrame) -> None:
    """Wherever Spark cuts it, see `spark.sql.maxPlanStringLength`, or a literal looks like the next title."""
    text = explained(counted(wet(shedder.guard(stream, row_id="id"))).explain)
    point = shedder._assembly.points["rows"]

    def margins(text: str) -> list[int | None]:
        return list(judged(analyzed_plan(text), [mark(point)], [point.plan_metric])[0].values())

    assert margins(text) == [0]
    begins, ends = text.index("== Analyzed"), text.index("== Optimized")
    cuts = [place for place in range(begins, ends) if text[place] == "\n"][1:-1]
    assert len(cuts) > 10
    for cut in cuts:
        assert 0 not in margins(text[:cut] + "\n... 99 more characters")
        assert 0 not in margins(f"{text[:cut]}\n{text[ends:]}") or "Streaming" in text[begins:cut]
    assert margins(text.replace("~Project", "~Project == Optimized Logical Plan ==")) == []


def test_the_answers_of_a_network_are_judged(source, numbered, tmp_path: Path) -> None:
    """Several guards on the way to one answer, exchanges between them, and a union of all outputs on top."""
    network = jt.Network()
    parsed = network.map(
        "parse", network.input("rows", source.stream(), row_id="id"), lambda rows: rows.where("id >= 0")
    )
    sums = network.aggregate("sums", parsed, lambda rows: counted(wet(rows)))
    network.output("all", parsed, str(tmp_path / "all"))
    network.output("counts", sums, str(tmp_path / "counts"))
    source.land(numbered(0, 100))
    query = network.start(latency="1 minute", checkpoint=tmp_path / "checkpoint")
    query.processAllAvailable()
    query.stop()
    assert network.shedder is not None
    assert network.shedder.await_books()
    run = network.shedder._run
    assert run is not None
    assert list(run.pilot.doubts.margins_us.values()) == [0]


CALLED_BY_NAME = """
== Analyzed Logical Plan ==
window: struct<start:timestamp,end:timestamp>, n: bigint
~Project [window#7-T2000ms, get(a#6L, width_bucket(try_cast(substring_index(substring_index(scalar-subquery#9 [], \
829be45dac79:, -1), ;, 1) as double), coalesce(cast((unix_micros(lateralAliasReference(window).start) + 1) AS n#8]
+- ~Project [window#5-T2000ms, count(1)#6L, window#5-T2000ms AS window#7-T2000ms]
   +- ~Aggregate [window#5-T2000ms], [window#5-T2000ms, count(1) AS count(1)#6L]
      +- ~Project [named_struct(start, knownnullable(precisetimestampconversion(((precisetimestampconversion(at#2-T2000ms, \
TimestampType, LongType)) AS window#5-T2000ms, at#2-T2000ms]
         +- ~EventTimeWatermark 5d288efa-a1be-4e15-a51b-9724dcb00832, at#2: timestamp, 2 seconds
            +- ~Filter the guard
               +- ~Relation [at#2] json

== Optimized Logical Plan ==
"""


def test_a_window_that_spark_4_0_calls_by_its_name_is_found_among_the_columns() -> None:
    """So it prints an answer that names a window by the name that the same query has just given to it."""

    def margins(text: str) -> list[int | None]:
        return list(judged(analyzed_plan(text), ["the guard"], [])[0].values())

    assert margins(CALLED_BY_NAME) == [0]
    twice = CALLED_BY_NAME.replace("~Project [window#7-T2000ms, ", "~Project [window#7-T2000ms, window#3-T2000ms, ")
    assert margins(twice) == [None]
    assert margins(CALLED_BY_NAME.replace("Reference(window)", "Reference(other)")) == [None]
