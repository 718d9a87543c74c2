"""Ways in which an answer could be called exact although rows are missing, each run on Spark batch by batch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.streams import KeepShare
from jettison.spark import doubts
from jettison.spark.load_aware import LoadAware
from told_stream import SCHEMA, Told

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]
EXACT = "exact"
Terse = partial(Told, empty_batches=False)


def watermarked(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "10 seconds")


def counts(rows: DataFrame, window: str = "window") -> DataFrame:
    return rows.groupBy(window, "key").agg(jt.count(window=window).alias("n"))


def windowed(rows: DataFrame, time: str = "at", length: str = "1 minute") -> DataFrame:
    return rows.withColumn("window", F.window(time, length))


def whole_again(run: Told) -> None:
    """Lose the row `x` at 10:04:50, keep everything from 10:05:00 on, and end at noon."""
    run.batch(("a", "10:00:00"), ("x", "10:04:49"))
    run.batch(("x", "10:04:50"), keep=False)
    run.batch(("y", "10:05:00"))
    run.batch(("z", "10:05:00"))  # the first that finds no plan on file which drops rows
    run.batch(("x", "10:06:00"), ("y", "10:06:00"))
    run.batch(("x", "10:20:00"))
    run.batch(("end", "12:00:00"))


def test_a_query_returns_to_exact_answers(spark: SparkSession, tmp_path: Path) -> None:
    with Told(spark, tmp_path, lambda rows: counts(windowed(watermarked(rows)))) as run:
        whole_again(run)
        answers = run.answers()
    assert answers["a", "10:00:00"] == (1, EXACT), "it was made before any row went"
    assert answers["x", "10:04:00"] == (1, "unconfirmed")
    assert answers["y", "10:05:00"] == (1, "unconfirmed")
    assert answers["x", "10:06:00"] == answers["y", "10:06:00"] == answers["x", "10:20:00"] == (1, EXACT)


def test_a_session_begins_earlier_if_its_first_rows_are_dropped(spark: SparkSession, tmp_path: Path) -> None:
    """Of x, the session from 10:06:00 on has lost its row of 10:04:50, although it begins after all dropped rows."""

    def sessions(rows: DataFrame) -> DataFrame:
        return counts(watermarked(rows).withColumn("window", F.session_window("at", "10 minutes")))

    with Terse(spark, tmp_path, sessions) as run:
        run.batch(("a", "10:00:00"))
        run.batch(("x", "10:04:50"), keep=False)
        run.batch(("y", "10:05:00"))
        run.batch(("x", "10:06:00"), ("y", "10:06:00"))
        run.batch(("x", "10:20:00"))
        run.batch(("end", "12:00:00"))
        answers = run.answers()
    assert answers["x", "10:06:00"] == (1, "unconfirmed")
    assert answers["x", "10:20:00"] == (1, EXACT), "a gap beyond the last row that can have been dropped"


def test_a_session_whose_rows_say_how_long_they_reach_is_in_doubt_for_good(spark: SparkSession, tmp_path: Path) -> None:
    def sessions(rows: DataFrame) -> DataFrame:
        gap = F.when(F.col("key") == "x", "20 minutes").otherwise("10 seconds")
        return counts(watermarked(rows).withColumn("window", F.session_window("at", gap)))

    with Terse(spark, tmp_path, sessions) as run:
        run.batch(("a", "10:00:00"))
        run.batch(("x", "10:04:50"), keep=False)
        run.batch(("y", "10:05:00"))
        run.batch(("x", "10:20:00"))
        run.batch(("end", "12:00:00"))
        assert run.answers()["x", "10:20:00"] == (1, "unconfirmed")


@pytest.mark.long
def test_of_two_watermarks_neither_tells_how_far_dropped_rows_reach(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reports the times of one of them alone. The other input is two hours ahead, and loses a row there."""

    def query(rows: DataFrame) -> DataFrame:
        slow, fast = rows.where("key = 'slow'"), rows.where("key != 'slow'")
        fast = fast.withColumn("at", F.col("at") + F.expr("interval 2 hours"))
        return counts(windowed(watermarked(slow).union(watermarked(fast))))

    with Terse(spark, tmp_path, query) as run:
        run.batch(("slow", "10:00:00"), ("x", "10:00:00"))
        run.batch(("slow", "10:01:00"), ("x", "10:06:10"), keep=False)
        run.batch(("slow", "10:02:00"))
        run.batch(("slow", "10:03:00"))
        run.batch(("slow", "10:04:00"), ("x", "10:06:20"))
        run.batch(("slow", "14:00:00"), ("end", "14:00:00"))
        run.batch(("slow", "14:00:30"), ("end", "14:00:30"))
        assert run.answers()["x", "12:06:00"] == (1, "unconfirmed")


