from __future__ import annotations

import math
import statistics
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.answers import estimate
from jettison.answers.ranks import percentile_estimate
from jettison.core.plan import DropPlan
from jettison.core.storage import Folder
from jettison.errors import InvalidSetting
from jettison.lab import sampled
from jettison.runtime.schedule import DEPENDENT_US, NEVER_US, UNKNOWN_US, Doubts, Schedule
from jettison.spark import aggregates as jt
from jettison.spark import doubts
from jettison.spark.channel import Channel

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("vouched_for")]

NAMES = ("count", "sum", "avg", "variance", "stddev")
FORMULAS = {
    "count": estimate.count_estimate,
    "sum": estimate.sum_estimate,
    "avg": estimate.mean_estimate,
    "variance": estimate.variance_estimate,
    "stddev": estimate.stddev_estimate,
}


def ours(column: str = "x") -> list[Any]:
    return [getattr(jt, name)(column).alias(name) for name in NAMES]


def frame(spark: SparkSession, groups: dict[str, tuple[list[float | None], list[float]]]) -> DataFrame:
    rows = [(key, x, w) for key, (xs, ws) in groups.items() for x, w in zip(xs, ws, strict=True)]
    return spark.createDataFrame(rows, "key string, x double, jt_weight double")


def as_numpy(xs: list[float | None], ws: list[float]) -> dict[str, estimate.Estimate]:
    ops, z = sampled.NUMPY, estimate.quantile(0.95)
    with np.errstate(over="ignore", invalid="ignore"):
        weights, moments = sampled.describe([math.nan if x is None else x for x in xs], ws)
        return {name: formula(ops, weights, moments, z) for name, formula in FORMULAS.items()}


def status_of(found: estimate.Estimate) -> str:
    if found.exact:
        return "exact"
    return "few rows" if not found.enough else "bounded" if found.clear else "unconfirmed"


@pytest.fixture(scope="module")
def samples() -> dict[str, tuple[list[float | None], list[float]]]:
    random = np.random.default_rng(1)
    many = random.lognormal(size=400).tolist()
    holed: list[float | None] = random.normal(50.0, 5.0, 60).tolist()
    holed[::7] = [None] * len(holed[::7])
    far = (1e9 + random.normal(size=200)).tolist()
    return {
        "one rate": (many, [10.0] * 400),
        "changing rates": (many, random.choice([1.0, 1.25, 4.0, 10.0], 400).tolist()),
        "with nulls": (holed, [3.0] * 60),
        "negative": ([-x for x in many], [2.5] * 400),
        "far from zero": (far, random.choice([2.0, 5.0], 200).tolist()),
        "constant": ([7.0] * 50, [2.0] * 50),
        "two rows": ([1.0, 4.0], [2.0, 3.0]),
        "one row": ([7.0], [3.0]),
        "no value": ([None, None], [3.0, 1.0]),
        "untouched": (many[:50], [1.0] * 50),
        "one row untouched": ([7.0], [1.0]),
        **{f"1e{power}": ([x * 10.0**power for x in many], [2.5] * 400) for power in (77, 103, 150, 160, 305)},
        "seconds": ((1.7e9 + 10.0 * random.normal(size=200)).tolist(), [4.0] * 200),
    }


def test_spark_and_numpy_agree(spark, samples):
    answers = {row["key"]: row for row in frame(spark, samples).groupBy("key").agg(*ours()).collect()}
    status_and_rows_kept(answers, samples)
    for key, (xs, ws) in samples.items():
        for name, expected in as_numpy(xs, ws).items():
            found = answers[key][name]
            assert found["status"] == status_of(expected), (key, name)
            for part in ("value", "lower", "upper"):
                wanted = float(getattr(expected, part))
                # Rounding of 1e9 + x costs the spread seven digits, here and there differently.
                tolerance = 1e-6 if key in ("far from zero", "seconds") and name in ("variance", "stddev") else 1e-9
                if part == "value" and key in ("1e160", "1e305") and not math.isfinite(wanted):
                    assert not math.isfinite(found[part]), (key, name, part)  # what overflows where is the engine's own
                elif math.isnan(wanted):
                    assert found[part] is None, (key, name, part)
                elif (name, part) == ("count", "value"):  # a long, as Spark's own
                    assert found[part] == math.floor(wanted + 0.5), (key, name)
                else:
                    assert found[part] == pytest.approx(wanted, rel=tolerance), (key, name, part)


