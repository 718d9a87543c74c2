"""Weights of a network's outputs: they reach the sinks, multiply along a path, and no aggregate ignores them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.spark import network_query as network_module
from jettison.spark.network_query import Network
from spark.test_network import Collected, estimated_totals, fixed, rows, run, weighed, windowed

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]


@pytest.mark.long
def test_nothing_is_dropped_before_plain_aggregates(source, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Their counts and sums would be too small without a word. Nobody says which ones they are."""
    for function, plain in ((windowed, True), (weighed, False), (estimated_totals, False)):
        network = Network()
        stream = network.input("readings", source.stream(), row_id="id")
        parsed = network.map("parse", stream, lambda r: r.withColumn("twice", F.col("value") * 2))
        network.output("o", network.aggregate("sums", parsed, function), Collected())
        network.output("all", parsed, Collected())
        caplog.clear()
        network.start(latency="1 minute", checkpoint=tmp_path / function.__name__).stop()
        points = {"parse__all"} if plain else {"readings", "parse__sums", "parse__all"}
        assert network.shedder is not None
        assert set(network.shedder.status().keep_fraction) == points
        assert ("nothing is dropped before box 'sums': `sum(value)` does not use" in caplog.text) == plain
        assert ("sums: `sum(value)` does not use `jt_weight`" in network.plan()) == plain


def test_looking_for_weights_makes_spark_complain_of_nothing(source, capfd) -> None:
    """Spark logs an error for each query that it cannot resolve, whoever catches the exception."""

    def by_another_name(rows: DataFrame) -> DataFrame:
        return rows.withColumnRenamed("jt_weight", "w").groupBy("key").agg(F.sum("w").alias("n"))

    for function in (counted, by_another_name):
        network = Network()
        stream = network.input("readings", source.stream(), row_id="id")
        network.output("o", network.aggregate("sums", stream, function), Collected())
        network.plan()
    assert "jt_weight" not in capfd.readouterr().err


def test_every_output_keeps_its_weights_which_multiply_along_a_path(
    spark: SparkSession, source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three drop points on a path: the weighted count of each output is that of all its rows, within its error."""
    shares = {"readings": 0.7, "parse__high": 0.6, "high__odd": 0.5, "high__even": 0.8, "parse__totals": 0.9}
    plan = {name: RandomDrop(share) for name, share in shares.items()}
    monkeypatch.setattr(network_module, "NetworkDrop", fixed(plan))
    network = Network()
    stream = network.input("readings", source.stream(), row_id="id")
    parsed = network.map("parse", stream, lambda r: r.withColumn("twice", F.col("value") * 2))
    high = network.filter("high", parsed, "value >= 40")
    network.output("out_odd", network.filter("odd", high, "id % 2 = 1"), str(tmp_path / "odd"))
    network.output("out_even", network.filter("even", high, "id % 2 = 0"), str(tmp_path / "even"))
    network.output("sums", network.aggregate("totals", parsed, counted), str(tmp_path / "sums"))
    landed = rows(0, 20_000)
    run(network, tmp_path, source, [landed[:10_000], landed[10_000:], rows(20_000, 20_200)])
    for name, parity in (("odd", 1), ("even", 0)):
        chance = shares["readings"] * shares["parse__high"] * shares[f"high__{name}"]
        written = spark.read.parquet(str(tmp_path / name)).where("id < 20000")
        assert {round(row.jt_weight, 9) for row in written.select("jt_weight").distinct().collect()} == {
            round(1 / chance, 9)
        }
        true = sum(row["value"] >= 40 and row["id"] % 2 == parity for row in landed)
        estimate = written.agg(F.sum("jt_weight")).first()[0]
        assert estimate == pytest.approx(true, abs=4 * (true * (1 - chance) / chance) ** 0.5)
    sums = spark.read.parquet(str(tmp_path / "sums"))
    assert "jt_weight" not in sums.columns
    found = sums.selectExpr("count(*) * 60", "sum(n.value)").first()
    chance = shares["readings"] * shares["parse__totals"]
    assert found[0] > 15_000
    assert found[1] == pytest.approx(found[0], abs=4 * (found[0] * (1 - chance) / chance) ** 0.5)


def counted(rows: DataFrame) -> DataFrame:
    windows = rows.withWatermark("at", "10 seconds").groupBy(F.window("at", "1 minute"))
    return windows.agg(jt.count().alias("n"))