@pytest.mark.long
def test_a_stream_without_the_watermark_beside_one_that_has_it(spark: SparkSession, tmp_path: Path) -> None:
    """The guarded rows never pass the watermark: its times are those of others."""

    def query(rows: DataFrame) -> DataFrame:
        slow = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in")).where("key = 'slow'")
        fast = rows.where("key != 'slow'").withColumn("at", F.col("at") + F.expr("interval 2 hours"))
        return counts(windowed(watermarked(slow.withColumn("jt_weight", F.lit(1.0))).union(fast)))

    with Terse(spark, tmp_path, query) as run:
        run.batch(("slow", "10:00:00"), ("x", "10:00:00"))
        run.batch(("slow", "10:01:00"), ("x", "10:06:10"), keep=False)
        run.batch(("slow", "10:02:00"))
        run.batch(("slow", "10:03:00"))
        run.batch(("slow", "10:04:00"), ("x", "10:06:20"))
        run.batch(("slow", "14:00:00"))
        run.batch(("slow", "14:00:30"))
        assert run.answers()["x", "12:06:00"] == (1, "unconfirmed")


def test_windows_over_another_column_than_the_watermarks(spark: SparkSession, tmp_path: Path) -> None:
    """The dropped row lies in a window that begins after all times that the watermark's column has."""

    def query(rows: DataFrame) -> DataFrame:
        late = windowed(watermarked(rows), "other").groupBy("window", "key", F.window("at", "1 minute").alias("due"))
        return late.agg(jt.count(window="window").alias("n"))

    with Terse(spark, tmp_path, query) as run:
        run.batch(("a", "10:00:00"))
        run.batch(("x", "10:04:50"), keep=False, other="20:00:10")
        run.batch(("y", "10:05:00"))
        run.batch(("x", "10:06:00"), other="20:00:20")
        run.batch(("end", "12:00:00"))
        assert run.answers()["x", "20:00:00"] == (1, "unconfirmed")


@pytest.mark.long
def test_windows_of_windows_begin_later_than_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    def query(rows: DataFrame) -> DataFrame:
        hours = watermarked(rows).groupBy(F.window("at", "1 hour", "10 minutes").alias("hour"), "key")
        inner = hours.agg(F.count(F.lit(1)).alias("rows"), F.max("jt_weight").alias("jt_weight"))
        outer = inner.groupBy(F.window(F.window_time("hour"), "10 minutes").alias("window"), "key")
        return outer.agg(jt.sum("rows", window="window").alias("n"))

    with Terse(spark, tmp_path, query) as run:
        whole_again(run)
        run.batch(("end", "14:00:00"))
        # From 10:10:00 to 11:10:00, but filed under the ten minutes in which it ends.
        assert run.answers()["x", "10:50:00"][1] == "unconfirmed"


@pytest.mark.long
def test_a_window_that_is_carried_through_two_aggregates_is_judged(spark: SparkSession, tmp_path: Path) -> None:
    def query(rows: DataFrame) -> DataFrame:
        by_row = windowed(watermarked(rows)).groupBy("window", "key", "id").agg(F.max("jt_weight").alias("jt_weight"))
        return counts(by_row)

    with Terse(spark, tmp_path, query) as run:
        whole_again(run)
        answers = run.answers()
    assert answers["x", "10:04:00"] == (1, "unconfirmed")
    assert answers["x", "10:06:00"] == (1, EXACT)


