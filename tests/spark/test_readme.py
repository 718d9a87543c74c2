"""The README's snippet is executed as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jettison.lab.demo.landing import RIDE_SCHEMA, land_all
from jettison.lab.demo.pipeline import raw_rides

README = Path(__file__).parents[2] / "README.md"


def snippet() -> str:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


def test_the_snippet_runs_and_its_answers_are_exact_while_nothing_is_shed(spark: SparkSession, tmp_path: Path) -> None:
    landing = land_all(tmp_path / "in", 20_000, rows_per_file=20_000, event_speed=2000.0)
    names = {
        "raw": raw_rides(spark, tmp_path / "in").withColumn("value", F.col("value").cast("binary")),  # as from Kafka
        "schema": RIDE_SCHEMA,
        "checkpoint": tmp_path / "checkpoint",
        "output": str(tmp_path / "out"),
    }
    exec(snippet().replace('"3 seconds"', '"1 hour"'), names)  # so that a slow machine sheds nothing
    names["query"].processAllAvailable()
    names["query"].stop()
    answers = spark.read.parquet(str(tmp_path / "out")).collect()
    truth = landing.truth(window_s=5)
    assert answers
    for answer in answers:
        exact = truth[int(answer.window.start.timestamp()), answer.zone]
        assert answer.fare.status == "exact"
        assert abs(answer.fare.value - exact.fare_mean) < 1e-9
        assert (answer.rides.value, answer.rides.kept) == (exact.rides, exact.rides)


def test_the_snippet_is_short() -> None:
    assert len(snippet().strip().splitlines()) <= 15