def random_group(random: np.random.Generator) -> tuple[list[float | None], list[float]]:
    rows = int(random.integers(1, 150))
    xs = random.choice([random.normal(0.0, 5.0, rows), random.lognormal(size=rows), random.integers(-3, 4, rows)])
    weights = random.choice([1.0, 1.0, 1.1, 2.0, 4.0 / 3.0, 20.0], int(random.integers(1, 4)))
    return np.where(random.random(rows) < random.choice([0.0, 0.3, 0.95]), None, xs).tolist(), random.choice(
        weights, rows
    ).tolist()


@pytest.mark.usefixtures("interpreted")
def test_spark_and_numpy_agree_on_random_groups(spark):
    random = np.random.default_rng(13)
    groups = {f"g{i}": random_group(random) for i in range(300)}
    told: set[str] = set()
    for row in frame(spark, groups).groupBy("key").agg(*ours()).collect():
        xs, ws = groups[row["key"]]
        scale = sum(abs(x) * w for x, w in zip(xs, ws, strict=True) if x is not None)
        for name, expected in as_numpy(xs, ws).items():
            found = row[name]
            for part in ("value", "lower", "upper"):
                wanted = float(getattr(expected, part))
                wanted = math.floor(wanted + 0.5) if (name, part) == ("count", "value") else wanted
                known = math.nan if found[part] is None else found[part]
                assert known == pytest.approx(wanted, rel=1e-9, abs=1e-12 * scale, nan_ok=True), (
                    row["key"],
                    name,
                    part,
                )
            assert found["status"] == status_of(expected)
            told.add(found["status"])
    assert told == {"exact", "bounded", "few rows"}


def status_and_rows_kept(answers, samples):
    def states(key: str) -> list[str]:
        return [answers[key][name]["status"] for name in NAMES]

    assert states("one rate") == ["bounded"] * 5
    assert states("untouched") == states("one row untouched") == ["exact"] * 5
    assert states("two rows") == states("one row") == states("no value") == ["few rows"] * 5
    assert states("with nulls") == ["bounded"] * 3 + ["few rows"] * 2
    assert states("seconds") == ["bounded"] * 5
    assert states("1e103") == ["bounded"] * 3 + ["unconfirmed"] * 2
    assert states("1e160") == ["bounded"] + ["unconfirmed"] * 4
    for key, (xs, _) in samples.items():
        assert {answers[key][name]["kept"] for name in NAMES} == {sum(x is not None for x in xs)}


@pytest.mark.long
@pytest.mark.parametrize("column", ["near", "far", "whole", "price"])
def test_without_shedding_the_answers_are_those_of_spark(spark, column):
    frame = spark.range(3000).select(
        (F.col("id") % 3).alias("key"),
        F.when(F.col("id") % 11 > 0, F.rand(5) * 40 - 10).alias("near"),
        (1e9 + F.randn(6)).alias("far"),
        (F.col("id") * 7919 % 1000 - 400).alias("whole"),
        (F.rand(7) * 100).cast("decimal(10,2)").alias("price"),
        F.lit(1.0).alias("jt_weight"),
    )
    theirs = [F.count(column), F.sum(column), F.avg(column), F.var_samp(column), F.stddev_samp(column)]
    named = [own.alias(f"own_{name}") for own, name in zip(theirs, NAMES, strict=True)]
    for row in frame.groupBy("key").agg(*ours(column), *named).collect():
        for name in NAMES:
            assert row[name]["value"] == row[f"own_{name}"]
            assert row[name]["lower"] == float(row[name]["value"]) == row[name]["upper"]
            assert row[name]["status"] == "exact"