@pytest.mark.parametrize("within", [False, True], ids=["for good", "within the watermark"])
def test_a_duplicate_of_a_dropped_row_is_taken_for_the_first(spark: SparkSession, tmp_path: Path, within: bool) -> None:
    """Without shedding, x would be counted at 10:04:50 and not at 10:05:00, nor at any time after."""

    def query(rows: DataFrame) -> DataFrame:
        distinct = watermarked(rows)
        distinct = distinct.dropDuplicatesWithinWatermark(["key"]) if within else distinct.dropDuplicates(["key"])
        return counts(windowed(distinct, length="1 second"))

    with Terse(spark, tmp_path, query) as run:
        run.batch(("a", "10:00:00"))
        run.batch(("x", "10:04:50"), keep=False)
        run.batch(("y", "10:04:45"))
        run.batch(("x", "10:04:59"))
        run.batch(("end", "12:00:00"))
        assert run.answers()["x", "10:04:59"] == (1, "unconfirmed")


def test_stored_rows_are_judged_by_the_guards_of_the_application(spark: SparkSession, tmp_path: Path) -> None:
    """Of x, the row of 10:04:50 went before it was stored. Nothing in the file says so."""

    def again(folder: Path) -> dict[str, str]:
        found = counts(windowed(spark.read.parquet(str(folder / "out")))).collect()
        return {row["key"]: row["n"]["status"] for row in found}

    for folder, keep in (("whole", True), ("shed", False)):
        with Terse(spark, tmp_path / folder, lambda rows: rows) as run:
            run.batch(("a", "10:00:00"))
            run.batch(("x", "10:04:50"), keep=keep)
            run.batch(("x", "10:04:51"))
            running = again(tmp_path / folder)
        assert set(running.values()) == ({EXACT} if keep else {"unconfirmed"})
        assert again(tmp_path / folder) == running, "what has ended has not been forgotten"


def test_where_there_was_no_guard_nobody_can_vouch(spark: SparkSession) -> None:
    rows = spark.range(3).select(F.lit("k").alias("key"), F.lit(1.0).alias("jt_weight"))
    (row,) = rows.groupBy("key").agg(jt.count().alias("n")).collect()
    assert tuple(row["n"]) == (3, None, None, 3, "unconfirmed")


def test_rows_that_were_shed_before_they_came_are_never_called_whole(spark: SparkSession, tmp_path: Path) -> None:
    with Terse(
        spark,
        tmp_path,
        lambda rows: counts(windowed(watermarked(rows))),
        rows=lambda rows: rows.withColumn("jt_weight", F.lit(1.0)),
    ) as run:
        run.batch(("a", "10:00:00"))
        run.batch(("end", "12:00:00"))
        assert run.answers()["a", "10:00:00"] == (1, "unconfirmed")


def test_a_query_is_not_in_doubt_because_of_what_another_one_dropped(spark: SparkSession, tmp_path: Path) -> None:
    with Terse(spark, tmp_path / "shed", lambda rows: rows) as other:
        other.batch(("a", "10:00:00"))
        other.batch(("x", "10:04:50"), keep=False)
        with Terse(spark, tmp_path / "whole", lambda rows: counts(windowed(watermarked(rows)))) as run:
            run.batch(("a", "10:00:00"))
            run.batch(("b", "11:00:00"))
            run.batch(("end", "12:00:00"))
            assert run.answers()["b", "11:00:00"] == (1, EXACT)


@pytest.mark.long
def test_answers_over_the_guards_of_two_shedders_are_judged_by_both(spark: SparkSession, tmp_path: Path) -> None:
    other = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "other")

    def query(rows: DataFrame) -> DataFrame:
        return counts(windowed(watermarked(other.guard(rows, row_id="id", name="theirs"))))

    with Terse(spark, tmp_path, query) as run, other:
        whole_again(run)
        assert run.answers()["x", "10:20:00"] == (1, "unconfirmed")


