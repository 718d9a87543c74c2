"""The rows that pipeline files may have made: the same in every run, and made by Spark alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.pipeline.document import InputFile
from jettison.pipeline.generators import GENERATORS
from jettison.spark import pipeline
from jettison.spark.explained import explained

pytestmark = pytest.mark.spark
ROWS = 50_000


def made(spark: SparkSession, name: str) -> DataFrame:
    """Rows as the stream has them, of numbers that `rate` would count."""
    numbers = spark.range(ROWS).selectExpr("id as value", "timestamp'2026-03-02 08:00:00' as timestamp")
    return numbers.selectExpr(*GENERATORS[name].drawn).selectExpr(*GENERATORS[name].columns)


def test_rides_and_readings_are_spread_as_they_say(spark: SparkSession) -> None:
    rides = made(spark, "rides").persist()
    late = F.col("timestamp").cast("double") - F.col("time").cast("double")
    low, high, ids = rides.agg(F.min(late), F.max(late), F.count_distinct("ride_id")).first()
    assert (0 <= low < 0.01, 1.99 < high <= 2, ids) == (True, True, ROWS)
    zones = {row.zone: row["count"] for row in rides.groupBy("zone").count().collect()}
    assert (len(zones), max(zones, key=zones.__getitem__), min(zones), max(zones)) == (150, "Z001", "Z001", "Z150")
    assert zones["Z001"] / ROWS == pytest.approx(0.138, abs=0.01)
    assert zones["Z150"] / ROWS == pytest.approx(0.0013, abs=0.0008)
    # 2.50 and a log-normal part of mean 1.75 exp(0.9 + 0.65^2 / 2)
    mean, least, cash = rides.agg(F.avg("fare"), F.min("fare"), F.avg((F.col("payment") == "cash").cast("int"))).first()
    assert (mean, cash) == (pytest.approx(7.82, abs=0.15), pytest.approx(0.25, abs=0.01))
    assert least > 2.5
    assert rides.where("payment = 'cash' and tip > 0").isEmpty()
    readings = made(spark, "readings").persist()
    assert readings.select(F.count_distinct("sensor")).first()[0] == 1000
    spread, wet = (
        readings.where("sensor = 0 or sensor >= 500")
        .agg(F.stddev(F.col("heat") - F.col("sensor") / 100), F.avg("humidity"))
        .first()
    )
    assert (spread, wet) == (pytest.approx(2.0, abs=0.1), pytest.approx(50.0, abs=1.0))


@pytest.mark.usefixtures("interpreted", "one_partition")
@pytest.mark.parametrize("name", GENERATORS)
def test_a_stream_of_them_has_the_same_rows_and_no_python(spark: SparkSession, name: str, tmp_path: Path) -> None:
    source = InputFile(format=name, options={"rowsPerSecond": 1000}, sql=f"select *, 1 as more from {name}")
    stream = pipeline.streamed(spark, name, source)
    assert "Python" not in explained(stream.explain)
    query = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
    running = query.start(str(tmp_path / "out"))
    try:
        while not any(one.numInputRows for one in running.recentProgress):
            assert running.isActive
            running.awaitTermination(0.2)
    finally:
        running.stop()
    times = ("timestamp", "time", "more")
    found = spark.read.schema(stream.schema).parquet(str(tmp_path / "out")).drop(*times)
    assert found.count() > 0
    assert found.exceptAll(made(spark, name).drop(*times)).isEmpty()