def typed(spark: SparkSession, weight: float, rows: int = 3) -> DataFrame:
    return spark.range(rows).select(
        F.lit(9_007_199_254_740_993).alias("whole"),
        F.lit(1_000_003).cast("int").alias("small"),
        F.lit("90071992547409.93").cast("decimal(16,2)").alias("price"),
        F.lit("0.1").cast("decimal(38,18)").alias("fine"),
        F.lit(0.1).alias("real"),
        F.lit(0.1).cast("float").alias("single"),
        F.lit("0.1").alias("text"),
        F.lit(weight).alias("jt_weight"),
    )


@pytest.mark.usefixtures("interpreted")
def test_values_have_the_type_of_sparks_own_aggregate(spark):
    rows = typed(spark, 2.5)
    own = {"count": F.count, "sum": F.sum, "avg": F.avg, "variance": F.var_samp, "stddev": F.stddev_samp}
    for column in rows.columns[:-1]:
        mine, theirs = rows.agg(*ours(column)), rows.agg(*(own[name](column).alias(name) for name in NAMES))
        for name in NAMES:
            answer = mine.schema[name].dataType
            assert answer["value"].dataType == theirs.schema[name].dataType, (column, name)
            assert [answer[part].dataType.typeName() for part in ("lower", "upper")] == ["double"] * 2


@pytest.mark.long
def test_without_shedding_no_digit_is_lost(spark):
    rows = typed(spark, 1.0)
    for column in ("whole", "price", "fine"):
        found = rows.agg(jt.sum(column).alias("sum"), jt.avg(column).alias("avg"), F.sum(column), F.avg(column)).first()
        assert (found["sum"]["value"], found["avg"]["value"]) == tuple(found[2:])


def test_a_sum_of_longs_keeps_its_last_digit(spark):
    found = typed(spark, 1.0).agg(jt.sum("whole")).first()[0]
    assert (found["value"], found["status"]) == (27_021_597_764_222_979, "exact")


def test_estimates_are_rounded_into_the_type_of_the_value(spark):
    rows = spark.createDataFrame(
        [(1, Decimal("0.10"), 4.0 / 3.0), (2, Decimal("0.35"), 4.0 / 3.0)], "n long, d decimal(10,2), jt_weight double"
    )
    found = rows.agg(
        jt.count().alias("rows"), jt.sum("n").alias("n"), jt.sum("d").alias("d"), jt.avg("d").alias("mean")
    ).first()
    assert [found[name]["value"] for name in found.asDict()] == [3, 4, Decimal("0.60"), Decimal("0.225000")]


@pytest.mark.parametrize("weight", [1.0, 1e9])
def test_a_value_that_does_not_fit_is_null_and_nothing_raises(spark, weight):
    """Spark's own sum raises here; kept rows alone may overflow where all rows would not."""
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    rows = typed(spark, weight).select(
        F.lit(2**62).alias("n"), F.lit("9" * 38).cast("decimal(38,0)").alias("d"), "jt_weight"
    )
    found = rows.agg(jt.sum("n").alias("n"), jt.sum("d").alias("d"), jt.count().alias("rows"), jt.avg("d")).first()
    for name, each in (("n", 2.0**62), ("d", 1e38)):
        assert found[name]["value"] is None
        assert found[name]["lower"] <= 3 * each * weight * (1 + 1e-9)
        assert found[name]["upper"] >= 3 * each * weight * (1 - 1e-9)
    assert found["rows"]["value"] == 3 * weight
    far = typed(spark, 1e19).agg(jt.count().alias("rows")).first()["rows"]
    assert (far["value"], far["status"]) == (None, "few rows")