@pytest.mark.long
def test_a_restart_may_have_other_windows(spark: SparkSession, tmp_path: Path) -> None:
    """What the first run knew of `at` says nothing of `other`, though both queries have the same state."""

    def first(rows: DataFrame) -> DataFrame:
        return counts(windowed(watermarked(rows)))

    def second(rows: DataFrame) -> DataFrame:
        return counts(windowed(rows.withWatermark("other", "1 hour"), "other"))

    with Terse(spark, tmp_path, first) as run:
        run.batch(("a", "10:00:00"), other="19:00:00")
        run.batch(("x", "10:04:50"), keep=False, other="20:00:10")
        run.batch(("y", "10:05:00"), other="19:50:00")
        run.batch(("y", "10:06:00"), other="19:55:00")
    with Terse(spark, tmp_path, second) as run:
        run.batch(("x", "10:06:00"), other="20:00:20")
        run.batch(("end", "23:00:00"), other="23:00:00")
        run.batch(("end", "23:30:00"), other="23:30:00")
        assert run.answers()["x", "20:00:00"] == (1, "unconfirmed")


@pytest.mark.long
def test_one_aggregate_in_two_queries_is_judged_by_both(spark: SparkSession, tmp_path: Path) -> None:
    """Only one of them drops rows, and the one that keeps them may be the last to speak."""
    shared = jt.count(window="window").alias("n")
    others: list[Told] = []

    def query(rows: DataFrame) -> DataFrame:
        return windowed(watermarked(rows)).groupBy("window", "key").agg(shared)

    def after_the_other(rows: DataFrame) -> DataFrame:
        others.append(Terse(spark, tmp_path / "whole", query))
        return query(rows)

    with Terse(spark, tmp_path / "shed", after_the_other) as run, others[0] as other:
        for each in (run, other):
            each.batch(("a", "10:00:00"))
        run.batch(("x", "10:06:10"), keep=False)
        for each in (run, other):
            each.batch(("x", "10:06:20"))
            each.batch(("end", "12:00:00"))
            each.batch(("end", "12:00:10"))
        assert run.answers()["x", "10:06:00"] == other.answers()["x", "10:06:00"] == (1, "unconfirmed")


@pytest.mark.long
def test_an_aggregate_of_a_whole_query_says_nothing_of_stored_rows(spark: SparkSession, tmp_path: Path) -> None:
    """The query that has it keeps all; of x, which another one stored, the row of 10:04:50 is missing."""
    shared = jt.count(window="window").alias("n")

    def query(rows: DataFrame) -> DataFrame:
        return windowed(rows).groupBy("window", "key").agg(shared)

    with (
        Terse(spark, tmp_path / "whole", lambda rows: query(watermarked(rows))) as whole,
        Terse(spark, tmp_path / "shed", lambda rows: rows) as shed,
    ):
        whole.batch(("a", "10:00:00"))
        shed.batch(("x", "10:04:40"))
        shed.batch(("x", "10:04:50"), keep=False)
        shed.batch(("x", "10:05:20"))
        stored = query(spark.read.parquet(str(tmp_path / "shed" / "out"))).collect()
        assert {(row["n"]["value"], row["n"]["status"]) for row in stored} == {(1, "unconfirmed")}
        whole.batch(("end", "12:00:00"))
        whole.batch(("end", "12:00:10"))
        assert whole.answers()["a", "10:00:00"] == (1, EXACT)


