"""The harness beside rivals: rows arrive as scheduled, and a run is judged by what it delivered."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.lab.demo.experiment import Batch, Run
from jettison.lab.demo.landing import Landing
from jettison.lab.demo.rides import RideBook
from jettison.lab.demo.schedule import EVENT_EPOCH_S, Phase
from jettison.lab.prove import saturated
from jettison.lab.prove.judge import answer_figures, latencies, recovery_s
from jettison.lab.prove.loads import constant, step
from jettison.lab.prove.prepared import PreparedFeed, rows_in, schedule_of
from jettison.lab.prove.rivals import entrants
from jettison.lab.prove.trial import Trial
from jettison.lab.prove.vocabulary import Plain
from jettison.lab.prove.workloads import all_workloads

pytestmark = [pytest.mark.long, pytest.mark.spark]
PHASES = [Phase(0.4, 500), Phase(0.4, 1_000)]
TAXI = all_workloads()["taxi"]
STARTED_S = 1_700_000_000.0
BOUND_S = 5.0


def run(batches: list[Batch] = (), *, ended_s: float = 60.0, rows_per_s: float = 100.0) -> Run:  # type: ignore[assignment]
    landing = Landing(schedule_of([Phase(60.0, rows_per_s)]), RideBook(), int(STARTED_S * 1e6))
    landed = int(60 * rows_per_s)
    return Run("r", landing, STARTED_S, STARTED_S, STARTED_S + ended_s, batches, landed)


def test_rows_land_on_schedule_and_say_when_they_arrived(spark: SparkSession, tmp_path: Path) -> None:
    TAXI.write(spark, tmp_path / "prepared", schedule_of(PHASES))
    with PreparedFeed(tmp_path / "prepared", tmp_path / "in", PHASES) as feed:
        assert feed.wait().rows == 600
    rows = rows_in(spark, tmp_path / "in", stream=False).orderBy("offset").collect()
    assert [row.offset for row in rows] == list(range(600))
    due = feed.landing.arrival_of(range(600))
    assert [row.timestamp.timestamp() for row in rows] == pytest.approx(
        due.tolist(), abs=2e-3
    )  # files have milliseconds


def test_taxi_rows_are_the_demos_and_tell_zone_time_and_fare_unparsed(spark: SparkSession, tmp_path: Path) -> None:
    TAXI.write(spark, tmp_path / "prepared", schedule_of(PHASES))
    rows = rows_in(spark, tmp_path / "prepared", stream=False)
    assert TAXI.group is not None
    assert TAXI.value is not None
    read = {"zone": TAXI.group, "at": TAXI.time, "fare": TAXI.value}
    made = rows.select("value", *(F.expr(sql).alias(name) for name, sql in read.items()))
    parsed = made.withColumn("ride", F.from_json("value", "zone STRING, time TIMESTAMP, fare DOUBLE"))
    assert parsed.where("zone = ride.zone and at = ride.time and fare = ride.fare").count() == 600
    assert TAXI.answers(rows, Plain()).agg(F.sum("rides")).first()[0] == 600.0  # type: ignore[index]


@pytest.fixture
def truth(spark: SparkSession) -> DataFrame:
    """Two zones in three windows, ten rides at 20.0 in each."""
    rows = [(_at(end), zone, 10.0, 20.0) for end in (5, 10, 15) for zone in ("A", "B")]
    return spark.createDataFrame(rows, "end TIMESTAMP, zone STRING, rides DOUBLE, fare DOUBLE")


def test_an_answer_is_judged_by_its_error_and_by_when_it_came(
    spark: SparkSession, truth: DataFrame, tmp_path: Path
) -> None:
    """The first window comes in time with half of the rides missing, the second late and exact, the third never."""
    _deliver(spark, tmp_path, [(5, "A", 5.0, 20.0), (5, "B", 10.0, 20.0)], came_s=8.0)
    _deliver(spark, tmp_path, [(10, "A", 10.0, 20.0)], came_s=30.0)
    found = answer_figures(spark, TAXI, truth, tmp_path, run(), BOUND_S)
    assert found["late_windows"] == pytest.approx(2 / 3)
    assert found["groups_missing"] == pytest.approx(1 / 4)
    assert found["error_mean"] == pytest.approx(0.5 / 6)
    assert found["utility"] == pytest.approx((0.75 + 1.0) / 6)
    assert math.isnan(found["coverage"])


def test_a_window_that_could_not_yet_be_late_is_not_judged(
    spark: SparkSession, truth: DataFrame, tmp_path: Path
) -> None:
    _deliver(spark, tmp_path, [(5, zone, 10.0, 20.0) for zone in ("A", "B")], came_s=8.0)
    found = answer_figures(spark, TAXI, truth, tmp_path, run(ended_s=16.5), BOUND_S)
    assert (found["late_windows"], found["utility"], found["groups_missing"]) == (0.0, 1.0, 0.0)


def test_bounds_are_held_against_the_truth(spark: SparkSession, truth: DataFrame, tmp_path: Path) -> None:
    bounded = F.struct(
        F.col("fare").alias("value"),
        (F.col("fare") - 1).alias("lower"),
        (F.col("fare") + 1).alias("upper"),
        F.when(F.col("zone") == "A", "bounded").otherwise("few rows").alias("status"),
    )
    answers = [(5, "A", 10.0, 20.5), (5, "B", 10.0, 90.0), (10, "A", 10.0, 22.0), (10, "B", 10.0, 20.0)]
    _deliver(spark, tmp_path, answers, came_s=8.0, fare=bounded)
    assert answer_figures(spark, TAXI, truth, tmp_path, run(), BOUND_S)["coverage"] == pytest.approx(0.5)


def test_nothing_delivered_is_late_and_worth_nothing(spark: SparkSession, truth: DataFrame, tmp_path: Path) -> None:
    found = answer_figures(spark, TAXI, truth, tmp_path, run(), BOUND_S)
    assert (found["late_windows"], found["utility"]) == (1.0, 0.0)


def test_recovery_is_from_the_end_of_the_overload_to_the_last_batch_over_the_bound() -> None:
    load = step(3.0)(100.0, 60.0)  # over at 37.5 s
    within = Batch(0, STARTED_S, STARTED_S + 30.0, 0, 2800, 1.0)
    late = Batch(1, STARTED_S + 30.0, STARTED_S + 40.0, 2800, 3500, 1.0)
    last = Batch(2, STARTED_S + 57.0, STARTED_S + 60.0, 5800, 6000, 1.0)
    assert recovery_s(run([within, last]), load, BOUND_S) == 0.0
    assert recovery_s(run([within, late, last]), load, BOUND_S) == pytest.approx(2.5)
    assert recovery_s(run([within, late]), load, BOUND_S) == math.inf
    assert latencies(run([within, late]), load)[1] > BOUND_S


def test_a_load_without_an_end_tells_nothing_of_recovery() -> None:
    assert math.isnan(recovery_s(run(), constant(3.0)(100.0, 60.0), BOUND_S))
    assert math.isnan(recovery_s(run(), step(0.7)(100.0, 60.0), BOUND_S)) is False
    assert math.isnan(recovery_s(run(), constant(0.7)(100.0, 60.0), BOUND_S))


def test_of_very_many_answers_the_same_few_are_judged(spark: SparkSession, truth: DataFrame, tmp_path: Path) -> None:
    """Those of one zone alone: what is wrong with the other goes unseen, and is not missing either."""
    few = replace(TAXI, judged_one_in=7)
    zones = {row.zone for row in truth.where(F.pmod(F.xxhash64("zone"), F.lit(7)) == 0).collect()}
    assert zones != {"A", "B"}
    _deliver(spark, tmp_path, [(end, zone, 10.0, 20.0) for end in (5, 10, 15) for zone in zones], came_s=8.0)
    found = answer_figures(spark, few, truth, tmp_path, run(), BOUND_S)
    assert math.isnan(found["utility"]) or (found["utility"], found["groups_missing"]) == (1.0, 0.0)


@pytest.mark.long
def test_entrants_run_from_end_to_end(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows a second, one entrant of each kind: every figure is there that can be."""
    monkeypatch.setattr(saturated, "MOST_RUNS", 2)
    workload = all_workloads()["nexmark-q12"]
    assert saturated.capacity(spark, tmp_path / "capacity", workload, 1_000.0).rows_per_s > 0.0
    trial = Trial(spark, tmp_path, workload, step(1.2)(1_000.0, 18.0), 3.0, 1_000.0)
    trial.prepare()
    for rival in entrants(workload, ["told", "plain", "oasrs"]):
        setting = trial.tuned(rival)
        assert (setting is not None) == rival.is_set, rival.name
        found = trial.run(rival, setting)
        assert 0.0 < found.latency_p50_s <= found.latency_p99_s, rival.name
        assert 0.0 <= found.utility <= 1.0, rival.name
        assert found.cpu_s > 0.0, rival.name
        assert found.feed_late_s >= 0.0, rival.name
        assert found.batches_a_window > 0.0, rival.name
    assert not (tmp_path / "run").exists()


def _at(end_s: float) -> datetime:
    return datetime.fromtimestamp(EVENT_EPOCH_S + end_s, UTC)


def _deliver(spark: SparkSession, folder: Path, answers: list, *, came_s: float, fare: object = None) -> None:
    """One file of answers that was written so long after the start."""
    rows = spark.createDataFrame(
        [(_at(end), *rest) for end, *rest in answers], "end TIMESTAMP, zone STRING, rides DOUBLE, fare DOUBLE"
    )
    if fare is not None:
        rows = rows.withColumn("fare", fare)  # type: ignore[arg-type]
    before = set(folder.glob("*.parquet"))
    rows.coalesce(1).write.mode("append").parquet(str(folder))
    for path in set(folder.glob("*.parquet")) - before:
        os.utime(path, (STARTED_S + came_s, STARTED_S + came_s))
