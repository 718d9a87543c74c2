"""Drop points of one name under two shedders, and names that look alike: decided independently, counted apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.errors import InvalidSetting
from jettison.lab.bench.streams import KeepShare
from jettison.spark.drop_point import DropPoint, mark_number
from spark_since import ACCOUNTING

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]

ROWS = 4000
SHARE = 0.5
Shedders = Callable[[], jt.Shedder]


@pytest.fixture
def shedder(tmp_path: Path) -> Shedders:
    numbers = itertools.count()

    def make(accounting: Any = "metrics") -> jt.Shedder:
        checkpoint = tmp_path / f"checkpoint{next(numbers)}"
        return jt.Shedder(latency="1 minute", checkpoint=checkpoint, policy=KeepShare(SHARE), accounting=accounting)

    return make


def near(count: int, share: float) -> bool:
    """Within four standard deviations of a binomial."""
    return abs(count - ROWS * share) <= 4 * math.sqrt(ROWS * share * (1 - share))


def written(query: Any, folder: Path, spark: SparkSession) -> DataFrame:
    query.processAllAvailable()
    query.stop()
    return spark.read.parquet(str(folder))


def into(rows: DataFrame, folder: Path) -> Any:
    return rows.writeStream.format("parquet").option("path", str(folder))


def counts(shedder: jt.Shedder) -> dict[str, tuple[int, int, bool]]:
    assert shedder.await_books()
    (record,) = shedder.ledger.records("batch")
    return {name: (point["seen"], point["kept"], point["exact"]) for name, point in record["points"].items()}


def test_a_chain_of_two_queries_thins_twice(spark, source, numbered, tmp_path: Path, shedder: Shedders) -> None:
    source.land(numbered(0, ROWS))
    first, second = shedder(), shedder()
    kept = first.guard(source.stream(), row_id="id")
    once = written(first.start(into(kept, tmp_path / "once")), tmp_path / "once", spark)
    again = second.guard(spark.readStream.schema(once.schema).parquet(str(tmp_path / "once")), row_id="id")
    twice = written(second.start(into(again, tmp_path / "twice")), tmp_path / "twice", spark)
    assert near(once.count(), SHARE)
    assert near(twice.count(), SHARE**2)
    assert {row.jt_weight for row in twice.collect()} == {SHARE**-2}


def both(first: jt.Shedder, second: jt.Shedder, source: Any) -> tuple[DataFrame, DataFrame]:
    """The same rows behind a guard of each, which have the same name."""
    return tuple(one.guard(source.stream(), row_id="id") for one in (first, second))  # type: ignore[return-value]


@pytest.mark.parametrize("accounting", ACCOUNTING)
def test_a_union_under_two_shedders_holds_independent_samples(
    spark, source, numbered, tmp_path: Path, shedder: Shedders, accounting: str
) -> None:
    source.land(numbered(0, ROWS))
    first, second = shedder(accounting), shedder(accounting)
    left, right = both(first, second, source)
    other = second.start(right.writeStream.format("noop"))  # brings the second one's plan into force
    out = left.withColumn("side", F.lit("left")).union(right.withColumn("side", F.lit("right")))
    rows = written(first.start(into(out, tmp_path / "out")), tmp_path / "out", spark)
    other.processAllAvailable()
    other.stop()
    ids = {side: {row.id for row in rows.where(f"side = '{side}'").collect()} for side in ("left", "right")}
    assert near(len(ids["left"]), SHARE)
    assert near(len(ids["right"]), SHARE)
    assert near(len(ids["left"] & ids["right"]), SHARE**2)
    assert counts(first) == {"rows": (ROWS, len(ids["left"]), True)}
    assert counts(second) == {"rows": (ROWS, len(ids["right"]), True)}


def test_a_join_under_two_shedders_keeps_pairs_with_the_product_of_their_shares(
    spark, source, numbered, tmp_path: Path, shedder: Shedders
) -> None:
    source.land(numbered(0, ROWS))
    first, second = shedder(), shedder()
    left, right = both(first, second, source)
    other = second.start(right.writeStream.format("noop"))
    pairs = left.select("id", "jt_weight").join(right.select("id", F.col("jt_weight").alias("weight")), "id")
    rows = written(first.start(into(pairs, tmp_path / "out")), tmp_path / "out", spark)
    other.stop()
    assert near(rows.count(), SHARE**2)
    assert {row.jt_weight * row.weight for row in rows.collect()} == {SHARE**-2}
    assert counts(first)["rows"][::2] == (ROWS, True)


ALIKE = ("plumless", "buckeroo")  # one CRC-32


def test_names_with_one_checksum_are_decided_and_counted_apart(spark, source, numbered, tmp_path, shedder) -> None:
    source.land(numbered(0, ROWS))
    subject = shedder()
    sides = [subject.guard(source.stream(), row_id="id", name=name).withColumn("side", F.lit(name)) for name in ALIKE]
    rows = written(subject.start(into(sides[0].union(sides[1]), tmp_path / "out")), tmp_path / "out", spark)
    ids = {name: {row.id for row in rows.where(f"side = '{name}'").collect()} for name in ALIKE}
    assert near(len(ids[ALIKE[0]] & ids[ALIKE[1]]), SHARE**2)
    assert counts(subject) == {name: (ROWS, len(ids[name]), True) for name in ALIKE}


def test_names_whose_marks_are_one_are_refused(source, shedder: Shedders) -> None:
    subject = shedder()
    subject.guard(source.stream(), row_id="id")
    token = subject._assembly._token()
    by_mark: dict[int, str] = {}
    for name in (f"point{number}" for number in itertools.count()):
        earlier = by_mark.setdefault(mark_number(name, "kept", token), name)
        if earlier != name:
            break
    subject.guard(source.stream(), row_id="id", name=earlier)
    with pytest.raises(InvalidSetting, match=rf"'{earlier}' and '{name}'.*Hint: give this one another `name`"):
        subject.guard(source.stream(), row_id="id", name=name)


def test_no_mark_is_found_inside_another() -> None:
    points = [DropPoint(f"point{number}", ("id",), token="token") for number in range(2000)]
    assert {len(point.seen_mark) for point in points} == {len(points[0].seen_mark)}
    assert {len(point.kept_mark) for point in points} == {len(points[0].kept_mark)}