WHOLE = [1.0] * 50
GROUPS = {"shed": (WHOLE, [4.0] * 50), "few": ([1.0], [4.0]), "whole": (WHOLE, WHOLE)}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("otherwise_us", "statuses"),
    [
        (NEVER_US, {"shed": "bounded", "few": "few rows", "whole": "exact"}),
        (UNKNOWN_US, {"shed": "bounded", "few": "few rows", "whole": "unconfirmed"}),
        (DEPENDENT_US, {"shed": "dependent rows", "few": "dependent rows", "whole": "unconfirmed"}),
    ],
)
def test_the_status_says_what_the_plans_of_running_queries_leave_in_doubt(spark, tmp_path, otherwise_us, statuses):
    channel = published(spark, tmp_path, Doubts(otherwise_us=otherwise_us))
    found = frame(spark, GROUPS).groupBy("key").agg(jt.sum("x").alias("a")).collect()
    assert {row["key"]: row["a"]["status"] for row in found} == statuses
    assert all((row["a"]["lower"] is None) == (row["a"]["status"] == "unconfirmed") for row in found)
    Path(channel.uri).write_bytes(b"damaged")
    whole = frame(spark, {"whole": GROUPS["whole"]}).agg(jt.sum("x").alias("a")).first()
    assert whole["a"]["status"] == "unconfirmed", "nobody knows"


def published(spark: SparkSession, folder: Path, said: Doubts) -> Channel:
    channel = Channel(Folder(folder), lease_s=60.0)
    channel.publish(Schedule.of(DropPlan(1), said))
    doubts.register(spark, channel)
    return channel


@pytest.mark.usefixtures("interpreted")
def test_answers_are_in_doubt_only_if_their_window_begins_before_the_last_drop(spark, tmp_path, monkeypatch):
    """Where the query has found them in its plan; with a second guard around, which has a say in all others alone."""
    marks = ["name", "column", "stranger"]
    monkeypatch.setattr(doubts.secrets, "token_hex", lambda _: marks.pop(0))
    published(spark, tmp_path / "ours", Doubts(20_000_001, UNKNOWN_US, {"name": 0, "column": 10_000_000}))
    rows = spark.range(50).select(F.timestamp_seconds("id").alias("at"), F.lit(1.0).alias("jt_weight"))
    window = F.window("at", "10 seconds")
    for more in range(2):
        if more:
            published(spark, tmp_path / "theirs", Doubts(UNKNOWN_US, UNKNOWN_US, {"other": 0}))
            marks[:] = ["name", "column", "stranger"]
        for by, first_exact in (("window", 30), (window, 40), ("window", 50)):
            found = rows.groupBy(window).agg(jt.count(window=by).alias("n")).collect()
            statuses = {row["window"]["start"].timestamp(): row["n"]["status"] for row in found}
            assert statuses == {
                float(start): "exact" if start >= first_exact else "unconfirmed" for start in range(0, 50, 10)
            }


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("until_us", "status"), [(NEVER_US, "exact"), (UNKNOWN_US, "unconfirmed")])
def test_no_time_lies_beyond_what_is_said_of_all_times(spark, tmp_path, monkeypatch, until_us, status):
    years = [1, 1900, 2026, 2150, 9000, 60_000]
    monkeypatch.setattr(doubts.secrets, "token_hex", lambda _: "ours")
    published(spark, tmp_path, Doubts(until_us, until_us, {"ours": 0}))
    seconds = F.explode(F.array(*[F.lit((year - 1970) * 31_556_952) for year in years])).alias("s")
    rows = spark.range(1).select(seconds).select(F.timestamp_seconds("s").alias("at"), F.lit(1.0).alias("jt_weight"))
    found = rows.groupBy(F.window("at", "10 seconds")).agg(jt.count(window="window").alias("n")).select("n.status")
    assert [row["status"] for row in found.collect()] == [status] * len(years)