@pytest.mark.long
def test_a_lost_folder_beside_the_state_of_an_earlier_run(spark: SparkSession, tmp_path: Path) -> None:
    """Of x, the row of 10:04:50 is missing in Spark's state. Nobody else remembers."""

    def query(rows: DataFrame) -> DataFrame:
        return counts(windowed(watermarked(rows)))

    with Terse(spark, tmp_path, query) as run:
        run.batch(("a", "10:00:00"))
        run.batch(("x", "10:04:50"), keep=False)
        run.batch(("x", "10:04:55"))
    shutil.rmtree(tmp_path / "checkpoint" / "jettison")
    doubts._ended.clear()
    with Terse(spark, tmp_path, query) as run:
        run.batch(("b", "12:00:00"))
        run.batch(("b", "12:01:00"))
        run.batch(("x", "12:10:00"))
        run.batch(("end", "13:00:00"))
        answers = run.answers()
    assert answers["x", "10:04:00"] == (1, "unconfirmed")
    assert answers["x", "12:10:00"] == (1, EXACT), "windows that begin later hold all their rows"


@pytest.mark.long
@pytest.mark.parametrize("attached", [True, False])
def test_a_function_that_may_drop_rows_leaves_no_answer_beyond_doubt(
    spark: SparkSession, tmp_path: Path, attached: bool
) -> None:
    """All rows are years older than the bound, so the function drops some. They are gone when their batch is answered."""
    made: list[LoadAware] = []

    def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def prepare(shedder: jt.Shedder) -> None:
        where: dict[str, Any] = {"shedder": shedder} if attached else {"checkpoint": tmp_path / "function"}
        made.append(jt.load_aware(unchanged, key="key", max_wait="1 ms", arrival="at", **where))

    def query(rows: DataFrame) -> DataFrame:
        columns = rows.select("id", "key", "at", "other", "jt_weight")
        return counts(windowed(watermarked(columns.mapInArrow(made[0], f"{SCHEMA}, jt_weight double"))))

    with Terse(spark, tmp_path, query, prepare=prepare) as run:
        run.batch(*[("x", "10:00:00")] * 500)
        run.batch(("end", "12:00:00"))
        value, status = run.answers()["x", "10:00:00"]
    made[0].close()
    assert value < 500
    assert status == "unconfirmed"


def statuses(spark: SparkSession) -> set[str]:
    rows = spark.range(3).select(F.lit(1.0).alias("jt_weight"))
    return {row["n"]["status"] for row in rows.agg(jt.count().alias("n")).collect()}


def test_a_shedder_that_was_never_started_is_forgotten_when_it_is_closed(
    spark: SparkSession, source, tmp_path: Path
) -> None:
    with Terse(spark, tmp_path / "shed", lambda rows: rows) as run:
        run.batch(("a", "10:00:00"))
        run.batch(("x", "10:04:50"), keep=False)
    doubts._ended.clear()  # as in another application
    before = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "shed" / "checkpoint")
    with before, jt.Shedder(latency="1 hour", checkpoint=tmp_path / "whole") as whole:
        whole.guard(source.stream(), row_id="id")
        assert statuses(spark) == {EXACT}
        before.guard(source.stream(), row_id="id")
        assert statuses(spark) == {"unconfirmed"}
        before.close()
        assert statuses(spark) == {EXACT}


def test_a_start_that_failed_does_not_hide_the_next_one(spark: SparkSession, source, numbered, tmp_path: Path) -> None:
    policy = KeepShare(1.0)
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "c", policy=policy)
    rows = shedder.guard(source.stream(), row_id="id")
    with pytest.raises(Exception, match="nonsense"):
        shedder.start(rows.writeStream.format("nonsense"))
    with shedder:
        policy.keep_fraction = 0.5
        shedder.start(rows.writeStream.format("noop"))
        assert statuses(spark) == {"unconfirmed"}


def test_each_process_has_a_view_of_its_own() -> None:
    """Over Spark Connect, what one client registers is nothing to another."""
    script = "from jettison.spark import doubts; print(doubts._VIEW)"
    names = {subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(names) == 2


def test_answers_can_be_written_in_any_thread(spark: SparkSession) -> None:
    """As in `foreachBatch`, or in a web service: Spark has an active session only where one was used before."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(jt.count).result()
    rows = spark.range(3).withColumn("jt_weight", F.lit(1.0))
    assert rows.agg(answer.alias("n")).first()["n"]["status"] == "unconfirmed"