def test_copies_of_a_row_are_put_together_before_they_are_added_up(spark):
    """The way that docs/estimators.md shows: one row of each decision, then the answer."""
    copies = spark.range(400).select(
        "id",
        (F.col("id") % 2).alias("key"),
        F.lit(3.0).alias("jt_weight"),
        F.explode(F.sequence(F.lit(0), (F.col("id") % 8).cast("int"))).alias("x"),
    )
    by_row = copies.groupBy("key", "id").agg(
        F.sum("x").alias("x"), F.count("x").alias("n"), F.max("jt_weight").alias("jt_weight")
    )
    found = by_row.groupBy("key").agg(jt.sum("x").alias("sum"), jt.sum("n").alias("count")).collect()
    for row in found:
        last = [i % 8 for i in range(400) if i % 2 == row["key"]]
        for name, each in (("sum", [m * (m + 1) / 2 for m in last]), ("count", [m + 1.0 for m in last])):
            wanted = as_numpy(each, [3.0] * 200)["sum"]
            assert [row[name][part] for part in ("value", "lower", "upper")] == pytest.approx(
                [float(wanted.value), float(wanted.lower), float(wanted.upper)]
            )


def test_rows_that_were_dropped_and_kept_some_columns_are_not_taken_for_kept_ones(spark):
    rows = spark.createDataFrame([("a", 2.0, 5)] * 40 + [("a", None, 5)] * 60, "key string, jt_weight double, n long")
    answer = rows.groupBy("key").agg(jt.count("key").alias("n"), jt.sum("n").alias("total")).first()
    assert (answer.n.kept, answer.n.value) == (40, 80)
    assert (answer.total.kept, answer.total.value) == (40, 400)
    assert answer.n.lower <= answer.n.value <= answer.n.upper


def test_count_of_rows_includes_rows_without_a_value(spark):
    rows = spark.createDataFrame([(1.0, 2.0), (None, 2.0)], "x double, jt_weight double")
    row = rows.agg(jt.count().alias("rows"), jt.count("x").alias("values")).first()
    assert (row["rows"]["value"], row["values"]["value"]) == (4.0, 2.0)


@pytest.mark.usefixtures("interpreted")
def test_empty_input_gives_no_value_and_does_not_raise(spark):
    row = spark.createDataFrame([], "x double, jt_weight double").agg(*ours()).first()
    assert row["count"]["value"] == 0.0
    assert all(row[name]["value"] is None for name in NAMES[1:])


def test_weight_column_and_confidence_can_be_chosen(spark):
    rows = spark.range(100).select(F.col("id").cast("double").alias("x"), F.lit(4.0).alias("w"))
    row = rows.agg(
        jt.avg("x", weight="w").alias("usual"), jt.avg(F.col("x"), weight=F.col("w"), confidence=0.99).alias("wide")
    ).first()
    assert (
        row["wide"]["lower"]
        < row["usual"]["lower"]
        < row["usual"]["value"]
        < row["usual"]["upper"]
        < row["wide"]["upper"]
    )
    with pytest.raises(InvalidSetting, match="confidence"):
        jt.avg("x", confidence=1.5)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("mode", ["append", "update"])
def test_windows_of_a_stream(spark, tmp_path, mode):
    folder = tmp_path / "in"
    for part, at in enumerate(("00:01:00", "00:02:00", "00:30:00")):
        spark.range(60).coalesce(1).select(
            F.lit(f"2026-01-01 {at}").cast("timestamp").alias("time"),
            (F.col("id") + 100 * part).cast("double").alias("x"),
            F.lit([2.0, 5.0, 1.0][part]).alias("jt_weight"),
        ).write.mode("append").json(str(folder))
    query = (
        spark.readStream.schema("time timestamp, x double, jt_weight double")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder))
        .withWatermark("time", "1 minute")
        .groupBy(F.window("time", "10 minutes"))
        .agg(*ours()[: 5 if mode == "append" else 3])
        .writeStream.format("memory")
        .queryName(f"answers_{mode}")
        .outputMode(mode)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(60)
        rows = spark.table(f"answers_{mode}").collect()
    finally:
        query.stop()
    first = max((row for row in rows if row["window"]["start"].minute == 0), key=lambda row: row["count"]["kept"])
    assert first["count"]["kept"] == 120
    assert first["count"]["value"] == 60 * 2.0 + 60 * 5.0
    assert first["avg"]["value"] == pytest.approx(statistics.fmean([29.5] * 2 + [129.5] * 5))
    assert first["sum"]["lower"] < first["sum"]["value"] < first["sum"]["upper"]


@pytest.mark.usefixtures("interpreted")
def test_a_percentile_counts_each_row_as_often_as_it_weighs(spark):
    weighed = [(float(x), w) for x, w in enumerate([1.0, 40.0, 1.0, 2.5, 6.5, 1.0, 300.25])]
    repeated = [x for x, w in weighed for _ in range(round(100 * w))]
    emptied = [(5.0, None), (None, None), (None, 7.0)]  # dropped rows that are only counted, and a row without a value
    row = spark.createDataFrame(weighed + emptied, "x double, jt_weight double")
    found = row.agg(*(jt.percentile("x", p).alias(str(p)) for p in (0.05, 0.5, 0.95))).first()
    assert [one["value"] for one in found] == pytest.approx(np.percentile(repeated, [5, 50, 95]))
    assert [(one["kept"], one["status"]) for one in found] == [(7, "few rows")] * 3
    with pytest.raises(InvalidSetting, match="for the 95th percentile"):
        jt.percentile("x", 95)


PERCENTAGES = (0.0, 0.1, 0.5, 0.9, 0.99, 1.0)


@pytest.mark.long
def test_bounds_of_percentiles_on_spark_and_numpy_agree(spark, samples):
    more = {f"g{i}": random_group(np.random.default_rng(i)) for i in range(60)}
    groups = samples | more
    asked = [jt.percentile("x", p).alias(f"p{p}") for p in PERCENTAGES]
    for row in frame(spark, groups).groupBy("key").agg(*asked).collect():
        xs, ws = groups[row["key"]]
        values = np.array([math.nan if x is None else x for x in xs], float)
        with np.errstate(over="ignore", invalid="ignore"):
            weights, _ = sampled.describe(values, ws)
        for p in PERCENTAGES:
            ranks = sampled.describe_ranks(values, ws, p)
            wanted = percentile_estimate(p)(sampled.NUMPY, weights, ranks, estimate.quantile(0.95))
            found = row[f"p{p}"]
            for part in ("value", "lower", "upper"):
                known = math.nan if found[part] is None else found[part]
                expected = float(getattr(wanted, part))
                assert known == pytest.approx(expected, rel=1e-12, nan_ok=True), (row["key"], p, part)
            assert found["status"] == ("exact" if wanted.exact else "bounded" if wanted.enough else "few rows")


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("column", ["whole", "price", "real", "text"])
def test_without_shedding_percentiles_are_those_of_spark(spark, column):
    numbers = spark.range(101).select(
        (F.col("id") * 7919 % 1000).alias("whole"),
        (F.rand(7) * 100).cast("decimal(10,2)").alias("price"),
        F.when(F.col("id") % 11 > 0, F.rand(5)).alias("real"),
        F.rand(9).cast("string").alias("text"),
        F.lit(1.0).alias("jt_weight"),
    )
    # One type of column at all percentages, the other types at some: each answer takes long to plan and to compile.
    asked_for = PERCENTAGES if column == "real" else (0.1, 0.5, 1.0)
    asked = [(jt.percentile(column, p).alias(f"p{p}"), F.percentile(column, p).alias(f"own{p}")) for p in asked_for]
    found = numbers.agg(*[one for pair in asked for one in pair])
    row = found.first()
    for p in asked_for:
        own, ours = row[f"own{p}"], row[f"p{p}"]
        assert (ours["value"], ours["lower"], ours["upper"], ours["status"]) == (own, own, own, "exact")
        assert found.schema[f"p{p}"].dataType["value"].dataType == found.schema[f"own{p}"].dataType


@pytest.mark.usefixtures("interpreted")
def test_a_bound_beyond_all_kept_rows_is_null_and_says_so(spark):
    rows = spark.range(40).select(F.col("id").alias("x"), F.lit(4.0).alias("jt_weight"))
    high = rows.agg(jt.percentile("x", 0.97).alias("p")).first()["p"]
    assert (high["upper"], high["status"]) == (None, "few rows")
    assert high["lower"] < high["value"]
    far = rows.agg(jt.percentile("x", 1.0).alias("p")).first()["p"]
    assert (far["value"], far["lower"], far["upper"], far["status"]) == (39.0, None, None, "few rows")


def test_all_rows_are_counted_as_in_spark(spark):
    rows = spark.createDataFrame([(1.0, 2.0), (None, 2.0)], "x double, jt_weight double")
    found = rows.agg(jt.count("*").alias("a"), jt.count().alias("b"), jt.count(F.col("x")).alias("c")).first()
    assert [one["value"] for one in found] == [4, 4, 2]


def test_no_python_stands_in_the_plan(spark, samples, capsys):
    frame(spark, samples).groupBy("key").agg(*ours()).explain()
    plan = capsys.readouterr().out
    assert "HashAggregate" in plan
    assert "Python" not in plan
    assert "SortAggregate" not in plan
    frame(spark, samples).groupBy("key").agg(jt.percentile("x", 0.9)).explain()
    assert "Python" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answers", "numbers"),
    [
        (lambda: [jt.avg("x")], 7),
        (lambda: [jt.avg("x"), jt.sum("x")], 7),
        (lambda: [jt.avg("d")], 8),  # the mean of decimals is a decimal
        (lambda: [jt.count()], 3),
    ],
    ids=["avg", "avg and sum", "avg of decimals", "count"],
)
def test_a_group_holds_few_numbers_and_answers_share_them(spark, answers, numbers, capsys):
    rows = spark.range(9).selectExpr(
        "id % 2 AS key", "id / 3D AS x", "cast(id AS decimal(9,2)) AS d", "id + 1D AS jt_weight"
    )
    rows.groupBy("key").agg(*answers()).explain("formatted")
    plan = capsys.readouterr().out
    assert f"Functions [{numbers}]" in plan
    assert "SortAggregate" not in plan
    assert "ObjectHashAggregate" not in plan


def test_evidence_counts_dropped_rows_and_weighs_kept_ones(spark: SparkSession) -> None:
    groups: dict[str, tuple[list[float | None], list[Any]]] = {
        "emptied": ([10.0, 20.0, None, None], [4.0, 1.0, None, None]),
        "none kept": ([None, None], [None, None]),
        "gone": ([10.0, 20.0], [4.0, 2.0]),
        "whole": ([10.0, 20.0], [1.0, 1.0]),
    }
    found = {
        row.key: row.seen for row in frame(spark, groups).groupBy("key").agg(jt.evidence("x").alias("seen")).collect()
    }
    assert tuple(found["emptied"]) == pytest.approx((60.0 / 5.0, 50.0, 2, 25.0 / 12.0, 4.0))
    assert tuple(found["none kept"]) == (None, None, 0, None, 2.0)
    assert tuple(found["gone"]) == pytest.approx((80.0 / 6.0, 50.0, 2, 36.0 / 14.0, 6.0))
    assert tuple(found["whole"]) == (15.0, 50.0, 2, None, 2.0)
